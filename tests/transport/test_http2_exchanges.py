"""Requests and streams on an HTTP/2 connection."""

from __future__ import annotations

from harness.wire.request import Failure, Request

from .conftest import Recorder, answer_of, failure_of, get, wait_until, watch
from .peers import Http2Peer, echo


def test_a_request_is_answered_with_status_headers_body_and_member(serve, connect):
    transport = connect(serve(Http2Peer(echo)))
    answer = answer_of(transport, get("/api/v1/nodes?limit=1"))
    assert (answer.status, answer.body, answer.member) == (200, b"GET /api/v1/nodes?limit=1 ", "m1")
    assert answer.headers == {"content-type": "application/json"}
    assert transport.members_talked_to == {"m1"}


def test_the_head_carries_the_requests_and_the_transports_headers(serve, connect):
    seen = {}

    def answer(session, stream_id, headers, body):
        seen.update(headers, body=body)
        session.reply(stream_id, b"{}")

    transport = connect(
        serve(Http2Peer(answer)),
        headers={"User-Agent": "kubelet", "Authorization": "Bearer t"},
        path_prefix="/k8s/clusters/c1/",
    )
    request = Request("create", "POST", "/api/v1/pods", "pods", b"{1}", content_type="application/json")
    answer_of(transport, request)
    assert seen.pop(":authority").startswith("127.0.0.1:")
    assert seen == {
        ":method": "POST",
        ":path": "/k8s/clusters/c1/api/v1/pods",
        ":scheme": "http",
        "accept": "application/json",
        "content-type": "application/json",
        "content-length": "3",
        "user-agent": "kubelet",
        "authorization": "Bearer t",
        "body": b"{1}",
    }


def test_a_header_with_several_values_is_sent_several_times(serve, connect):
    transport = connect(serve(Http2Peer(echo)), headers={"Impersonate-Group": ["a", "b"]})
    fields = transport.head_of(get(), b"h")
    assert [value for name, value in fields if name == b"impersonate-group"] == [b"a", b"b"]


def test_streams_and_requests_share_one_connection(serve, connect):
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.head(stream)))
    transport = connect(peer)
    sinks = [Recorder() for _ in range(35)]
    for number, sink in enumerate(sinks):
        transport.send(watch(f"/watch/{number}"), sink)
    for sink in sinks:
        sink.until_head()
    peer.answer = echo
    assert answer_of(transport, get()).status == 200
    session = peer.sessions[0]
    for stream_id in range(1, 71, 2):
        session.data(stream_id, b"event %d\n" % stream_id)
    for number, sink in enumerate(sinks):
        assert sink.until(lambda s: s.chunks).body == b"event %d\n" % (2 * number + 1)
    assert (peer.accepted, transport.statistics().open_streams) == (1, 35)


def test_a_watch_ends_cleanly_or_with_the_code_of_its_reset(serve, connect):
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.head(stream)))
    transport = connect(peer)
    clean, broken = Recorder(), Recorder()
    transport.send(watch(), clean)
    transport.send(watch(), broken)
    clean.until_head(), broken.until_head()
    peer.sessions[0].data(1, b"x", end=True)
    peer.sessions[0].reset(3, 2)
    assert clean.until_end().error is None
    error = broken.until_end().error
    assert (error.failure, error.member) == (Failure.RESET, "m1")
    assert "INTERNAL_ERROR" in str(error)


def test_a_body_larger_than_the_windows_arrives_whole_in_both_directions(serve, connect):
    body = bytes(range(256)) * 2_000

    def answer(session, stream_id, headers, received):
        session.head(stream_id)
        for start in range(0, len(received), 16_384):
            session.data(stream_id, received[start : start + 16_384])
        session.data(stream_id, b"", end=True)

    transport = connect(serve(Http2Peer(answer)))
    assert answer_of(transport, Request("create", "POST", "/big", "big", body)).body == body
    statistics = transport.statistics()
    assert statistics.sent_bytes > len(body)
    assert statistics.received_bytes > len(body)


def test_cancel_resets_the_stream_and_calls_nothing_more(serve, connect):
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.head(stream)))
    transport = connect(peer)
    sink = Recorder()
    handle = transport.send(watch(), sink)
    sink.until_head()
    handle.cancel()
    handle.cancel()
    wait_until(lambda: peer.resets == [8])
    assert (sink.ends, handle.done, transport.statistics().open_streams) == (0, True, 0)


def test_a_request_cancelled_before_its_connection_is_there_is_never_sent(serve, connect):
    paths = []

    def answer(session, stream_id, headers, body):
        paths.append(headers[":path"])
        session.reply(stream_id, b"")

    transport = connect(serve(Http2Peer(answer)))
    sink = Recorder()
    transport.send(get("/never"), sink).cancel()
    answer_of(transport, get("/sent"))
    assert (paths, sink.ends) == (["/sent"], 0)


def test_a_request_without_an_answer_in_time_fails_and_is_reset(serve, connect):
    peer = serve(Http2Peer(lambda *_: None))
    transport = connect(peer)
    error = failure_of(transport, get(timeout_s=0.05))
    assert (error.failure, error.member) == (Failure.TIMEOUT, "m1")
    assert "0.05 s" in error.detail
    wait_until(lambda: peer.resets == [8])


def test_a_sink_that_raises_loses_its_stream_and_nothing_else(serve, connect, caplog):
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.head(stream)))
    transport = connect(peer)

    class Raising(Recorder):
        def on_data(self, data):
            raise ValueError("mine")

    raising, other = Raising(), Recorder()
    transport.send(watch(), raising)
    transport.send(watch(), other)
    other.until_head()
    peer.sessions[0].data(1, b"x")
    peer.sessions[0].data(3, b"y")
    other.until(lambda s: s.chunks)
    wait_until(lambda: peer.resets == [8])
    assert raising.ends == 0
    assert [record.exc_info[0] for record in caplog.records] == [ValueError]
    assert peer.accepted == 1


def test_requests_sent_from_a_sink_go_out_on_the_same_connection(serve, connect):
    peer = serve(Http2Peer(echo))
    transport = connect(peer)
    second = Recorder()
    transport.unary(get("/1"), lambda answer: transport.send(get("/2"), second))
    assert second.until_end().body == b"GET /2 "
    assert peer.accepted == 1


def test_closing_the_transport_from_a_sink_ends_the_other_streams(serve, connect):
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.head(stream)))
    transport = connect(peer)
    other = Recorder()

    class Closing(Recorder):
        def on_data(self, data):
            transport.close()

    closing = Closing()
    transport.send(watch(), closing)
    transport.send(watch(), other)
    other.until_head()
    peer.sessions[0].data(1, b"x")
    assert other.until_end().error.failure is Failure.CLOSED
    assert closing.until_end().error.failure is Failure.CLOSED
    late = failure_of(transport, get())
    assert (late.failure, late.member) == (Failure.CLOSED, "")


def test_a_peer_that_breaks_the_protocol_fails_its_streams(serve, connect):
    peer = serve(Http2Peer(lambda session, stream, headers, body: session.raw(b"\0\0\0\0\0\0\0\0\0")))
    error = failure_of(connect(peer), get())
    assert (error.failure, error.member) == (Failure.PROTOCOL, "m1")
