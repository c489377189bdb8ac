"""The third shell: machines of clients and members of the emulated apiserver in one process, over virtual time.

Here belongs what carries a machine's actions to a member and its answers back without a socket (`world`), members over
one store (`pool`), and what counts what happens on the way. The same seed gives the same result, and hours pass in
seconds, since the clock jumps from one timer to the next. Not here: what a client or a server does (`harness.client`,
`harness.fleet`, `harness.clusterloader`, `harness.apiserver`), records and command lines (`harness.load`).

What is not modelled: connections (a client talks to one member until that is lost or it closes its connections), TLS,
flow-control windows, and the cost of a client's own work. Time passes for a request on its way (`latency_s` each way)
and where the members' models of their host and of etcd say so.
"""
