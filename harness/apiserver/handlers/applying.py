"""Server-side apply: PATCH with application/apply-patch+yaml (as/endpoints/handlers/patch.go:509, applyPatcher)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from harness.apiserver.apierrors import bad_request, conflict
from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.auth.authorization import Decision, forbidden_status
from harness.apiserver.handlers.bodies import settled_nulls
from harness.apiserver.handlers.call import Answer, Call, Object
from harness.apiserver.handlers.options import WriteOptions, write_options
from harness.apiserver.handlers.shaping import object_answer
from harness.apiserver.handlers.writing import check_identity, check_name
from harness.apiserver.handlers.yamltext import YamlError, duplicate_keys, from_yaml
from harness.apiserver.registry import Written
from harness.wire.paths import RequestInfo
from harness.wire.request import APPLY_PATCH
from harness.wire.status import StatusError

Authorize = Callable[[UserInfo, RequestInfo], Decision]
Handler = Callable[[Call], Awaitable[Answer]]


def chosen(patch: Handler, apply: Handler) -> Handler:
    """The handler of PATCH: `apply` for apply patches, `patch` for all other types."""

    async def handle(call: Call) -> Answer:
        media_type = call.exchange.headers.get("content-type", "").partition(";")[0].strip()
        return await (apply if media_type == APPLY_PATCH else patch)(call)

    return handle


def applier(authorize: Authorize) -> Handler:
    """Apply, which creates where there is nothing, if `authorize` lets the user create."""

    async def apply(call: Call) -> Answer:
        options = write_options(call.info.query, "PatchOptions", apply=True)
        applied, warnings = applied_object(call, options.validation)
        written = await _written(call, authorize, applied, options)
        return object_answer(call, written.body, 201 if written.created else 200, warnings)

    return apply


def applied_object(call: Call, validation: str) -> tuple[Object, list[str]]:
    """(what is applied, warnings about keys that occur twice). Raises StatusError."""
    body = call.exchange.body
    try:
        applied = from_yaml(body)
    except YamlError as error:
        raise bad_request(f"error encoding patch: {error}") from None
    if applied is None:
        applied = {}
    if not isinstance(applied, dict):
        kind = "array" if isinstance(applied, list) else type(applied).__name__.replace("str", "string")
        why = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {why}")
    fault = "" if validation == "Ignore" else duplicate_keys(body)
    if fault and validation == "Strict":
        raise bad_request(f"error strict decoding patch: {fault}")
    decoded: Object = applied
    return decoded, [fault] if fault else []


async def _written(call: Call, authorize: Authorize, applied: Object, options: WriteOptions) -> Written:
    """Update what is there, else create; again where somebody else was faster."""
    registry, info = call.registry, call.info
    caller = msgspec.structs.replace(call.caller(options.dry_run), manager="")

    def over(old: Object, revision: int) -> Object:
        new = merged(call, old, applied, options)
        check_identity(call, new["metadata"], old["metadata"], revision)
        return new

    while True:
        try:
            return await registry.update(caller, over)
        except StatusError as error:
            if error.status.code != 404 or info.subresource:
                raise
        creation = msgspec.structs.replace(info, verb="create")
        decision = authorize(call.user, creation)
        if not decision.allowed:
            raise StatusError(forbidden_status(call.user, creation, decision.reason))
        new = merged(call, None, applied, options)
        _check_new(call, new)
        try:
            return await registry.create(caller, new)
        except StatusError as error:
            if error.status.reason != "AlreadyExists":
                raise


def merged(call: Call, live: Object | None, applied: Object, options: WriteOptions) -> Object:
    """The object that applying makes, with managedFields and without nulls. Raises StatusError."""
    registry = call.registry
    fields = registry.fields.of(call.info.subresource)
    made = fields.apply(live, applied, options.manager, options.force, registry.context().now)
    entries = made["metadata"].pop("managedFields", None)  # the larger part, and it has no nulls
    new = settled_nulls(made, call.resource)
    if entries:
        new["metadata"]["managedFields"] = entries
    return new


def _check_new(call: Call, new: Object) -> None:
    """What an apply demands where there is nothing yet. Raises StatusError."""
    resource, name, meta = call.resource, call.info.name, new["metadata"]
    if meta.get("uid"):
        text = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was "
        raise conflict(resource.group, resource.resource, name, text + "found")
    meta.pop("resourceVersion", None)
    check_name(name, meta)
