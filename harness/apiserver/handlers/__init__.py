"""From a request to its answer, one module a verb: negotiation, options, reading, watching, writing.

Belongs here: what k8s.io/apiserver does in endpoints/handlers (v1.36.2). Not here: who may (authorization), what an
object must look like (strategies), how it is kept (registry, storage). Handlers are coroutines that return an `Answer`
or, for watches, take over the exchange; a refusal is an `ApiError`.
"""
