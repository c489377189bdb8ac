"""/metrics of the harness itself, for a Prometheus that watches a run.

What members expose is not repeated: the same Prometheus may scrape them. Latencies are rounded to the upper bounds that
apiservers use for theirs, so that both can be drawn in one panel; the run's record has finer buckets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from gevent import socket
from gevent.pywsgi import WSGIServer
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from harness.load.live.members import MemberFigures
from harness.load.live.view import View
from harness.observe.histogram import bucket_middle_us
from harness.wire.errors import ConfigError

CONTENT_TYPE = CONTENT_TYPE_LATEST
BOUNDS_S = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60),
)
"""apiserver_request_duration_seconds' (as/endpoints/metrics/metrics.go, requestLatencies)."""

_SHOWN: Mapping[str, tuple[str, Callable[[MemberFigures], float | None]]] = {
    "swarmlet_member_up": (
        "Whether the member answered the last scrape.",
        lambda member: None if member.up is None else float(member.up),
    ),
    "swarmlet_member_behind_revisions": (
        "Revisions that the member's newest cache is behind the foremost member's.",
        lambda member: member.behind_revisions,
    ),
    "swarmlet_member_behind_seconds": (
        "Seconds since the foremost member's newest cache was where this member's is.",
        lambda member: member.behind_s,
    ),
    "swarmlet_member_watchlist_fallback_ratio": (
        "LISTs among the LISTs and watch-lists of secrets and configmaps by kubelets.",
        lambda member: member.fallback,
    ),
}


class RunCollector(Collector):
    """A view as metric families; `users` and `workers` are Locust's, of now."""

    def __init__(self, view: View, users: Callable[[], int], workers: Callable[[], int]) -> None:
        self._view = view
        self._users = users
        self._workers = workers

    def collect(self) -> Iterator[Metric]:
        view = self._view
        yield InfoMetricFamily("swarmlet_run", "The run that goes on.", view.run)
        yield GaugeMetricFamily("swarmlet_users", "Users that Locust runs.", self._users())
        yield GaugeMetricFamily("swarmlet_workers", "Worker processes of Locust's master.", self._workers())
        yield CounterMetricFamily(
            "swarmlet_loop_beats", "Beats of the workers' event loops, ten a second.", view.beats
        )
        yield CounterMetricFamily(
            "swarmlet_loop_late_beats", "Of these, more than 20 ms late.", view.late_beats
        )
        yield self._requests()
        yield self._latencies()
        yield from self._samples()
        yield from self._members()
        yield from self._steps()

    def _requests(self) -> Metric:
        family = CounterMetricFamily(
            "swarmlet_requests",
            "Requests of the fleet; code 0 is of those without an answer.",
            labels=["user", "verb", "resource", "code", "member"],
        )
        for (user, verb, name, code, member), count in self._view.requests.items():
            family.add_metric([user, verb, name, str(code), member], count)
        return family

    def _latencies(self) -> Metric:
        family = HistogramMetricFamily(
            "swarmlet_request_duration_seconds",
            "From a request's being handed to its connection to its answer; of a watch, to its opening.",
            labels=["user", "verb", "resource"],
        )
        for labels, counts in self._view.latencies.items():
            family.add_metric(list(labels), *_histogram(counts))
        return family

    def _samples(self) -> Iterator[Metric]:
        labels = ["user", "sample"]
        number = CounterMetricFamily(
            "swarmlet_samples", "What clients measured themselves, by the name in the record.", labels=labels
        )
        times = HistogramMetricFamily("swarmlet_sample_seconds", "Of these the times.", labels=labels)
        for (user, name), counts in self._view.samples.items():
            number.add_metric([user, name], sum(counts.values()))
            if name.endswith("_ms"):
                times.add_metric([user, name.removesuffix("_ms")], *_histogram(counts))
        yield number
        yield times

    def _members(self) -> Iterator[Metric]:
        members = self._view.members.figures()
        for name, (text, value) in _SHOWN.items():
            family = GaugeMetricFamily(name, text, labels=["member"])
            for member in members:
                if (found := value(member)) is not None:
                    family.add_metric([member.member], found)
            yield family
        denials = CounterMetricFamily(
            "swarmlet_member_node_denials", "403s of the node authorizer to kubelets.", labels=["member"]
        )
        for member in members:
            denials.add_metric([member.member], member.denials)
        yield denials

    def _steps(self) -> Iterator[Metric]:
        steps = self._view.steps
        yield GaugeMetricFamily("swarmlet_scenario_step", "Number of the step that began last.", steps.step)
        yield GaugeMetricFamily("swarmlet_scenario_steps", "Steps of the scenario.", len(steps.names))
        done, total = (
            GaugeMetricFamily(f"swarmlet_scenario_objects{suffix}", text, labels=["step", "objects"])
            for suffix, text in (
                ("_done", "Objects that are as the step wants them; of what goes on."),
                ("", "Objects that the step creates, deletes or waits for; of what goes on."),
            )
        )
        for piece in steps.pieces():
            if piece.ended_t is None and piece.done is not None and piece.total is not None:
                done.add_metric([piece.step, piece.what], piece.done)
                total.add_metric([piece.step, piece.what], piece.total)
        yield done
        yield total


def registry_of(view: View, users: Callable[[], int], workers: Callable[[], int]) -> CollectorRegistry:
    """The run's metrics, and those of this process."""
    registry = CollectorRegistry()
    registry.register(RunCollector(view, users, workers))
    ProcessCollector(registry=registry)
    return registry


def render(registry: CollectorRegistry) -> bytes:
    return generate_latest(registry)


class MetricsServer:
    """Answers GET /metrics at `address`, HOST:PORT, from a greenlet of this process. Raises ConfigError."""

    def __init__(self, address: tuple[str, int], registry: CollectorRegistry) -> None:
        self._registry = registry
        self._server = WSGIServer(_listener(address), self._answer, log=None)
        self._server.start()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def stop(self) -> None:
        self._server.stop(timeout=1)

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != "/metrics":
            start("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [b"only /metrics is here\n"]
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start("405 Method Not Allowed", [("Allow", "GET, HEAD")])
            return []
        start("200 OK", [("Content-Type", CONTENT_TYPE)])
        return [render(self._registry)]


def _listener(address: tuple[str, int]) -> socket.socket:
    """gevent's own leaves a socket open where it cannot bind it."""
    host, port = address
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigError(f"--metrics-bind-address {host}:{port}: cannot listen: {error.strerror}") from None
    return listener


def _histogram(counts: Mapping[int, int]) -> tuple[Any, float]:
    """Buckets as the family takes them, cumulated, and the sum in seconds; each value is its bucket's middle."""
    by_bound = [0] * (len(BOUNDS_S) + 1)
    total = 0.0
    for bucket, count in counts.items():
        seconds = bucket_middle_us(bucket) / 1e6
        by_bound[bisect_left(BOUNDS_S, seconds)] += count
        total += seconds * count
    names = [*(f"{bound:g}" for bound in BOUNDS_S), "+Inf"]
    cumulated, sum_ = [], 0
    for name, count in zip(names, by_bound, strict=True):
        sum_ += count
        cumulated.append((name, float(sum_)))
    return cumulated, total
