"""API Priority and Fairness as kube-apiserver v1.36 does it: who waits, for how long, and who is turned away.

Here: classification of a request, its seats, shuffle-sharded fair queues for each priority level, borrowing between
levels, Retry-After. Not here: HTTP answers (the member writes them), the cost of executing a request (the host's).
Mirrors k8s.io/apiserver pkg/util/flowcontrol; configuration is the bootstrap one and cannot be changed at run time.
"""

from harness.apiserver.flowcontrol.controller import FlowController
from harness.apiserver.flowcontrol.estimator import Estimator, ObjectCounts, WorkEstimate
from harness.apiserver.flowcontrol.ticket import Admission, Rejection, Ticket
from harness.apiserver.flowcontrol.watches import WatchTracker

__all__ = [
    "Admission",
    "Estimator",
    "FlowController",
    "ObjectCounts",
    "Rejection",
    "Ticket",
    "WatchTracker",
    "WorkEstimate",
]
