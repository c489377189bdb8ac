"""SystemPodMetrics: how often the containers of kube-system were started anew during a test.

Mirrors pkg/measurement/common/system_pod_metrics.go: a LIST from the watch cache at the start and one at the end.
"""

from __future__ import annotations

import msgspec
import yaml

from harness.client.requests import PODS
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Params,
    Result,
    unknown_action,
)

_NAMESPACE = "kube-system"
_DEFAULT = "default"  # names the threshold of every container that has none of its own


class _Name(msgspec.Struct):
    name: str = ""


class _Terminated(msgspec.Struct):
    exit_code: int = msgspec.field(default=0, name="exitCode")
    reason: str = ""


class _LastState(msgspec.Struct):
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str = ""
    image: str = ""
    restart_count: int = 0
    last_state: _LastState = msgspec.field(default_factory=_LastState)


class _Status(msgspec.Struct, rename="camel"):
    container_statuses: list[_ContainerStatus] | None = None


class _Pod(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    status: _Status = msgspec.field(default_factory=_Status)


class _Pods(msgspec.Struct):
    items: list[_Pod] | None = None


class ContainerMetrics(msgspec.Struct, rename="camel"):
    """One container, as the summary's file has it."""

    name: str
    image: str
    restart_count: int
    last_restart_reason: str


class PodMetrics(msgspec.Struct):
    name: str
    containers: list[ContainerMetrics]


class SystemPodMetrics:
    def __init__(self) -> None:
        self._first: list[PodMetrics] | None = None

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action not in ("start", "pause", "unpause", "gather"):
            raise unknown_action(action, "start", "pause", "unpause", "gather")
        if action == "pause" or not call.params.boolean("systemPodMetricsEnabled", False):
            return Outcome()
        if action == "unpause":
            if self._first is not None:
                self._first = await _pods(call)
            return Outcome()
        allowed = _allowed_restarts(call.params)
        found = await _pods(call)
        if action == "start":
            self._first = found
            return Outcome()
        if self._first is None:
            raise MeasurementError("start needs to be executed before gather")
        restarts = _since(self._first, found)
        values: dict[str, object] = {
            "pods": len(restarts),
            "restarts": sum(item.restart_count for pod in restarts for item in pod.containers),
        }
        failure = "" if not _enforced(call.params) else _violations(restarts, allowed)
        return Outcome((Result("SystemPodMetrics", values, {"pods": restarts}),), failure)

    def dispose(self) -> None:
        """Nothing runs."""


async def _pods(call: Call) -> list[PodMetrics]:
    reply = await call.runtime.api.list(PODS, _NAMESPACE, resource_version="0")
    if not reply.ok:
        raise MeasurementError(f"listing the pods of {_NAMESPACE}: {reply.failure}")
    items = msgspec.json.decode(reply.body, type=_Pods).items or []
    return [
        PodMetrics(item.metadata.name, [_metrics(status) for status in item.status.container_statuses or ()])
        for item in items
    ]


def _metrics(status: _ContainerStatus) -> ContainerMetrics:
    ended = status.last_state.terminated
    why = "" if ended is None else f"{ended.reason} (exit code {ended.exit_code})"
    return ContainerMetrics(status.name, status.image, status.restart_count, why)


def _since(first: list[PodMetrics], now: list[PodMetrics]) -> list[PodMetrics]:
    """`now` with the restarts that there were before taken off."""
    before = {(pod.name, item.name): item.restart_count for pod in first for item in pod.containers}
    return [
        PodMetrics(
            pod.name,
            [
                msgspec.structs.replace(
                    item, restart_count=item.restart_count - before.get((pod.name, item.name), 0)
                )
                for item in pod.containers
            ],
        )
        for pod in now
    ]


def _allowed_restarts(params: Params) -> dict[str, int]:
    """By container, from YAML in a parameter (getThresholdOverrides)."""
    text = params.text("restartCountThresholdOverrides", "")
    try:
        return msgspec.convert(yaml.safe_load(text) or {}, dict[str, int])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        reason = " ".join(str(error).split())
        raise MeasurementError(f"params.restartCountThresholdOverrides: {text!r:.80}: {reason}") from error


def _enforced(params: Params) -> bool:
    return params.boolean("enableRestartCountCheck", False) and params.boolean(
        "systemPodsFailureEnabled", True
    )


def _violations(pods: list[PodMetrics], allowed: dict[str, int]) -> str:
    found = [
        f"RestartCount({pod.name}, {item.name})={item.restart_count}, want <= {most}"
        for pod in pods
        for item in pod.containers
        if item.restart_count > (most := allowed.get(item.name, allowed.get(_DEFAULT, 0)))
    ]
    return f"restart counts violation: {'; '.join(found)}" if found else ""
