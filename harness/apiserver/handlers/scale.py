"""The scale subresource: how many replicas a workload has and is to have, as an autoscaling/v1 Scale.

kk/pkg/registry/apps/{deployment,replicaset,statefulset}/storage/storage.go and
kk/pkg/registry/core/replicationcontroller/storage/storage.go: a Scale is made of the workload, changed, and put back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from harness.apiserver.apierrors import bad_request, conflict, invalid, invalid_value
from harness.apiserver.handlers.applying import applied_object, merged
from harness.apiserver.handlers.call import Answer, Call, Object
from harness.apiserver.handlers.options import write_options
from harness.apiserver.handlers.reading import Read, Reader
from harness.apiserver.handlers.shaping import object_answer
from harness.apiserver.handlers.writing import PATCHES, read_typed
from harness.apiserver.registry import Mutation
from harness.apiserver.resources import Resource
from harness.apiserver.strategies.labelselectors import selector_text
from harness.wire.patch import apply_patch
from harness.wire.status import StatusError, unsupported_media_type

KIND, VERSION = "Scale", "autoscaling/v1"
SCALE = Resource("autoscaling", "v1", "scales", KIND, "scale")  # as answers are shaped; not served as such
_SHOWN_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def scale_of(workload: Object, parts: tuple[int, int, str] | None = None) -> Object:
    """The Scale of a workload as it is stored or read. What is 0 or empty is left out as Go's omitempty does. `parts`
    are (replicas wanted, replicas there, selector) of what is no workload."""
    meta = workload["metadata"]
    replicas, there, text = parts or _parts_of(workload)
    status: Object = {"replicas": there}
    if text:
        status["selector"] = text
    return {
        "kind": KIND,
        "apiVersion": VERSION,
        "metadata": {key: meta[key] for key in _SHOWN_META if key in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _parts_of(workload: Object) -> tuple[int, int, str]:
    spec = workload["spec"]
    selector = spec.get("selector")
    if workload["kind"] == "ReplicationController":
        selector = {"matchLabels": selector}
    there = workload.get("status", {}).get("replicas", 0)
    return spec.get("replicas", 0), there, selector_text(selector)


async def get(call: Call, reader: Reader) -> Read:
    """The Scale, read as its workload is. Raises StatusError."""
    body, from_store = await reader.find(call)
    return Read(_answer(call, body), consistent=from_store, from_store=from_store)


async def update(call: Call) -> Answer:
    options = write_options(call.info.query, "UpdateOptions")
    scale, warnings = read_typed(call, options.validation, KIND, VERSION)
    name = scale["metadata"].get("name")
    if name != call.info.name:
        if not name:
            why = "was undeterminable: name must be provided"
            raise bad_request(f"the name of the object ({call.info.name} based on URL) {why}")
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.info.name})"
        )
    written = await call.registry.update(
        call.caller(options.dry_run), _scaled(call, lambda old: scale), "scale"
    )
    return _answer(call, written.body, warnings)


async def patch(call: Call) -> Answer:
    media_type = call.exchange.headers.get("content-type", "").partition(";")[0].strip()
    if media_type not in PATCHES:
        raise StatusError(unsupported_media_type())
    options = write_options(call.info.query, "PatchOptions")
    body = call.exchange.body
    mutate = _scaled(call, lambda old: apply_patch(media_type, old, body, KIND))
    written = await call.registry.update(call.caller(options.dry_run), mutate, "scale")
    return _answer(call, written.body)


async def apply(call: Call) -> Answer:
    """An applied Scale is its replicas applied to the workload under this subresource
    (am/util/managedfields/scalehandler.go)."""
    options = write_options(call.info.query, "PatchOptions", apply=True)
    scale, warnings = applied_object(call, options.validation)
    if (scale.get("apiVersion"), scale.get("kind")) != (VERSION, KIND):
        raise bad_request(
            f"invalid object type: {scale.get('apiVersion', '/')}, Kind={scale.get('kind', '')}"
        )
    resource = call.resource
    replicas = (scale.get("spec") or {}).get("replicas")
    spec = {} if replicas is None else {"spec": {"replicas": replicas}}
    applied = {"apiVersion": resource.api_version, "kind": resource.kind, **spec}

    def mutate(old: Object, revision: int) -> Object:
        return merged(call, old, applied, options)

    caller = msgspec.structs.replace(call.caller(options.dry_run), manager="")
    written = await call.registry.update(caller, mutate, "scale")
    return _answer(call, written.body, warnings)


def _scaled(call: Call, change: Callable[[Object], Object]) -> Mutation:
    """The workload with the replicas of the Scale that `change` makes of its own."""
    resource, name, strategy = call.resource, call.info.name, call.registry.strategy

    def mutate(old: Object, revision: int) -> Object:
        before = scale_of(old, strategy.scale_parts(old))
        before["metadata"]["resourceVersion"] = str(revision)
        scale = change(before)
        demanded = (scale.get("metadata") or {}).get("resourceVersion")
        if demanded and demanded != str(revision):
            raise conflict(resource.group, resource.resource, name)
        replicas = (scale.get("spec") or {}).get("replicas") or 0
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            text = f"json: cannot unmarshal {type(replicas).__name__} into Go struct field ScaleSpec.spec.replicas"
            raise bad_request(f'{KIND} in version "v1" cannot be handled as a {KIND}: {text} of type int32')
        if replicas < 0:
            detail = "must be greater than or equal to 0"
            raise invalid("autoscaling", KIND, name, [invalid_value("spec.replicas", replicas, detail)])
        return strategy.scaled(old, replicas)

    return mutate


def _answer(call: Call, body: bytes, warnings: Sequence[str] = ()) -> Answer:
    of_scale, workload = msgspec.structs.replace(call, resource=SCALE), _decode(body)
    scale = scale_of(workload, call.registry.strategy.scale_parts(workload))
    return object_answer(of_scale, _encode(scale), 200, warnings)
