"""What becomes of one request: answers, retries, watch lists, runs that are ended."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.kperf import Runner, RunnerOptions
from harness.kperf.failures import RequestFailure, of_error, of_event, of_key
from harness.wire.request import Failure, Request, Response, TransportError
from harness.wire.watching import encode_event
from tests.kperf.play import EPOCH_S, OK, Play, Rule, close, play, profile, spec, stream

BUSY = Response(429, {"retry-after": "2"}, b"", "member-0")
WATCH = "      - {shares: 1, watchList: {version: v1, resource: pods}}\n"
POD = encode_event("ADDED", b'{"metadata":{"name":"a"}}')
END = encode_event("BOOKMARK", b'{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}')
BOOKMARK = encode_event("BOOKMARK", b'{"metadata":{"resourceVersion":"5"}}')


def always(answer: Response | TransportError) -> Rule:
    return lambda request, number: (0.01, answer)


def test_bytes_and_members_are_counted(tmp_path: Path) -> None:
    members = (Response(200, {}, b"", f"member-{n % 2}", discarded_bytes=10 + n) for n in range(4))
    run = play(profile(tmp_path, spec(total=4)), lambda request, number: (0.01, next(members)))
    assert {key.member: column.received_bytes for key, column in run.seen.columns.items()} == {
        "member-0": 22,
        "member-1": 24,
    }


@pytest.mark.parametrize("code", [400, 404, 409, 429, 500, 503, 504])
def test_an_answer_that_is_not_2xx_is_a_failure_by_its_code(tmp_path: Path, code: int) -> None:
    run = play(profile(tmp_path, spec(total=3)), always(Response(code, {}, b"", "member-0")))
    assert run.failures == {f"http/{code}": 3}
    assert len(run.latencies) == 3


@pytest.mark.parametrize(
    ("failure", "key"),
    [
        (Failure.REFUSED, "connection/connection refused"),
        (Failure.RESET, "connection/connection reset by peer"),
        (Failure.TIMEOUT, "connection/context deadline exceeded"),
        (Failure.LOST, "http2-protocol/http2: client connection lost"),
        (Failure.PROTOCOL, "http2-protocol/what it was"),
        (Failure.TLS, "unknown/TLS failure"),
        (Failure.CLOSED, "unknown/closed by us"),
    ],
)
def test_no_answer_is_a_failure_in_gos_words(tmp_path: Path, failure: Failure, key: str) -> None:
    error = TransportError(failure, "what it was", "member-1")
    run = play(profile(tmp_path, spec(total=2)), always(error))
    assert run.failures == {key: 2}
    assert {seen.member for seen in run.seen.columns} == {"member-1"}
    assert of_key(key).key == of_error(error).key == key


def test_retry_after_is_heeded_as_often_as_the_spec_says(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(total=1, maxRetries=2)), always(BUSY))
    assert [round(at, 6) for at, _ in run.sent] == [0.0, 2.01, 4.02]
    assert run.failures == {"http/429": 1}
    assert run.latencies == [4.03]


def test_a_retry_that_is_answered_is_one_request_and_no_failure(tmp_path: Path) -> None:
    run = play(
        profile(tmp_path, spec(total=1, maxRetries=2)),
        lambda request, number: (0.01, BUSY if number == 0 else OK),
    )
    assert run.failures == {}
    assert run.latencies == [2.02]


def test_without_max_retries_there_are_none(tmp_path: Path) -> None:
    assert len(play(profile(tmp_path, spec(total=1)), always(BUSY)).sent) == 1


def test_a_broken_connection_is_not_tried_again_but_for_a_watch(tmp_path: Path) -> None:
    broken = always(TransportError(Failure.RESET, "", "member-0"))
    assert len(play(profile(tmp_path, spec(total=1, maxRetries=1)), broken).sent) == 1
    assert len(play(profile(tmp_path, spec(WATCH, total=1, maxRetries=1)), broken).sent) == 2


# ---- watch lists ---------------------------------------------------------------------------------------------------
def watching(folder: Path, **values: object) -> Play:
    """One watch list that was opened at 10 ms, at the time 0.5 s."""
    return play(profile(folder, spec(WATCH, total=1, **values)), until=0.5)


def test_a_watch_list_ends_with_its_initial_events(tmp_path: Path) -> None:
    run = watching(tmp_path)
    stream(run, 0, POD + BOOKMARK + END[:20])
    run.clock.advance(0.5)
    assert not run.finished
    stream(run, 0, END[20:])
    assert run.finished
    assert run.latencies == [1.0]
    assert run.cancelled == {run.keys[0]}
    assert {key.member for key in run.seen.columns} == {"member-0"}


def test_an_error_in_a_watch_list_is_a_failure_by_its_code(tmp_path: Path) -> None:
    run = watching(tmp_path)
    stream(run, 0, encode_event("ERROR", b'{"kind":"Status","code":410}'))
    assert run.failures == {"http/410": 1}


@pytest.mark.parametrize("body", [b"{}", b"5"])
def test_an_error_without_a_code_is_unknown(body: bytes) -> None:
    assert of_event(body) == RequestFailure("unknown", message="an error event")


def test_what_is_no_event_is_a_failure(tmp_path: Path) -> None:
    run = watching(tmp_path)
    stream(run, 0, b"nonsense\n")
    assert run.failures == {"unknown/unable to decode an event from the watch stream": 1}


def test_a_bookmark_that_is_no_object_ends_nothing(tmp_path: Path) -> None:
    run = watching(tmp_path)
    stream(run, 0, encode_event("BOOKMARK", b'"x"'))
    assert not run.finished


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (None, "unknown/don't receive bookmark"),
        (TransportError(Failure.RESET, "", "member-0"), "connection/connection reset by peer"),
    ],
)
def test_a_stream_that_ends_early_is_a_failure(
    tmp_path: Path, error: TransportError | None, key: str
) -> None:
    run = watching(tmp_path)
    close(run, 0, error)
    assert run.failures == {key: 1}
    assert run.finished


def test_a_server_that_never_says_the_end_is_given_up_after_90_s(tmp_path: Path) -> None:
    run = watching(tmp_path)
    run.clock.run_until(89.9)
    assert not run.finished
    run.clock.run_until(90.0)
    assert run.failures == {"connection/context deadline exceeded": 1}
    assert run.finished


def test_a_refused_watch_list_is_a_failure(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(WATCH, total=1)), always(Response(422, {}, b"", "member-0")))
    assert run.failures == {"http/422": 1}


# ---- runs that are ended -------------------------------------------------------------------------------------------
def test_a_run_that_is_ended_says_what_was_due_and_has_no_end(tmp_path: Path) -> None:
    slow: Rule = lambda request, number: (1.0 if number else 0.01, OK)  # noqa: E731
    run = play(profile(tmp_path, spec(total=100, client=2)), slow, until=0.95)
    run.stop()
    assert [span["unfinished"] for span in run.spans] == [9]  # of the ten that were due; two are under way
    assert len(run.latencies) == 1
    assert len(run.cancelled) == 2
    assert not run.finished


def test_to_end_what_has_ended_does_nothing(tmp_path: Path) -> None:
    run = play(profile(tmp_path))
    before = len(run.spans)
    run.stop()
    assert len(run.spans) == before


def test_answers_that_come_after_the_end_change_nothing(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(total=5)), until=0.001)
    run.stop()
    run.clock.run_until(10)
    assert run.latencies == []


def test_what_was_seen_is_told_every_two_seconds(tmp_path: Path) -> None:
    run = Play(Runner(profile(tmp_path, spec(total=100)), RunnerOptions(), EPOCH_S)).start()
    run.clock.run_until(1.9)
    assert len(run.seen) == 0
    run.clock.run_until(2.0)
    assert len(run.seen) == 20
    taken = msgspec.json.decode(msgspec.json.encode(run.spans))
    assert taken == []


def test_latency_and_lateness_are_samples_of_the_record(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(total=1)))
    assert [(sample.name, sample.labels) for sample in run.samples] == [
        ("kperf_latency_ms", (("method", "GET"), ("member", "member-0"))),
        ("operation_late_ms", (("tuning_set", "specs[0]"),)),
    ]


def _never(request: Request, number: int) -> tuple[float, Response]:
    return 1e9, OK


def test_a_profile_without_end_goes_on_until_it_is_ended(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(rate=0, total=None, duration=5)), _never, until=100)
    assert not run.finished
    assert len(run.sent) == 4
