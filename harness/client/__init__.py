"""What client-go does, as pure machines: events and the time go in, actions come out (`harness.client.machine`).

Here belong request preparation, the reflector and its store, the rate limiter, retries and backoff, mirrored from
client-go v0.36 (``cg/`` in the modules). No sockets, no clock, no random source of its own: `harness.transport` and a
shell carry the actions out. What a kubelet or another client uses these for is in `harness.fleet`.
"""
