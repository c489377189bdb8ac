"""MetricsForE2E: every series of the apiservers' /metrics at the moment of the call.

Mirrors cl2/pkg/measurement/common/metrics_for_e2e.go and common/metrics/metrics_grabber.go; a sample is written as
Go's prometheus/common has it, its time always 0 (testutil.ParseMetrics decodes without one). Of apiservers nothing is
filtered. Upstream asks one apiserver, whichever answers; here all members are asked, and where there are several each
sample says in a label `member` whose it is. kube-scheduler and kube-controller-manager are asked where their masters
are nodes of the cluster, which no master here is: as upstream then, null.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

import msgspec

METHOD = "MetricsForE2E"


class Scraped(NamedTuple):
    """A value of a member's /metrics; its name is the label `__name__`."""

    member: str
    labels: Mapping[str, str]
    value: float


class Sample(msgspec.Struct, frozen=True):
    """`value` is a time, 0, and the value as text."""

    metric: dict[str, str]
    value: tuple[int, str]


class Collection(msgspec.Struct, frozen=True, rename="pascal"):
    """The file's content; samples by the metric's name."""

    api_server_metrics: dict[str, list[Sample]] = msgspec.field(name="APIServerMetrics")
    controller_manager_metrics: None = None
    kubelet_metrics: dict[str, dict[str, list[Sample]]] = {}
    scheduler_metrics: None = None
    cluster_autoscaler_metrics: None = None


def collect(scraped: Iterable[Scraped]) -> Collection:
    """Of one member or several."""
    found = list(scraped)
    several = len({item.member for item in found}) > 1
    by_name: defaultdict[str, list[Sample]] = defaultdict(list)
    for item in found:
        labels = {**item.labels, "member": item.member} if several else item.labels
        by_name[item.labels["__name__"]].append(
            Sample(dict(sorted(labels.items())), (0, text_of(item.value)))
        )
    return Collection(dict(sorted(by_name.items())))


def text_of(value: float) -> str:
    """As strconv.FormatFloat(value, 'f', -1, 64) has it: no exponent, no more digits than it takes."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
