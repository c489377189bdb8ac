"""Who each node says it is: impersonated, by a token, or by a client certificate of its own.

Belongs here: making and getting what a node shows. Does not belong here: the run's own credentials
(`harness.transport.kubeconfig`), nor what a transport does with either. A real kubelet has a client certificate with
the name ``system:node:<name>`` and the group ``system:nodes`` (kk/pkg/kubelet/certificate/bootstrap).
"""
