"""How many watches a write would wake, for its estimate.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/watch_tracker.go:78-232. Only this member's watches count, and of pods only
those that do not select a node: those are found through an index and cost nearly nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import intern

from harness.apiserver.flowcontrol.classify import Info

_INDEXED = {"pods": "spec.nodeName"}
_READ_ONLY = frozenset({"get", "list", "watch", "proxy"})
WatchKey = tuple[str, str, str, str]
"""group, resource, namespace, name: what a watch is counted under."""


class WatchTracker:
    """Counts of open watches by (group, resource, namespace, name)."""

    def __init__(self) -> None:
        self._counts: dict[WatchKey, int] = {}

    def count(self, info: Info, exact: Callable[[str], str | None]) -> WatchKey | None:
        """Count one watch; what is returned is for `forget` when it ends, None where it is not counted.

        `exact(field)` is the value that the watch's field selector requires of `field`, None if it requires none.
        """
        field = _INDEXED.get(info.resource)
        if field is not None and exact(field):
            return None
        # Kept as long as the watch is open, of which there may be 100,000; names of namespaces are few.
        key = (intern(info.group), intern(info.resource), intern(info.namespace), info.name)
        self._counts[key] = self._counts.get(key, 0) + 1
        return key

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

    def forget(self, key: WatchKey | None) -> None:
        """A watch has ended that `count` gave this for."""
        if key is None:
            return
        left = self._counts.get(key, 0) - 1
        if left > 0:
            self._counts[key] = left
        else:
            self._counts.pop(key, None)
