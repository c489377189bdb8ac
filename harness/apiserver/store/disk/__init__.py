"""The embedded store's data folder: what it has acknowledged outlives its process.

What belongs here: the log and the snapshots on disk, how they are written, how a store is made of them again. What does
not: what the store does with its keys (`store.core`), when a write may be acknowledged (`store.replicated`).

Mirrors etcd (server/storage/wal/wal.go, server/etcdserver/api/snap): proposals are logged before they are applied, and
a restart applies them again, so the log says what was asked and the revisions follow. Where etcd's first torn entry and
its first wrong checksum are told apart (wal.go: decoder.isTornEntry), so they are here: what a crash has cut short was
never acknowledged and is dropped; what has changed since it was written makes the store refuse to start.

    FORMAT                 what wrote the folder, and a number that tells it from others
    LOCK                   held by the process that uses it
    snapshot-<n>           the state after the first n proposals (hexadecimal)
    log-<n>                proposals from the n-th on; the snapshot's and all later ones are needed
"""
