"""create, update, patch, delete and deletecollection (as/endpoints/handlers/{create,update,patch,delete}.go)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.apiserver.apierrors import bad_request, conflict
from harness.apiserver.deletion import Deletion
from harness.apiserver.handlers.bodies import decode_object, decode_options
from harness.apiserver.handlers.call import Answer, Call, Object
from harness.apiserver.handlers.fieldvalidation import (
    IGNORE,
    STRICT,
    PatchFields,
    refused,
    strict_text,
    typed,
    unknown_fields,
    warnings_of,
)
from harness.apiserver.handlers.negotiate import JSON, body_type
from harness.apiserver.handlers.options import (
    DeleteOptions,
    delete_options,
    write_options,
)
from harness.apiserver.handlers.shaping import finished, object_answer
from harness.apiserver.schema import structure_of
from harness.apiserver.schema.decode import Decoded
from harness.wire.patch import apply_patch
from harness.wire.request import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from harness.wire.status import Details, StatusError, success, unsupported_media_type

PATCHES = frozenset({JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH})


class _Metadata(msgspec.Struct):
    name: str = ""
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Metadata


_identity_of = msgspec.json.Decoder(_Identified).decode


def read_object(call: Call, kind: str = "", version: str = "") -> Object:
    """The request's body as one object, unknown fields dropped. Raises StatusError 400 or 415."""
    return read_typed(call, IGNORE, kind, version)[0]


def read_typed(
    call: Call, validation: str, kind: str = "", version: str = ""
) -> tuple[Object, Sequence[str]]:
    """The request's body as its kind's type takes it, and warnings. Raises StatusError 400 or 415."""
    exchange = call.exchange
    media_type = body_type(exchange.headers.get("content-type", ""))
    new = decode_object(exchange.body, media_type, call.resource, kind, version)
    schema = structure_of(version, kind) if kind else call.registry.structure
    decoded = typed(new, exchange.body, media_type, schema)
    if not kind and not decoded.fatal:
        decoded.value, unknown = call.registry.strategy.prune(decoded.value)
        decoded.strict += unknown_fields(unknown)
    name, version = kind or call.resource.kind, version.rpartition("/")[2] or call.resource.version
    if decoded.fatal:
        raise refused(name, version, decoded.fatal)
    if not decoded.strict or validation == IGNORE:
        return decoded.value, ()
    if validation == STRICT:
        raise refused(name, version, strict_text(decoded.strict))
    return decoded.value, warnings_of(decoded.strict)


def _is_json(call: Call) -> bool:
    """Whether `read_typed` has looked at every value of the body: protobuf's it takes as they are."""
    return call.exchange.headers.get("content-type") == JSON and not call.resource.custom


async def create(call: Call) -> Answer:
    options = write_options(call.info.query, "CreateOptions")
    new, warnings = read_typed(call, options.validation)
    written = await call.registry.create(call.caller(options.dry_run, _is_json(call)), new)
    return object_answer(call, written.body, 201, warnings)


async def update(call: Call) -> Answer:
    """PUT of an object or of its status."""
    options = write_options(call.info.query, "UpdateOptions")
    new, warnings = read_typed(call, options.validation)
    written = await call.registry.replace(call.caller(options.dry_run, _is_json(call)), new)
    return object_answer(call, written.body, 201 if written.created else 200, warnings)


async def patch(call: Call) -> Answer:
    """PATCH of an object or of its status: applied again on each newer version, unless it demands one itself."""
    media_type = call.exchange.headers.get("content-type", "").partition(";")[0].strip()
    strategy = call.registry.strategy
    if media_type not in strategy.patches:
        raise StatusError(
            unsupported_media_type((*strategy.patches, APPLY_PATCH) if call.resource.custom else None)
        )
    options = write_options(call.info.query, "PatchOptions")
    body, resource = call.exchange.body, call.resource
    caller = call.caller(options.dry_run)
    fields = PatchFields(media_type, body, options.validation)

    def apply(old: Object, revision: int) -> Object:
        read = fields.begin()
        shown = _with_version(old, revision) if media_type == JSON_PATCH else old
        new = apply_patch(media_type, shown, body, resource.kind, read)
        if b"null" in body:
            new = fields.without_nulls(new, strategy.structure, resource)
        new, unknown = strategy.prune(new)
        if unknown:
            fields.heard(Decoded(new, unknown_fields(unknown)), new)
        meta = new.get("metadata")
        if not isinstance(meta, dict):
            raise bad_request(f"{resource.kind} without metadata")
        if meta is old["metadata"]:  # what is filled in must not reach the object as it was
            meta = new["metadata"] = dict(meta)
        check_identity(call, meta, old["metadata"], revision)
        return new

    try:
        written = await call.registry.update(caller, apply, told=fields)
    except StatusError as error:
        if error.status.code not in (400, 422):
            raise
        # What refused the object may have been shown fields that it does not have: those are minded first.
        fields.careful = True
        written = await call.registry.update(caller, apply, told=fields)
    return object_answer(call, written.body, warnings=fields.warnings)


def _with_version(old: Object, revision: int) -> Object:
    """The object as clients see it, for operations that replace or test its resourceVersion: kubectl moves the fields
    of client-side apply to server-side apply by such a patch (client-go/util/csaupgrade/upgrade.go)."""
    return {**old, "metadata": {**old["metadata"], "resourceVersion": str(revision)}}


def check_identity(call: Call, meta: Object, before: Object, revision: int) -> None:
    """What a patched object's metadata demand of the object that was patched. Raises StatusError."""
    resource, name = call.resource, call.info.name
    demanded = meta.pop("resourceVersion", None)
    if demanded and demanded != str(revision):
        raise conflict(resource.group, resource.resource, name)
    uid, there = meta.get("uid"), before.get("uid")
    if uid != there:
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {there}"
        raise conflict(resource.group, resource.resource, name, text)
    if meta.get("namespace") != before.get("namespace"):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    check_name(name, meta)


def check_name(name: str, meta: Object) -> None:
    """Raises StatusError 400 where an object is not the one that the URL names (as/endpoints/handlers/rest.go:273)."""
    given = meta.get("name")
    if not given:
        why = "was undeterminable: name must be provided"
        raise bad_request(f"the name of the object ({name} based on URL) {why}")
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def read_delete_options(call: Call) -> DeleteOptions:
    exchange = call.exchange
    media_type = body_type(exchange.headers.get("content-type", ""))
    return delete_options(decode_options(exchange.body, media_type), call.info.query)


async def delete(call: Call) -> Answer:
    options = read_delete_options(call)
    deletion = Deletion(options.grace_s, options.uid, options.resource_version, _propagation(options))
    written = await call.registry.delete(call.caller(options.dry_run), deletion)
    if not written.deleted or call.registry.strategy.returns_deleted:
        return object_answer(call, written.body)
    meta = _identity_of(written.body).metadata
    resource = call.resource
    details = Details(name=meta.name, group=resource.group, kind=resource.resource, uid=meta.uid)
    return finished(call, success(details).body())


def _propagation(options: DeleteOptions) -> str:
    if options.orphan is None:
        return options.propagation
    return "Orphan" if options.orphan else "Background"


async def delete_each(call: Call, keys: Sequence[tuple[str, str]], options: DeleteOptions) -> None:
    """Delete the objects of these (namespace, name), those that are gone by now left aside."""
    deletion = Deletion(options.grace_s, None, None, _propagation(options))
    for namespace, name in keys:
        caller = msgspec.structs.replace(call.caller(options.dry_run), namespace=namespace, name=name)
        try:
            await call.registry.delete(caller, deletion)
        except StatusError as error:
            if error.status.code != 404:
                raise
