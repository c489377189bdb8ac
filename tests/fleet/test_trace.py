"""Our kubelet against a recorded one that did the same: every request, in the order and at the times that are the
kubelet's. What differs is the list `DIFFERENCES`, which docs/kubelet-fidelity.md explains; nothing else may."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.fleet.replay import (
    CREATED_S,
    DELETED_S,
    END_S,
    Line,
    lanes,
    recorded,
    recorded_ends,
    replayed,
    replayed_ends,
    shapes,
)

DIFFERENCES = {
    "registration: the second GET node comes 8 ms later in the recording",
    "pods: one of the recorded nine reports a third time on its way up",
    "pods: reports and deletion are merged differently on the way down",
    "pods: the order in which pods report differs",
    "watches: the order in which a pod's watches open differs",
    "watches: other timeouts were drawn",
    "watches: those of s0, s1 and c0 end at the first recycling in the recording",
}
"""Each is the first words of a line of the page's table."""

TICK_S = 0.1
SLACK_S = 0.05  # what an answer of the recorded server took at most
PAGE = Path(__file__).parents[2] / "docs" / "kubelet-fidelity.md"


@pytest.fixture(scope="module")
def theirs() -> list[Line]:
    return recorded()


@pytest.fixture(scope="module")
def ours() -> list[Line]:
    return replayed()


def _up(lines: list[Line]) -> list[str]:
    return shapes(lines, CREATED_S - 1, DELETED_S - 1)


def _down(lines: list[Line]) -> list[str]:
    return shapes(lines, DELETED_S - 1, END_S)


def _order(lines: list[Line], lane: str) -> list[str]:
    return [line.normal for line in lanes(lines)[lane]]


def _pod_order(lines: list[Line], since: float) -> list[int]:
    """Pods numbered as they were first reported after creation, in the order of their reports."""
    names = [line.lane for line in lines if line.lane.startswith("pod ") and line.verb == "get"]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    late = [line.lane for line in lines if line.lane.startswith("pod ") and line.at >= since]
    return [numbers[name] for name in dict.fromkeys(late)]


def differences(theirs: list[Line], ours: list[Line]) -> set[str]:
    """Every aspect in which the two are not the same."""
    found = set()
    both = list(zip(lanes(theirs)["registration"], lanes(ours)["registration"], strict=True))
    if any(abs(a.at - b.at) > 0.005 and a.normal == b.normal and a.at < 0.05 for a, b in both):
        found.add("registration: the second GET node comes 8 ms later in the recording")
    if _up(theirs) != _up(ours):
        found.add("pods: one of the recorded nine reports a third time on its way up")
    if _down(theirs) != _down(ours):
        found.add("pods: reports and deletion are merged differently on the way down")
    if _pod_order(theirs, CREATED_S + 0.8) != _pod_order(ours, CREATED_S + 0.8):
        found.add("pods: the order in which pods report differs")
    watches = [[w.lane for w in lines if w.verb == "watch"][5:9] for lines in (theirs, ours)]
    if watches[0] != watches[1]:
        found.add("watches: the order in which a pod's watches open differs")
    if [_timeouts(theirs)] != [_timeouts(ours)]:
        found.add("watches: other timeouts were drawn")
    if recorded_ends() != replayed_ends():
        found.add("watches: those of s0, s1 and c0 end at the first recycling in the recording")
    return found


def _timeouts(lines: list[Line]) -> list[str]:
    return [found for line in lines for found in re.findall(r"timeoutSeconds=(\d+)", line.uri)]


def test_what_differs_from_the_recording_is_on_the_list(theirs: list[Line], ours: list[Line]) -> None:
    assert differences(theirs, ours) == DIFFERENCES


def test_the_page_explains_each_difference() -> None:
    page = PAGE.read_text()
    missing = [text for text in DIFFERENCES if f"| {text} |" not in page]
    assert missing == []


def test_registration_sends_what_was_recorded_in_that_order(theirs: list[Line], ours: list[Line]) -> None:
    assert [x.normal for x in ours if x.at < 2.0] == [x.normal for x in theirs if x.at < 2.0]
    assert [x.code for x in ours if x.at < 2.0] == [x.code for x in theirs if x.at < 2.0]


def test_registration_keeps_the_recorded_times(theirs: list[Line], ours: list[Line]) -> None:
    both = zip((x for x in ours if x.at < 2.0), (x for x in theirs if x.at < 2.0), strict=True)
    assert max(abs(a.at - b.at) for a, b in both) < SLACK_S


def test_every_loop_of_the_recording_is_there_and_no_other(theirs: list[Line], ours: list[Line]) -> None:
    def named(lines: list[Line]) -> set[str]:
        return {"pod" if lane.startswith("pod ") else lane for lane in lanes(lines)}

    assert named(ours) == named(theirs)


def test_every_kind_of_request_is_there_and_no_other_but_resumed_watches(
    theirs: list[Line], ours: list[Line]
) -> None:
    mine, recorded_ones = {line.normal for line in ours}, {line.normal for line in theirs}
    for line in mine ^ recorded_ones:  # which watch ran out within 370 s is a matter of its drawn timeout
        assert "watch=true" in line
        assert "resourceVersion=N" in line


@pytest.mark.parametrize("lane", ["registration", "tokens"])
def test_a_loop_sends_the_recorded_requests_in_the_recorded_order(
    theirs: list[Line], ours: list[Line], lane: str
) -> None:
    assert _order(ours, lane) == _order(theirs, lane)


def test_the_lease_is_made_once_there_is_a_node_and_then_renewed(
    theirs: list[Line], ours: list[Line]
) -> None:
    """The first sync finds neither lease nor node; the second reads both and creates; from then on nothing is read."""
    for lines in (theirs, ours):
        lease = lanes(lines)["lease"]
        assert [(each.verb, each.code) for each in lease[:5]] == [
            ("get", 404),
            ("get", 404),
            ("get", 404),
            ("get", 200),
            ("create", 201),
        ]
        assert {(each.verb, each.code) for each in lease[5:]} == {("update", 200)}
    mine, recorded_ones = (len(lanes(lines)["lease"]) for lines in (ours, theirs))
    assert abs(mine - recorded_ones) <= 1


def test_heartbeats_come_each_ten_seconds_and_up_to_four_percent_later(
    theirs: list[Line], ours: list[Line]
) -> None:
    for lines in (theirs, ours):
        syncs = [each for each in lanes(lines)["lease"] if each.verb == "update"]
        gaps = [b.at - a.at - a.took_s for a, b in itertools.pairwise(syncs)]
        assert min(gaps) > 10.0 - 0.005
        assert max(gaps) < 10.4 + 0.005


def test_the_node_reports_when_ready_and_when_a_pods_image_has_come(
    theirs: list[Line], ours: list[Line]
) -> None:
    """Twice at its registration, then at the first computation after the image manager's look (each 30 s) at what the
    pods brought; five minutes +-50 % after that change the next."""
    for lines in (theirs, ours):
        times = [each.at for each in lanes(lines)["node status"]]
        assert times[0] < 0.2
        assert times[1] < 0.5
        assert 180.0 <= times[2] <= 180.0 + 10.4 + SLACK_S
        later = times[3:]
        assert all(150.0 <= at - times[2] <= 450.0 + 10.4 for at in later)
    images = lanes(ours)["node status"][2].request
    assert images is not None
    assert b'"images":[{"names":["pause"]' in images.body


def test_a_pod_reports_first_at_once_and_then_as_running(theirs: list[Line], ours: list[Line]) -> None:
    assert _up(ours) == ["GPGP"] * 9
    assert _up(theirs) == ["GPGP"] * 8 + ["GPGPGP"]


def test_a_deleted_pod_reports_two_or_three_times_before_its_deletion(
    theirs: list[Line], ours: list[Line]
) -> None:
    """Observed, stopped, over; reports that are overtaken while the one worker is busy are not sent."""
    for lines in (theirs, ours):
        words = _down(lines)
        assert len(words) == 6
        assert all(re.fullmatch(r"(GP){1,3}(GPD|GD)", word) for word in words)
        assert 13 <= sum(word.count("P") for word in words) <= 18


def test_pods_report_one_at_a_time(theirs: list[Line], ours: list[Line]) -> None:
    """A single worker: no request of a pod's begins before the answer to the one before it."""
    for lines in (theirs, ours):
        reports = [line for line in lines if line.lane.startswith("pod ")]
        for before, after in itertools.pairwise(reports):
            assert after.at >= before.at + before.took_s - 0.0015  # times are recorded in milliseconds
            if before.verb == "get" and after.verb != "get":
                assert after.lane == before.lane


@pytest.mark.parametrize(("began", "first"), [(CREATED_S, 20), (DELETED_S, 20)])
def test_a_burst_of_twenty_passes_then_ten_a_second(
    theirs: list[Line], ours: list[Line], began: float, first: int
) -> None:
    """The limit of its client, 10 a second and a burst of 20; watches, lease and status do not pass it."""
    for lines in (theirs, ours):
        limited = [
            line.at
            for line in lines
            if began - 0.1 <= line.at < began + 4.0
            and (line.lane == "tokens" or line.lane.startswith("pod "))
        ]
        throttled = limited[first + 5 :]
        gaps = [b - a for a, b in itertools.pairwise(throttled)]
        assert min(gaps) > TICK_S - 0.005
        for start in limited:
            assert sum(start <= at < start + 1.0 for at in limited) <= 20 + 10 + 1


def test_a_pod_costs_what_a_recorded_one_costs(theirs: list[Line], ours: list[Line]) -> None:
    """Until all nine run: four watches, nine tokens, and two reports for each pod."""

    def counted(lines: list[Line]) -> Counter[str]:
        chosen = [line for line in lines if CREATED_S - 0.1 < line.at < 182.0]
        return Counter(line.lane if line.lane == "tokens" else line.verb for line in chosen)

    mine, recorded_ones = counted(ours), counted(theirs)
    assert mine["tokens"] == recorded_ones["tokens"] == 9
    assert mine["watch"] == recorded_ones["watch"] == 4
    assert (
        mine["patch"] == recorded_ones["patch"] - 1
    )  # the one that was caught between sandbox and container
    assert mine["update"] == recorded_ones["update"]


def test_pods_run_within_the_recorded_time(theirs: list[Line], ours: list[Line]) -> None:
    """From the first word to the last of nine reported: a limit of 10 a second decides it."""
    ends = [
        max(line.at for line in lines if line.verb == "patch" and line.at < 182.0) for lines in (theirs, ours)
    ]
    assert abs(ends[0] - ends[1]) < 0.5
    gone = [max(line.at for line in lines if line.verb == "delete") for lines in (theirs, ours)]
    assert abs(gone[0] - gone[1]) < 1.0


@pytest.mark.parametrize(
    ("path", "low", "high"),
    [
        ("/api/v1/nodes", 300, 600),
        ("/apis/storage", 300, 600),
        ("/secrets", 1800, 3600),
        ("/configmaps", 1800, 3600),
    ],
)
def test_watches_are_asked_to_last_as_long_as_recorded_ones(
    theirs: list[Line], ours: list[Line], path: str, low: int, high: int
) -> None:
    for lines in (theirs, ours):
        timeouts = _timeouts([line for line in lines if path in line.uri and line.verb == "watch"])
        assert timeouts
        assert all(low <= int(each) < high for each in timeouts)


def test_a_watch_that_has_run_out_is_opened_again_at_once(theirs: list[Line], ours: list[Line]) -> None:
    seen = 0
    for lines in (theirs, ours):
        for name, lane in lanes(lines).items():
            if not name.startswith("watch "):
                continue
            for before, after in itertools.pairwise(lane):
                seen += 1
                due = before.at + float(_timeouts([before])[0])
                assert due <= after.at <= due + SLACK_S
                assert "sendInitialEvents" not in after.uri
    assert seen > 2
