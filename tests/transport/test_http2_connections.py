"""When connections are dialled, drained and given up."""

from __future__ import annotations

import random

import gevent
import pytest

from harness.transport.options import TransportOptions
from harness.wire.request import Failure, Request

from .conftest import Recorder, answer_of, failure_of, get, wait_until, watch
from .peers import Http2Peer, echo


def open_only(session, stream_id, headers, body):
    """Answer watches with a head, everything else whole."""
    if headers[":path"].startswith("/watch"):
        session.head(stream_id)
    else:
        echo(session, stream_id, headers, body)


def test_the_defaults_are_client_gos():
    options = TransportOptions()
    assert (options.connect_timeout_s, options.tls_handshake_timeout_s) == (30, 10)
    assert (options.read_idle_s, options.ping_timeout_s, options.idle_timeout_s) == (30, 15, 90)
    assert (options.unary_timeout_s, options.max_idle_http1) == (None, 25)


@pytest.mark.parametrize(("watches", "connections"), [(3, 1), (4, 2), (7, 3)])
def test_a_connection_at_the_peers_stream_limit_is_joined_by_another(serve, connect, watches, connections):
    peer = serve(Http2Peer(open_only, max_streams=3))
    transport = connect(peer)
    answer_of(transport, get())
    for _ in range(
        watches
    ):  # one after the other: h2 takes no more than its limit before its SETTINGS are known
        sink = Recorder()
        transport.send(watch(), sink)
        sink.until_head()
    assert peer.accepted == connections
    assert transport.statistics().open_connections == {"m1": connections}
    assert transport.statistics().open_streams == watches


def test_a_new_request_goes_to_the_first_connection_with_room(serve, connect):
    peer = serve(Http2Peer(open_only, max_streams=1))
    transport = connect(peer)
    answer_of(transport, get())
    first, second, third = Recorder(), Recorder(), Recorder()
    handle = transport.send(watch(), first)
    first.until_head()
    transport.send(watch(), second)
    second.until_head()
    handle.cancel()
    transport.send(watch(), third)
    third.until_head()
    assert peer.accepted == 2


def test_a_stream_that_ends_makes_room_for_one_that_waits(serve, connect):
    peer = serve(Http2Peer(open_only, max_streams=1))
    transport = connect(peer)
    answer_of(transport, get())
    first, second = Recorder(), Recorder()
    transport.send(watch(), first)
    transport.send(watch(), second)
    first.until_head(), second.until_head()
    assert transport.statistics().waiting == 0


def test_refused_streams_are_sent_again(serve, connect):
    refused = []

    def answer(session, stream_id, headers, body):
        if refused:
            echo(session, stream_id, headers, body)
        else:
            refused.append(stream_id)
            session.reset(stream_id, 7)

    transport = connect(serve(Http2Peer(answer)))
    reply = answer_of(transport, Request("create", "POST", "/x", "x", b"body"))
    assert reply.body == b"POST /x body"
    assert transport.statistics().retries == 1


def test_a_stream_reset_for_another_reason_is_not_sent_again(serve, connect):
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.reset(stream, 2)))
    error = failure_of(connect(peer), get())
    assert (error.failure, error.detail) == (Failure.RESET, "stream reset: INTERNAL_ERROR")


def test_goaway_lets_open_streams_go_on_and_sends_new_requests_elsewhere(serve, connect):
    peer = serve(Http2Peer(open_only))
    transport = connect(peer)
    old = Recorder()
    transport.send(watch(), old)
    old.until_head()
    peer.sessions[0].goaway(1)
    peer.sessions[0].data(1, b"still here")
    old.until(lambda sink: sink.chunks)
    answer_of(transport, get())
    assert peer.accepted == 2
    assert transport.statistics().open_connections == {"m1": 2}
    peer.sessions[0].data(1, b"", end=True)
    assert old.until_end().error is None
    wait_until(lambda: transport.statistics().open_connections == {"m1": 1})


def test_goaway_of_an_idle_connection_closes_it(serve, connect):
    peer = serve(Http2Peer(open_only))
    transport = connect(peer)
    answer_of(transport, get())
    peer.sessions[0].goaway(1)
    wait_until(lambda: not transport.statistics().open_connections)
    answer_of(transport, get())
    assert transport.statistics().dialled == {"m1": 2}


def test_requests_above_goaways_last_stream_are_sent_again_on_a_new_connection(serve, connect):
    def answer(session, stream_id, headers, body):
        if session is peer.sessions[0]:
            if stream_id == 3:
                session.goaway(1)
                session.reply(1, b"first")
        else:
            session.reply(stream_id, b"again")

    peer = serve(Http2Peer(answer))
    transport = connect(peer)
    below, above = Recorder(), Recorder()
    transport.send(get("/below"), below)
    transport.send(get("/above"), above)
    assert below.until_end().body == b"first"
    assert above.until_end().body == b"again"
    assert (below.error, above.error) == (None, None)


def test_a_lost_connection_fails_all_its_streams_and_the_next_request_dials(serve, connect):
    peer = serve(Http2Peer(open_only))
    transport = connect(peer)
    sinks = [Recorder(), Recorder()]
    for sink in sinks:
        transport.send(watch(), sink)
    for sink in sinks:
        sink.until_head()
    peer.sessions[0].drop()
    for sink in sinks:
        error = sink.until_end().error
        assert (error.failure, error.member) == (Failure.RESET, "m1")
    assert answer_of(transport, get()).status == 200
    assert peer.accepted == 2


def test_a_silent_peer_is_given_up_after_an_unanswered_ping(serve, connect):
    peer = serve(Http2Peer(open_only, silent=True))
    transport = connect(peer, read_idle_s=0.02, ping_timeout_s=0.02)
    error = failure_of(transport, get())
    assert (error.failure, error.member) == (Failure.LOST, "m1")
    assert "PING" in error.detail


def test_a_peer_that_answers_pings_is_kept(serve, connect):
    peer = serve(Http2Peer(open_only))
    transport = connect(peer, read_idle_s=0.01, ping_timeout_s=60)
    sink = Recorder()
    transport.send(watch(), sink)
    sink.until_head()
    received = transport.statistics().received_bytes
    wait_until(lambda: transport.statistics().received_bytes >= received + 3 * 17)  # three acknowledgements
    peer.sessions[0].data(1, b"alive")
    assert sink.until(lambda s: s.chunks).body == b"alive"
    assert sink.ends == 0


def test_a_connection_without_requests_is_closed_after_the_idle_time(serve, connect):
    peer = serve(Http2Peer(open_only))
    transport = connect(peer, idle_timeout_s=0.02)
    answer_of(transport, get())
    wait_until(lambda: not transport.statistics().open_connections)
    assert transport.statistics().received_bytes > 0


def test_each_connection_chooses_its_member_and_the_members_met_are_known(serve, connect):
    peers = [serve(Http2Peer(open_only)) for _ in range(3)]
    transport = connect(*peers, policy="round-robin")
    members = []
    for _ in range(3):
        members.append(answer_of(transport, get()).member)
        peers[int(members[-1][1]) - 1].sessions[-1].goaway(1)
        wait_until(lambda: not transport.statistics().open_connections)
    assert sorted(members) == ["m1", "m2", "m3"]
    assert transport.members_talked_to == {"m1", "m2", "m3"}
    assert transport.statistics().dialled == {"m1": 1, "m2": 1, "m3": 1}


def test_a_connection_that_ends_after_goaway_says_so(serve, connect):
    peer = serve(Http2Peer(open_only))
    transport = connect(peer)
    sink = Recorder()
    transport.send(watch(), sink)
    sink.until_head()
    peer.sessions[0].goaway(1)
    wait_until(lambda: "draining" in repr(transport))
    peer.sessions[0].drop()
    error = sink.until_end().error
    assert (error.failure, error.detail) == (Failure.RESET, "the peer sent GOAWAY and closed")


def test_a_request_that_is_always_refused_ends_after_the_retries(serve, connect, monkeypatch):
    monkeypatch.setattr("harness.transport.pool.FIRST_BACKOFF_S", 0.001)
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.reset(stream, 7)))
    transport = connect(peer)
    error = failure_of(transport, get())
    assert error.failure is Failure.RESET
    assert "REFUSED_STREAM, after 6 retries" in error.detail
    assert (transport.statistics().retries, len(peer.sessions)) == (6, 1)


def test_a_request_that_waits_to_be_sent_again_can_be_cancelled(serve, connect, monkeypatch):
    monkeypatch.setattr("harness.transport.pool.FIRST_BACKOFF_S", 1000.0)
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.reset(stream, 7)))
    transport = connect(peer)
    sink = Recorder()
    handle = transport.send(get(), sink)
    wait_until(lambda: transport.statistics().retries == 2)
    assert transport.statistics().waiting == 1
    handle.cancel()
    assert (transport.statistics().waiting, sink.ends) == (0, 0)


def _answered(transport, number):
    """Whether one more request is answered; this peer answers two of three."""
    sink = Recorder()
    transport.send(get(f"/after/{number}", timeout_s=10.0), sink)
    sink.until_end()
    return sink.error is None


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_peer_does_each_request_ends_exactly_once(serve, connect, seed):
    rng = random.Random(seed)

    def answer(session, stream_id, headers, body):
        turn = rng.random()
        if turn < 0.03:
            session.drop()
        elif turn < 0.06:
            session.goaway(stream_id)
            session.reply(stream_id, b"last")
        elif turn < 0.09:
            session.goaway(max(stream_id - 2, 0))
        elif turn < 0.2:
            session.reset(stream_id, rng.choice([2, 8, 11]))
        elif turn < 0.3:
            session.head(stream_id)
            session.reset(stream_id, 7)
        elif turn < 0.9:
            session.reply(stream_id, b"x" * rng.randrange(5_000))

    transport = connect(serve(Http2Peer(answer)))
    mine = random.Random(seed + 100)
    sinks = []
    for number in range(300):
        sink = Recorder()
        handle = transport.send(get(f"/{number}", timeout_s=0.3), sink)
        if mine.random() < 0.1:
            handle.cancel()
        else:
            sinks.append(sink)
        if mine.random() < 0.1:
            gevent.sleep(0)
    for sink in sinks:
        sink.until_end()
    gevent.sleep(0)
    assert {sink.ends for sink in sinks} == {1}
    assert any(_answered(transport, number) for number in range(50)), "the transport does not work any more"
    statistics = transport.statistics()
    assert (statistics.open_streams, statistics.waiting) == (0, 0)
