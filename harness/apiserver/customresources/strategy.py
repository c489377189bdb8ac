"""The objects of custom kinds as they are stored (ae/pkg/registry/customresource/{strategy,status_strategy}.go)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from harness.apiserver.apierrors import FieldError, forbidden
from harness.apiserver.customresources.jsonpath import find, replaced
from harness.apiserver.customresources.names import Object
from harness.apiserver.customresources.structure import default, pruned
from harness.apiserver.customresources.validation import schema_errors
from harness.apiserver.resources import Resource
from harness.apiserver.schema import Schema, schema_from_openapi
from harness.apiserver.schema.builtin import any_object
from harness.apiserver.schema.tree import OBJECT
from harness.apiserver.strategies.base import META_FIELDS, Context, Strategy, drop_empty
from harness.wire.request import JSON_PATCH, MERGE_PATCH

_UNTYPED = Schema(OBJECT, fields=any_object(), preserve_unknown=True)
_TOP = ("apiVersion", "kind", "metadata")


class CustomStrategy(Strategy):
    """One version of a custom kind. `version` is its part of the definition; `terminating()` whether the definition is
    being deleted."""

    generations = True
    patches = (JSON_PATCH, MERGE_PATCH)
    unconditional_update = False

    def __init__(self, resource: Resource, version: Object, terminating: Callable[[], bool]) -> None:
        super().__init__(resource)
        self.schema: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self.scale: Object | None = (version.get("subresources") or {}).get("scale")
        self._terminating = terminating

    @cached_property
    def structure(self) -> Schema:
        """Only metadata has a Go type; of all else the schema says what is wrong, in its own words."""
        return _UNTYPED

    @cached_property
    def merged_by(self) -> Schema:
        return schema_from_openapi(self.schema)

    def prune(self, new: Object) -> tuple[Object, list[str]]:
        return pruned(new, self.schema)

    def default(self, new: Object) -> None:
        default(new, self.schema)

    def prepare_create(self, new: Object, context: Context) -> None:
        if self._terminating():
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(self.resource, new["metadata"].get("name", ""), why)
        if "status" in self.resource.subresources:
            new.pop("status", None)

    def prepare_status(self, new: Object, old: Object, context: Context) -> None:
        for key in [key for key in new if key not in _TOP and key != "status"]:
            del new[key]
        new |= {key: value for key, value in old.items() if key not in _TOP and key != "status"}
        for key in ("labels", "annotations", "ownerReferences"):
            new["metadata"].pop(key, None)
            if key in old["metadata"]:
                new["metadata"][key] = old["metadata"][key]

    def prepare_subresource(self, subresource: str, new: Object, old: Object, context: Context) -> None:
        """A scale changes one field."""

    def changed(self, new: Object, old: Object) -> bool:
        ignored = {*_TOP, "status"} if "status" in self.resource.subresources else {*_TOP}
        return {key: new[key] for key in new if key not in ignored} != {
            key: old[key] for key in old if key not in ignored
        }

    def validate(self, new: Object) -> list[FieldError]:
        return schema_errors(new, self.schema)

    def validate_status(self, new: Object) -> list[FieldError]:
        return schema_errors(new, self.schema)

    def ordered(self, new: Object) -> Object:
        """Metadata first, the rest by name; stored in the storage version."""
        meta = new["metadata"]
        drop_empty(meta, "labels", "annotations", "ownerReferences", "finalizers", "generateName")
        stored = self.resource.hub or self.resource
        return {
            "kind": stored.kind,
            "apiVersion": stored.api_version,
            "metadata": {key: meta[key] for key in META_FIELDS if key in meta},
            **{key: new[key] for key in sorted(new) if key not in _TOP},
        }

    # ---- scale -------------------------------------------------------------------------------------------------
    def scale_parts(self, obj: Object) -> tuple[int, int, str]:
        """(replicas wanted, replicas there, the selector as text)."""
        scale = self.scale or {}
        wanted, there, selector = (
            next(iter(find(path, obj)), None) if path else None
            for path in (
                scale.get("specReplicasPath"),
                scale.get("statusReplicasPath"),
                scale.get("labelSelectorPath"),
            )
        )
        return (
            wanted if isinstance(wanted, int) else 0,
            there if isinstance(there, int) else 0,
            selector if isinstance(selector, str) else "",
        )

    def scaled(self, obj: Object, replicas: int) -> Object:
        """A copy of `obj` that wants so many."""
        changed: Object = replaced((self.scale or {})["specReplicasPath"], obj, replicas)
        return changed
