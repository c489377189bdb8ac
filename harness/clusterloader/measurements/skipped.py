"""Methods of ClusterLoader2 that are skipped here, each with the reason that the run's record gives."""

from __future__ import annotations

_PODS = "needs containers that really run"
_PROFILES = "needs a component's profiling endpoint"

SKIPPED: dict[str, str] = {
    "BlockProfile": _PROFILES,
    "CPUProfile": _PROFILES,
    "ClusterOOMsTracker": "reads node-problem-detector's events, which no simulated node sends",
    "DNSPerformanceK8sHostnames": _PODS,
    "DnsLookupLatency": _PODS,
    "DnsPropagation": _PODS,
    "InClusterNetworkLatency": _PODS,
    "InClusterAPIServerRequestLatency": _PODS,
    "KubeStateMetricsLatency": "needs kube-state-metrics",
    "LoadBalancerNodeSyncLatency": "needs a cloud's load balancers",
    "MemoryProfile": _PROFILES,
    "NegLatency": "needs a cloud's network endpoint groups",
    "NetworkPerformanceMetrics": _PODS,
    "NetworkPolicyEnforcement": _PODS,
    "NodeHealthTracker": "compares a cloud's node pools",
    "PodPeriodicCommand": _PODS,
    "ResourceClaimAllocationLatency": "needs a DRA driver",
    "SchedulingMetrics": "reads a kube-scheduler's /metrics: the fleet's scheduler has none, and the run does not "
    "scrape a real one; PrometheusSchedulingMetrics asks a Prometheus that does",
}
"""By method, why. A method that stands neither here nor among those simulated is ClusterLoader2's no more than ours."""


def reason(method: str) -> str:
    """Why a method is skipped."""
    return SKIPPED.get(method, "no method of ClusterLoader2's that is known here")
