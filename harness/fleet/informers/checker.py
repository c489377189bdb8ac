"""The checker: was every informer told the truth, the whole truth, and in order?

All informers of a process that ask for the same (a `Scope`) are told the same events. So each event is looked up in one
log (`reference`): the informer whose place in the log it is goes on; one that was passed over is lost unless it still
comes, and is then out of order; one from behind is a duplicate. What an informer begins with, and what a LIST shows, is
a claim: a whole state at a revision, which must be the log's state there. A claim from ahead of what anybody was told
waits until somebody was told more.

Revisions are compared as numbers, which Kubernetes allows within a resource (KEP-5504). Kept are: for each scope one
state (objects by key, with their revisions) and the last `reference.KEPT` events; for each informer its place, its gaps
and its last `views.RING` events; of the claims that wait `WHOLE_CLAIMS` whole ones, of others the digest alone. An
informer's state is known by what it was told, at no cost for each of its objects. Bytes of objects are not compared,
only namespace, name and resourceVersion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from harness.fleet.informers.reference import KEPT, Entry, Reference, State, difference, digest_of
from harness.fleet.informers.views import Claim, Scope, View, Watched
from harness.fleet.informers.violations import Kind, Told, Violation

HISTORY = 16
"""Entries about one object in a violation."""
WHOLE_CLAIMS = 16
CLAIMS = 512
GRACE_S = 10.0
"""How long something that must come may be on its way: in a storm a member's events are seconds behind each other."""
TOLD_AT_MOST = 20
"""Violations that are told with their history; more are counted."""
OBJECTS_AT_MOST = 5
"""Of one claim's differences those that become violations of their own."""


class Checker:
    """One process's. `take` gives the violations since it was last asked; `counts` is what was looked at."""

    def __init__(self, kept: int = KEPT, grace_s: float = GRACE_S) -> None:
        self._kept = kept
        self._grace_s = grace_s
        self._scopes: dict[Scope, Watched] = {}
        self._found: list[Violation] = []
        self._known: set[tuple[Kind, str, str, str, int]] = set()
        self.counts: Counter[str] = Counter()

    @property
    def scopes(self) -> list[Scope]:
        """Those that have informers."""
        return [scope for scope, watched in self._scopes.items() if watched.views]

    def take(self) -> list[Violation]:
        found, self._found = self._found, []
        return found

    @property
    def undecided(self) -> int:
        """Claims that are not what the log has, so far, and informers that have not heard of the log's last event."""
        claims = sum(not claim.agreed for watched in self._scopes.values() for claim in watched.claims)
        behind = 0
        for watched in self._scopes.values():
            latest = watched.reference.latest if watched.reference is not None else 0
            behind += sum(bool(view.gaps) or 0 < view.revision < latest for view in watched.views)
        return claims + behind

    @property
    def unsynced(self) -> int:
        """Informers that were never given a state."""
        return sum(not view.synced for watched in self._scopes.values() for view in watched.views)

    # ---- informers ---------------------------------------------------------------------------------------------------
    def open(self, name: str, scope: Scope) -> View:
        """An informer's process begins."""
        watched = self._scopes.get(scope)
        if watched is None:
            watched = self._scopes[scope] = Watched(scope)
        view = View(name, watched)
        watched.views.add(view)
        return view

    def close(self, view: View, now: float) -> None:
        """It has ended: what it was not told by now is no matter."""
        watched = view.watched
        watched.views.discard(view)
        reference = watched.reference
        if reference is not None and not watched.followed(reference):
            self._go_on_with_a_claim(watched, reference, now)

    def synced(self, view: View, revision: int, objects: Mapping[str, int], now: float) -> None:
        """It was given a whole state, first or anew."""
        watched = view.watched
        self.counts["syncs"] += 1
        if revision < view.revision:
            text = f"a whole state from before revision {view.revision}, which it had"
            self._violate(Kind.WENT_BACK, view, "", revision, text, now)
        view.synced = view.revision = revision
        view.gaps.clear()
        state = dict(objects)
        reference = watched.reference
        if reference is None:
            watched.reference = reference = Reference(revision, state, self._kept)
        elif revision > reference.known and not watched.followed(reference, but=view):
            self._rebase(watched, reference, view, revision, state, now)
        view.place = reference.after(revision)
        self._claim(watched, reference, Claim(view.name, revision, digest_of(state), state, now, view), now)

    def event(self, view: View, revision: int, key: str, deleted: bool, now: float) -> None:
        """It was told of one object."""
        view.received.append((now, revision, key, deleted))
        watched = view.watched
        reference = watched.reference
        if reference is None or not view.synced:
            return  # a stream that goes on from a state which was never given: the reflector has none
        self.counts["events"] += 1
        if revision <= view.revision:
            self._late(reference, view, revision, key, deleted, now)
            return
        entry = reference.entry(view.place)
        if entry is not None and entry.revision == revision:
            if entry.key != key or entry.deleted != deleted:
                self._contradict(view, entry, key, now)
            view.place += 1
        elif revision > reference.latest and view.place == reference.end:
            self._tell(reference, view, revision, key, deleted, now)
        else:
            self._find_place(reference, view, revision, key, deleted, now)
        view.revision = revision
        if view.synced <= reference.known < revision:
            self._advance(watched, reference, revision, now)

    def progress(self, view: View, revision: int, now: float) -> None:
        """It was promised, by a bookmark, to have been told everything up to a revision."""
        reference = view.watched.reference
        if revision == view.revision or not view.synced or reference is None:
            return
        if revision < view.revision:
            text = f"a bookmark from before revision {view.revision}, which it had"
            self._violate(Kind.WENT_BACK, view, "", revision, text, now)
            return
        for missed in reference.between(view.revision, revision):
            view.gaps[missed.revision] = now
        view.revision = revision
        view.place = reference.after(revision)
        if view.synced <= reference.known < revision:
            self._advance(view.watched, reference, revision, now)

    # ---- lists -------------------------------------------------------------------------------------------------------
    def listed(self, who: str, scope: Scope, revision: int, objects: Mapping[str, int], now: float) -> None:
        """A LIST showed these objects at a revision. Where no informer of the scope is in this process, nothing is
        known to set it beside."""
        self.counts["lists"] += 1
        watched = self._scopes.get(scope)
        if watched is None or watched.reference is None:
            self.counts["unchecked"] += 1
            return
        state = dict(objects)
        self._claim(watched, watched.reference, Claim(who, revision, digest_of(state), state, now), now)

    def mixed(
        self, who: str, scope: Scope, revision: int, problems: list[tuple[str, str]], now: float
    ) -> None:
        """Pages of one list do not fit together; each problem is (key, text)."""
        watched = self._scopes.get(scope)
        reference = watched.reference if watched is not None else None
        for key, text in problems[:OBJECTS_AT_MOST]:
            history = reference.about(key, HISTORY) if reference is not None and key else ()
            self._add(Violation(Kind.MIXED_PAGES, str(scope), who, key, revision, text, now, (), history))

    # ---- at quiet points ---------------------------------------------------------------------------------------------
    def settle(self, now: float, *, last: bool = False) -> None:
        """Judge what had time to come and did not; `last`: nothing is written any more, so everything is judged."""
        for watched in self._scopes.values():
            reference = watched.reference
            if reference is None:
                continue
            for view in watched.views:
                self._settle_view(reference, view, now, last)
            if last:
                self._settle_claims(watched, reference, now)

    def _settle_view(self, reference: Reference, view: View, now: float, last: bool) -> None:
        for revision, since in list(view.gaps.items()):
            if now - since >= self._grace_s:
                del view.gaps[revision]
                self._lost(reference, view, revision, now)
        if last and view.synced:
            for entry in reference.between(view.revision, reference.latest):
                if now - entry.at >= self._grace_s:
                    self._lost(reference, view, entry.revision, now)

    def _settle_claims(self, watched: Watched, reference: Reference, now: float) -> None:
        entry = reference.entry(reference.end - 1)
        quiet = entry is None or now - entry.at >= self._grace_s
        waiting, watched.claims = watched.claims, []
        for claim in waiting:
            if not self._waits(watched, reference, claim, now):
                continue
            if claim.agreed:
                self.counts["compared"] += 1
            elif quiet and now - claim.at >= self._grace_s:
                self._differ(watched, reference, claim, now)
            else:
                watched.claims.append(claim)

    def give_up(self) -> None:
        """What is still not decided never will be."""
        for watched in self._scopes.values():
            for claim in watched.claims:
                self.counts["compared" if claim.agreed else "unchecked"] += 1
            watched.claims.clear()

    def _lost(self, reference: Reference, view: View, revision: int, now: float) -> None:
        entry = reference.find(revision)
        if entry is not None:
            how = "deletion" if entry.deleted else "event"
            text = f"the {how} was told to others {now - entry.at:.1f} s ago"
            self._violate(Kind.LOST, view, entry.key, revision, text, now)

    # ---- events out of place -----------------------------------------------------------------------------------------
    def _tell(
        self, reference: Reference, view: View, revision: int, key: str, deleted: bool, now: float
    ) -> None:
        """An event that this informer is the first to be told of; who should have been told by now was not."""
        reference.add(revision, key, deleted, now)
        if revision <= reference.known:
            for other in view.watched.views:
                if other is not view and 0 < other.synced < revision <= other.revision:
                    other.gaps[revision] = now
        view.place = reference.after(revision)

    def _find_place(
        self, reference: Reference, view: View, revision: int, key: str, deleted: bool, now: float
    ) -> None:
        """An event that is not the next one of the log: others were passed over, or it is new to the log."""
        if revision <= reference.floor:
            self.counts["unchecked"] += 1
            view.place = reference.after(revision)
            return
        for missed in reference.between(view.revision, revision - 1):
            view.gaps[missed.revision] = now
        entry = reference.find(revision)
        if entry is None:
            self._tell(reference, view, revision, key, deleted, now)
            return
        if entry.key != key or entry.deleted != deleted:
            self._contradict(view, entry, key, now)
        view.place = reference.after(revision)

    def _late(
        self, reference: Reference, view: View, revision: int, key: str, deleted: bool, now: float
    ) -> None:
        """An event at or before the last revision that this informer heard of."""
        if revision in view.gaps:
            del view.gaps[revision]
            self._violate(Kind.REORDERED, view, key, revision, f"it came after {view.revision}", now)
        elif revision <= view.synced:
            kind = Kind.DUPLICATED if revision == view.synced else Kind.WENT_BACK
            text = f"it is part of the state at revision {view.synced} that the informer began with"
            self._violate(kind, view, key, revision, text, now)
        elif revision <= reference.floor or reference.find(revision) is not None:
            self._violate(Kind.DUPLICATED, view, key, revision, "it was told before", now)
        else:
            self._tell(reference, view, revision, key, deleted, now)
            view.place = reference.after(view.revision)
            self._violate(Kind.REORDERED, view, key, revision, f"it came after {view.revision}", now)

    def _contradict(self, view: View, entry: Entry, key: str, now: float) -> None:
        text = f"others were told of {entry.told.text.partition(' ')[2]}"
        self._violate(Kind.CONTRADICTION, view, key, entry.revision, text, now)

    # ---- claims ------------------------------------------------------------------------------------------------------
    def _claim(self, watched: Watched, reference: Reference, claim: Claim, now: float) -> None:
        if not self._waits(watched, reference, claim, now):
            return
        if sum(each.objects is not None for each in watched.claims) >= WHOLE_CLAIMS:
            claim.objects = None
        watched.claims.append(claim)
        if len(watched.claims) > CLAIMS:
            dropped = watched.claims.pop(0)
            self.counts["compared" if dropped.agreed else "unchecked"] += 1

    def _waits(self, watched: Watched, reference: Reference, claim: Claim, now: float) -> bool:
        """Judge a claim, unless it must wait."""
        if claim.revision < reference.floor:
            self.counts["unchecked"] += 1
            return False
        claim.agreed = claim.digest == reference.digest_at(claim.revision)
        if claim.revision > reference.known:
            if claim.agreed:
                claim.objects = None  # as the log has them
            return True
        if claim.agreed:
            self.counts["compared"] += 1
        else:
            self._differ(watched, reference, claim, now)
        return False

    def _advance(self, watched: Watched, reference: Reference, known: int, now: float) -> None:
        """Everything up to a revision is known now."""
        reference.known = known
        if watched.claims:
            watched.claims = [
                claim for claim in watched.claims if self._waits(watched, reference, claim, now)
            ]

    def _go_on_with_a_claim(self, watched: Watched, reference: Reference, now: float) -> None:
        """Nobody is left to tell what followed on what is known: the earliest of the states that informers began with
        since is where the log goes on."""
        for claim in sorted(watched.claims, key=lambda claim: claim.revision):
            if claim.view not in watched.views or claim.view is None:
                continue
            objects = claim.objects
            if objects is None and claim.digest == reference.digest_at(claim.revision):
                objects = reference.state_at(claim.revision)
            if objects is not None:
                self._rebase(watched, reference, claim.view, claim.revision, objects, now)
                return

    def _rebase(
        self,
        watched: Watched,
        reference: Reference,
        view: View,
        revision: int,
        objects: State,
        now: float,
    ) -> None:
        """Go on with a later state. What it has from the time that is known must be what was known."""
        known, before = reference.known, reference.state_at(reference.known)
        for key, written in objects.items():
            if written <= known and before.get(key) != written:
                text = f"{_object(written)} in its state, {_object(before.get(key, 0))} at revision {known}"
                self._violate(Kind.DIFFERS, view, key, revision, text, now)
        reference.rebase(revision, objects)
        self.counts["rebased"] += 1
        self._advance(watched, reference, revision, now)

    def _differ(self, watched: Watched, reference: Reference, claim: Claim, now: float) -> None:
        """A whole state that is not the one that informers were told."""
        self.counts["compared"] += 1
        received = claim.view.told if claim.view is not None else ()

        def add(key: str, text: str, history: tuple[Told, ...] = ()) -> None:
            scope, who, revision = str(watched.scope), claim.who, claim.revision
            self._add(Violation(Kind.DIFFERS, scope, who, key, revision, text, now, received, history))

        if claim.objects is None:
            add("", "the state is not what informers were told; its objects were not kept")
            return
        for index, (key, told, found) in enumerate(
            difference(reference.state_at(claim.revision), claim.objects)
        ):
            if index >= OBJECTS_AT_MOST:
                self.counts["violations"] += 1
                continue
            text = f"{_object(found)} in its state, {_object(told)} by what informers were told"
            add(key, text, reference.about(key, HISTORY))

    # ---- violations --------------------------------------------------------------------------------------------------
    def _violate(self, kind: Kind, view: View, key: str, revision: int, text: str, now: float) -> None:
        reference = view.watched.reference
        history = reference.about(key, HISTORY) if reference is not None and key else ()
        scope = str(view.watched.scope)
        self._add(Violation(kind, scope, view.name, key, revision, text, now, view.told, history))

    def _add(self, violation: Violation) -> None:
        """Each once, however often it is found again."""
        identity = (violation.kind, violation.scope, violation.who, violation.key, violation.revision)
        if identity in self._known:
            return
        self.counts["violations"] += 1
        if len(self._known) < TOLD_AT_MOST:
            self._known.add(identity)
            self._found.append(violation)


def _object(revision: int) -> str:
    return f"revision {revision}" if revision else "not"
