"""What lives on or beside a Kubernetes control plane, as pure machines: the kubelet, kube-proxy, the scheduler,
the controllers.

Here belongs what such a client *decides*: which requests it sends, when, in which order, and what it makes of the
answers. Everything is built on `harness.client` (reflectors, backoff) and imports no gevent, asyncio, socket or clock;
a shell runs the machines. Who a request comes from (user, groups, User-Agent, certificates) is the transport's matter,
and client-side rate limits and retries are `harness.client.rest`'s: each machine only names the client that a request
passes (`Request.client`), and `kubelet_limiters` and its like say what its buckets hold.

Mirrored: Kubernetes v1.36.2, pkg/kubelet, pkg/scheduler, and in `controllers` pkg/controller.
Where a module follows one file it names it. What a kubelet does without asking the API server is left out:
no pulls, no cgroups, no probes; a container "starts" after a drawn delay and runs for as long as its command says. Not
mirrored either: dynamic resource allocation, static pods, eviction. docs/kubelet-fidelity.md says how true it all is.
"""
