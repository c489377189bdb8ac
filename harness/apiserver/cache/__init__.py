"""The watch cache of one resource in one member: reads from memory, watches, and what is served from the store instead.

Mirrors k8s.io/apiserver pkg/storage/cacher. Who may ask, and in which form answers go out, is `auth` and `handlers`."""
