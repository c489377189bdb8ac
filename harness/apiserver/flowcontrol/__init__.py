"""API Priority and Fairness as kube-apiserver v1.36 does it: who waits, for how long, and who is turned away.

Here: classification of a request, its seats, shuffle-sharded fair queues for each priority level, borrowing between
levels, Retry-After; the configuration as objects of the API (bootstrap ones, how they are kept, how they are followed);
the plain limits that are left without it. Not here: HTTP answers (the member writes them), the cost of executing a
request (the host's). Mirrors k8s.io/apiserver pkg/util/flowcontrol and pkg/server/filters, kubernetes
pkg/registry/flowcontrol/ensurer.
"""

from harness.apiserver.flowcontrol.controller import FlowController
from harness.apiserver.flowcontrol.estimator import Estimator, ObjectCounts, WorkEstimate
from harness.apiserver.flowcontrol.inflight import MaxInFlight, Slot
from harness.apiserver.flowcontrol.ticket import Admission, Rejection, Ticket
from harness.apiserver.flowcontrol.watches import WatchTracker

__all__ = [
    "Admission",
    "Estimator",
    "FlowController",
    "MaxInFlight",
    "ObjectCounts",
    "Rejection",
    "Slot",
    "Ticket",
    "WatchTracker",
    "WorkEstimate",
]
