"""The table of methods that are simulated, and what each call of them takes.

The table is read twice: the executor makes measurements by it, and a test is refused before it runs where a call
lacks a parameter or has one of another type, which upstream finds out when the step's turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from harness.client.requests import NODES, PODS, ResourceRef
from harness.clusterloader.measurements.apiavailability import APIAvailability
from harness.clusterloader.measurements.apiresponsiveness import APIResponsiveness
from harness.clusterloader.measurements.base import Measurement, Params, unknown_action
from harness.clusterloader.measurements.chaosmonkey import ChaosMonkey, failure_of
from harness.clusterloader.measurements.ciliumendpoints import CiliumEndpoints
from harness.clusterloader.measurements.containerrestarts import ContainerRestarts
from harness.clusterloader.measurements.controlledpods import WaitForControlledPodsRunning, controlled
from harness.clusterloader.measurements.exec import Exec
from harness.clusterloader.measurements.finishedjobs import JOBS, WaitForFinishedJobs
from harness.clusterloader.measurements.genericobjects import WaitForGenericK8sObjects, object_ref
from harness.clusterloader.measurements.genericquery import GenericQueries, queries_of
from harness.clusterloader.measurements.joblifecycle import JobLifecycleLatency
from harness.clusterloader.measurements.latencyqueries import (
    MetricsServer,
    NetworkProgrammingLatency,
    NodeLocalDNSLatency,
)
from harness.clusterloader.measurements.podstartup import PodStartupLatency
from harness.clusterloader.measurements.prometheus import Gatherer, maker
from harness.clusterloader.measurements.recorded import EtcdMetrics, MetricsForE2E, ResourceUsageSummary
from harness.clusterloader.measurements.restartapiserver import RestartApiserver
from harness.clusterloader.measurements.runningpods import WaitForRunningPods
from harness.clusterloader.measurements.schedulerqueries import SchedulingMetrics
from harness.clusterloader.measurements.schedulerqueries import SchedulingThroughput as PrometheusThroughput
from harness.clusterloader.measurements.schedulingthroughput import SchedulingThroughput
from harness.clusterloader.measurements.servicecreation import ServiceCreationLatency, services_and_ingresses
from harness.clusterloader.measurements.sleep import Sleep
from harness.clusterloader.measurements.slomeasurement import SLOMeasurement
from harness.clusterloader.measurements.systempods import SystemPodMetrics
from harness.clusterloader.measurements.testmetrics import TestMetrics
from harness.clusterloader.measurements.timer import Timer
from harness.clusterloader.measurements.volumes import CLAIMS, VOLUMES, WaitForAvailablePVs, WaitForBoundPVCs
from harness.clusterloader.measurements.waitfornodes import WaitForNodes
from harness.clusterloader.measurements.windowsusage import WindowsResourceUsage

Kind = Literal["text", "integer", "number", "boolean", "duration", "texts"]


class Takes(NamedTuple):
    """Parameters of one action, by name: what must be there, and what may."""

    required: Mapping[str, Kind] = {}
    optional: Mapping[str, Kind] = {}
    further: Callable[[Params], object] | None = None
    """Reads what is more than one value of a kind; raises MeasurementError."""

    def check(self, params: Params) -> None:
        """Raises MeasurementError naming the first parameter that is missing or of another type."""
        if self.further is not None:
            self.further(params)
        for name, kind in (*self.required.items(), *self.optional.items()):
            if name in self.required or params.has(name):
                getattr(params, kind)(name)


Reads = Callable[[Params], Iterable[ResourceRef]]


def reading(*refs: ResourceRef) -> Reads:
    """Always these."""
    return lambda params: refs


class Method(NamedTuple):
    """How a measurement is made, and its actions; one that has no actions takes what stands under "". `reads` is what
    a call with such parameters lists and watches."""

    make: Callable[[], Measurement]
    actions: Mapping[str, Takes]
    reads: Reads = reading()

    def check(self, params: Params) -> None:
        """Raises MeasurementError where a call with these parameters cannot be done."""
        action = ""
        if "" not in self.actions:
            action = params.text("action")
            if action not in self.actions:
                raise unknown_action(action, *self.actions)
        self.actions[action].check(params)


def _by_promql(method: str, gatherer: Callable[[], Gatherer], start: Takes, gather: Takes) -> Method:
    """One of PROMETHEUS; `start` and `gather` are what it takes beside what all of these take."""
    client: dict[str, Kind] = {"prometheusClient": "text"}
    ending: dict[str, Kind] = {**client, "enableViolations": "boolean"}
    return Method(
        maker(method, gatherer),
        {
            "start": start._replace(optional={**client, **start.optional}),
            "gather": gather._replace(optional={**ending, **gather.optional}),
        },
    )


_SELECT: dict[str, Kind] = {"namespace": "text", "labelSelector": "text", "fieldSelector": "text"}
_NOTHING = Takes()
_ETCD = Takes({}, {"waitTime": "duration"})
_USAGE = Takes({}, {"host": "text", "namespace": "text", "resourceConstraints": "text"})
_E2E = Takes({}, {"gatherKubeletsMetrics": "boolean"})

PROMETHEUS: dict[str, Method] = {
    "SLOMeasurement": Method(
        SLOMeasurement, {"start": _NOTHING, "gather": Takes({}, {"enableViolations": "boolean"})}
    ),
    **{
        name: _by_promql(name, gatherer, start, gather)
        for name, gatherer, start, gather in (
            ("GenericPrometheusQuery", GenericQueries, Takes(further=queries_of), _NOTHING),
            (
                "CiliumEndpointPropagationDelay",
                CiliumEndpoints,
                Takes({}, {"bucketSLO": "number", "percentileSLO": "number"}),
                _NOTHING,
            ),
            (
                "ContainerRestarts",
                ContainerRestarts,
                _NOTHING,
                Takes(
                    {},
                    {
                        "customAllowedRestarts": "text",
                        "defaultAllowedRestarts": "integer",
                        "failureEnabled": "boolean",
                    },
                ),
            ),
            ("MetricsServerPrometheus", MetricsServer, _NOTHING, _NOTHING),
            (
                "NetworkProgrammingLatency",
                NetworkProgrammingLatency,
                Takes({"threshold": "duration"}),
                _NOTHING,
            ),
            (
                "NodeLocalDNSLatencyPrometheus",
                NodeLocalDNSLatency,
                _NOTHING,
                Takes({}, {"threshold": "duration"}),
            ),
            ("PrometheusSchedulingMetrics", SchedulingMetrics, _NOTHING, _NOTHING),
            (
                "SchedulingThroughputPrometheus",
                PrometheusThroughput,
                _NOTHING,
                Takes({}, {"threshold": "number"}),
            ),
            (
                "WindowsResourceUsagePrometheus",
                WindowsResourceUsage,
                _NOTHING,
                Takes({}, {"summaryName": "text"}),
            ),
        )
    },
}
"""What a Prometheus answers; skipped where the run has none."""

METHODS: dict[str, Method] = {
    "APIAvailability": Method(
        APIAvailability,
        {
            "start": Takes({"pollFrequency": "duration"}, {"threshold": "number"}),
            "pause": _NOTHING,
            "unpause": _NOTHING,
            "gather": _NOTHING,
        },
    ),
    "APIResponsivenessPrometheus": Method(
        APIResponsiveness,
        {
            "start": _NOTHING,
            "gather": Takes(
                {},
                {
                    "enableViolations": "boolean",
                    "useSimpleLatencyQuery": "boolean",
                    "summaryName": "text",
                    "allowedSlowCalls": "integer",
                    "customThresholds": "text",
                },
            ),
        },
    ),
    "ChaosMonkey": Method(
        ChaosMonkey, {"start": Takes(further=failure_of), "stop": _NOTHING}, reading(NODES, PODS)
    ),
    "EtcdMetrics": Method(EtcdMetrics, {"start": _ETCD, "gather": _NOTHING}),
    "Exec": Method(Exec, {"": Takes({"command": "texts"}, {"timeout": "duration", "retries": "integer"})}),
    "JobLifecycleLatency": Method(
        JobLifecycleLatency,
        {"start": Takes({}, _SELECT), "gather": Takes({}, {"timeout": "duration"})},
        reading(JOBS),
    ),
    "MetricsForE2E": Method(MetricsForE2E, {"": _E2E}),
    "PodStartupLatency": Method(
        PodStartupLatency,
        {
            "start": Takes(
                {},
                {
                    **_SELECT,
                    "threshold": "duration",
                    "perc50Threshold": "duration",
                    "perc90Threshold": "duration",
                    "perc99Threshold": "duration",
                },
            ),
            "gather": Takes({}, {"schedulerName": "text"}),
        },
        reading(PODS),
    ),
    "ResourceUsageSummary": Method(ResourceUsageSummary, {"start": _USAGE, "gather": _NOTHING}),
    "RestartApiserver": Method(
        RestartApiserver, {"": Takes({}, {"downSeconds": "integer", "readyTimeout": "duration"})}
    ),
    "SchedulingThroughput": Method(
        SchedulingThroughput,
        {
            "start": Takes({}, {**_SELECT, "measurmentInterval": "duration"}),
            "gather": Takes({}, {"threshold": "number", "enableViolations": "boolean"}),
        },
        reading(PODS),
    ),
    "ServiceCreationLatency": Method(
        ServiceCreationLatency,
        {
            "start": Takes({}, {**_SELECT, "waitTimeout": "duration", "checkIngress": "boolean"}),
            "waitForReady": _NOTHING,
            "waitForDeletion": _NOTHING,
            "gather": _NOTHING,
        },
        services_and_ingresses,
    ),
    "Sleep": Method(Sleep, {"": Takes({"duration": "duration"})}),
    "SystemPodMetrics": Method(
        SystemPodMetrics,
        {"start": _NOTHING, "pause": _NOTHING, "unpause": _NOTHING, "gather": _NOTHING},
        reading(PODS),
    ),
    "TestMetrics": Method(
        TestMetrics,
        {
            "start": Takes({}, {**_ETCD.optional, **_USAGE.optional}),
            "pauseSystemPodMetrics": _NOTHING,
            "unpauseSystemPodMetrics": _NOTHING,
            "gather": _E2E,
        },
        reading(PODS),
    ),
    "Timer": Method(
        Timer,
        {"start": Takes({"label": "text"}), "stop": Takes({"label": "text"}), "gather": _NOTHING},
    ),
    "WaitForAvailablePVs": Method(
        WaitForAvailablePVs,
        {"": Takes({"desiredPVCount": "integer", "provisioner": "text"}, {**_SELECT, "timeout": "duration"})},
        reading(VOLUMES),
    ),
    "WaitForBoundPVCs": Method(
        WaitForBoundPVCs,
        {"": Takes({"desiredPVCCount": "integer"}, {**_SELECT, "timeout": "duration"})},
        reading(CLAIMS),
    ),
    "WaitForControlledPodsRunning": Method(
        WaitForControlledPodsRunning,
        {
            "start": Takes(
                {"apiVersion": "text", "kind": "text"},
                {
                    **_SELECT,
                    "operationTimeout": "duration",
                    "checkIfPodsAreUpdated": "boolean",
                    "countErrorMargin": "integer",
                },
            ),
            "gather": Takes({}, {"syncTimeout": "duration"}),
            "stop": _NOTHING,
        },
        controlled,
    ),
    "WaitForFinishedJobs": Method(
        WaitForFinishedJobs,
        {"start": Takes({}, _SELECT), "gather": Takes({}, {"timeout": "duration"})},
        reading(JOBS),
    ),
    "WaitForGenericK8sObjects": Method(
        WaitForGenericK8sObjects,
        {
            "": Takes(
                {
                    "objectGroup": "text",
                    "objectVersion": "text",
                    "objectResource": "text",
                    "minDesiredObjectCount": "integer",
                },
                {
                    "maxFailedObjectCount": "integer",
                    "timeout": "duration",
                    "refreshInterval": "duration",
                    "labelSelector": "text",
                    "successfulConditions": "texts",
                    "failedConditions": "texts",
                },
            )
        },
        lambda params: (object_ref(params),),
    ),
    "WaitForNodes": Method(
        WaitForNodes,
        {
            "": Takes(
                {"minDesiredNodeCount": "integer", "maxDesiredNodeCount": "integer"},
                {**_SELECT, "timeout": "duration", "refreshInterval": "duration"},
            )
        },
        reading(NODES),
    ),
    "WaitForRunningPods": Method(
        WaitForRunningPods,
        {
            "": Takes(
                {"desiredPodCount": "integer"},
                {**_SELECT, "timeout": "duration", "refreshInterval": "duration", "isFatal": "boolean"},
            )
        },
        reading(PODS),
    ),
    **PROMETHEUS,
}
"""What is simulated: the method of a config to what does it."""
