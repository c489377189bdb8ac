"""One priority level at work: its share of the server's seats, what it wanted lately, its queues.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/apf_controller.go:857-893 (limits), 255-275 (smoothed demand).
"""

from __future__ import annotations

import math

from harness.apiserver.flowcontrol.config import PriorityLevel, Response
from harness.apiserver.flowcontrol.demand import SMOOTHING
from harness.apiserver.flowcontrol.queueset import QueueSet
from harness.apiserver.flowcontrol.utilization import LevelUtilization

MAX_SEATS_SHARE = 0.15  # of a level's nominal seats, for one request


class Level:
    """Seats: `nominal` by shares, `least` not lent, `most` with all that it may borrow; `max_seats` is what one request
    may ask for, 0 where the level does not say. `quiescing`: it is to go once nothing is in it."""

    def __init__(self, config: PriorityLevel) -> None:
        self.config = config
        self.nominal = self.least = self.most = self.initial = self.max_seats = 0
        self.average = self.deviation = self.smoothed = 0.0
        self.high_watermark = 0
        self.quiescing = False
        self.queues: QueueSet
        self.utilization: LevelUtilization

    @property
    def exempt(self) -> bool:
        return self.config.response is Response.EXEMPT

    def size(self, server_seats: int, share_sum: int) -> None:
        """Take its part of the server. Rounded up: together levels have a little more than there is."""
        config = self.config
        self.nominal = math.ceil(server_seats * config.shares / share_sum) if share_sum else 0
        lendable = go_round(self.nominal * config.lendable_percent / 100)
        percent = config.borrowing_percent
        borrowable = server_seats if percent is None else go_round(self.nominal * percent / 100)
        self.least = self.nominal - lendable
        self.most = self.nominal + borrowable
        self.initial = self.nominal - lendable // 2
        if config.response is Response.QUEUE:
            capped = min(math.ceil(self.nominal * MAX_SEATS_SHARE), self.nominal // max(1, config.hand_size))
            self.max_seats = max(1, capped)

    def take_demand(self) -> None:
        """See what was wanted since the last time."""
        demand = self.utilization.take_demand()
        self.high_watermark = go_round(demand.maximum)
        if demand.duration_s > 0:
            self.average, self.deviation = demand.average, demand.deviation
            envelope = demand.average + demand.deviation
            self.smoothed = max(envelope, SMOOTHING * self.smoothed + (1 - SMOOTHING) * envelope)


def go_round(value: float) -> int:
    """Halves away from zero, as math.Round in Go."""
    return math.floor(value + 0.5)
