"""What the parts of a running test share: tasks, object operations, informers, notes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.client.machine import Event, Note, Sample
from harness.client.reflector import Reflector
from harness.client.requests import ResourceRef
from harness.client.store import Changed, Decode
from harness.clusterloader.messages import Post
from harness.clusterloader.objects import ObjectApi
from harness.clusterloader.tasks import Future, Tasks
from harness.wire import rfc3339

Listener = Callable[[Changed], None]

PROGRESS_INTERVAL_S = 1.0
KEPT_FAILURES = 20  # a record names so many failures of a step; the others are counted


class Informer:
    """A reflector for the tasks of a test: `listener` sees each change."""

    def __init__(self, tasks: Tasks, reflector: Reflector, listener: Listener | None) -> None:
        self._tasks = tasks
        self._reflector = reflector
        self._listener = listener
        self.synced: Future[None] = Future()
        self.running = True
        self._take(reflector.start(tasks.now))

    @property
    def objects(self) -> list[Any]:
        return list(self._reflector.store.values())

    @property
    def keys(self) -> set[str]:
        """``namespace/name`` of each object."""
        return set(self._reflector.store.keys())

    def handle(self, event: Event) -> None:
        if self.running:
            self._take(self._reflector.handle(event, self._tasks.now))

    def stop(self) -> None:
        if self.running:
            self._take(self._reflector.stop(self._tasks.now))
            self.running = False

    def _take(self, items: list[Any]) -> None:
        changes = [item for item in items if type(item) is Changed]
        if len(changes) < len(items):
            self._tasks.extend([item for item in items if type(item) is not Changed])
        if self._listener is not None:
            for change in changes:
                self._listener(change)
        if self._reflector.synced:
            self.synced.set(None)


class Runtime:
    """Everything a phase or a measurement may use. `epoch_s` is the wall-clock time of ``now == 0``; `prometheus` says
    whether the run has one that can be asked."""

    def __init__(
        self, tasks: Tasks, api: ObjectApi, rng: random.Random, epoch_s: float, *, prometheus: bool = False
    ) -> None:
        self.tasks = tasks
        self.api = api
        self.post = Post(tasks)
        self.rng = rng
        self.epoch_s = epoch_s
        self.prometheus = prometheus
        self._informers: dict[str, Informer] = {}

    @property
    def now(self) -> float:
        return self.tasks.now

    @property
    def wall_s(self) -> float:
        return self.epoch_s + self.tasks.now

    def stamp(self, at: float | None = None) -> str:
        """RFC 3339 in microseconds, of now or of a time of the machine's clock."""
        return rfc3339.micro(self.epoch_s + (self.now if at is None else at))

    def note(self, kind: str, **fields: object) -> None:
        """An event of the run; each has `at_s` (the machine's clock) and `at` (wall clock)."""
        self.tasks.emit(Note(kind, {"at_s": self.now, "at": self.stamp(), **fields}))

    def sample(self, name: str, value: float, *labels: tuple[str, str]) -> None:
        self.tasks.emit(Sample(name, value, labels))

    def watch(
        self,
        ref: ResourceRef,
        decode: Decode,
        listener: Listener | None = None,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> Informer:
        """Start an informer. Each measurement has its own, as upstream: they are load too."""
        name = f"informer-{len(self._informers) + 1}"
        reflector = Reflector(name, ref, namespace or None, fields, labels, self.rng, decode=decode)
        informer = self._informers[name] = Informer(self.tasks, reflector, listener)
        return informer

    def handle(self, event: Event) -> bool:
        """Give an informer its event; False where the event is no informer's."""
        informer = self._informers.get(event.key[0])  # type: ignore[call-overload]
        if informer is None:
            return False
        informer.handle(event)
        return True

    def stop_informers(self) -> None:
        for informer in self._informers.values():
            informer.stop()


class Progress:
    """Notes ``n of m`` of something that takes long, at most one a second and always the last."""

    def __init__(self, runtime: Runtime, step: str, what: str) -> None:
        self._runtime = runtime
        self._step, self._what = step, what
        self._next_at = runtime.now + PROGRESS_INTERVAL_S
        self._last: tuple[int, int] | None = None

    @property
    def due(self) -> bool:
        """Whether a report now would be kept, for those that are dear to make."""
        return self._runtime.now >= self._next_at

    def report(self, done: int, total: int) -> None:
        ended = done == total
        if (done, total) == self._last or (not ended and self._runtime.now < self._next_at):
            return
        self._last = (done, total)
        self._next_at = self._runtime.now + PROGRESS_INTERVAL_S
        self._runtime.note("progress", step=self._step, what=self._what, done=done, total=total)


class FailureLog:
    """Failures in order: the first few in full, the others counted by kind."""

    def __init__(self, kept: int = KEPT_FAILURES) -> None:
        self._most = kept
        self._kept: list[tuple[str, str]] = []
        self.more: Counter[str] = Counter()
        """By kind, how many are not among those kept."""

    def add(self, text: str, kind: str = "other") -> None:
        if len(self._kept) < self._most:
            self._kept.append((text, kind))
        else:
            self.more[kind] += 1

    def absorb(self, kept: Iterable[tuple[str, str]], more: Mapping[str, int]) -> None:
        """Those of another log."""
        for text, kind in kept:
            self.add(text, kind)
        self.more.update(more)

    @property
    def kept(self) -> tuple[tuple[str, str], ...]:
        """Text and kind of the first few."""
        return tuple(self._kept)

    def __len__(self) -> int:
        return len(self._kept) + self.more.total()

    def texts(self) -> list[str]:
        more = [f"and {count} more: {kind}" for kind, count in self.more.most_common()]
        return [*(text for text, _ in self._kept), *more]
