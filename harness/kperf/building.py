"""The requests that kperf makes (kperf/request/random.go), as values.

Every one of them tells the server a limit of 60 s (schedule.go: defaultTimeout) and accepts what the spec's content
type says; bodies are JSON always.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from harness.kperf.profile import (
    Get,
    GetPodLog,
    List,
    Patch,
    PostDel,
    Put,
    Resource,
    Spec,
    WatchList,
    WeightedRequest,
)
from harness.wire.gotext import duration
from harness.wire.paths import QueryValue, build_path
from harness.wire.request import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Request

SERVER_TIMEOUT_S = 60.0
ENDS_WITHIN_S = 90.0
"""Half a minute after the server should have ended it, a request is given up. kperf waits for ever (client-go's
Request.Stream has no limit of its own)."""

_ACCEPT = {
    "json": "application/json, */*",
    "protobuf": "application/vnd.kubernetes.protobuf, */*",
}  # cg/rest/request.go: NewRequest
_PATCHES = {"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic-merge": STRATEGIC_MERGE_PATCH}
_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_RATIO_STEPS = 1000  # deleteRatio is drawn in thousandths


class Call(NamedTuple):
    """A request of a profile. `method` is the report's word for what it does (LIST, POD_LOG), `url` its path with the
    name of an object that is drawn left out; `on_end` hears whether it was done."""

    request: Request
    method: str
    url: str
    on_end: Callable[[bool], None] | None = None


class Builder:
    """Makes the requests of one share of a spec.

    `draws` decides which kind each request is, one draw for each of the whole spec, so that it does not depend on how
    many processes share it; `rng` names objects and fills them. `labels` mark what is created; `unique` tells this
    share's names from others'.
    """

    def __init__(
        self,
        spec: Spec,
        draws: random.Random,
        rng: random.Random,
        unique: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._draws = draws
        self._drawn = 0
        self._shares = [(request.shares, self._maker(request, rng)) for request in spec.requests]
        self._sum = sum(shares for shares, _ in self._shares)
        self._accept = _ACCEPT[spec.content_type]
        self._unique = unique
        self._labels = {"app": "fake-pod", **(labels or {})}

    def build(self, index: int, wall_s: float, client: str) -> Call:
        """Request `index` of the spec; indexes must grow. `wall_s` is the time, `client` the connection."""
        while self._drawn <= index:
            drawn = self._draws.random()
            self._drawn += 1
        call = self._pick(int(drawn * self._sum))(index, wall_s)
        return call._replace(request=msgspec.structs.replace(call.request, client=client))

    def _pick(self, drawn: int) -> _Maker:
        for shares, maker in self._shares:
            if drawn < shares:
                return maker
            drawn -= shares
        raise AssertionError(f"{drawn} is not below the sum of all shares")

    def _maker(self, weighted: WeightedRequest, rng: random.Random) -> _Maker:
        ((key, kind),) = weighted.kinds().items()
        version = "0" if key.startswith("stale") else None
        match kind:
            case Get():
                return self._fixed("GET", "get", kind, kind.name, {"resourceVersion": version})
            case List():
                query: dict[str, QueryValue] = {"resourceVersion": version, "limit": kind.limit or None}
                return self._fixed("LIST", "list", kind, "", {**query, **_selectors(kind)})
            case WatchList():
                return self._fixed("WATCHLIST", "watch", kind, "", {**_WATCH_LIST, **_selectors(kind)})
            case GetPodLog():
                return self._pod_log(kind)
            case Patch():
                content, body = _PATCHES[kind.patch_type], kind.body.strip().encode()
                return self._named("PATCH", "patch", kind, kind, rng, content, lambda _: body)
            case Put():
                return self._named(
                    "PUT", "update", kind, kind, rng, JSON, lambda name: _config_map(kind, name, rng)
                )
            case PostDel():
                return _PostDel(self, kind, rng)

    def _fixed(
        self, method: str, verb: str, kind: Resource, name: str, query: Mapping[str, QueryValue]
    ) -> _Maker:
        """The same request each time."""
        path = _path(kind, name, query=query)
        made: list[Call] = []

        def make(_index: int, _wall_s: float) -> Call:
            if not made:
                made.append(Call(self.request(verb, "GET", path, kind.resource), method, path))
            return made[0]

        return make

    def _pod_log(self, kind: GetPodLog) -> _Maker:
        query: dict[str, QueryValue] = {
            "container": kind.container,
            "limitBytes": kind.limit_bytes,
            "tailLines": kind.tail_lines,
        }
        pods = Resource("", "v1", "pods", kind.namespace)
        path = _path(pods, kind.name, "log", query)

        def make(_index: int, _wall_s: float) -> Call:
            return Call(self.request("get", "GET", path, "pods/log"), "POD_LOG", path)

        return make

    def _named(
        self,
        method: str,
        verb: str,
        kind: Resource,
        space: Patch | Put,
        rng: random.Random,
        content_type: str,
        body: Callable[[str], bytes],
    ) -> _Maker:
        """A write to one of the objects of a key space."""
        url = _path(kind, MASKED)

        def make(_index: int, _wall_s: float) -> Call:
            name = f"{space.name}-{rng.randrange(space.key_space_size)}"
            request = self.request(verb, method, _path(kind, name), kind.resource, body(name), content_type)
            return Call(request, method, url)

        return make

    def request(
        self, verb: str, method: str, path: str, name: str, body: bytes = b"", content_type: str = ""
    ) -> Request:
        """What every request of the spec has; the bodies of answers are counted, not kept."""
        return Request(
            verb=verb,
            method=method,
            path=path,
            name=name,
            body=body,
            content_type=content_type,
            accept=self._accept,
            timeout_s=None if verb == "watch" else ENDS_WITHIN_S,
            discards=True,
        )

    def new_name(self, index: int, wall_s: float) -> str:
        """No two alike: the time in nanoseconds, as kperf has it, and whose request of the run it is."""
        return f"{round(wall_s * 1e9)}-{self._unique}{index}"

    @property
    def labels(self) -> dict[str, str]:
        return self._labels


_Maker = Callable[[int, float], Call]

MASKED = ":name"
"""Stands for an object's name where a report adds up the writes to all of them (requester.go: MaskedURL)."""

_WATCH_LIST: dict[str, QueryValue] = {
    "allowWatchBookmarks": True,
    "resourceVersionMatch": "NotOlderThan",
    "sendInitialEvents": True,
    "watch": True,
}


class _PostDel:
    """Creates pods, and deletes the oldest of those it created instead where that is drawn and there is one."""

    def __init__(self, builder: Builder, kind: PostDel, rng: random.Random) -> None:
        self._builder = builder
        self._kind = kind
        self._rng = rng
        self._created: deque[str] = deque()
        self._collection = _path(kind, "")
        self._masked = _path(kind, MASKED)

    def __call__(self, index: int, wall_s: float) -> Call:
        deletes = self._rng.randrange(_RATIO_STEPS) / _RATIO_STEPS < self._kind.delete_ratio
        return self._delete() if deletes and self._created else self._create(index, wall_s)

    def _create(self, index: int, wall_s: float) -> Call:
        kind, name = self._kind, self._builder.new_name(index, wall_s)
        payload = random_text(self._rng, kind.payload_size)
        body = _pod(name, kind.namespace, payload, self._builder.labels)
        request = self._builder.request("create", "POST", self._collection, kind.resource, body, JSON)
        return Call(
            request, "POST", self._collection, lambda done: self._created.append(name) if done else None
        )

    def _delete(self) -> Call:
        name = self._created.popleft()
        request = self._builder.request("delete", "DELETE", _path(self._kind, name), self._kind.resource)
        return Call(
            request, "DELETE", self._masked, lambda done: None if done else self._created.append(name)
        )


def random_text(rng: random.Random, length: int) -> str:
    """Letters and digits, each as likely."""
    return "".join(rng.choices(_ALPHABET, k=length))


def _config_map(kind: Put, name: str, rng: random.Random) -> bytes:
    return msgspec.json.encode(
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": kind.namespace},
            "data": {"payload": random_text(rng, kind.payload_size)},
        }
    )


def _pod(name: str, namespace: str, payload: str, labels: Mapping[str, str]) -> bytes:
    """kperf/contrib/internal/manifests/workload/pods/templates/pod.tpl, in JSON."""
    container = {
        "name": "fake-container",
        "image": "registry.k8s.io/pause:3.10",
        "env": [{"name": "PAYLOAD", "value": payload}],
    }
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"containers": [container]},
        }
    )


def _selectors(kind: List | WatchList) -> dict[str, QueryValue]:
    return {"labelSelector": kind.selector, "fieldSelector": kind.field_selector}


def _path(
    kind: Resource, name: str, subresource: str = "", query: Mapping[str, QueryValue] | None = None
) -> str:
    group = "" if kind.group == "core" else kind.group
    told: dict[str, QueryValue] = {**(query or {}), "timeout": duration(SERVER_TIMEOUT_S)}
    return build_path(group, kind.version, kind.resource, kind.namespace, name, subresource, told)
