"""CiliumEndpointPropagationDelay: which share of endpoint updates reached the agents in time.

Mirrors cl2/pkg/measurement/common/cilium_endpoint_propagation_delay.go: the histogram is looked at every ten minutes,
and each look must hold the SLO.
"""

from __future__ import annotations

from harness.clusterloader.measurements.base import Call, Outcome, Params, Result
from harness.clusterloader.measurements.prometheus import Window
from harness.wire.promql import range_of

METHOD = "CiliumEndpointPropagationDelay"
_QUERY = "sum(sum_over_time(cilium_endpoint_propagation_delay_seconds_bucket[{range}])) by (le)"
_EVERY_S = 600.0
_BUCKET_S, _PERCENT = 600.0, 95.0

Look = dict[str, int]
"""Updates that took at most so long, by bound."""


class CiliumEndpoints:
    def configure(self, params: Params) -> None:
        """Its limits are read when it gathers; what is wrong with them need not wait until then."""
        _limits(params)

    async def gather(self, window: Window, call: Call) -> Outcome:
        looks: dict[str, Look] = {}
        before = at = window.since_s
        while at < window.until_s:
            before, at = at, min(at + _EVERY_S, window.until_s)
            for sample in await window.vector(_QUERY.format(range=range_of(at - before)), at):
                look = looks.setdefault(f"{sample.at_s:.3f}".rstrip("0").rstrip("."), {})
                look[sample.labels.get("le", "")] = round(sample.value)
        result = Result(METHOD, {"looks": len(looks)}, looks)
        if not looks:
            return Outcome((result,), skipped="Prometheus scrapes no Cilium agent")
        return Outcome((result,), _violation(looks, *_limits(call.params)))


def _limits(params: Params) -> tuple[str, float]:
    """The bound of the bucket, as Prometheus writes it, and the percentage; 0 is the default, as upstream."""
    bucket_s = params.number("bucketSLO", _BUCKET_S) or _BUCKET_S
    return f"{bucket_s:g}", params.number("percentileSLO", _PERCENT) or _PERCENT


def _violation(looks: dict[str, Look], bucket: str, least: float) -> str:
    for at, look in looks.items():
        total = look.get("+Inf", 0)
        share = 100 * look.get(bucket, 0) / total if total else 100.0
        if share < least:
            return (
                f"Cilium endpoint propagation delay: {at}: {share:.0f}% of {total} updates within {bucket}s, "
                f"expected {least:.0f}%"
            )
    return ""
