"""The recorded kubelet's script, replayed by ours over virtual time, and both normalised for comparison."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from harness.client.rest import Rest
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from harness.wire.paths import RequestInfo
from harness.wire.request import Request
from tests.fleet.builders import pod, with_objects
from tests.fleet.fakeapi import EPOCH_S, World

TRACE = Path(__file__).parents[1] / "data" / "traces" / "hollow-kubelet.jsonl"
NODE = "hollow-0"
CREATED_S, DELETED_S, END_S = 175.712, 308.062, 370.0
PODS, DELETED = 9, 6

_POD = re.compile(r"/api/v1/namespaces/t/pods/([^/?]+)(/status)?")
_SELECTOR = re.compile(r"fieldSelector=([^&]*)")


class Line(msgspec.Struct, frozen=True):
    """One request; a watch counts when it opens. `took_s` until it was answered."""

    at: float
    verb: str
    uri: str
    code: int
    took_s: float
    request: Request | None = None

    @property
    def normal(self) -> str:
        """Verb and URI without what differs from run to run: pods' names, revisions, drawn timeouts."""
        uri = re.sub(r"/pods/[^/?]+", "/pods/POD", self.uri)
        uri = re.sub(r"resourceVersion=[1-9]\d*", "resourceVersion=N", uri)
        uri = re.sub(r"timeout=\d+m\d*s?", "timeout=DRAWN", uri)
        uri = re.sub(r"timeoutSeconds=\d+", "timeoutSeconds=DRAWN", uri)
        return f"{self.verb} {uri}"

    @property
    def lane(self) -> str:
        """Which loop of the kubelet sent it: only within a loop is there an order that is the kubelet's."""
        path, _, query = self.uri.partition("?")
        if found := _POD.match(path):
            return f"pod {found[1]}"
        if path.endswith("/token"):
            return "tokens"
        if self.verb == "watch":
            selector = _SELECTOR.search(query)
            return f"watch {path}?{selector[1] if selector else ''}"
        if "/leases" in path or (path == f"/api/v1/nodes/{NODE}" and query):
            return "lease"
        return "node status" if path.endswith("/status") else "registration"

    @property
    def letter(self) -> str:
        """G, P or D: what a pod's loop is told by."""
        return self.verb[0].upper()


def recorded() -> list[Line]:
    lines = []
    for raw in TRACE.read_bytes().splitlines():
        row: dict[str, Any] = msgspec.json.decode(raw)
        if row["verb"] != "watch" or row["stage"] == "ResponseStarted":
            lines.append(Line(row["t"], row["verb"], row["uri"], row["code"], row["dt"]))
    return lines


def recorded_ends() -> dict[str, int]:
    """When watches were given up, to the second: those that ended before their timeout."""
    ends = {}
    for raw in TRACE.read_bytes().splitlines():
        row: dict[str, Any] = msgspec.json.decode(raw)
        if row["verb"] == "watch" and row["stage"] == "ResponseComplete":
            line = Line(row["t"], row["verb"], row["uri"], row["code"], row["dt"])
            timeout = re.search(r"timeoutSeconds=(\d+)", line.uri)
            if timeout and line.took_s < float(timeout[1]) - 1:
                ends[line.lane] = round(line.at + line.took_s)
    return ends


def replayed_ends() -> dict[str, int]:
    """The same of ours, which are remounted each minute and so never idle."""
    world = _play(3)
    open_now = {
        Line(0, "watch", each.request.path, 200, 0).lane for each in world.log if each.info.verb == "watch"
    }
    still = {f"watch {_path(each.info)}" for each in world.watches}
    return {lane: 0 for lane in open_now if not any(lane.startswith(each) for each in still)}


def _path(info: RequestInfo) -> str:
    """Up to the field selector of a watch's lane."""
    group = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    return group + (f"/namespaces/{info.namespace}" if info.namespace else "") + f"/{info.resource}?"


def replayed(seed: int = 3) -> list[Line]:
    """The same nine pods at the same time, the same six deleted, the same client limits, no events."""
    world = _play(seed)
    return [
        Line(each.at, each.request.verb, each.request.path, each.status, world.latency_s, each.request)
        for each in world.log
    ]


@cache
def _play(seed: int) -> World:
    world = World()
    options = KubeletOptions(qps=10, burst=20, events=False)
    kubelet = Kubelet(NODE, options, Random(seed), EPOCH_S)
    world.add(Rest(kubelet, kubelet_limiters(options), content="auto"))
    world.checks.append(kubelet.validate)
    with_objects(world, "t", "s0", "s1", "c0")

    def create() -> None:
        for index in range(PODS):
            body = pod(f"d-7ddd9988fc-{index}", NODE, secrets=("s0", "s1"), configmaps=("c0",))
            world.create("pods", "t", body)

    world.at(CREATED_S, create)
    for index in range(DELETED):
        world.at(DELETED_S, lambda index=index: world.delete("pods", "t", f"d-7ddd9988fc-{index}"))
    world.run(END_S)
    return world


def lanes(lines: list[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found[line.lane].append(line)
    return dict(found)


def shapes(lines: list[Line], since: float, until: float) -> list[str]:
    """What each pod's loop sent in that time, as a word over G, P and D; sorted."""
    words = (
        "".join(each.letter for each in lane if since <= each.at < until)
        for name, lane in lanes(lines).items()
        if name.startswith("pod ")
    )
    return sorted(filter(None, words))
