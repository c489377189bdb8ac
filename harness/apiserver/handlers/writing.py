"""create, update, patch, delete and deletecollection (as/endpoints/handlers/{create,update,patch,delete}.go)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.apiserver.apierrors import bad_request, conflict, invalid, invalid_value
from harness.apiserver.deletion import Deletion
from harness.apiserver.handlers.bodies import decode_object, decode_options, without_nulls
from harness.apiserver.handlers.call import Answer, Call, Object
from harness.apiserver.handlers.negotiate import body_type
from harness.apiserver.handlers.options import (
    DeleteOptions,
    WriteOptions,
    delete_options,
    write_options,
)
from harness.apiserver.handlers.shaping import finished, object_answer
from harness.wire.patch import apply_patch
from harness.wire.request import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from harness.wire.status import Details, StatusError, success, unsupported_media_type

PATCHES = frozenset({JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH})


class _Metadata(msgspec.Struct):
    name: str = ""
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Metadata


_identity_of = msgspec.json.Decoder(_Identified).decode


def read_object(call: Call, kind: str = "", version: str = "") -> Object:
    """The request's body as one object. Raises StatusError 400 or 415."""
    exchange = call.exchange
    media_type = body_type(exchange.headers.get("content-type", ""))
    return decode_object(exchange.body, media_type, call.resource, kind, version)


def check_fields(call: Call, new: Object, options: WriteOptions) -> list[str]:
    """Warnings about unknown fields. Raises StatusError 400 where the client wants them refused."""
    if options.validation == "Ignore":
        return []
    unknown = [f'unknown field "{field}"' for field in call.registry.strategy.unknown_fields(new)]
    if unknown and options.validation == "Strict":
        resource = call.resource
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"strict decoding error: {', '.join(unknown)}"
        )
    return unknown


async def create(call: Call) -> Answer:
    options = write_options(call.info.query, "CreateOptions")
    new = read_object(call)
    warnings = check_fields(call, new, options)
    written = await call.registry.create(call.caller(options.dry_run), new)
    return object_answer(call, written.body, 201, warnings)


async def update(call: Call) -> Answer:
    """PUT of an object or of its status."""
    options = write_options(call.info.query, "UpdateOptions")
    new = read_object(call)
    warnings = check_fields(call, new, options)
    written = await call.registry.replace(call.caller(options.dry_run), new)
    return object_answer(call, written.body, 201 if written.created else 200, warnings)


async def patch(call: Call) -> Answer:
    """PATCH of an object or of its status: applied again on each newer version, unless it demands one itself."""
    media_type = call.exchange.headers.get("content-type", "").partition(";")[0].strip()
    if media_type not in PATCHES:
        raise StatusError(unsupported_media_type())
    options = write_options(call.info.query, "PatchOptions")
    body, resource = call.exchange.body, call.resource
    caller = call.caller(options.dry_run)

    def apply(old: Object, revision: int) -> Object:
        new = apply_patch(media_type, old, body, resource.kind)
        if media_type != STRATEGIC_MERGE_PATCH and b"null" in body:  # that has dropped its nulls itself
            new = without_nulls(new)
        meta = new.get("metadata")
        if not isinstance(meta, dict):
            raise bad_request(f"{resource.kind} without metadata")
        if meta is old["metadata"]:  # what is filled in must not reach the object as it was
            meta = new["metadata"] = dict(meta)
        demanded = meta.pop("resourceVersion", None)
        if demanded and demanded != str(revision):
            raise conflict(resource.group, resource.resource, caller.name)
        uid, there = meta.get("uid"), old["metadata"].get("uid")
        if uid != there:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {there}"
            raise conflict(resource.group, resource.resource, caller.name, text)
        for field in ("name", "namespace"):
            if meta.get(field) != old["metadata"].get(field):
                errors = [invalid_value(f"metadata.{field}", meta.get(field), "field is immutable")]
                raise invalid(resource.group, resource.kind, caller.name, errors)
        return new

    written = await call.registry.update(caller, apply)
    return object_answer(call, written.body)


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
    return "Orphan" if options.orphan else options.propagation


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
