"""Events: the core form, which is the one that is stored, and the rules for those that come as events.k8s.io/v1.

kk/pkg/apis/core/validation/events.go; the conversion between the forms is `conversion.events`.
"""

from __future__ import annotations

from typing import ClassVar

from harness.apiserver.apierrors import FieldError, invalid_value, required
from harness.apiserver.strategies.base import Object, Strategy, drop_empty
from harness.apiserver.strategies.names import faults_of, qualified_name

_TEXT_MAX = 128
_NOTE_MAX_BYTES = 1024
_NEEDS_TO_BE_UNSET = "needs to be unset"


class EventStrategy(Strategy):
    fields = (
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "series",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    )
    create_on_update = True
    _DEFAULTS: ClassVar[dict[str, object]] = {
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }

    def default(self, new: Object) -> None:
        new.setdefault("involvedObject", {})
        new.setdefault("source", {})
        for key, value in self._DEFAULTS.items():
            new.setdefault(key, value)
        drop_empty(new, "reason", "message", "type", "count", "action")

    def validate(self, new: Object) -> list[FieldError]:
        namespace, involved = new["metadata"].get("namespace", ""), new["involvedObject"].get("namespace", "")
        if namespace == involved or (not involved and namespace == "default"):
            return []
        return [invalid_value("involvedObject.namespace", involved, "does not match event.namespace")]


class EventsV1Strategy(EventStrategy):
    """An event that comes as events.k8s.io/v1 must be complete, and is about one thing for ever."""

    def validate(self, new: Object) -> list[FieldError]:
        errors = super().validate(new)
        if new["eventTime"] is None:
            errors.append(required("eventTime"))
        else:
            errors += _reporting_errors(new)
        kind = new.get("type", "")
        if kind not in ("Normal", "Warning"):
            errors.append(invalid_value("type", "", f"has invalid value: {kind}"))
        unset = {
            "firstTimestamp": new["firstTimestamp"],
            "lastTimestamp": new["lastTimestamp"],
            "count": new.get("count"),
            "source": new["source"],
        }
        errors += [invalid_value(key, "", _NEEDS_TO_BE_UNSET) for key, value in unset.items() if value]
        return errors + _series_errors(new)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [
            invalid_value(key, new.get(key), "field is immutable")
            for key in _FIXED
            if new.get(key) != old.get(key)
        ]


_FIXED = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)


def _reporting_errors(new: Object) -> list[FieldError]:
    """legacyValidateEvent, for an event with an eventTime."""
    controller = new["reportingComponent"]
    if not controller:
        errors = [required("reportingController")]
    else:
        faults = faults_of(qualified_name, controller)
        errors = [invalid_value("reportingController", controller, text) for text in faults]
    for key in ("reportingInstance", "action", "reason"):
        value = new.get(key, "")
        if not value:
            errors.append(required(key))
        elif len(value) > _TEXT_MAX:
            errors.append(invalid_value(key, "", f"can have at most {_TEXT_MAX} characters"))
    if len(new.get("message", "")) > _NOTE_MAX_BYTES:
        errors.append(invalid_value("message", "", f"can have at most {_NOTE_MAX_BYTES} characters"))
    return errors


def _series_errors(new: Object) -> list[FieldError]:
    series = new.get("series")
    if not series:
        return []
    errors = []
    if series.get("count", 0) < 2:
        errors.append(invalid_value("series.count", "", "should be at least 2"))
    if series.get("lastObservedTime") is None:
        errors.append(required("series.lastObservedTime"))
    return errors
