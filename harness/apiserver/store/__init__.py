"""What stands in for etcd: revisions and history, the model of its times, and how a member reaches it."""
