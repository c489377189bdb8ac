"""Starting, watching and stopping what a run is driven against.

Belongs here: processes of a pool (a store and its members), certificates and kubeconfig made on the spot, what stands
around members (a balancer, links), faults, the target of a run. Does not belong here: what an apiserver answers
(`harness.apiserver`, run as processes), load. A pool is owned by one supervisor process (``swarmlet pool up``), which
ends everything it started when it is told to, when it is signalled, and when its own parent goes away.
"""
