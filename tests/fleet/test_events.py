"""Recording events: one at a time, counted, merged, held back, dropped."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import msgspec
import pytest

from harness.client.machine import Action, Answered, Arm, Failed, Fired, Sample, Send
from harness.client.rest import Rest
from harness.fleet.context import Context
from harness.fleet.eventcorrelator import CACHED_SUBJECTS, Correlator, Occurrence
from harness.fleet.events import MAX_QUEUED, EventRecorder
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from harness.fleet.pods import Pod, decode_pod
from harness.wire.request import Failure, Request, Response, TransportError
from tests.fleet.builders import pod, with_objects
from tests.fleet.fakeapi import EPOCH_S, Logged, World

KEY = ("events", "record")


class Desk:
    """A recorder, and what it was told and has done."""

    def __init__(self, **options: Any) -> None:
        self.now = 0.0
        self.recorder = EventRecorder(Context("n1", KubeletOptions(**options), Random(1), EPOCH_S))
        self.actions: list[Action] = []

    def warn(self, message: str = "it failed", about: str = "p", reason: str = "FailedMount") -> None:
        self.recorder.warning(a_pod(about), reason, message, self.now, self.actions)

    def answer(self, status: int = 201) -> None:
        self.recorder.handle(Answered(KEY, Response(status, {}, b"{}")), self.now, self.actions)

    def answer_all(self) -> None:
        while len(self.recorder):
            self.answer()

    def fail(self) -> None:
        self.recorder.handle(
            Failed(KEY, TransportError(Failure.REFUSED, "nobody there")), self.now, self.actions
        )

    @property
    def requests(self) -> list[Request]:
        return [each.request for each in self.actions if isinstance(each, Send)]

    @property
    def verbs(self) -> list[str]:
        return [each.verb for each in self.requests]

    @property
    def bodies(self) -> list[Any]:
        return [msgspec.json.decode(each.body) for each in self.requests]

    @property
    def lost(self) -> list[str]:
        return [each.labels[0][1] for each in self.actions if isinstance(each, Sample)]


def a_pod(name: str) -> Pod:
    obj = pod(name, "n1")
    obj["metadata"] = {"name": name, "namespace": "t", "uid": f"uid-{name}", "resourceVersion": "7"}
    return decode_pod(msgspec.json.encode(obj))


def test_the_next_event_is_sent_when_the_one_before_is_answered() -> None:
    desk = Desk()
    desk.warn(about="p")
    desk.warn(about="q")
    assert len(desk.requests) == 1
    assert len(desk.recorder) == 2
    desk.answer()
    assert [each["involvedObject"]["name"] for each in desk.bodies] == ["p", "q"]
    desk.answer()
    assert len(desk.recorder) == 0


def test_a_repeat_waits_for_its_create_and_is_a_patch_of_the_first_ones_count() -> None:
    desk = Desk()
    desk.warn()
    desk.now = 4.0
    desk.warn()
    assert desk.verbs == ["create"]
    desk.answer()
    assert desk.verbs == ["create", "patch"]
    created, patched = desk.bodies
    assert desk.requests[1].path.endswith(f"/events/{created['metadata']['name']}")
    assert patched == {"count": 2, "lastTimestamp": "2027-01-15T08:00:04Z", "message": "it failed"}


def test_a_patch_of_an_event_that_the_server_has_not_becomes_a_create_with_the_count() -> None:
    desk = Desk()
    desk.warn()
    desk.answer()
    desk.now = 9.0
    desk.warn()
    desk.answer(404)
    assert desk.verbs == ["create", "patch", "create"]
    first, _, again = desk.bodies
    assert again["metadata"] == first["metadata"]
    assert again["count"] == 2
    assert (again["firstTimestamp"], again["lastTimestamp"]) == (
        first["firstTimestamp"],
        "2027-01-15T08:00:09Z",
    )
    desk.answer()
    assert desk.lost == []


@pytest.mark.parametrize("status", [403, 404, 409, 429, 500])
def test_a_refused_create_is_given_up_and_its_repeat_finds_nothing_to_patch(status: int) -> None:
    desk = Desk()
    desk.warn()
    desk.answer(status)
    assert desk.lost == ["refused"]
    desk.warn()
    desk.answer(404)
    assert desk.verbs == ["create", "patch", "create"]


def test_without_an_answer_it_is_tried_twelve_times_ten_seconds_apart_and_holds_up_the_rest() -> None:
    desk = Desk()
    desk.warn(about="p")
    desk.warn(about="q")
    waits = []
    for _ in range(11):
        desk.fail()
        armed = desk.actions[-1]
        assert isinstance(armed, Arm)
        waits.append(armed.at - desk.now)
        desk.now = armed.at
        desk.recorder.handle(Fired(armed.key), desk.now, desk.actions)
    assert 0.0 <= waits[0] < 10.0
    assert waits[1:] == pytest.approx([10.0] * 10)
    assert {each["involvedObject"]["name"] for each in desk.bodies} == {"p"}
    assert len(desk.requests) == 12
    desk.fail()
    assert desk.lost == ["unreachable"]
    assert desk.bodies[-1]["involvedObject"]["name"] == "q"


def test_a_thousand_may_wait_and_no_more() -> None:
    desk = Desk()
    for index in range(MAX_QUEUED + 1):  # the first does not wait
        desk.warn(about=f"p{index}")
    assert desk.lost == []
    desk.warn(about="late")
    assert desk.lost == ["queue full"]
    desk.answer_all()
    assert len(desk.requests) == MAX_QUEUED + 1


def test_twenty_five_about_one_object_pass_then_one_in_three_hundred_seconds_each_counted() -> None:
    desk = Desk()
    for _ in range(27):
        desk.warn()
    desk.warn(about="other")
    desk.answer_all()
    assert desk.verbs == ["create"] + ["patch"] * 24 + ["create"]
    assert desk.lost == ["held back"] * 2
    desk.now = 299.0
    desk.warn()
    desk.now = 300.0
    desk.warn()
    desk.answer_all()
    assert desk.lost == ["held back"] * 3
    assert desk.bodies[-1]["count"] == 29


def test_normal_events_use_up_the_same_bucket() -> None:
    desk = Desk()
    for index in range(26):
        desk.recorder.normal(a_pod("p"), "Pulled", f"{index}", desk.now, desk.actions)
    desk.answer_all()
    assert desk.verbs == ["create"] * 25


def test_the_tenth_unlike_message_of_a_reason_and_all_later_ones_are_one_combined_event() -> None:
    desk = Desk()
    for index in range(12):
        desk.warn(f"error {index}")
    desk.warn("error 1", reason="Failed")
    desk.answer_all()
    assert desk.verbs == ["create"] * 10 + ["patch"] * 2 + ["create"]
    combined = desk.bodies[9]
    assert combined["message"] == "(combined from similar events): error 9"
    assert (combined["reportingComponent"], combined["source"]["component"]) == ("", "kubelet")
    assert desk.bodies[11]["count"] == 3
    assert desk.bodies[11]["message"] == "(combined from similar events): error 11"
    assert desk.bodies[12]["message"] == "error 1"


@pytest.mark.parametrize(("quiet_s", "combined"), [(600.0, True), (600.1, False)])
def test_messages_are_unlike_within_ten_minutes_of_the_last(quiet_s: float, combined: bool) -> None:
    desk = Desk()
    for index in range(9):
        desk.warn(f"error {index}")
    desk.now = quiet_s
    desk.warn("error 9")
    desk.answer_all()
    assert desk.bodies[-1]["message"].startswith("(combined") is combined


def test_a_correlator_remembers_so_many_objects_and_none_that_is_gone() -> None:
    correlator = Correlator()
    for index in range(CACHED_SUBJECTS + 1):
        event = Occurrence("t", "e", f"uid-{index}", "{}", "Warning", "Failed", "m", "", "")
        assert correlator.correlate(event, 0.0)
    assert len(correlator) == CACHED_SUBJECTS
    correlator.forget("uid-9")
    correlator.forget("uid-9")
    assert len(correlator) == CACHED_SUBJECTS - 1


def test_a_silent_recorder_sends_nothing() -> None:
    desk = Desk(events=False)
    desk.warn()
    desk.recorder.node("Starting", "Starting kubelet.", 0.0, desk.actions)
    assert desk.actions == []


def test_told_to_wait_a_kubelet_has_one_event_under_way_and_never_patches_what_is_not_there() -> None:
    """The API server answers 429 with Retry-After to three events in four, and refuses tokens for a minute."""
    world, options, rng = World(), KubeletOptions(), Random(3)
    world.add(Rest(Kubelet("n1", options, Random(1), EPOCH_S), kubelet_limiters(options)))
    with_objects(world, "t", "s0", "s1", "c0")

    def refuse(logged: Logged) -> tuple[int, bytes] | None:
        if logged.info.resource == "events" and rng.random() < 0.75:
            return 429, b"Too many requests, please try again later.\n"
        busy = logged.info.subresource == "token" and logged.at < 60.0
        return (403, b"{}") if busy else None

    world.run(5.0)
    world.refuse = refuse
    for index in range(20):
        world.create("pods", "t", pod(f"p{index}", "n1"))
    world.run(300.0)
    events = [each for each in world.log if each.info.resource == "events"]
    assert {each.status for each in events} == {200, 201, 429}
    assert {each.line for each in events} == {"create events", "patch events"}
    gaps = [after.at - before.at for before, after in pairwise(events)]
    assert min(gaps) >= world.latency_s - 1e-9
