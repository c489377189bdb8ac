"""The field managers of one resource: one for each subresource, made when somebody first applies."""

from __future__ import annotations

from collections.abc import Callable

from harness.apiserver.apply.fieldmanager import FieldManager
from harness.apiserver.apply.fieldset import FieldSet, Path
from harness.apiserver.resources import Resource
from harness.apiserver.schema import Schema

_STATUS: Path = ("f:status",)
_SPEC: Path = ("f:spec",)
_METADATA: Path = ("f:metadata",)
# What a write to status does not write beside spec, by resource (the strategies' GetResetFields,
# kk/pkg/registry/*/*/strategy.go, v1.36.2).
_RESET_BY_STATUS: dict[str, tuple[Path, ...]] = {
    "certificatesigningrequests.certificates.k8s.io": (_SPEC, (*_METADATA, "f:annotations")),
    "customresourcedefinitions.apiextensions.k8s.io": (_SPEC, _METADATA),
    "deployments.apps": (_SPEC, (*_METADATA, "f:labels")),
    "pods": (_SPEC, (*_METADATA, "f:deletionTimestamp"), (*_METADATA, "f:ownerReferences")),
    "volumeattachments.storage.k8s.io": (_SPEC, _METADATA),
}


class FieldManagers:
    """`schema` gives the kind's structure; None, which is for kinds without any, makes every field untyped."""

    def __init__(self, resource: Resource, schema: Callable[[], Schema | None]) -> None:
        self._resource = resource
        self._schema = schema
        self._made: dict[str, tuple[Schema | None, FieldManager]] = {}

    def of(self, subresource: str) -> FieldManager:
        """For an endpoint; made anew where the structure is another one, as a custom resource's may be."""
        schema = self._schema()
        made = self._made.get(subresource)
        if made is None or made[0] is not schema:
            made = self._made[subresource] = schema, self._make(schema, subresource)
        return made[1]

    def _make(self, schema: Schema | None, subresource: str) -> FieldManager:
        resource = self._resource
        ignored = FieldSet.of(*self._ignored(subresource))
        return FieldManager(resource.api_version, resource.kind, schema, subresource, ignored)

    def _ignored(self, subresource: str) -> tuple[Path, ...]:
        if subresource == "status":
            return _RESET_BY_STATUS.get(self._resource.group_resource, (_SPEC,))
        return (_STATUS,) if "status" in self._resource.subresources else ()
