"""Operations on one object, with ClusterLoader2's retries: create, patch, delete, get, list.

Mirrors clusterloader2/pkg/framework/client/objects.go: CreateObject, PatchObject (GET, then a merge patch of what
differs), DeleteObject (background propagation). There is one client for each 100 nodes, each limited to 100 requests
a second with bursts of 200 (cmd/clusterloader.go:58, framework/client); operations take the clients in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from harness.client.machine import Sample
from harness.client.requests import ResourceRef, create_, delete_, get_, list_, patch_
from harness.client.store import ObjectView
from harness.clusterloader.retries import ATTEMPTS, judge, wait_s
from harness.clusterloader.tasks import Tasks
from harness.wire.request import MERGE_PATCH, Request, Response

NODES_PER_CLIENT = 100
CLIENT_QPS = 100.0
CLIENT_BURST = 200

_DELETE_OPTIONS = msgspec.json.encode(
    {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
)


class Reply(NamedTuple):
    """The end of an operation: `failure` is "" where it is done; `body` is that of the last answer."""

    failure: str
    body: bytes = b""
    reason: str = ""

    @property
    def ok(self) -> bool:
        return not self.failure


def clients_for(nodes: int) -> int:
    """How many clients a test of so many nodes has (cmd/clusterloader.go: getClientsNumber)."""
    return max(1, -(-nodes // NODES_PER_CLIENT))


def client_names(count: int) -> tuple[str, ...]:
    """Names of the clients' rate limiters, as requests carry them in `client`; the informers use the first."""
    return ("main", *(f"main-{i}" for i in range(2, count + 1)))


class ObjectApi:
    """Sends object operations through the tasks' requests and counts what was tried again. `labels` are given to every
    object that is created, so that whoever cleans up after a test finds what it made."""

    def __init__(
        self, tasks: Tasks, clients: tuple[str, ...], labels: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._tasks = tasks
        self._clients = clients
        self.labels: Mapping[str, str] = dict(labels)
        self._turn = 0
        self.retries: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()

    async def create(self, ref: ResourceRef, namespace: str, body: bytes) -> Reply:
        """POST a JSON object; one that exists already is done (a create whose answer was lost)."""
        if self.labels:
            body = _labelled(body, self.labels)
        request = create_(ref, namespace, body, client=self._client())
        return await self._with_retries(request, "AlreadyExists")

    async def get(self, ref: ResourceRef, namespace: str, name: str) -> Reply:
        return await self._with_retries(get_(ref, namespace, name, client=self._client()))

    async def list(
        self,
        ref: ResourceRef,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
    ) -> Reply:
        """LIST at the most recent revision (no resourceVersion) or as given, all in one page as upstream."""
        request = list_(
            ref,
            namespace,
            label_selector=labels,
            field_selector=fields,
            resource_version=resource_version,
            client=self._client(),
        )
        return await self._with_retries(request)

    async def patch(self, ref: ResourceRef, namespace: str, name: str, wanted: Mapping[str, object]) -> Reply:
        """GET the object, then PATCH what `wanted` has and the object has not. Both count as one attempt."""
        attempt = 0
        while True:
            attempt += 1
            client = self._client()
            reply = await self._once(get_(ref, namespace, name, client=client))
            if reply.ok:
                patch = msgspec.json.encode(merge_difference(_object_of(reply.body), wanted))
                request = patch_(ref, namespace, name, patch, content_type=MERGE_PATCH, client=client)
                reply = await self._once(request)
            if reply.ok or not reply.retry or attempt == ATTEMPTS:
                return reply.final(attempt)
            await self._back_off("patch", reply.reason, attempt)

    async def delete(self, ref: ResourceRef, namespace: str, name: str) -> Reply:
        """DELETE with its dependants in the background; an object that is gone is done."""
        request = msgspec.structs.replace(
            delete_(ref, namespace, name, client=self._client()), body=_DELETE_OPTIONS
        )
        return await self._with_retries(request, "NotFound")

    def _client(self) -> str:
        self._turn = (self._turn + 1) % len(self._clients)
        return self._clients[self._turn]

    async def _with_retries(self, request: Request, allowed: str = "") -> Reply:
        attempt = 0
        while True:
            attempt += 1
            reply = await self._once(request, allowed)
            if reply.ok or not reply.retry or attempt == ATTEMPTS:
                return reply.final(attempt)
            await self._back_off(request.verb, reply.reason, attempt)

    async def _once(self, request: Request, allowed: str = "") -> _Attempt:
        answer = await self._tasks.ask(request)
        self.operations[request.verb] += 1
        verdict = judge(answer, allowed)
        body = answer.body if isinstance(answer, Response) else b""
        return _Attempt(verdict.done, verdict.retry, verdict.reason, verdict.message, body)

    async def _back_off(self, verb: str, reason: str, attempt: int) -> None:
        self.retries[reason] += 1
        self._tasks.emit(Sample("operation_retry_count", 1.0, (("verb", verb), ("reason", reason))))
        await self._tasks.until(self._tasks.now + wait_s(attempt))


class _Attempt(NamedTuple):
    ok: bool
    retry: bool
    reason: str
    message: str
    body: bytes

    def final(self, attempts: int) -> Reply:
        if self.ok:
            return Reply("", self.body)
        tried = f" (tried {attempts} times)" if attempts > 1 else ""
        return Reply(f"{self.message}{tried}", self.body, self.reason)


class _List(msgspec.Struct):
    items: list[ObjectView] | None = None


_decode_list = msgspec.json.Decoder(_List).decode


def items_of(reply: Reply) -> list[ObjectView]:
    """The items of a LIST's answer; none where it failed or is no list."""
    if not reply.ok:
        return []
    try:
        return _decode_list(reply.body).items or []
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _labelled(body: bytes, labels: Mapping[str, str]) -> bytes:
    """A JSON object with labels added to its own."""
    thing = msgspec.json.decode(body)
    metadata = thing.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return msgspec.json.encode(thing)


def _object_of(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def merge_difference(current: object, wanted: Mapping[str, object]) -> dict[str, object]:
    """The merge patch that gives `current` every value of `wanted` and takes nothing away; lists are values.

    As jsonmergepatch.CreateThreeWayJSONMergePatch with no original object: a key that `wanted` lacks stays.
    """
    present = current if isinstance(current, dict) else {}
    patch: dict[str, object] = {}
    for key, value in wanted.items():
        if key not in present:
            patch[key] = value
        elif isinstance(value, dict) and isinstance(present[key], dict):
            inner = merge_difference(present[key], value)
            if inner:
                patch[key] = inner
        elif present[key] != value:
            patch[key] = value
    return patch
