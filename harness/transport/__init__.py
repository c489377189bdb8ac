"""Connections of simulated nodes to apiservers, on gevent: dialling, TLS, HTTP/2, HTTP/1.1, endpoints, kubeconfigs.

What belongs here: sockets, timers, the choice of a connection for a request, credentials of a target. What does not:
frames and bytes of a protocol (`harness.wire`), retries by Retry-After, backoff and rate limits (`harness.client`),
statistics of requests (`harness.load`).

Theory of operation
-------------------
A worker process has one `Timers`, which owns one `Dispatcher`: a single greenlet in which everything that is not
dialling happens, for all connections of the process. Readable sockets and due timers are queued by the event loop and
handled there one after another, so callbacks of a `Sink` never run in the hub and never concurrently. What they send
on a connection is written once, when the queued item that caused it is done: no write interleaves with another and
requests sent together leave in one system call. Measured against a reader greenlet for each connection, an event
costs a fifth less where several sockets are readable at once and about the same where one is, and a connection is
8 KB smaller: 15.5 KB with 35 streams, 34.5 KB with TLS.

A simulated node has one `Transport`. As in Go, a request goes to the first connection that can take it; where none
can, one is dialled. The transport works the same with and without monkey patching: it uses `_socket` and the loop
directly.

Upstream behaviour mirrored: client-go v1.36 (transport/cache.go ``tlsTransportCache.get``: dial 30 s, TLS handshake
10 s, 25 idle HTTP/1.1 connections a host), apimachinery v1.36 (pkg/util/net/http.go ``readIdleTimeoutSeconds``,
``pingTimeoutSeconds``: 30 s and 15 s) and golang.org/x/net/http2 transport.go (``RoundTripOpt``, ``canRetryError``,
``healthCheck``, ``setGoAway``).
"""
