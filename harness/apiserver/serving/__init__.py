"""HTTP/1.1 and HTTP/2 sessions of the emulated apiserver: bytes from a socket into `Exchange`s, answers into bytes.

What belongs here: what Go's net/http and golang.org/x/net/http2 do beneath a kube-apiserver's handlers (framing,
request bodies and their limit, keep-alive, GOAWAY and closing on shutdown, idle connections, back pressure). What does
not: anything that knows a Kubernetes object, and the event loop: `harness.apiserver.process.server` owns the sockets
and gives each session a `Channel`, so that sessions run in tests on scripted bytes and virtual time.
"""
