"""What every part of one kubelet shares: its name, its options, its random source and its wall clock."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, TypeAlias, TypeVar, cast
from zlib import crc32

import msgspec

from harness.client.machine import Action
from harness.fleet.options import KubeletOptions, Range
from harness.wire import rfc3339
from harness.wire.draws import Draws
from harness.wire.objectviews import view_decoder
from harness.wire.protobuf import MAGIC
from harness.wire.request import Response
from harness.wire.status import parse_status

Out: TypeAlias = list[Action]
"""Where a part puts its actions, in order: parts call one another, and one list keeps the order they acted in."""


class Context:
    """`epoch_s` is the wall-clock time (seconds since 1970) of ``now == 0``; `started` the kubelet's start; `boots` how
    often the machine was started again before that."""

    __slots__ = ("_relist_phase_s", "boots", "epoch_s", "name", "options", "rng", "started")

    def __init__(
        self, name: str, options: KubeletOptions, rng: Draws, epoch_s: float, boots: int = 0
    ) -> None:
        self.name = name
        self.options = options
        self.rng = rng
        self.epoch_s = epoch_s
        self.started = 0.0
        self.boots = boots
        self._relist_phase_s = options.relist_s * (crc32(name.encode()) % 997) / 997

    def draw(self, bounds: Range) -> float:
        """One value of a uniform distribution."""
        low, high = bounds
        return low + (high - low) * self.rng.random()

    def jittered(self, period_s: float) -> float:
        """period x U[1, 1+jitter): wait.Jitter (am/util/wait/backoff.go)."""
        return period_s * (1.0 + self.options.jitter * self.rng.random())

    def next_tick(self, period_s: float, now: float, phase_s: float = 0.0) -> float:
        """The first tick after `now` of a ticker that started with the kubelet, `phase_s` later."""
        base = self.started + phase_s
        if now < base:
            return base
        passed = int((now - base) / period_s)
        due = base + (passed + 1) * period_s
        return due if due > now else due + period_s

    def next_relist(self, now: float) -> float:
        """When the PLEG next looks at what runs. What happens to containers is seen then, and a pod worker goes on from
        one step to the next only with what was seen after it (pod_workers.go, podCache.GetNewerThan)."""
        return self.next_tick(self.options.relist_s, now, self._relist_phase_s)

    def stamp(self, now: float) -> str:
        """metav1.Time of `now`."""
        return _stamp(int(self.epoch_s + now))

    def micro_stamp(self, now: float) -> str:
        """metav1.MicroTime of `now`."""
        return rfc3339.micro(self.epoch_s + now)


_stamp = lru_cache(maxsize=256)(rfc3339.seconds)  # one second of a fleet holds many stamps

T = TypeVar("T")


def parsed(decoder: msgspec.json.Decoder[T], response: Response) -> T | None:
    """What a 2xx answer holds; None for any other answer, and for a body that is not what was asked for."""
    if not response.ok:
        return None
    try:
        if response.body[:4] == MAGIC:
            return cast("T", _in_protobuf(cast("Any", decoder.type))(response.body))
        return decoder.decode(response.body)
    except msgspec.MsgspecError:
        return None


@cache
def _in_protobuf(view: Any) -> Callable[[bytes], Any]:
    return view_decoder(view)


_TEXTS = {  # am/api/errors/errors.go, NewGenericServerResponse: what client-go says where the body is no Status
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    409: "the server reported a conflict",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def describe(response: Response, request: str) -> str:
    """The error that client-go makes of an answer, for an event's text; bounded. `request`: as in "get pods p"."""
    if response.body[:4] == MAGIC:
        return parse_status(response.body, response.status).message[:1024]
    found = response.body.find(b'"message":"')
    if found < 0:
        status = response.status
        unknown = f"the server responded with the status code {status} but did not return more information"
        if status >= 500:
            body = response.body[:256].decode("utf-8", "replace")
            unknown = f'an error on the server ("{body}") has prevented the request from succeeding'
        return f"{_TEXTS.get(status, unknown)} ({request})"
    end = found + 11
    while end < len(response.body) and response.body[end : end + 1] != b'"':
        end += 2 if response.body[end : end + 1] == b"\\" else 1
    return response.body[found + 11 : end].decode("utf-8", "replace").replace('\\"', '"')[:1024]
