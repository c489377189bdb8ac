"""The log of what informers were told: states of any revision, whatever order events come in."""

from __future__ import annotations

import random

import pytest

from harness.fleet.informers.reference import Reference, difference, digest_of, revision_of


@pytest.mark.parametrize("seed", range(10))
def test_states_are_the_same_whatever_order_events_came_in(seed: int) -> None:
    rng = random.Random(seed)
    state = {f"k{number}": number for number in range(1, 6)}
    reference = Reference(10, dict(state))
    states, events = {10: dict(state)}, []
    for revision in range(11, 51):
        key = f"k{rng.randrange(8)}"
        deleted = key in state and rng.random() < 0.4
        if deleted:
            del state[key]
        else:
            state[key] = revision
        states[revision] = dict(state)
        events.append((revision, key, deleted))
    rng.shuffle(events)
    for event in events:
        reference.add(*event, at=1.0)
        reference.validate()
    for revision, expected in states.items():
        assert reference.state_at(revision) == expected
        assert reference.digest_at(revision) == digest_of(expected)


def test_what_is_trimmed_moves_the_floor_and_no_state_changes() -> None:
    reference = Reference(0, {}, kept=10)
    for revision in range(1, 1500):
        reference.add(revision, f"k{revision % 7}", revision % 5 == 0, 0.0)
    reference.validate()
    assert reference.floor == reference.known == 1024
    assert reference.entry(reference.dropped - 1) is None
    assert reference.find(1024) is None
    assert reference.find(1025) is not None
    assert (reference.after(0), reference.end) == (1024, 1499)
    assert [told.revision for told in reference.about("k1", 2)] == [1492, 1499]


def test_a_new_beginning_keeps_what_lies_behind_it() -> None:
    reference = Reference(10, {"a": 1})
    reference.add(11, "b", False, 0.0)
    reference.add(15, "c", False, 0.0)
    reference.rebase(13, {"a": 1, "d": 12})
    assert (reference.floor, reference.known, reference.latest) == (13, 13, 15)
    assert reference.objects == {"a": 1, "d": 12, "c": 15}
    reference.validate()


def test_differences_name_both_revisions() -> None:
    found = sorted(difference({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 4, "d": 5}))
    assert found == [("b", 2, 4), ("c", 3, 0), ("d", 0, 5)]


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("", 0), ("x1", 0), ("-3", 0)])
def test_what_is_no_revision_is_0(text: str, number: int) -> None:
    assert revision_of(text) == number
