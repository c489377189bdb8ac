"""events.k8s.io/v1 and core events (kk/pkg/apis/events/v1/conversion.go): the same thing under other names."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

# In Go's order (events/v1/types.go); None and "" are left out where the type has omitempty.
_NAMES = {
    "eventTime": "eventTime",
    "series": "series",
    "reportingController": "reportingComponent",
    "reportingInstance": "reportingInstance",
    "action": "action",
    "reason": "reason",
    "regarding": "involvedObject",
    "related": "related",
    "note": "message",
    "type": "type",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_ALWAYS = (
    "eventTime",
    "regarding",
    "deprecatedSource",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
)


def to_core(event: Object) -> Object:
    """Fields that an event does not have are not passed on."""
    core = {old: event[new] for new, old in _NAMES.items() if new in event}
    return {"metadata": event["metadata"], **core}


def from_core(core: Object) -> Object:
    event = {
        new: core.get(old) for new, old in _NAMES.items() if new in _ALWAYS or core.get(old) not in (None, "")
    }
    return {"metadata": core["metadata"], **event}
