"""The plain strategy: metadata as every kind has it, and the hooks in which kinds differ."""

from __future__ import annotations

import random
from functools import cached_property
from typing import Any

import msgspec

from harness.apiserver.apierrors import FieldError, forbidden_value, invalid_value, required, too_long
from harness.apiserver.resources import Resource
from harness.apiserver.schema import Schema, structure_of
from harness.apiserver.strategies.names import (
    NameCheck,
    dns_subdomain,
    faults_of,
    label_value,
    passed,
    qualified_name,
)
from harness.wire.request import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

Object = dict[str, Any]

# ObjectMeta's fields in Go's order (am/apis/meta/v1/types.go); resourceVersion is spliced in when an object is read.
META_FIELDS = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # am/util/rand/rand.go: no vowels, no look-alikes
_SUFFIX_LENGTH = 5
_SUFFIXES = len(SUFFIX_ALPHABET) ** _SUFFIX_LENGTH
_GENERATED_MAX = 63 - _SUFFIX_LENGTH
_ANNOTATIONS_MAX_BYTES = 256 * 1024
_CHECKED = ("labels", "annotations", "finalizers")
_CLIENT_META = ("labels", "annotations", "finalizers", "ownerReferences")


class Context(msgspec.Struct, frozen=True, gc=False):
    """What creating or changing an object needs from outside: the time as RFC 3339, and chance."""

    now: str
    rng: random.Random


def new_uid(rng: random.Random) -> str:
    """A random (version 4) UUID."""
    bits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[rng.getrandbits(2)]
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-{variant}{bits[17:20]}-{bits[20:]}"


def suffix(rng: random.Random) -> str:
    number, letters = rng.randrange(_SUFFIXES), ""
    for _ in range(_SUFFIX_LENGTH):  # a sixth of random.choices' time, and every pod needs one
        number, letter = divmod(number, len(SUFFIX_ALPHABET))
        letters += SUFFIX_ALPHABET[letter]
    return letters


def drop_empty(value: Object, *keys: str) -> None:
    """Leave out what Go's omitempty leaves out."""
    for key in keys:
        if key in value and not value[key]:
            del value[key]


def section(value: Object, key: str) -> Object:
    """`value[key]`, which becomes an empty object where it is missing or null."""
    part: Object | None = value.get(key)
    if part is None:
        value[key] = part = {}
    return part


def zeros(value: Object, fields: Object) -> None:
    """Fill in what Go writes of fields without omitempty."""
    for key, zero in fields.items():
        if value.get(key) is None:
            value[key] = zero


class Strategy:
    """One resource's rules. Methods change objects in place; `validate...` return faults, in field order."""

    fields: tuple[str, ...] = ("spec", "status")  # beside kind, apiVersion and metadata, in Go's order
    name_check: NameCheck = staticmethod(dns_subdomain)
    unconditional_update = True  # a PUT without resourceVersion overwrites
    create_on_update = False  # a PUT of what does not exist creates it
    returns_deleted = False  # DELETE answers with the object instead of a Status
    generations = False  # metadata.generation counts changes of spec
    graceful = False  # deletion waits for a grace period
    patches: tuple[str, ...] = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)
    orphans = False  # dependents outlive a deletion that does not say otherwise

    def __init__(self, resource: Resource) -> None:
        self.resource = resource

    @cached_property
    def structure(self) -> Schema:
        """The type of these objects."""
        return structure_of(self.resource.api_version, self.resource.kind)

    @property
    def merged_by(self) -> Schema:
        """The type that server-side apply merges them by."""
        return self.structure

    # ---- hooks -----------------------------------------------------------------------------------------------------
    def default(self, new: Object) -> None:
        """Fill in what the versioned type's defaults fill in; on every write."""

    def default_status(self, new: Object) -> None:
        """The part of `default` that concerns status: all that a write to the status subresource needs."""
        self.default(new)

    def prepare_create(self, new: Object, context: Context) -> None:
        """What the server decides on creation, whatever the client sent."""

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        """Carry over what a plain update must not change: status, for kinds that have the subresource."""
        if "status" in self.resource.subresources:
            keep(new, old, "status")

    def prepare_status(self, new: Object, old: Object, context: Context) -> None:
        """The status subresource changes status and metadata only."""
        keep(new, old, "spec")

    def prepare_subresource(self, subresource: str, new: Object, old: Object, context: Context) -> None:
        """What a write to a subresource other than status may change."""
        self.prepare_update(new, old, context)

    def changed(self, new: Object, old: Object) -> bool:
        """Whether an update is one that metadata.generation counts; only asked where `generations`."""
        return bool(new.get("spec") != old.get("spec"))

    def validate(self, new: Object) -> list[FieldError]:
        """Faults of an object beside its metadata's."""
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def validate_status(self, new: Object) -> list[FieldError]:
        return []

    def validate_subresource(self, subresource: str, new: Object, old: Object) -> list[FieldError]:
        return []

    def prune(self, new: Object) -> tuple[Object, list[str]]:
        """(an object without fields that decoding it into `structure` leaves, their paths)."""
        return new, []

    def begin_deletion(self, old: Object, now: str) -> bool:
        """Whether the first DELETE only begins: `old` is changed into what then waits for its finalizers."""
        return False

    def scaled(self, old: Object, replicas: int) -> Object:
        """A copy that wants so many."""
        return {**old, "metadata": dict(old["metadata"]), "spec": {**old["spec"], "replicas": replicas}}

    def scale_parts(self, obj: Object) -> tuple[int, int, str] | None:
        """(replicas wanted, replicas there, selector as text) where they stand elsewhere than in workloads."""
        return None

    def grace_s(self, old: Object, requested: int | None) -> int | None:
        """Seconds until a graceful deletion is final; only asked where `graceful`."""
        return requested

    # ---- metadata --------------------------------------------------------------------------------------------------
    def fill_create(self, new: Object, namespace: str, context: Context) -> None:
        """Metadata of a new object, which has its defaults: rest.BeforeCreate (as/registry/rest/create.go:94)."""
        meta = new["metadata"]
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
            meta.pop(key, None)
        self.prepare_create(new, context)
        meta["uid"] = new_uid(context.rng)
        meta["creationTimestamp"] = context.now
        if self.resource.namespaced:
            meta["namespace"] = namespace
        else:
            meta.pop("namespace", None)
        if self.generations:
            meta["generation"] = 1

    def fill_update(self, new: Object, old: Object, context: Context, subresource: str = "") -> None:
        """Metadata of a replacement, which has its defaults: rest.BeforeUpdate (as/registry/rest/update.go:97)."""
        meta, before = new["metadata"], old["metadata"]
        for key in (
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
        ):
            if key in before:
                meta[key] = before[key]
            else:
                meta.pop(key, None)
        meta.pop("selfLink", None)
        if self.resource.namespaced:
            meta["namespace"] = before["namespace"]
        if "generateName" not in meta and "generateName" in before:
            meta["generateName"] = before["generateName"]
        if subresource == "status":
            self.prepare_status(new, old, context)
            return
        if subresource:
            self.prepare_subresource(subresource, new, old, context)
        else:
            self.prepare_update(new, old, context)
        if self.generations and self.changed(new, old):
            meta["generation"] = before.get("generation", 0) + 1

    def generate_name(self, meta: Object, rng: random.Random) -> None:
        meta["name"] = meta["generateName"][:_GENERATED_MAX] + suffix(rng)

    def metadata_errors(self, meta: Object) -> list[FieldError]:
        """ValidateObjectMeta (am/api/validation/objectmeta.go)."""
        name = meta.get("name", "")
        if not name:
            return [required("metadata.name", "name or generateName is required")]
        errors = [invalid_value("metadata.name", name, text) for text in faults_of(self.name_check, name)]
        keys, values = passed(qualified_name), passed(label_value)
        for key, value in (meta.get("labels") or {}).items():
            if key in keys and value in values:
                continue
            errors += [invalid_value("metadata.labels", key, text) for text in faults_of(qualified_name, key)]
            errors += [
                invalid_value("metadata.labels", value, text) for text in faults_of(label_value, value)
            ]
        size = 0
        for key, value in (meta.get("annotations") or {}).items():
            size += len(key) + len(value)
            errors += [
                invalid_value("metadata.annotations", key, text)
                for text in faults_of(qualified_name, key.lower())
            ]
        if size > _ANNOTATIONS_MAX_BYTES:
            errors.append(too_long("metadata.annotations", _ANNOTATIONS_MAX_BYTES))
        for finalizer in meta.get("finalizers") or ():
            errors += [
                invalid_value("metadata.finalizers", finalizer, text)
                for text in faults_of(qualified_name, finalizer)
            ]
        return errors

    def metadata_update_errors(self, meta: Object, before: Object) -> list[FieldError]:
        """ValidateObjectMetaUpdate: what has changed must be valid, and a finalizer cannot come too late."""
        if all(meta.get(key) == before.get(key) for key in _CHECKED):
            return []
        errors = self.metadata_errors(meta)
        added = sorted(set(meta.get("finalizers") or ()) - set(before.get("finalizers") or ()))
        if added and "deletionTimestamp" in before:
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
            listed = "[]string{" + ", ".join(f'"{item}"' for item in added) + "}"
            errors.append(forbidden_value("metadata.finalizers", detail + listed))
        return errors

    def ordered(self, new: Object) -> Object:
        """The object as it is encoded: Go's order at the top and in metadata, without what Go would leave out."""
        meta = new["metadata"]
        drop_empty(meta, "labels", "annotations", "ownerReferences", "finalizers", "generateName")
        ordered: Object = {
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            "metadata": {key: meta[key] for key in META_FIELDS if key in meta},
        }
        for key in self.fields:
            if key in new:
                ordered[key] = new[key]
        return ordered


def keep(new: Object, old: Object, key: str) -> None:
    """`new[key]` as it was in `old`."""
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def keep_metadata(new: Object, old: Object) -> None:
    """Whatever a client may set in metadata as it was in `old` (am/apis/meta/v1: ResetObjectMetaForStatus)."""
    for key in _CLIENT_META:
        keep(new["metadata"], old["metadata"], key)
