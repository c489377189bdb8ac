"""Families of flow control. Source (k8s.io/apiserver): pkg/util/flowcontrol/metrics/metrics.go:91-435."""

from __future__ import annotations

from harness.apiserver.metrics.text import Families, counter, gauge, histogram

_SECONDS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
SEAT_BOUNDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
REQUEST_BOUNDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0)
KIND_BOUNDS = (0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
DEMAND_BOUNDS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0)
_FLOW = "priority_level flow_schema"
_LEVEL = "priority_level"


class FlowControlFamilies(Families):
    """What priority levels and flow schemas do with requests."""

    apiserver_flowcontrol_rejected_requests_total = counter(
        "Number of requests rejected by API Priority and Fairness subsystem", f"{_FLOW} reason"
    )
    apiserver_flowcontrol_dispatched_requests_total = counter(
        "Number of requests executed by API Priority and Fairness subsystem", _FLOW
    )
    apiserver_flowcontrol_current_inqueue_requests = gauge(
        "Number of requests currently pending in queues of the API Priority and Fairness subsystem", _FLOW
    )
    apiserver_flowcontrol_current_inqueue_seats = gauge(
        "Number of seats currently pending in queues of the API Priority and Fairness subsystem", _FLOW
    )
    apiserver_flowcontrol_current_executing_requests = gauge(
        "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and "
        "Fairness subsystem",
        _FLOW,
    )
    apiserver_flowcontrol_current_executing_seats = gauge(
        "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage "
        "otherwise) requests in the API Priority and Fairness subsystem",
        _FLOW,
    )
    apiserver_flowcontrol_request_wait_duration_seconds = histogram(
        "Length of time a request spent waiting in its queue", f"{_FLOW} execute", _SECONDS
    )
    apiserver_flowcontrol_request_execution_seconds = histogram(
        "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API "
        "Priority and Fairness subsystem",
        f"{_FLOW} type",
        _SECONDS,
    )
    apiserver_flowcontrol_work_estimated_seats = histogram(
        "Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and "
        "Fairness",
        _FLOW,
        (1, 2, 4, 8, 16, 32, 64, 100),
    )
    apiserver_flowcontrol_watch_count_samples = histogram(
        "count of watchers for mutating requests in API Priority and Fairness",
        _FLOW,
        (0, 1, 10, 100, 1000, 10000),
    )
    apiserver_flowcontrol_request_queue_length_after_enqueue = histogram(
        "Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
        _FLOW,
        (0, 10, 25, 50, 100, 250, 500, 1000),
    )
    apiserver_flowcontrol_request_dispatch_no_accommodation_total = counter(
        "Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats",
        _FLOW,
    )
    apiserver_flowcontrol_nominal_limit_seats = gauge(
        "Nominal number of execution seats configured for each priority level", _LEVEL
    )
    apiserver_flowcontrol_lower_limit_seats = gauge(
        "Configured lower bound on number of execution seats available to each priority level", _LEVEL
    )
    apiserver_flowcontrol_upper_limit_seats = gauge(
        "Configured upper bound on number of execution seats available to each priority level", _LEVEL
    )
    apiserver_flowcontrol_current_limit_seats = gauge(
        "current derived number of execution seats available to each priority level", _LEVEL
    )
    apiserver_flowcontrol_demand_seats_high_watermark = gauge(
        "High watermark, over last adjustment period, of demand_seats", _LEVEL
    )
    apiserver_flowcontrol_demand_seats_average = gauge(
        "Time-weighted average, over last adjustment period, of demand_seats", _LEVEL
    )
    apiserver_flowcontrol_demand_seats_stdev = gauge(
        "Time-weighted standard deviation, over last adjustment period, of demand_seats", _LEVEL
    )
    apiserver_flowcontrol_demand_seats_smoothed = gauge("Smoothed seat demands", _LEVEL)
    apiserver_flowcontrol_target_seats = gauge("Seat allocation targets", _LEVEL)
    apiserver_flowcontrol_seat_fair_frac = gauge(
        "Fair fraction of server's concurrency to allocate to each priority level that can use it"
    )
    apiserver_flowcontrol_current_r = gauge("R(time of last change)", _LEVEL)
    apiserver_flowcontrol_dispatch_r = gauge("R(time of last dispatch)", _LEVEL)
    apiserver_flowcontrol_latest_s = gauge("S(most recently dispatched request)", _LEVEL)
    apiserver_flowcontrol_next_s_bounds = gauge(
        "min and max, over queues, of S(oldest waiting request in queue)", f"{_LEVEL} bound"
    )
    apiserver_flowcontrol_next_discounted_s_bounds = gauge(
        "min and max, over queues, of S(oldest waiting request in queue) - estimated work in progress",
        f"{_LEVEL} bound",
    )
    apiserver_flowcontrol_priority_level_seat_utilization = histogram(
        "Observations, at the end of every nanosecond, of utilization of seats for any stage of execution (but only "
        "initial stage for WATCHes)",
        f"phase {_LEVEL}",
        SEAT_BOUNDS,
    )
    apiserver_flowcontrol_priority_level_request_utilization = histogram(
        "Observations, at the end of every nanosecond, of number of requests (as a fraction of the relevant limit) "
        "waiting or in any stage of execution (but only initial stage for WATCHes)",
        f"phase {_LEVEL}",
        REQUEST_BOUNDS,
    )
    apiserver_flowcontrol_read_vs_write_current_requests = histogram(
        "Observations, at the end of every nanosecond, of the number of requests (as a fraction of the relevant "
        "limit) waiting or in regular stage of execution",
        "phase request_kind",
        KIND_BOUNDS,
    )
    apiserver_flowcontrol_demand_seats = histogram(
        "Observations, at the end of every nanosecond, of (the number of seats each priority level could use) / "
        "(nominal number of seats for that level)",
        _LEVEL,
        DEMAND_BOUNDS,
    )
