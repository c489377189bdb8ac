"""/metrics of the harness, read back by Prometheus' own parser."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any

import gevent
import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.load.live.exposition import BOUNDS_S, MetricsServer, registry_of, render
from harness.load.live.view import View
from harness.observe.histogram import bucket_of
from harness.wire.errors import ConfigError
from tests.conftest import HANG_S

KUBELET = ("kubelet", "get", "secrets", 200, "member-0")


def report(*rows: Any, samples: Any = (), beats: int = 0, late: int = 0) -> dict[str, Any]:
    return {"requests": rows, "samples": samples, "counts": {"loop": {"beats": beats, "late": late}}}


def row(seconds: float, count: int, key: tuple[Any, ...] = KUBELET) -> tuple[Any, ...]:
    return (1.0, *key, bucket_of(seconds * 1e6), count)


@pytest.fixture
def view() -> View:
    return View({"name": "r1", "arm": "HA", "sample": "2", "scenario": "density"})


def exposed(view: View) -> dict[str, dict[tuple[str, ...], float]]:
    """By sample name, values by label values in the order of label names."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(render(registry_of(view, lambda: 20, lambda: 2)).decode()):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_the_run_its_users_and_this_process(view: View) -> None:
    found = exposed(view)
    assert found["swarmlet_run_info"] == {("HA", "r1", "2", "density"): 1.0}
    assert found["swarmlet_users"] == {(): 20.0}
    assert found["swarmlet_workers"] == {(): 2.0}
    assert found["process_resident_memory_bytes"][()] > 1e6


def test_requests_are_counted_on_over_reports_of_all_workers(view: View) -> None:
    view.counted(report(row(0.01, 3), beats=10, late=1))
    view.counted(report(row(0.02, 4), row(0.02, 1, ("kubelet", "get", "secrets", 403, "member-1")), beats=10))
    found = exposed(view)
    assert found["swarmlet_requests_total"] == {  # code, member, resource, user, verb
        ("200", "member-0", "secrets", "kubelet", "get"): 7.0,
        ("403", "member-1", "secrets", "kubelet", "get"): 1.0,
    }
    assert found["swarmlet_loop_beats_total"] == {(): 20.0}
    assert found["swarmlet_loop_late_beats_total"] == {(): 1.0}
    assert found["swarmlet_member_node_denials_total"] == {("member-0",): 0.0, ("member-1",): 1.0}


def test_a_histogram_cumulates_up_to_infinity(view: View) -> None:
    view.counted(report(row(0.001, 2), row(0.3, 3), row(100.0, 1)))
    found = exposed(view)
    buckets = {
        labels[0]: value for labels, value in found["swarmlet_request_duration_seconds_bucket"].items()
    }
    assert (buckets["0.005"], buckets["0.2"], buckets["0.4"], buckets["60"], buckets["+Inf"]) == (
        2,
        2,
        5,
        5,
        6,
    )
    assert len(buckets) == len(BOUNDS_S) + 1
    labels = ("secrets", "kubelet", "get")
    assert found["swarmlet_request_duration_seconds_count"] == {labels: 6}
    assert found["swarmlet_request_duration_seconds_sum"][labels] == pytest.approx(100.902, rel=1 / 64)


def test_samples_that_are_times_are_in_seconds_and_all_are_counted(view: View) -> None:
    view.counted(
        report(
            samples=[
                (1.0, "kubelet", "throttled_ms", "a=b", bucket_of(1.5e6), 2),
                (1.0, "kubelet", "reflector_fallbacks", "", bucket_of(1e3), 5),
            ]
        )
    )
    found = exposed(view)
    assert found["swarmlet_samples_total"] == {
        ("throttled_ms", "kubelet"): 2,
        ("reflector_fallbacks", "kubelet"): 5,
    }
    assert found["swarmlet_sample_seconds_count"] == {("throttled", "kubelet"): 2}
    assert found["swarmlet_sample_seconds_sum"][("throttled", "kubelet")] == pytest.approx(3.0, rel=1 / 32)


def test_members_and_what_they_do_not_tell(view: View) -> None:
    view.scraped(
        {
            "kind": "scraped",
            "t": 10.0,
            "members": {
                "member-0": {"requests": 1, "revision": 9},
                "member-1": {"requests": 1, "revision": 7},
            },
        }
    )
    view.scraped({"kind": "something else"})
    found = exposed(view)
    assert found["swarmlet_member_up"] == {("member-0",): 1.0, ("member-1",): 1.0}
    assert found["swarmlet_member_behind_revisions"] == {("member-0",): 0.0, ("member-1",): 2.0}
    assert "swarmlet_member_watchlist_fallback_ratio" not in found


def test_what_the_scenario_does(view: View) -> None:
    view.steps.happened("scenario-started", {"steps": ["create", "wait"]}, 1.0)
    view.steps.happened("step-started", {"number": 2, "name": "wait"}, 2.0)
    view.steps.happened("progress", {"step": "wait", "what": "pods", "done": 3, "total": 9}, 2.0)
    found = exposed(view)
    assert (found["swarmlet_scenario_step"][()], found["swarmlet_scenario_steps"][()]) == (2, 2)
    assert found["swarmlet_scenario_objects_done"] == {("pods", "wait"): 3}
    assert found["swarmlet_scenario_objects"] == {("pods", "wait"): 9}


# ---- at an address of its own --------------------------------------------------------------------------------------
@pytest.fixture
def server(view: View) -> Iterator[MetricsServer]:
    server = MetricsServer(("127.0.0.1", 0), registry_of(view, lambda: 1, lambda: 0))
    yield server
    server.stop()


def ask(server: MetricsServer, path: str, method: str = "GET") -> tuple[int, str, bytes]:
    def ask() -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_S)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"] or "", answer.read()
        finally:
            connection.close()

    answer: tuple[int, str, bytes] = gevent.get_hub().threadpool.apply(ask)
    return answer


def test_it_serves_metrics_and_nothing_else(server: MetricsServer) -> None:
    status, kind, body = ask(server, "/metrics")
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert b"swarmlet_users 1.0" in body
    assert ask(server, "/")[0] == 404
    assert ask(server, "/metrics", "POST")[0] == 405


def test_an_address_that_is_taken_is_one_clear_line(server: MetricsServer, view: View) -> None:
    with pytest.raises(
        ConfigError, match=rf"--metrics-bind-address 127\.0\.0\.1:{server.port}: cannot listen"
    ):
        MetricsServer(("127.0.0.1", server.port), registry_of(view, lambda: 1, lambda: 0))
