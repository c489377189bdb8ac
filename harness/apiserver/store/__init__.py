"""What members keep objects in: revisions and history, the model of etcd's times, and how a member reaches them.

`client.Store` is the contract. The embedded store is `core` (keys), `replicated` and `etcd` (the modelled members),
`frames` and `socketclient` (its process's socket), and `disk` (its data folder); `etcd3` is a real etcd. `storage` is
what a member puts on top of either. What keeps caches and answers requests does not belong here.
"""
