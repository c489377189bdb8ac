"""What each kind's objects look like when they are stored: defaults, validation, what an update may change.

One module for each family of kinds; a `Strategy` is what upstream calls a RESTStrategy together with the defaulting
functions of the versioned type (kk/pkg/registry/*/strategy.go, kk/pkg/apis/*/v1/defaults.go, v1.36.2). Everything here
works on decoded JSON in place and knows neither the store nor requests; a kind without a module of its own gets the
plain `Strategy`.
"""

from __future__ import annotations

from harness.apiserver.resources import Resource
from harness.apiserver.strategies.base import Context, Strategy
from harness.apiserver.strategies.core import (
    ConfigMapStrategy,
    EventStrategy,
    NamespaceStrategy,
    NodeStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from harness.apiserver.strategies.pod import PodStrategy
from harness.apiserver.strategies.service import ServiceStrategy
from harness.apiserver.strategies.storage import (
    CSIDriverStrategy,
    CSINodeStrategy,
    LeaseStrategy,
    RuntimeClassStrategy,
)

_BY_RESOURCE: dict[str, type[Strategy]] = {
    "configmaps": ConfigMapStrategy,
    "events": EventStrategy,
    "namespaces": NamespaceStrategy,
    "nodes": NodeStrategy,
    "pods": PodStrategy,
    "secrets": SecretStrategy,
    "serviceaccounts": ServiceAccountStrategy,
    "services": ServiceStrategy,
    "leases.coordination.k8s.io": LeaseStrategy,
    "csinodes.storage.k8s.io": CSINodeStrategy,
    "csidrivers.storage.k8s.io": CSIDriverStrategy,
    "runtimeclasses.node.k8s.io": RuntimeClassStrategy,
}


def strategy_for(resource: Resource) -> Strategy:
    return _BY_RESOURCE.get(resource.group_resource, Strategy)(resource)


__all__ = ["Context", "Strategy", "strategy_for"]
