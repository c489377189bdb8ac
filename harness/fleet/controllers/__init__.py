"""The controllers of kube-controller-manager, for targets that run none.

Here belongs what a controller of pkg/controller decides: what it reads from its informers, which writes it sends, in
which order, and when it tries again. Not here: nodes' own behaviour (`harness.fleet`), what the API server does by
itself (defaults, finalizers that admission adds), and connections: each controller names the client that its requests
pass (`Request.client` is the name of its service account), as kube-controller-manager does with
``--use-service-account-credentials``.

Mirrored: Kubernetes v1.36.2, pkg/controller and client-go's workqueue; a module names the folder it follows. How the
parts fit together is `manager`'s docstring; what differs from upstream is listed in docs/controllers.md.
"""
