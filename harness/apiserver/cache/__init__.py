"""The watch cache of one resource in one member: reads from memory, watches, and what is served from the store instead.

Mirrors k8s.io/apiserver pkg/storage/cacher, v1.36. `delegator` decides where a list is served from; `cacher` serves
reads and watches out of `watchcache` (now), `history` (events) and `snapshots` (past states); `dispatch` brings events
to `watchers`; `uncached` reads the store; `consistency` and `upkeep` check the one against the other. Who may ask, and
in which form answers go out, is `auth` and `handlers`."""
