"""Priority: a pod's priority and preemption policy are those of its class (plugin/pkg/admission/priority/admission.go).

Fed by the member's own informer of PriorityClasses, as upstream's lister is: a class that it has not heard of is not
there.
"""

from __future__ import annotations

import msgspec

from harness.apiserver.admission.attributes import Attributes
from harness.apiserver.apierrors import forbidden
from harness.wire.watching import DELETED

PREEMPTS = "PreemptLowerPriority"
CLASSES = ("scheduling.k8s.io", "priorityclasses")  # group and resource


class _Metadata(msgspec.Struct):
    name: str = ""


class _Class(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    value: int = 0
    global_default: bool = False
    preemption_policy: str = PREEMPTS


_decode = msgspec.json.Decoder(_Class).decode
_NO_CLASS = _Class(_Metadata())


class PriorityClasses:
    """The classes by name; `default` is the one that pods without a class get."""

    def __init__(self) -> None:
        self._classes: dict[str, _Class] = {}
        self._default = _NO_CLASS

    def on_class(self, kind: str, body: bytes) -> None:
        """An event of the informer, with the class's JSON."""
        found = _decode(body)
        if kind == DELETED:
            self._classes.pop(found.metadata.name, None)
        else:
            self._classes[found.metadata.name] = found
        # Of several, which a race can make, the lowest.
        defaults = [each for each in self._classes.values() if each.global_default]
        self._default = min(defaults, key=lambda each: each.value, default=_NO_CLASS)

    def admit_pod(self, attributes: Attributes) -> None:
        """Raises StatusError 403."""
        assert attributes.new is not None
        spec = attributes.new["spec"]
        name = spec.get("priorityClassName", "")
        found = self._classes.get(name) if name else self._default
        if found is None:
            text = f"no PriorityClass with name {name} was found"
            raise forbidden(attributes.resource, attributes.shown_name, text)
        if not name and found.metadata.name:
            spec["priorityClassName"] = found.metadata.name
        if spec.setdefault("priority", found.value) != found.value:
            text = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
                f"admission controller computed {found.value} from the given PriorityClass name"
            )
            raise forbidden(attributes.resource, attributes.shown_name, text)
        policy = found.preemption_policy
        if spec.setdefault("preemptionPolicy", policy) != policy:
            text = (
                f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise forbidden(attributes.resource, attributes.shown_name, text)

    def admit_class(self, attributes: Attributes) -> None:
        """A class that is written; only one may be the default. Raises StatusError 403."""
        new = attributes.new
        if not new or not new.get("globalDefault") or self._default is _NO_CLASS:
            return
        other = self._default.metadata.name
        if attributes.old is None or other != attributes.name:
            text = f"PriorityClass {other} is already marked as default. Only one default can exist"
            raise forbidden(attributes.resource, attributes.shown_name, text)
