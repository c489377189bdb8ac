"""The part of a run's plan that is about informers, lists and what is written beside them."""

from __future__ import annotations

import msgspec

from harness.client.requests import ResourceRef
from harness.fleet.informers.listmix import ListMix
from harness.fleet.informers.options import Crowd, WriterOptions, resource_of

AUDIT_EVERY_S = 30.0


class InformerPlan(msgspec.Struct, frozen=True):
    """`lists` None: no client lists. `audit_every_s` is the time between two comparisons with a consistent LIST, 0 for
    the one at the end alone."""

    crowds: tuple[Crowd, ...] = (Crowd(),)
    lists: ListMix | None = None
    writer: WriterOptions = WriterOptions()
    audit_every_s: float = AUDIT_EVERY_S

    @property
    def informers(self) -> int:
        return sum(crowd.count for crowd in self.crowds)

    @property
    def listers(self) -> int:
        return self.lists.clients if self.lists is not None else 0

    @property
    def resources(self) -> list[ResourceRef]:
        """All that is read."""
        kinds = self.lists.kinds if self.lists is not None else []
        names = [*(crowd.resource for crowd in self.crowds), *(kind.resource for kind in kinds)]
        return [resource_of(name, "resource") for name in dict.fromkeys(names)]

    def shares(self, places: dict[str, int]) -> dict[str, list[int]]:
        """Which crowd each place of each process belongs to: every crowd has its count over all, spread as evenly as
        it goes."""
        left = dict(places)
        found: dict[str, list[int]] = {name: [] for name in places}
        for number, crowd in enumerate(self.crowds):
            for _ in range(crowd.count):
                name = max(left, key=lambda name: left[name], default=None)
                if name is None or not left[name]:
                    return found
                left[name] -= 1
                found[name].append(number)
        return found
