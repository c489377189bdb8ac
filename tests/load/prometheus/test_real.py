"""The SLO of API calls by a real Prometheus, where one is there: the same histories, told to it and computed by us."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from harness.clusterloader import slo
from harness.clusterloader.measurements import sloqueries
from harness.load.prometheus.access import access_of
from harness.load.prometheus.api import PrometheusApi
from harness.observe.scraper import Source
from harness.pool.prometheus import PrometheusServer, find_prometheus
from harness.wire.promql import VectorSample, range_of, read_vector
from tests.clusterloader.histories import SINCE_S, UNTIL_S, histories, open_metrics


def find_promtool() -> str:
    """Beside the binary, or on PATH; "" where there is none."""
    beside = Path(find_prometheus() or "/nowhere/prometheus").with_name("promtool")
    return str(beside) if beside.exists() else shutil.which("promtool") or ""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (find_prometheus() and find_promtool()), reason="there is no prometheus binary, or no promtool"
    ),
]


class Asked:
    """A window of what a real one was told."""

    def __init__(self, api: PrometheusApi, epoch_s: float) -> None:
        self._api = api
        self.since_s, self.until_s = epoch_s + SINCE_S, epoch_s + UNTIL_S
        self.range = range_of(self.until_s - self.since_s)

    async def vector(self, expression: str, at_s: float | None = None) -> list[VectorSample]:
        answer = self._api.query(expression, self.until_s)
        return read_vector(answer.status, answer.body)


def test_upstreams_queries_and_our_own_computation_agree(tmp_path: Path) -> None:
    epoch_s = float(int(time.time()) - 3600)
    (tmp_path / "histories.om").write_text(open_metrics(epoch_s))
    told = [find_promtool(), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run(
        [*told, str(tmp_path / "histories.om"), str(tmp_path / "data")],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    nobody = Source("member-0", "http://127.0.0.1:1")
    server = PrometheusServer(find_prometheus(), (nobody,), tmp_path, tmp_path, tmp_path / "log")
    try:
        server.start()
        api = PrometheusApi(server.url, access_of(server.url))
        assert api.check()
        assert api.parse_error("sum(") != ""
        assert api.parse_error("sum(up)") == ""
        coroutine = sloqueries.latencies(Asked(api, epoch_s), simple=True)  # type: ignore[arg-type]
        with pytest.raises(StopIteration) as ended:
            coroutine.send(None)
    finally:
        server.stop()
    theirs: list[slo.Latency] = ended.value.value
    series = [item for items in histories(epoch_s).values() for item in items]
    ours = {item.call: item for item in slo.latencies(series, epoch_s + SINCE_S, epoch_s + UNTIL_S)}
    assert [item.call for item in theirs] == list(ours)
    for item in theirs:
        assert item.calls == pytest.approx(ours[item.call].calls, rel=0.01), item
        assert item.slow == pytest.approx(ours[item.call].slow, rel=0.01), item
        assert item[1:4] == pytest.approx(ours[item.call][1:4], rel=0.001), item
