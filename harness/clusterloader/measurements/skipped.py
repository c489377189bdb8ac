"""Methods of ClusterLoader2 that are skipped here, each with the reason that the run's record gives."""

from __future__ import annotations

_PROMETHEUS = "needs PromQL; a Prometheus that scrapes the members can answer it"
_PODS = "needs containers that really run"
_PROFILES = "needs a component's profiling endpoint"
_NODES = "needs a shell on a node"

SKIPPED: dict[str, str] = {
    "BlockProfile": _PROFILES,
    "CPUProfile": _PROFILES,
    "ChaosMonkey": "stops nodes of a cloud; the fleet's own chaos options stop kubelets",
    "CiliumEndpointPropagationDelay": _PODS,
    "ClusterOOMsTracker": "reads node-problem-detector's events, which no simulated node sends",
    "ContainerRestarts": _PROMETHEUS,
    "DNSPerformanceK8sHostnames": _PODS,
    "DnsLookupLatency": _PODS,
    "DnsPropagation": _PODS,
    "EtcdMetrics": "needs etcd's own /metrics",
    "Exec": "runs a command of the config's on this machine; give it to the shell around the run",
    "GenericPrometheusQuery": _PROMETHEUS,
    "InClusterNetworkLatency": _PODS,
    "InClusterAPIServerRequestLatency": _PODS,
    "KubeStateMetricsLatency": "needs kube-state-metrics",
    "LoadBalancerNodeSyncLatency": "needs a cloud's load balancers",
    "MemoryProfile": _PROFILES,
    "MetricsForE2E": "every member's /metrics is in the run's record as it is",
    "MetricsServerPrometheus": "needs metrics-server",
    "NegLatency": "needs a cloud's network endpoint groups",
    "NetworkPerformanceMetrics": _PODS,
    "NetworkPolicyEnforcement": _PODS,
    "NetworkProgrammingLatency": "needs kube-proxy",
    "NodeHealthTracker": "compares a cloud's node pools",
    "NodeLocalDNSLatencyPrometheus": _PODS,
    "PodPeriodicCommand": _PODS,
    "PrometheusSchedulingMetrics": "needs kube-scheduler's /metrics",
    "ResourceClaimAllocationLatency": "needs a DRA driver",
    "ResourceUsageSummary": f"{_NODES}; what each process of the run costs is in its record",
    "RestartApiserver": "a fault of the pool does it (--fault, docs/faults.md), with its time and member in the record",
    "SLOMeasurement": "its parts, DnsLookupLatency and SchedulingThroughputPrometheus, are not simulated",
    "SchedulingMetrics": "needs kube-scheduler's /metrics",
    "SchedulingThroughputPrometheus": _PROMETHEUS,
    "WindowsResourceUsagePrometheus": _PROMETHEUS,
}
"""By method, why. A method that stands neither here nor among those simulated is ClusterLoader2's no more than ours."""


def reason(method: str) -> str:
    """Why a method is skipped."""
    return SKIPPED.get(method, "no method of ClusterLoader2's that is known here")
