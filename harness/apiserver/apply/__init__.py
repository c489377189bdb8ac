"""Server-side apply and managedFields: who set which field of an object, and what follows from it.

A pure core: (object, schema of its kind, managedFields, what somebody wants) -> (object, managedFields) or conflicts.
It mirrors sigs.k8s.io/structured-merge-diff v6 (`fieldset`, `encoding`, `walks`, `merging`, `updater`) and
apimachinery's util/managedfields (`managers`, `conflicts`, `fieldmanager`), v1.36.2, for one version of a kind at a
time: all served versions of a group are taken to have the same fields.

Not here: HTTP and the store (`handlers.applying`, `registry`), the structure of kinds (`schema`), what a strategy makes
of a write afterwards.
"""
