"""From ``kubectl apply`` to ``kubectl apply --server-side``: what the annotation last-applied-configuration says may be
taken over without force, and the annotation is kept in step (am/util/managedfields/internal/lastappliedmanager.go,
lastappliedupdater.go). Only for the manager named kubectl."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.apiserver.apply.conflicts import Conflicts
from harness.apiserver.apply.structure import ShapeError
from harness.apiserver.apply.walks import check, compare, fields_of
from harness.apiserver.schema import Schema

Object = dict[str, Any]
KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_BYTES = 256 * 1024  # of all annotations (am/api/validation/objectmeta.go: TotalAnnotationSizeLimitB)


def conflicts_left(
    conflicts: Conflicts, live: Object, schema: Schema | None, api_version: str
) -> Conflicts | None:
    """What still stands against the apply; None where all of it was kubectl's own."""
    text = _annotations(live["metadata"]).get(ANNOTATION) if live else None
    if not text:
        return conflicts
    try:
        last = msgspec.json.decode(text)
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return conflicts
        check(last, schema)
        difference = compare(last, live, schema)
    except (msgspec.DecodeError, ShapeError):
        return conflicts
    ours = fields_of(last, schema) - difference.modified - difference.added - difference.removed
    left = [conflict for conflict in conflicts.found if conflict.path not in ours]
    return Conflicts(left) if left else None


def synchronize(metadata: Object, applied: Object) -> None:
    """Write what has been applied into the annotation of the new object's `metadata`, where it has the annotation."""
    annotations = _annotations(metadata)
    if not annotations.get(ANNOTATION):
        return
    plain = dict(applied.get("metadata") or {})
    if ANNOTATION in _annotations(plain):
        plain["annotations"] = {
            key: value for key, value in plain["annotations"].items() if key != ANNOTATION
        }
    text = msgspec.json.encode({**applied, "metadata": plain}, order="sorted").decode() + "\n"
    kept = {**annotations, ANNOTATION: text}
    if sum(len(key) + len(value) for key, value in kept.items()) > _MAX_BYTES:
        del kept[ANNOTATION]
    metadata["annotations"] = kept


def _annotations(metadata: Any) -> Object:
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
