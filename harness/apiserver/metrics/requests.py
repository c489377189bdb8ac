"""Families of requests, watches and identity. Names, labels, help and buckets as kube-apiserver v1.36 has them.

Sources (k8s.io/apiserver): pkg/endpoints/metrics/metrics.go:62-294, pkg/endpoints/filters/metrics.go:51-98,
pkg/endpoints/filters/impersonation/metrics/metrics.go:33-78, pkg/authorization/metrics/metrics.go:34-44;
plugin/pkg/auth/authorizer/node/metrics.go:28-38.
"""

from __future__ import annotations

from harness.apiserver.metrics.text import Families, counter, exponential, gauge, histogram

REQUEST_SECONDS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5),
    *(2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
AUTH_SECONDS = exponential(0.001, 2, 15)
_TARGET = "group version resource subresource scope component"


class RequestFamilies(Families):
    """What each request and each watch leaves behind."""

    apiserver_request_total = counter(
        "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, "
        "component, and HTTP response code.",
        f"verb dry_run {_TARGET} code",
    )
    apiserver_request_duration_seconds = histogram(
        "Response latency distribution in seconds for each verb, dry run value, group, version, resource, "
        "subresource, scope and component.",
        f"verb dry_run {_TARGET}",
        REQUEST_SECONDS,
    )
    apiserver_request_sli_duration_seconds = histogram(
        "Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in "
        "seconds for each verb, group, version, resource, subresource, scope and component.",
        f"verb {_TARGET}",
        REQUEST_SECONDS[2:],
    )
    apiserver_response_sizes = histogram(
        "Response size distribution in bytes for each group, version, verb, resource, subresource, scope and "
        "component.",
        f"verb {_TARGET}",
        exponential(1000, 10, 7),
    )
    apiserver_longrunning_requests = gauge(
        "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and "
        "component. Not all requests are tracked this way.",
        f"verb {_TARGET}",
    )
    apiserver_watch_events_total = counter("Number of events sent in watch clients", "group version resource")
    apiserver_watch_events_sizes = histogram(
        "Watch event size distribution in bytes", "group version resource", exponential(1024, 2, 8)
    )
    apiserver_watch_list_duration_seconds = histogram(
        "Response latency distribution in seconds for watch list requests broken by group, version, resource and "
        "scope.",
        "group version resource scope",
        (*REQUEST_SECONDS[2:], 90.0, 120.0, 180.0, 300.0),
    )
    apiserver_current_inflight_requests = gauge(
        "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
        "request_kind",
    )
    apiserver_current_inqueue_requests = gauge(
        "Maximal number of queued requests in this apiserver per request kind in last second.", "request_kind"
    )
    apiserver_request_terminations_total = counter(
        "Number of requests which apiserver terminated in self-defense.", f"verb {_TARGET} code"
    )
    apiserver_request_aborts_total = counter(
        "Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, "
        "resource, subresource and scope",
        "verb group version resource subresource scope",
    )
    apiserver_tls_handshake_errors_total = counter(
        "Number of requests dropped with 'TLS handshake error from' error"
    )
    apiserver_request_filter_duration_seconds = histogram(
        "Request filter latency distribution in seconds, for each filter type",
        "filter",
        (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0),
    )


class IdentityFamilies(Families):
    """Who asked, and what was decided. Denials are "no-opinion" upstream, hence the counter of our own."""

    authenticated_user_requests = counter(
        "Counter of authenticated requests broken out by username.", "username"
    )
    authentication_attempts = counter("Counter of authenticated attempts.", "result")
    authentication_duration_seconds = histogram(
        "Authentication duration in seconds broken out by result.", "result", AUTH_SECONDS
    )
    authorization_attempts_total = counter(
        "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' "
        "or 'error'.",
        "result",
    )
    authorization_duration_seconds = histogram(
        "Authorization duration in seconds broken out by result.", "result", AUTH_SECONDS
    )
    apiserver_authorization_decisions_total = counter(
        "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
        "type name decision",
    )
    apiserver_impersonation_attempts_total = counter(
        "Total number of impersonation attempts split by mode and decision.", "mode decision"
    )
    apiserver_impersonation_authorization_attempts_total = counter(
        "Total number of authorization checks made by the impersonation handler split by mode and decision.",
        "mode decision",
    )
    node_authorizer_graph_actions_duration_seconds = histogram(
        "Histogram of duration of graph actions in node authorizer.", "operation", exponential(0.0001, 2, 12)
    )
    swarmlet_authorizer_denials_total = counter(
        "Requests that an authorizer would not allow, by its reason (one of a fixed list, without names).",
        "authorizer resource verb reason",
    )
    swarmlet_node_authorizer_staleness_revisions = gauge(
        "Revisions by which the node authorizer's graph is behind the member's own replica of the store."
    )
    swarmlet_node_authorizer_staleness_seconds = gauge(
        "Age of the oldest change in the member's caches that the node authorizer's graph does not have."
    )
    swarmlet_node_authorizer_misses_total = counter(
        "Requests of nodes that the graph did not know to be concerned, by what is done then and what came of it.",
        "mode outcome",
    )
    swarmlet_node_authorizer_miss_staleness_revisions = histogram(
        "Staleness of the graph in revisions, at each miss.",
        "",
        (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000),
    )
    swarmlet_node_authorizer_miss_staleness_seconds = histogram(
        "Staleness of the graph in seconds, at each miss.",
        "",
        (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    )
    swarmlet_node_authorizer_miss_wait_seconds = histogram(
        "How long misses waited for the graph, the read of the store's revision included.",
        "",
        (0.001, 0.003, 0.01, 0.03, 0.05, 0.1, 0.3, 1.0),
    )
