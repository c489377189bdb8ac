"""Connections that break, are told to go away, or are closed on purpose: who goes on, and what is counted."""

from __future__ import annotations

import pytest

from harness.transport.credentials import Bearer
from harness.transport.endpoints import Endpoint
from harness.transport.tally import Count, Tally
from harness.wire.request import Failure, TransportError
from tests.cutting import CuttingProxy

from .conftest import Recorder, answer_of, ask, failure_of, get, wait_until, watch
from .peers import Http1Session, Http2Peer, Peer, echo


def open_only(session, stream_id, headers, body):
    """Watches stay open, all else is answered."""
    session.head(stream_id) if "watch" in headers[":path"] else session.reply(stream_id, b"ok")


def opened(transport):
    sink = Recorder()
    transport.send(watch(), sink)
    return sink.until_head()


def counted(tally: Tally) -> dict[str, int]:
    return {count.value: number for count in Count for number in tally.of(count).values()}


def test_a_lost_connection_and_its_successor_are_counted(serve, connect):
    peer, tally = serve(Http2Peer(open_only)), Tally()
    transport = connect(peer, tally=tally)
    sinks = [opened(transport), opened(transport)]
    peer.sessions[0].drop()
    for sink in sinks:
        sink.until_end()
    answer_of(transport, get())
    assert counted(tally) == {"dialled": 2, "lost": 1, "redialled": 1}


def test_an_idle_connection_that_the_peer_closes_is_no_loss(serve, connect):
    peer, tally = serve(Http2Peer(open_only)), Tally()
    transport = connect(peer, tally=tally)
    answer_of(transport, get())
    peer.sessions[0].drop()
    wait_until(lambda: not transport.statistics().open_connections)
    answer_of(transport, get())
    assert counted(tally) == {"dialled": 2}


def test_goaway_counts_once_and_is_no_loss(serve, connect):
    """Graceful shutdown: a first GOAWAY with the highest number, then the true one; then the server leaves."""
    peer, tally = serve(Http2Peer(open_only)), Tally()
    transport = connect(peer, tally=tally)
    sink = opened(transport)
    peer.sessions[0].goaway(2**31 - 1)
    peer.sessions[0].goaway(1)
    wait_until(lambda: tally.of(Count.GOAWAY))
    answer_of(transport, get())
    peer.sessions[0].drop()
    assert sink.until_end().error.failure is Failure.RESET
    assert counted(tally) == {"dialled": 2, "goaway": 1, "redialled": 1}


def test_reset_streams_and_retries_are_counted(serve, connect):
    def answer(session, stream_id, headers, body):
        refused = headers[":path"] == "/refused" and stream_id == 1
        session.reset(stream_id, 7) if refused else session.reply(stream_id, b"ok")

    peer, tally = serve(Http2Peer(answer)), Tally()
    assert answer_of(connect(peer, tally=tally), get("/refused")).body == b"ok"
    assert counted(tally) == {"dialled": 1, "stream-reset": 1, "retried": 1}


def test_a_tally_is_taken_by_member_and_begins_anew():
    tally = Tally()
    tally.add(Count.DIALLED, "m1")
    tally.add(Count.DIALLED, "m2")
    tally.add(Count.LOST, "m1")
    assert tally.take() == {"m1": {"dialled": 1, "lost": 1}, "m2": {"dialled": 1}}
    assert tally.take() == {}


# ---- closing on purpose ----------------------------------------------------------------------------------------------
def test_closing_all_connections_ends_their_requests_and_new_ones_go_to_a_new_one(serve, connect):
    peer, tally = serve(Http2Peer(open_only)), Tally()
    transport = connect(peer, tally=tally, streams_per_connection=1)
    sinks = [opened(transport), opened(transport)]
    transport.close_connections()
    for sink in sinks:
        assert sink.until_end().error.failure is Failure.CLOSED
    assert not transport.statistics().open_connections
    answer_of(transport, get())
    assert peer.accepted == 3
    assert counted(tally) == {"dialled": 3, "closed": 2}


def test_what_is_sent_anew_at_the_news_never_lands_on_a_connection_that_is_about_to_close(serve, connect):
    """A reflector watches again at once; the second connection still looks open when the first one's end is told."""
    peer = serve(Http2Peer(open_only))
    transport = connect(peer, streams_per_connection=2)
    again = Recorder()

    class Anew(Recorder):
        def on_end(self, error: TransportError | None) -> None:
            super().on_end(error)
            transport.send(watch(), again)

    anew = Anew()
    transport.send(watch(), anew)
    anew.until_head()
    opened(transport)
    opened(transport)  # on the second connection, which has room for one more
    transport.close_connections()
    again.until_head()
    assert again.ends == 0
    assert peer.accepted == 3


def test_closing_all_connections_works_for_http1_too(serve, connect):
    def session(peer, sock):
        http = Http1Session(sock)
        while http.next_request() is not None:
            http.reply(b"ok")
        http.close()

    peer = serve(Peer(session))
    transport = connect(peer, http="http/1.1")
    answer_of(transport, get())
    transport.close_connections()
    assert not transport.statistics().open_connections
    answer_of(transport, get())
    assert peer.accepted == 2


# ---- how connections are filled and chosen ---------------------------------------------------------------------------
def test_a_stream_limit_of_our_own_dials_another_connection(serve, connect):
    peer = serve(Http2Peer(open_only))
    transport = connect(peer, streams_per_connection=2)
    for _ in range(5):
        opened(transport)
    assert transport.statistics().open_connections == {"m1": 3}


def test_a_pinned_transport_leaves_its_member_only_while_that_is_down(serve, connect):
    peers = [serve(Http2Peer(open_only)) for _ in range(2)]
    transport = connect(*peers, policy="pinned")
    home = int(answer_of(transport, get()).member[1]) - 1
    sink = opened(transport)
    transport._endpoints.addresses = tuple(
        Endpoint("127.0.0.1", 1 if index == home else peer.port, f"m{index + 1}")
        for index, peer in enumerate(peers)
    )
    peers[home].sessions[0].drop()
    sink.until_end()
    assert failure_of(transport, get()).failure is Failure.REFUSED
    assert answer_of(transport, get()).member == f"m{2 - home}"


# ---- through a proxy that cuts ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("http", ["h2", "http/1.1"])
def test_every_cut_is_one_loss_and_the_next_request_goes_through(serve, connect, http):
    def http1(peer, sock):
        session = Http1Session(sock)
        while (request := session.next_request()) is not None:
            if "watch" in request[0]:
                session.sock.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            else:
                session.reply(b"ok")
        session.close()

    peer, tally = serve(Http2Peer(open_only) if http == "h2" else Peer(http1)), Tally()
    with CuttingProxy(("127.0.0.1", peer.port)) as proxy:
        transport = connect(proxy, http=http, tally=tally)
        for _ in range(3):
            sink = opened(transport)
            proxy.cut()
            assert sink.until_end().ends == 1
        assert answer_of(transport, get()).body == b"ok"
        assert proxy.cuts == 3
        assert tally.of(Count.LOST) == {"m1": 3}
        assert tally.of(Count.REDIALLED) == {"m1": 3}
        transport.close()


# ---- credentials -----------------------------------------------------------------------------------------------------
def test_a_replaced_token_is_shown_from_the_next_request_on(serve, connect):
    def answer(session, stream_id, headers, body):
        session.reply(stream_id, headers.get("authorization", "none").encode())

    bearer = Bearer("one")
    transport = connect(serve(Http2Peer(answer)), bearer=bearer)
    assert answer_of(transport, get()).body == b"Bearer one"
    bearer.replace("two")
    assert answer_of(transport, get()).body == b"Bearer two"
    bearer.replace("")
    assert answer_of(transport, get()).body == b"none"


@pytest.mark.parametrize("http", ["h2", "http/1.1"])
def test_a_refused_token_is_told(serve, connect, http):
    def http1(peer, sock):
        session = Http1Session(sock)
        while session.next_request() is not None:
            session.reply(b"", 401)
        session.close()

    peer = serve(
        Http2Peer(lambda session, s, h, b: session.reply(s, b"", 401)) if http == "h2" else Peer(http1)
    )
    refused: list[int] = []
    transport = connect(peer, http=http, bearer=Bearer("t", lambda: refused.append(1)))
    assert answer_of(transport, get()).status == 401
    assert refused == [1]


def test_an_echo_needs_no_bearer(serve, connect):
    assert ask(connect(serve(Http2Peer(echo))), get()).status == 200
