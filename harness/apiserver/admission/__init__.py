"""What is decided about an object beyond its own rules, before it is written: the plugins that a default server runs.

In order (kk/pkg/kubeapiserver/options/plugins.go): NamespaceLifecycle, NodeRestriction, ServiceAccount,
TaintNodesByCondition, Priority, DefaultTolerationSeconds, StorageObjectInUseProtection, DefaultStorageClass,
PersistentVolumeClaimResize and the three of certificates. Left out are PodSecurity in its privileged default,
LimitRanger and ResourceQuota (their objects are kept and not enforced), DefaultIngressClass, policies and webhooks. A
refusal is a StatusError.
"""

from __future__ import annotations

from harness.apiserver.admission.attributes import Attributes, Operation
from harness.apiserver.admission.chain import Admission

__all__ = ["Admission", "Attributes", "Operation"]
