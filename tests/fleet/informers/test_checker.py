"""What the checker finds: planted faults, and nothing where all is as it should be."""

from __future__ import annotations

import random

import pytest

from harness.fleet.informers.checker import CLAIMS, GRACE_S, OBJECTS_AT_MOST, TOLD_AT_MOST, Checker
from harness.fleet.informers.views import Scope, View
from harness.fleet.informers.violations import Kind, Violation

SCOPE = Scope("configmaps", "ns")


class Play:
    """A truth, and informers that are told of it. Revisions count from 10; the first state has a, b and c."""

    def __init__(self, informers: int = 2, kept: int = 20_000) -> None:
        self.checker = Checker(kept=kept)
        self.now = 100.0
        self.revision = 10
        self.objects = {"ns/a": 1, "ns/b": 2, "ns/c": 3}
        self.views = [self.join(f"informer-{index}") for index in range(informers)]

    def join(self, name: str) -> View:
        view = self.checker.open(name, SCOPE)
        self.checker.synced(view, self.revision, self.objects, self.now)
        return view

    def write(self, key: str, deleted: bool = False) -> tuple[int, str, bool]:
        """An event, told to nobody yet."""
        self.revision += 1
        if deleted:
            del self.objects[key]
        else:
            self.objects[key] = self.revision
        return self.revision, key, deleted

    def tell(self, event: tuple[int, str, bool], *views: View) -> None:
        self.now += 0.01
        for view in views or self.views:
            self.checker.event(view, *event, self.now)

    def end(self) -> list[Violation]:
        """Time passes, a consistent list is compared, and all is judged."""
        self.checker.listed("auditor", SCOPE, self.revision, self.objects, self.now)
        self.now += GRACE_S
        self.checker.settle(self.now, last=True)
        for watched in self.checker._scopes.values():
            if watched.reference is not None:
                watched.reference.validate()
        return self.checker.take()


def found(play: Play) -> list[tuple[Kind, str, str]]:
    return [(each.kind, each.who, each.key) for each in play.end()]


def test_nothing_is_found_where_all_are_told_everything() -> None:
    play = Play()
    for key in ("ns/a", "ns/d", "ns/b"):
        play.tell(play.write(key))
    play.tell(play.write("ns/a", deleted=True))
    assert found(play) == []
    assert play.checker.counts["compared"] == 3
    assert play.checker.undecided == 0


# ---- the four planted faults -----------------------------------------------------------------------------------------
def test_a_dropped_event_is_found_by_what_others_were_told() -> None:
    play = Play()
    first, second = play.views
    play.tell(play.write("ns/a"), first)
    play.tell(play.write("ns/b"), first, second)
    (lost,) = play.end()
    assert (lost.kind, lost.who, lost.key, lost.revision) == (Kind.LOST, "informer-1", "ns/a", 11)
    assert [told.revision for told in lost.received] == [12]
    assert [told.revision for told in lost.history] == [11]
    assert lost.line.startswith("lost: informer-1: configmaps ns ns/a @11: the event was told to others 10.")


def test_an_event_that_everybody_misses_is_found_by_a_list() -> None:
    play = Play(informers=1)
    play.write("ns/a")
    play.tell(play.write("ns/b"))
    (differs,) = play.end()
    assert (differs.kind, differs.who, differs.key) == (Kind.DIFFERS, "auditor", "ns/a")
    assert differs.text == "revision 11 in its state, revision 1 by what informers were told"


@pytest.mark.parametrize("what", ["the last event", "a deletion"])
def test_a_dropped_end_is_found_by_a_list(what: str) -> None:
    play = Play()
    play.write("ns/a", deleted=what == "a deletion")
    assert found(play) == [(Kind.DIFFERS, "auditor", "ns/a")]


def test_an_informer_that_misses_the_last_event_is_found_at_the_end() -> None:
    play = Play()
    play.tell(play.write("ns/a"), play.views[0])
    assert found(play) == [(Kind.LOST, "informer-1", "ns/a")]


def test_a_duplicated_event_is_found() -> None:
    play = Play()
    event = play.write("ns/a")
    play.tell(event)
    play.tell(event, play.views[1])
    assert found(play) == [(Kind.DUPLICATED, "informer-1", "ns/a")]


def test_a_duplicate_of_what_the_first_state_has_is_found() -> None:
    play = Play()
    late = play.checker.open("late", SCOPE)
    event = play.write("ns/a")
    play.tell(event)
    play.checker.synced(late, play.revision, play.objects, play.now)
    play.tell(event, late)
    play.tell((10, "ns/c", False), late)
    assert found(play) == [(Kind.DUPLICATED, "late", "ns/a"), (Kind.WENT_BACK, "late", "ns/c")]


@pytest.mark.parametrize("told_first", [0, 1])
def test_reordered_events_are_found_whoever_is_told_first(told_first: int) -> None:
    play = Play()
    events = [play.write("ns/a"), play.write("ns/b")]
    order = [play.views[told_first], play.views[1 - told_first]]
    for view in order:
        for event in events if view is play.views[0] else reversed(events):
            play.tell(event, view)
    assert found(play) == [(Kind.REORDERED, "informer-1", "ns/a")]


def test_one_informer_alone_shows_reordered_events() -> None:
    play = Play(informers=1)
    first, second = play.write("ns/a"), play.write("ns/a")
    play.tell(second)
    play.tell(first)
    assert found(play) == [(Kind.REORDERED, "informer-0", "ns/a")]


def test_pages_of_different_revisions_are_found() -> None:
    play = Play()
    play.checker.mixed("lister-0 paged", SCOPE, 10, [("ns/b", "page 2 has it at 12")], play.now)
    assert found(play) == [(Kind.MIXED_PAGES, "lister-0 paged", "ns/b")]


def test_a_page_that_lacks_an_object_of_its_revision_is_found_by_what_informers_were_told() -> None:
    play = Play()
    seen = play.revision, {**play.objects}
    play.tell(play.write("ns/b", deleted=True))
    play.tell(play.write("ns/c"))
    del seen[1]["ns/b"]  # page 2 is of a later state than page 1
    play.checker.listed("lister-0 paged", SCOPE, *seen, play.now)
    assert found(play) == [(Kind.DIFFERS, "lister-0 paged", "ns/b")]


# ---- revisions -------------------------------------------------------------------------------------------------------
def test_a_bookmark_from_the_past_is_found() -> None:
    play = Play()
    play.tell(play.write("ns/a"))
    play.checker.progress(play.views[0], 10, play.now)
    assert found(play) == [(Kind.WENT_BACK, "informer-0", "")]


def test_a_relist_that_goes_back_is_found() -> None:
    play = Play()
    before = dict(play.objects)
    play.tell(play.write("ns/a"))
    play.checker.synced(play.views[0], 10, before, play.now)
    assert (Kind.WENT_BACK, "informer-0", "") in found(play)


def test_one_revision_told_as_two_things_is_found() -> None:
    play = Play()
    play.tell(play.write("ns/a"), play.views[0])
    play.tell((11, "ns/b", False), play.views[1])
    assert (Kind.CONTRADICTION, "informer-1", "ns/b") in found(play)


def test_an_event_behind_a_bookmark_is_one_that_came_too_late() -> None:
    play = Play()
    event = play.write("ns/a")
    play.checker.progress(play.views[1], play.revision, play.now)
    play.tell(event, play.views[0])
    assert play.checker.undecided == 1
    play.tell(event, play.views[1])
    assert found(play) == [(Kind.REORDERED, "informer-1", "ns/a")]


def test_a_bookmark_that_passes_over_an_event_makes_it_a_lost_one() -> None:
    play = Play()
    play.tell(play.write("ns/a"), play.views[0])
    play.checker.progress(play.views[1], play.revision, play.now)
    assert found(play) == [(Kind.LOST, "informer-1", "ns/a")]


# ---- whole states ----------------------------------------------------------------------------------------------------
def test_a_first_state_that_lacks_an_object_is_found() -> None:
    play = Play()
    view = play.checker.open("late", SCOPE)
    objects = {**play.objects}
    del objects["ns/b"]
    play.checker.synced(view, play.revision, objects, play.now)
    assert found(play) == [(Kind.DIFFERS, "late", "ns/b")]


def test_a_state_from_ahead_waits_for_what_others_are_told() -> None:
    play = Play()
    events = [play.write("ns/a"), play.write("ns/d"), play.write("ns/a", deleted=True)]
    late = play.join("late")
    assert play.checker.undecided == 1
    more = play.write("ns/b")
    play.tell(more, late)
    for event in (*events, more):
        play.tell(event, *play.views)
    assert found(play) == []
    assert play.checker.counts["unchecked"] == 0


def test_a_state_between_two_events_is_compared_there() -> None:
    play = Play()
    play.tell(play.write("ns/a"))
    between = play.revision, dict(play.objects)
    play.tell(play.write("ns/b"))
    play.checker.listed("exact", SCOPE, *between, play.now)
    assert found(play) == []
    play.checker.listed("exact", SCOPE, between[0], play.objects, play.now)
    assert [each.key for each in play.checker.take()] == ["ns/b"]


def test_a_list_of_what_no_informer_follows_is_not_checked() -> None:
    checker = Checker()
    checker.listed("lister", SCOPE, 5, {"ns/a": 1}, 0.0)
    assert (checker.counts["unchecked"], checker.take()) == (1, [])


def test_what_is_older_than_the_log_is_not_checked() -> None:
    play = Play(kept=10)
    old = play.revision, dict(play.objects)
    behind = play.views.pop()
    for _ in range(1100):
        play.tell(play.write("ns/a"))
    play.checker.listed("exact", SCOPE, *old, play.now)
    play.tell((11, "ns/a", False), behind)
    assert play.checker.counts["unchecked"] == 2
    assert play.checker.take() == []


# ---- restarts --------------------------------------------------------------------------------------------------------
def test_after_a_restart_of_all_the_log_goes_on_with_the_first_state_of_them() -> None:
    play = Play()
    for view in play.views:
        play.checker.close(view, play.now)
    play.write("ns/a")
    play.write("ns/b", deleted=True)
    play.views = [play.join("again-0"), play.join("again-1")]
    play.tell(play.write("ns/c"))
    assert found(play) == []
    assert play.checker.counts["rebased"] == 1


def test_a_state_after_a_restart_must_have_what_was_known_before() -> None:
    play = Play()
    for view in play.views:
        play.checker.close(view, play.now)
    play.write("ns/a")
    play.objects["ns/b"] = 1  # 2 was known
    play.views = [play.join("again-0")]
    assert found(play) == [(Kind.DIFFERS, "again-0", "ns/b")]


@pytest.mark.parametrize("agreed", [True, False])
def test_the_last_that_followed_ends_while_others_wait_to_be_judged(agreed: bool) -> None:
    play = Play(informers=1)
    (old,) = play.views
    event = play.write("ns/a")
    if agreed:
        play.revision += 5  # of other resources
        play.tell(event)
    late = play.join("late")
    play.checker.close(old, play.now)
    play.views = [late]
    play.tell(play.write("ns/b"))
    other = play.join("other")
    play.views.append(other)
    play.tell(play.write("ns/c"))
    assert found(play) == []
    assert play.checker.counts["rebased"] == 1


# ---- bounds ----------------------------------------------------------------------------------------------------------
def test_claims_that_wait_are_bounded_and_what_is_dropped_is_counted() -> None:
    play = Play()
    for _ in range(CLAIMS + 3):
        play.write("ns/a")
        play.checker.listed("lister", SCOPE, play.revision, play.objects, play.now)
    assert play.checker.undecided == CLAIMS
    assert play.checker.counts["unchecked"] == 3
    play.checker.give_up()
    assert play.checker.counts["unchecked"] == CLAIMS + 3


def test_a_claim_whose_objects_were_not_kept_is_still_judged() -> None:
    play = Play()
    play.write("ns/a")
    for _ in range(20):
        play.checker.listed("lister", SCOPE, play.revision, play.objects, play.now)
    texts = {each.text for each in play.end()}
    assert texts == {
        "revision 11 in its state, revision 1 by what informers were told",
        "the state is not what informers were told; its objects were not kept",
    }


def test_violations_are_told_with_their_story_up_to_a_number_and_counted_beyond_it() -> None:
    play = Play()
    for _ in range(TOLD_AT_MOST + 5):
        event = play.write("ns/a")
        play.tell(event)
        play.tell(event, play.views[1])
    assert len(play.end()) == TOLD_AT_MOST
    assert play.checker.counts["violations"] == TOLD_AT_MOST + 5


def test_many_differences_of_one_state_are_counted() -> None:
    play = Play()
    play.objects.update({f"ns/x{index}": 5 for index in range(8)})
    assert len(found(play)) == OBJECTS_AT_MOST
    assert play.checker.counts["violations"] == 8


# ---- at random -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(20))
def test_informers_at_any_pace_with_restarts_are_found_right(seed: int) -> None:
    """Informers of one truth, each as far as it is; they end and begin anywhere, lists come from anywhere."""
    rng = random.Random(seed)
    play = Play(informers=3)
    states = {play.revision: dict(play.objects)}
    events: list[tuple[int, str, bool]] = []
    at = dict.fromkeys(play.views, 0)
    for _ in range(400):
        draw = rng.random()
        if draw < 0.35:
            key = f"ns/{rng.choice('abcdefgh')}"
            events.append(play.write(key, deleted=key in play.objects and rng.random() < 0.4))
            states[play.revision] = dict(play.objects)
        elif draw < 0.8 and at:
            view = rng.choice(list(at))
            if at[view] < len(events):
                play.tell(events[at[view]], view)
                at[view] += 1
            elif rng.random() < 0.3:
                play.revision += 1  # of another resource
                states[play.revision] = dict(play.objects)
                play.checker.progress(view, play.revision, play.now)
        elif draw < 0.88 and at:
            view = rng.choice(list(at))
            del at[view]
            play.checker.close(view, play.now)
        elif draw < 0.95:
            view = play.checker.open(f"late-{play.now}", SCOPE)
            revision = rng.choice([*states][-6:])
            play.checker.synced(view, revision, states[revision], play.now)
            at[view] = sum(event[0] <= revision for event in events)
        else:
            revision = rng.choice([*states][-10:])
            play.checker.listed("list", SCOPE, revision, states[revision], play.now)
        play.now += 0.01
        play.checker.settle(play.now)
    for view, place in at.items():
        for event in events[place:]:
            play.tell(event, view)
    assert play.end() == []
    assert play.checker.counts["compared"] > 10


@pytest.mark.parametrize("seed", range(30))
def test_one_fault_anywhere_is_found_and_put_to_its_informer(seed: int) -> None:
    """One of three informers has one event dropped, told twice, or told after its next one."""
    rng = random.Random(seed)
    play = Play(informers=3)
    events = []
    for _ in range(30):
        key = f"ns/{rng.choice('abcdef')}"
        events.append(play.write(key, deleted=key in play.objects and rng.random() < 0.3))
    place, kind = rng.randrange(len(events) - 1), rng.choice((Kind.LOST, Kind.DUPLICATED, Kind.REORDERED))
    bad = list(events)
    if kind is Kind.LOST:
        del bad[place]
    elif kind is Kind.DUPLICATED:
        bad.insert(place + 1, bad[place])
    else:
        bad[place : place + 2] = reversed(bad[place : place + 2])
    told = {play.views[0]: events, play.views[1]: bad, play.views[2]: events}
    at = dict.fromkeys(told, 0)
    while at:
        view = rng.choice(list(at))
        play.tell(told[view][at[view]], view)
        at[view] += 1
        if at[view] == len(told[view]):
            del at[view]
    assert found(play) == [(kind, "informer-1", events[place][1])]
