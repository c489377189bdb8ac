"""Everything that knows Locust: users, the shape of a run, custom arguments, what workers tell their master.

Belongs here: the gevent shell that runs the pure machines of `harness.fleet` and `harness.clusterloader` over
`harness.transport`, and the session that starts and ends what a run needs. Does not belong here: what a kubelet does,
what a scenario means. No other package imports locust. ``locustfiles/`` are the way in.
"""
