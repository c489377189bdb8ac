"""CustomResourceDefinitions as they are stored (ae/pkg/registry/customresourcedefinition/strategy.go,
ae/pkg/apis/apiextensions/v1/defaults.go)."""

from __future__ import annotations

from harness.apiserver.apierrors import FieldError
from harness.apiserver.customresources.definitionfaults import definition_errors, update_errors
from harness.apiserver.customresources.names import (
    FINALIZER,
    TERMINATING,
    Object,
    set_condition,
    storage_version,
)
from harness.apiserver.strategies.base import Context, Strategy, keep, section


class DefinitionStrategy(Strategy):
    unconditional_update = False
    generations = True

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        names = section(spec, "names")
        kind = names.get("kind") or ""
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        conversion = section(spec, "conversion")
        conversion.setdefault("strategy", "None")
        if spec.get("preserveUnknownFields") is False:
            del spec["preserveUnknownFields"]
        for version in spec.get("versions") or ():
            version.setdefault("served", False)
            version.setdefault("storage", False)
        spec.setdefault("group", "")
        spec.setdefault("scope", "")

    def default_status(self, new: Object) -> None:
        """Nothing: spec is as it was."""

    def prepare_create(self, new: Object, context: Context) -> None:
        stored = [version] if (version := storage_version(new)) else []
        new["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored,
        }

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        keep(new, old, "status")
        version, stored = storage_version(new), (old.get("status") or {}).get("storedVersions") or []
        if version and version not in stored:
            new["status"] = {**(new.get("status") or {}), "storedVersions": [*stored, version]}

    def validate(self, new: Object) -> list[FieldError]:
        return definition_errors(new)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return update_errors(new, old)

    def begin_deletion(self, old: Object, now: str) -> bool:
        """The first DELETE asks for the objects to go first (ae/pkg/registry/customresourcedefinition/etcd.go:83)."""
        meta = old["metadata"]
        finalizers = meta.setdefault("finalizers", [])
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        set_condition(
            old,
            now,
            TERMINATING,
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        )
        return True
