"""A runner of a profile: its specs one after the other, as kperf's executeSpecs (cmd/kperf/commands/runner/runner.go).

A spec begins when the last request of the one before it has ended; its due times count from there.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import msgspec

from harness.client.machine import Action, Arm, Disarm, Event, Finished, Key, Note
from harness.kperf.building import Builder
from harness.kperf.observations import Observations
from harness.kperf.profile import LoadProfile
from harness.kperf.schedule import Share
from harness.kperf.stretch import Context, Stretch

TOLD_EVERY_S = 2.0
OBSERVED = "kperf-observed"
"""The note that carries what was seen since the last one (`Observations.take`) and what has come to an end."""

_TELL: Key = ("tell",)


class RunnerOptions(msgspec.Struct, frozen=True):
    """`runner` is which of the profile's runners this is, `share` how much of it; `labels` mark what it creates."""

    runner: int = 0
    share: Share = Share()
    seed: int = 1
    labels: Mapping[str, str] = {}


class Runner:
    """A `Machine`; requests go by connection, ``Request.client`` "0" to "<conns - 1>"."""

    def __init__(self, profile: LoadProfile, options: RunnerOptions, epoch_s: float) -> None:
        self._profile = profile
        self._options = options
        self._context = Context(Observations(), epoch_s)
        self._next = 0
        self._stretch: Stretch | None = None
        self._spans: list[dict[str, float]] = []

    def __repr__(self) -> str:
        return f"Runner({self._options.runner}, {self._options.share}, {self._stretch!r})"

    def start(self, now: float) -> list[Action]:
        return [Arm(_TELL, now + TOLD_EVERY_S), *self._go_on(now)]

    def handle(self, event: Event, now: float) -> list[Action]:
        if event.key == _TELL:
            return [*self._tell(), Arm(_TELL, now + TOLD_EVERY_S)]
        stretch = self._stretch
        if stretch is None:
            return []
        actions = stretch.handle(event, now)
        if stretch.ended:
            self._close(stretch, now)
            actions += [*self._tell(), *self._go_on(now)]
        return actions

    def stop(self, now: float) -> list[Action]:
        """Give up; what was seen until now is told."""
        if self._stretch is None:
            return []
        self._close(self._stretch, now, unfinished=self._stretch.unfinished(now))
        actions = self._stretch.stop()
        self._stretch = None
        return [*actions, Disarm(_TELL), *self._tell()]

    def _go_on(self, now: float) -> list[Action]:
        """Begin the next spec that has a share here, or finish."""
        actions: list[Action] = []
        while self._next < len(self._profile.specs):
            self._stretch = stretch = self._make(self._next)
            self._next += 1
            if stretch is None:
                continue
            actions += stretch.start(now)
            if not stretch.ended:
                return actions
            self._close(stretch, now)
        self._stretch = None
        return [*actions, Disarm(_TELL), *self._tell(), Finished()]

    def _make(self, number: int) -> Stretch | None:
        options, spec = self._options, self._profile.specs[number]
        share = options.share.of_runner(options.runner, spec)
        if share is None:
            return None
        name = f"{options.seed}/kperf/{options.runner}/{number}"
        builder = Builder(
            spec,
            draws=random.Random(f"{name}/kinds"),
            rng=random.Random(f"{name}/{share.position}/{share.of}"),
            unique=f"{options.runner}-",
            labels=options.labels,
        )
        return Stretch(number, spec, share, builder, self._context)

    def _close(self, stretch: Stretch, now: float, *, unfinished: int = 0) -> None:
        """Keep when a spec began and ended."""
        epoch_s = self._context.epoch_s
        span = {"from_s": epoch_s + stretch.began, "until_s": epoch_s + now, "unfinished": unfinished}
        self._spans.append({"spec": stretch.number, **span})

    def _tell(self) -> list[Action]:
        spans, self._spans = self._spans, []
        columns = self._context.seen.take()
        return [Note(OBSERVED, {"columns": columns, "spans": spans})] if columns or spans else []
