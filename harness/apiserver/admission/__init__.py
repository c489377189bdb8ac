"""What is decided about an object beyond its own rules, before it is written: the plugins that a default server runs.

In order (kk/pkg/kubeapiserver/options/plugins.go): NamespaceLifecycle, NodeRestriction, ServiceAccount,
TaintNodesByCondition, Priority, DefaultTolerationSeconds. Plugins that load tests never meet (LimitRanger without
LimitRanges, PodSecurity in its privileged default, webhooks) are left out. A refusal is a StatusError.
"""

from __future__ import annotations

from harness.apiserver.admission.attributes import Attributes, Operation
from harness.apiserver.admission.chain import Admission

__all__ = ["Admission", "Attributes", "Operation"]
