"""Links: TCP proxies of ours between two parts of a pool, which can be made slow, narrow, lossy, or cut.

Belongs here: where a link may be (`places`), when bytes that came in go out (`shaping`, pure), the sockets (`proxy`) in
a process of their own (`process`), and what the pool knows of that (`links`). Does not belong here: what is said over
a link; nothing is read of it.

It stands in for tc-netem(8), which needs root and a network namespace. The figures are meant as netem's: latency and
jitter each way, a rate that all connections of a link share. A proxy ends TCP connections, so there is no packet that
could be lost: a lost segment is what TCP would make of it, a wait for the retransmission (RFC 6298) of that connection.
"""
