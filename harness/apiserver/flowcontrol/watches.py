"""How many watches a write would wake, for its estimate.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/watch_tracker.go:78-232. Only this member's watches count, and of pods only
those that do not select a node: those are found through an index and cost nearly nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.apiserver.flowcontrol.classify import Info

_INDEXED = {"pods": "spec.nodeName"}
_READ_ONLY = frozenset({"get", "list", "watch", "proxy"})
_Key = tuple[str, str, str, str]


class WatchTracker:
    """Counts of open watches by (group, resource, namespace, name)."""

    def __init__(self) -> None:
        self._counts: dict[_Key, int] = {}

    def register(self, info: Info, exact: Callable[[str], str | None]) -> Callable[[], None]:
        """Count one watch; call what is returned when it ends.

        `exact(field)` is the value that the watch's field selector requires of `field`, None if it requires none.
        """
        field = _INDEXED.get(info.resource)
        if field is not None and exact(field):
            return _nothing
        key = (info.group, info.resource, info.namespace, info.name)
        self._counts[key] = self._counts.get(key, 0) + 1
        return lambda: self._forget(key)

    def interested(self, info: Info) -> int:
        """Watches of the resource everywhere, in the namespace, and of the very object; 0 for a read."""
        if info.verb in _READ_ONLY:
            return 0
        counts = self._counts
        count = counts.get((info.group, info.resource, "", ""), 0)
        if info.namespace:
            count += counts.get((info.group, info.resource, info.namespace, ""), 0)
        if info.name:
            count += counts.get((info.group, info.resource, info.namespace, info.name), 0)
        return count

    def _forget(self, key: _Key) -> None:
        left = self._counts.get(key, 0) - 1
        if left > 0:
            self._counts[key] = left
        else:
            self._counts.pop(key, None)


def _nothing() -> None:
    """A watch that was never counted."""
