"""What goes over the wire: bytes and values of HTTP and the Kubernetes API. No I/O, no clock, no state but a parser's.

Here belongs what both sides must agree on: requests and answers as values, paths, selectors, Status objects, watch
framing, patches, continue tokens, times, and the HTTP/2 codec. What a client decides is in `harness.client`, what a
server decides in `harness.apiserver`. Behaviour and texts mirror Kubernetes v1.36 and Go's standard library; module
docstrings name the upstream files (``am/`` is k8s.io/apimachinery/pkg, ``as/`` k8s.io/apiserver/pkg, ``cg/``
k8s.io/client-go).
"""
