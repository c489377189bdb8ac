"""What becomes of an event before it is sent: merged, counted, or held back. client-go tools/record/events_cache.go.

In upstream's order (EventCorrelate): ten unlike messages of one reason about one object within 600 s of each other
make the tenth and later ones a single combined event; an event that was seen before gets the first one's name and a
higher count; then each source and object has a bucket of 25 that refills by one in 300 s. What is held back there was
counted all the same, so a later repeat may be a patch of an event that the server never got.

Remembered are warnings, and Normal events that say that they may come again (of a container that is restarted). Other
containers start once, so no two Normal events about a pod are the same, and remembering them would cost a fleet more
memory than the pods themselves.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

SPAM_BURST = 25.0  # defaultSpamBurst
SPAM_REFILL_S = 300.0  # 1 / defaultSpamQPS
AGGREGATE_AT = 10  # defaultAggregateMaxEvents
AGGREGATE_WITHIN_S = 600.0  # defaultAggregateIntervalInSeconds
CACHED_SUBJECTS = 4096  # maxLruCacheEntries
WARNING = "Warning"

_Key: TypeAlias = tuple[str, ...]


class Occurrence(msgspec.Struct, gc=False):
    """One event on its way. `involved` is the JSON of the reference to its object, `uid` that object's, `container` its
    field path's (``containers{c}``); `first` and `last` are stamps; `reporter` is "" for a combined event, as upstream
    leaves it; `repeats` is for a Normal event that may come again."""

    namespace: str
    name: str
    uid: str
    involved: str
    kind: str
    reason: str
    message: str
    first: str
    last: str
    container: str = ""
    count: int = 1
    reporter: str = "kubelet"
    repeats: bool = False


class _Log:
    """An event that was seen before (eventLog)."""

    __slots__ = ("count", "first", "name")

    def __init__(self, event: Occurrence) -> None:
        self.count, self.name, self.first = event.count, event.name, event.first


class _Group:
    """The unlike messages of one reason (aggregateRecord), oldest first."""

    __slots__ = ("at", "messages")

    def __init__(self, now: float) -> None:
        self.at = now
        self.messages: dict[str, None] = {}


class _Subject:
    """An object that events are about."""

    __slots__ = ("at", "groups", "logs", "tokens")

    def __init__(self, now: float) -> None:
        self.tokens = SPAM_BURST
        self.at = now
        self.groups: dict[str, _Group] | None = None  # until the first warning
        self.logs: dict[_Key, _Log] = {}

    def admit(self, now: float) -> bool:
        """Take a token (EventSourceObjectSpamFilter)."""
        self.tokens = min(SPAM_BURST, self.tokens + (now - self.at) / SPAM_REFILL_S)
        self.at = now
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def aggregate(self, event: Occurrence, now: float) -> _Key:
        """Make it the combined event where there were too many like it; returns the key to count it by."""
        if self.groups is None:
            self.groups = {}
        group = self.groups.get(event.reason)
        if group is None or now - group.at > AGGREGATE_WITHIN_S:
            group = self.groups[event.reason] = _Group(now)
        group.at = now
        group.messages.setdefault(event.message)
        if len(group.messages) < AGGREGATE_AT:
            return event.reason, event.container, event.message
        del group.messages[next(iter(group.messages))]  # upstream takes any; the oldest keeps runs repeatable
        event.message = f"(combined from similar events): {event.message}"
        event.reporter = ""
        return (event.reason,)

    def observe(self, event: Occurrence, key: _Key) -> None:
        """Count it (eventLogger)."""
        log = self.logs.get(key)
        if log is None:
            self.logs[key] = _Log(event)
            return
        log.count += 1
        event.count, event.name, event.first = log.count, log.name, log.first


class Correlator:
    """Of one source: a kubelet."""

    __slots__ = ("_subjects",)

    def __init__(self) -> None:
        self._subjects: dict[str, _Subject] = {}

    def __len__(self) -> int:
        return len(self._subjects)

    def correlate(self, event: Occurrence, now: float) -> bool:
        """Turn `event` into what is to be recorded: a create, or with a count above 1 a patch. False: not at all."""
        subject = self._subjects.get(event.uid)
        if subject is None:
            subject = self._subjects[event.uid] = _Subject(now)
            if len(self._subjects) > CACHED_SUBJECTS:
                del self._subjects[next(iter(self._subjects))]
        if event.kind == WARNING or event.repeats:
            subject.observe(event, subject.aggregate(event, now))
        return subject.admit(now)

    def forget(self, uid: str) -> None:
        """The object is gone. (Upstream lets it age out of its caches.)"""
        self._subjects.pop(uid, None)
