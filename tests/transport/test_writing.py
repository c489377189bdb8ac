"""Bodies larger than what a socket takes at once."""

from __future__ import annotations

import hashlib
import threading

import pytest

from harness.transport.tls import client_context
from harness.wire.request import Failure, Request
from tests.conftest import HANG_S

from .conftest import Recorder, answer_of, get, wait_until
from .peers import Http1Session, Http2Peer, Peer
from .test_dialing import LOOPBACK, authority, server_tls

__all__ = ["authority", "server_tls"]  # fixtures

BODY = bytes(range(251)) * 40_000
"""10 MB: more than the kernel's buffers of a loopback connection."""


def post(body: bytes = BODY) -> Request:
    return Request("create", "POST", "/big", "big", body)


@pytest.mark.parametrize("encrypted", [False, True])
def test_what_a_slow_reader_does_not_take_is_kept_and_written_later(
    serve, connect, authority, server_tls, encrypted
):
    read_on = threading.Event()

    def slow(peer, sock):
        read_on.wait(HANG_S)
        session = Http1Session(sock)
        _, _, body = session.next_request()
        session.reply(hashlib.sha256(body).hexdigest().encode())
        session.close()

    peer = serve(Peer(slow, server_tls(LOOPBACK) if encrypted else None))
    tls = client_context(authority.certificate, http="http/1.1") if encrypted else None
    transport = connect(peer, tls=tls, http="http/1.1")
    sink = Recorder()
    transport.send(post(), sink)
    wait_until(lambda: transport.statistics().open_streams)
    assert transport.statistics().sent_bytes < len(BODY)
    read_on.set()
    assert sink.until_end().body == hashlib.sha256(BODY).hexdigest().encode()


def test_cancel_while_the_socket_is_blocked_leaves_nothing(serve, connect):
    done = threading.Event()
    peer = serve(Peer(lambda peer, sock: done.wait(HANG_S)))
    transport = connect(peer, http="http/1.1")
    sink = Recorder()
    handle = transport.send(post(), sink)
    wait_until(lambda: transport.statistics().sent_bytes)
    handle.cancel()
    assert not transport.statistics().open_connections
    done.set()


def test_a_peer_that_closes_while_we_write_is_a_reset(serve, connect):
    peer = serve(Peer(lambda peer, sock: sock.recv(10)))
    transport = connect(peer, http="http/1.1")
    sink = Recorder()
    transport.send(post(), sink)
    error = sink.until_end().error
    assert (error.failure, error.member) == (Failure.RESET, "m1")


def test_requests_sent_together_arrive_in_order_and_whole(serve, connect):
    """Many streams at once over HTTP/2 with bodies beyond the windows: nothing interleaves."""

    def answer(session, stream_id, headers, body):
        session.reply(stream_id, headers[":path"].encode() + hashlib.sha256(body).digest())

    transport = connect(serve(Http2Peer(answer)))
    bodies = [bytes([n]) * (n * 7_001) for n in range(15)]
    sinks = [Recorder() for _ in bodies]
    for number, (body, sink) in enumerate(zip(bodies, sinks, strict=True)):
        transport.send(Request("create", "POST", f"/{number}", "n", body), sink)
    for number, (body, sink) in enumerate(zip(bodies, sinks, strict=True)):
        assert sink.until_end().body == f"/{number}".encode() + hashlib.sha256(body).digest()
    assert answer_of(transport, get()).status == 200
