"""What a scenario does while it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from harness.load.live.steps import SHOWN, Piece, Steps


def play(*events: tuple[float, str, dict[str, Any]]) -> Steps:
    steps = Steps()
    for t, kind, fields in events:
        steps.happened(kind, fields, t)
    return steps


PHASE = {"step": "create", "objects": "deployment"}


def test_a_phase_from_its_beginning_to_its_end() -> None:
    events = (
        (10.0, "scenario-started", {"steps": ["create", "wait"]}),
        (11.0, "step-started", {"number": 1, "name": "create"}),
        (12.0, "phase-started", {**PHASE, "operations": 20}),
        (13.0, "progress", {"step": "create", "what": "deployment", "done": 8, "total": 20}),
    )
    steps = play(*events)
    (piece,) = steps.pieces()
    assert (steps.names, steps.step) == (["create", "wait"], 1)
    assert piece == Piece("create", "deployment", 12.0, 8, 20)
    assert (piece.left, piece.seconds(15.0)) == (12, 3.0)
    steps = play(*events, (16.0, "phase-finished", {**PHASE, "operations": 20}))
    (piece,) = steps.pieces()
    assert (piece.ended_t, piece.seconds(99.0)) == (16.0, 4.0)


def test_a_barrier_is_there_from_its_first_progress() -> None:
    waiting = {"step": "wait", "what": "WaitForPods"}
    steps = play(
        (1.0, "progress", {**waiting, "done": 3, "total": 9}),
        (2.0, "progress", {**waiting, "done": 9, "total": 9}),
        (3.0, "barrier", {"step": "wait", "identifier": "WaitForPods"}),
    )
    assert steps.pieces() == [Piece("wait", "WaitForPods", 1.0, 9, 9, 3.0)]


def test_what_a_step_leaves_open_ends_with_it() -> None:
    steps = play(
        (1.0, "progress", {"step": "wait", "what": "pods", "done": 1, "total": 2}),
        (1.5, "progress", {"step": "other", "what": "pods", "done": 1, "total": 2}),
        (2.0, "step-finished", {"name": "wait"}),
    )
    assert [(piece.step, piece.ended_t) for piece in steps.pieces()] == [("other", None), ("wait", 2.0)]


def test_the_nodes_that_are_waited_for_at_first() -> None:
    steps = play(
        (1.0, "progress", {"step": "nodes ready", "what": "nodes", "done": 5, "total": 20}),
        (2.0, "nodes-ready", {"ready": 20, "wanted": 20}),
    )
    assert [piece.ended_t for piece in steps.pieces()] == [2.0]


def test_claims_are_bound_and_then_deleted() -> None:
    steps = play(
        (0.0, "phase-started", {"phase": "claims", "claims": 100}),
        (1.0, "claims-progress", {"created": 100, "bound": 40, "deleted": 0}),
    )
    assert steps.pieces() == [Piece("claims", "bound", 0.0, 40, 100)]
    steps.happened("claims-bound", {"bound": 100}, 5.0)
    steps.happened("claims-progress", {"created": 100, "bound": 100, "deleted": 30}, 6.0)
    assert steps.pieces() == [
        Piece("claims", "deleted", 6.0, 30, 100),
        Piece("claims", "bound", 0.0, 40, 100, 5.0),
    ]
    steps.happened("claims-deleted", {"deleted": 100}, 7.0)
    assert all(piece.ended_t is not None for piece in steps.pieces())


def test_what_has_ended_is_shown_last_first_and_not_for_ever() -> None:
    events = []
    for number in range(SHOWN + 5):
        phase = {"step": f"s{number}", "objects": "pod"}
        events += [
            (float(number), "phase-started", {**phase, "operations": 1}),
            (number + 0.5, "phase-finished", phase),
        ]
    pieces = play(*events).pieces()
    assert len(pieces) == SHOWN
    assert pieces[0].step == f"s{SHOWN + 4}"


@pytest.mark.parametrize(
    "kind",
    ["scenario-started", "step-started", "step-finished", "phase-started", "phase-finished", "barrier"],
)
def test_events_of_a_scenario_without_steps_are_passed_over(kind: str) -> None:
    steps = play((1.0, kind, {"config": "profile.yaml"}))
    assert (steps.names, steps.step, steps.pieces()) == ([], 0, [])


def test_events_of_others_are_passed_over() -> None:
    steps = play(
        (1.0, "mark", {"text": "x"}),
        (2.0, "phase-started", {"phase": "load"}),
        (3.0, "barrier", {"step": "a", "identifier": "b"}),
    )
    assert steps.pieces() == []
