"""Families of the watch cache and of etcd as the apiserver sees it.

Sources (k8s.io/apiserver): pkg/storage/cacher/metrics/metrics.go:76-278, pkg/storage/etcd3/metrics/metrics.go:44-155.
Names without a prefix (`watch_cache_capacity`) are upstream's own.
"""

from __future__ import annotations

from harness.apiserver.metrics.requests import REQUEST_SECONDS
from harness.apiserver.metrics.text import Families, counter, gauge, histogram

_KIND = "group resource"


class CacheFamilies(Families):
    """What each resource's watch cache does."""

    apiserver_cache_list_total = counter(
        "Number of LIST requests served from watch cache", "group resource index"
    )
    apiserver_cache_list_fetched_objects_total = counter(
        "Number of objects read from watch cache in the course of serving a LIST request",
        "group resource index",
    )
    apiserver_cache_list_returned_objects_total = counter(
        "Number of objects returned for a LIST request from watch cache", _KIND
    )
    apiserver_init_events_total = counter(
        "Counter of init events processed in watch cache broken by resource type.", _KIND
    )
    apiserver_watch_cache_events_received_total = counter(
        "Counter of events received in watch cache broken by resource type.", _KIND
    )
    apiserver_watch_cache_events_dispatched_total = counter(
        "Counter of events dispatched in watch cache broken by resource type.", _KIND
    )
    apiserver_terminated_watchers_total = counter(
        "Counter of watchers closed due to unresponsiveness broken by resource type.", _KIND
    )
    apiserver_watch_cache_resource_version = gauge(
        "Current resource version of watch cache broken by resource type. This is truncated to the 15 least "
        "significant digits.",
        _KIND,
    )
    watch_cache_capacity = gauge("Total capacity of watch cache broken by resource type.", _KIND)
    watch_cache_capacity_increase_total = counter(
        "Total number of watch cache capacity increase events broken by resource type.", _KIND
    )
    watch_cache_capacity_decrease_total = counter(
        "Total number of watch cache capacity decrease events broken by resource type.", _KIND
    )
    apiserver_watch_cache_initializations_total = counter(
        "Counter of watch cache initializations broken by resource type.", _KIND
    )
    apiserver_watch_cache_read_wait_seconds = histogram(
        "Histogram of time spent waiting for a watch cache to become fresh.",
        _KIND,
        (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0),
    )
    apiserver_watch_cache_consistent_read_total = counter(
        "Counter for consistent reads from cache.", "group resource success fallback"
    )
    apiserver_storage_consistency_checks_total = counter(
        "Counter for status of consistency checks between etcd and watch cache", "group resource status"
    )
    swarmlet_watch_cache_snapshots = gauge("Past states that can be listed from the watch cache.", _KIND)
    swarmlet_watch_cache_snapshot_bytes = gauge(
        "Memory that a real server's snapshots of the watch cache would hold beside it (modelled).", _KIND
    )


class StorageFamilies(Families):
    """What goes to etcd and what lies there."""

    etcd_request_duration_seconds = histogram(
        "Etcd request latency in seconds for each operation and object type.",
        "operation group resource",
        REQUEST_SECONDS,
    )
    etcd_requests_total = counter(
        "Etcd request counts for each operation and object type.", "operation group resource"
    )
    etcd_request_errors_total = counter(
        "Etcd failed request counts for each operation and object type.", "operation group resource"
    )
    etcd_bookmark_total = counter("Number of etcd bookmarks (progress notify events) split by kind.", _KIND)
    apiserver_storage_events_received_total = counter("Number of etcd events received split by kind.", _KIND)
    apiserver_storage_list_total = counter("Number of LIST requests served from storage", _KIND)
    apiserver_storage_list_fetched_objects_total = counter(
        "Number of objects read from storage in the course of serving a LIST request", _KIND
    )
    apiserver_storage_list_evaluated_objects_total = counter(
        "Number of objects tested in the course of serving a LIST request from storage", _KIND
    )
    apiserver_storage_list_returned_objects_total = counter(
        "Number of objects returned for a LIST request from storage", _KIND
    )
    apiserver_storage_objects = gauge(
        "[DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last "
        "check split by kind. In case of a fetching error, the value will be -1.",
        "resource",
    )
    apiserver_resource_objects = gauge(
        "Number of stored objects at the time of last check split by kind. In case of a fetching error, the value "
        "will be -1.",
        _KIND,
    )
    apiserver_resource_size_estimate_bytes = gauge(
        "Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of serialized "
        "objects. In case of a fetching error, the value will be -1.",
        _KIND,
    )
    apiserver_storage_size_bytes = gauge(
        "Size of the storage database file physically allocated in bytes.", "storage_cluster_id"
    )
