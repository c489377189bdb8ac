"""Who stresses watch caches: crowds of informers, clients that LIST, a writer that churns beside them, and the checker
that knows what each informer was told.

Here belong the pure machines (`informer`, `lister`, `writer`, `auditor`), what they can be told (`options`, `listmix`),
and the checker (`checker`, `views`, `reference`, `pages`), which is fed by the informers and listers of its process.
Not here: how options are read and users are spawned (`harness.load`), and the controllers' own shared informers
(`harness.fleet.controllers.informers`).

An informer here is `harness.client.reflector`, as client-go's (cg/tools/cache/reflector.go, v1.36); what LISTs ask for
follows as/storage/cacher/delegator/interface.go. The checker mirrors no upstream part; the nearest thing there is the
consistency check of the watch cache (as/storage/cacher/compare.go), which looks at the server from within.
"""
