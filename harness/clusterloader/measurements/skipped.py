"""Methods of ClusterLoader2 that are skipped here, each with the reason that the run's record gives."""

from __future__ import annotations

_PODS = "needs containers that really run"
_PROFILES = "needs a component's profiling endpoint"

SKIPPED: dict[str, str] = {
    "BlockProfile": _PROFILES,
    "CPUProfile": _PROFILES,
    "ChaosMonkey": "not done yet: kubelets of the fleet could be stopped where upstream stops a cloud's nodes; --fault "
    "stops apiservers, etcd and the network",
    "ClusterOOMsTracker": "reads node-problem-detector's events, which no simulated node sends",
    "DNSPerformanceK8sHostnames": _PODS,
    "DnsLookupLatency": _PODS,
    "DnsPropagation": _PODS,
    "EtcdMetrics": "not done yet: a real etcd of the pool has its /metrics, which nobody scrapes; the embedded store "
    "has none",
    "InClusterNetworkLatency": _PODS,
    "InClusterAPIServerRequestLatency": _PODS,
    "KubeStateMetricsLatency": "needs kube-state-metrics",
    "LoadBalancerNodeSyncLatency": "needs a cloud's load balancers",
    "MemoryProfile": _PROFILES,
    "MetricsForE2E": "not done yet as a summary of its own; every series of every member's /metrics is in the record",
    "NegLatency": "needs a cloud's network endpoint groups",
    "NetworkPerformanceMetrics": _PODS,
    "NetworkPolicyEnforcement": _PODS,
    "NodeHealthTracker": "compares a cloud's node pools",
    "PodPeriodicCommand": _PODS,
    "ResourceClaimAllocationLatency": "needs a DRA driver",
    "ResourceUsageSummary": "not done yet as a summary of its own; CPU and memory of each process are in the record",
    "SchedulingMetrics": "not done yet where a kube-scheduler runs, whose /metrics it reads; ours has none",
}
"""By method, why. A method that stands neither here nor among those simulated is ClusterLoader2's no more than ours."""


def reason(method: str) -> str:
    """Why a method is skipped."""
    return SKIPPED.get(method, "no method of ClusterLoader2's that is known here")
