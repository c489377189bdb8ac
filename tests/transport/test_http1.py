"""HTTP/1.1: keep-alive, chunked streams, connections that close."""

from __future__ import annotations

import pytest

from harness.wire.request import Failure, Request

from .conftest import Recorder, answer_of, failure_of, get, wait_until, watch
from .peers import Http1Session, Peer


def serving(answer):
    """A peer that gives each request to `answer(session, line, headers, body)` until that returns False."""

    def serve(peer, sock):
        session = Http1Session(sock)
        try:
            while (request := session.next_request()) and answer(session, *request) is not False:
                pass
        finally:
            session.close()

    return Peer(serve)


def echo(session, line, headers, body):
    session.reply(line.encode() + b"|" + body, 200, "X-One: 1", "Warning: a", "Warning: b")


def test_a_request_is_written_and_its_answer_read(serve, connect):
    seen = {}

    def answer(session, line, headers, body):
        seen.update(headers, line=line, body=body)
        session.reply(b"{}", 201, "X-One: 1", "Warning: a", "Warning: b")

    transport = connect(serve(serving(answer)), http="http/1.1", headers={"User-Agent": "kubelet"})
    reply = answer_of(transport, Request("create", "POST", "/pods", "pods", b"{1}", "application/json"))
    assert (reply.status, reply.body, reply.member) == (201, b"{}", "m1")
    assert reply.headers == {"content-length": "2", "x-one": "1", "warning": "a, b"}
    assert seen.pop("host").startswith("127.0.0.1:")
    assert seen == {
        "line": "POST /pods HTTP/1.1",
        "accept": "application/json",
        "content-type": "application/json",
        "content-length": "3",
        "user-agent": "kubelet",
        "body": b"{1}",
    }


def test_auto_without_tls_speaks_http_1_1(serve, connect):
    assert answer_of(connect(serve(serving(echo)), http="auto"), get()).status == 200


def test_a_connection_is_used_again_and_each_request_in_flight_has_its_own(serve, connect):
    peer = serve(serving(echo))
    transport = connect(peer, http="http/1.1")
    for _ in range(3):
        answer_of(transport, get())
    assert peer.accepted == 1
    sinks = [Recorder() for _ in range(4)]
    for sink in sinks:
        transport.send(get(), sink)
    for sink in sinks:
        assert sink.until_end().error is None
    assert 2 <= peer.accepted <= 4


@pytest.mark.parametrize("most", [0, 1, 4])
def test_no_more_idle_connections_than_allowed_are_kept(serve, connect, most):
    transport = connect(serve(serving(echo)), http="http/1.1", max_idle_http1=most)
    sinks = [Recorder() for _ in range(4)]
    for sink in sinks:
        transport.send(get(), sink)
    for sink in sinks:
        assert sink.until_end().error is None
    assert sum(transport.statistics().open_connections.values()) <= most


def test_connection_close_is_honoured(serve, connect):
    def answer(session, line, headers, body):
        session.reply(b"x", 200, "Connection: close")
        return False

    peer = serve(serving(answer))
    transport = connect(peer, http="http/1.1")
    for _ in range(2):
        assert answer_of(transport, get()).body == b"x"
    assert peer.accepted == 2


def test_an_answer_without_a_length_ends_with_its_connection(serve, connect):
    def answer(session, line, headers, body):
        session.sock.sendall(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        return False

    transport = connect(serve(serving(answer)), http="http/1.1")
    assert answer_of(transport, get()).body == b"all of it"


def chunks(*pieces: bytes, head: bool = True, end: bool = False) -> bytes:
    text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" if head else b""
    text += b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return text + (b"0\r\n\r\n" if end else b"")


def test_a_chunked_stream_is_passed_on_as_it_comes_and_ends_cleanly(serve, connect):
    sessions = []

    def answer(session, line, headers, body):
        sessions.append(session)
        session.sock.sendall(chunks(b"one\n"))

    transport = connect(serve(serving(answer)), http="http/1.1")
    sink = Recorder()
    transport.send(watch(), sink)
    sink.until(lambda s: s.body == b"one\n")
    sessions[0].sock.sendall(chunks(b"two\n", head=False))
    sink.until(lambda s: s.body == b"one\ntwo\n")
    sessions[0].sock.sendall(chunks(head=False, end=True))
    assert sink.until_end().error is None
    assert transport.statistics().open_connections == {"m1": 1}


def test_a_connection_that_ends_inside_a_stream_is_a_reset(serve, connect):
    def answer(session, line, headers, body):
        session.sock.sendall(chunks(b"one\n"))
        return False

    transport = connect(serve(serving(answer)), http="http/1.1")
    sink = Recorder()
    transport.send(watch(), sink)
    error = sink.until_end().error
    assert (sink.body, error.failure, error.member) == (b"one\n", Failure.RESET, "m1")
    assert "middle of the answer" in error.detail


def test_a_connection_that_ends_before_the_first_answer_is_a_reset(serve, connect):
    error = failure_of(connect(serve(serving(lambda *_: False)), http="http/1.1"), get())
    assert error.failure is Failure.RESET


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("PUT", False)])
def test_on_a_kept_alive_connection_that_closes_only_reads_are_sent_again(serve, connect, method, again):
    served = []

    def answer(session, line, headers, body):
        served.append(line)
        if len(served) == 2:
            return False
        session.reply(b"ok")
        return True

    transport = connect(serve(serving(answer)), http="http/1.1")
    answer_of(transport, get())
    request = Request("x", method, "/x", "x")
    if again:
        assert answer_of(transport, request).body == b"ok"
    else:
        assert failure_of(transport, request).failure is Failure.RESET
    assert transport.statistics().retries == int(again)


def test_what_is_not_http_is_a_protocol_failure(serve, connect):
    def answer(session, line, headers, body):
        session.sock.sendall(b"SSH-2.0-OpenSSH\r\n")

    error = failure_of(connect(serve(serving(answer)), http="http/1.1"), get())
    assert (error.failure, error.member) == (Failure.PROTOCOL, "m1")


def test_an_interim_answer_is_passed_over(serve, connect):
    def answer(session, line, headers, body):
        session.sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
        session.reply(b"final")

    reply = answer_of(connect(serve(serving(answer)), http="http/1.1"), get())
    assert (reply.status, reply.body, "link" in reply.headers) == (200, b"final", False)


def test_cancel_closes_the_connection(serve, connect):
    transport = connect(serve(serving(lambda *_: None)), http="http/1.1")
    sink = Recorder()
    handle = transport.send(watch(), sink)
    wait_until(lambda: transport.statistics().open_streams)
    handle.cancel()
    assert not transport.statistics().open_connections
    assert sink.ends == 0


def test_a_sink_that_raises_closes_its_connection_and_the_next_request_dials(serve, connect, caplog):
    class Raising(Recorder):
        def on_head(self, status, headers, member):
            super().on_head(status, headers, member)
            raise ValueError("mine")

    peer = serve(serving(echo))
    transport = connect(peer, http="http/1.1")
    sink = Raising()
    transport.send(get(), sink)
    sink.until_head()
    assert answer_of(transport, get()).status == 200
    assert (sink.ends, len(caplog.records), peer.accepted) == (0, 1, 2)


def test_an_idle_connection_is_closed_after_its_time_or_when_the_peer_closes(serve, connect):
    transport = connect(serve(serving(echo)), http="http/1.1", idle_timeout_s=0.02)
    answer_of(transport, get())
    wait_until(lambda: not transport.statistics().open_connections)

    def once(session, line, headers, body):
        session.reply(b"x")
        return False

    transport = connect(serve(serving(once)), http="http/1.1")
    answer_of(transport, get())
    wait_until(lambda: not transport.statistics().open_connections)


def test_a_request_that_takes_too_long_fails_and_its_connection_goes(serve, connect):
    transport = connect(serve(serving(lambda *_: None)), http="http/1.1")
    error = failure_of(transport, get(timeout_s=0.05))
    assert (error.failure, error.member) == (Failure.TIMEOUT, "m1")
    assert not transport.statistics().open_connections
