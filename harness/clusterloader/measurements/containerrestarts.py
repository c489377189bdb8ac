"""ContainerRestarts: how often each container was started anew, as its kubelet's cAdvisor tells.

Mirrors cl2/pkg/measurement/common/container_restarts.go.
"""

from __future__ import annotations

import re

import msgspec
import yaml

from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Params, Result
from harness.clusterloader.measurements.prometheus import Window
from harness.wire.promql import VectorSample

METHOD = "ContainerRestarts"
_QUERY = "changes(container_start_time_seconds[{range}])"


class Restarts(msgspec.Struct, frozen=True, rename="pascal"):
    """One container, as the summary's file has it."""

    container: str
    pod: str
    namespace: str
    restart_count: int


class _Allowed(msgspec.Struct):
    """An entry of customAllowedRestarts; ``*`` in a pod's name stands for anything."""

    allowed: int = msgspec.field(default=0, name="allowedRestarts")
    pod: str = ""

    def holds_for(self, pod: str) -> bool:
        return re.fullmatch(re.escape(self.pod).replace(r"\*", ".*"), pod) is not None


class ContainerRestarts:
    def configure(self, params: Params) -> None:
        """Its limits are read when it gathers; what is wrong with them need not wait until then."""
        _allowed(params)

    async def gather(self, window: Window, call: Call) -> Outcome:
        params = call.params
        samples = await window.vector(_QUERY.format(range=window.range))
        found = [_restarts(sample) for sample in samples]
        values: dict[str, object] = {
            f"{item.namespace}/{item.pod} {item.container}": item.restart_count
            for item in found
            if item.restart_count
        }
        result = Result(METHOD, {"containers": len(found), **values}, found)
        if not found:
            return Outcome((result,), skipped="Prometheus scrapes no kubelet's cAdvisor")
        bad = _violations(found, params.integer("defaultAllowedRestarts", 0), _allowed(params))
        failed = bad and params.boolean("failureEnabled", True)
        return Outcome((result,), f"container restarts: {bad}" if failed else "")


def _restarts(sample: VectorSample) -> Restarts:
    container, pod, namespace = (sample.labels.get(name, "") for name in ("container", "pod", "namespace"))
    return Restarts(container, pod, namespace, round(sample.value))


def _allowed(params: Params) -> list[_Allowed]:
    """From YAML in a parameter."""
    text = params.text("customAllowedRestarts", "")
    try:
        return msgspec.convert(yaml.safe_load(text) or [], list[_Allowed])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        reason = " ".join(str(error).split())
        raise MeasurementError(f"params.customAllowedRestarts: {text!r:.80}: {reason}") from error


def _violations(found: list[Restarts], default: int, custom: list[_Allowed]) -> str:
    bad = []
    for item in found:
        most = max([default, *(entry.allowed for entry in custom if entry.holds_for(item.pod))])
        if item.restart_count > most:
            where = f"{item.namespace}/{item.pod} {item.container}"
            bad.append(f"{where}: {item.restart_count} restarts, allowed are {most}")
    return "; ".join(bad)
