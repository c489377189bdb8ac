"""What a run needs in a Kubernetes cluster, as manifests: ``swarmlet manifests``.

Belongs here: what was asked for and is refused (`options`, `files`), the Jinja templates (`templates`), their filling
in (`render`, `yamltext`), which rights options and locustfile ask for (`rights`), which requests have a priority level
of their own (`flow`). Does not belong here: what a fleet takes (`harness.sizing`), what a run may do
(`harness.load.cluster.permissions`), and applying anything: that is kubectl's. The objects are of Kubernetes' API
v1.36; ``LocustTest`` is locust.io/v1 of locustio/k8s-operator 0.1.6.
"""
