"""A real etcd behind the `Store` contract.

What belongs here: etcd's messages, gRPC on our HTTP/2 codec, the store that speaks them, compaction and leases as an
apiserver does them. What does not: starting etcd (`harness.pool.etcd`), metrics and modelled costs (`store.storage`).

Mirrors k8s.io/apiserver v1.36 pkg/storage/etcd3 (store.go, watcher.go, compact.go, lease_manager.go) and what it uses
of go.etcd.io/etcd/client/v3. Keys and values stand in etcd as the embedded store has them: under /registry/, JSON
objects without metadata.resourceVersion.
"""
