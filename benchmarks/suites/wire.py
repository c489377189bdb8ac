"""The rest of harness.wire: what every request, event and patch passes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import calls, cpu_us
from benchmarks.objects import encode, running_status, stored_pod
from benchmarks.registry import Line, Plan, benchmark
from harness.wire.patch import apply_patch
from harness.wire.paths import parse_path
from harness.wire.request import STRATEGIC_MERGE_PATCH
from harness.wire.selectors import parse_fields, parse_labels
from harness.wire.status import forbidden
from harness.wire.watching import WatchDecoder, encode_event

_WATCH = (
    "/api/v1/namespaces/default/secrets?allowWatchBookmarks=true&fieldSelector=metadata.name%3Ds17&"
    "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=1832&watch=true"
)


@benchmark("wire/paths")
def paths(plan: Plan) -> Iterator[Line]:
    patch = "/api/v1/namespaces/default/pods/p1/status"
    yield Line("wire/paths/pod status", "us", cpu_us(plan, 20_000, calls(lambda: parse_path(patch, "PATCH"))))
    yield Line("wire/paths/watch-list of one", "us", cpu_us(plan, 10_000, calls(lambda: parse_path(_WATCH))))


@benchmark("wire/selectors")
def selectors(plan: Plan) -> Iterator[Line]:
    labels, fields = parse_labels("app in (x,y),group=load,!gone"), parse_fields("spec.nodeName=n1")
    carried = {"app": "x", "group": "load"}
    held = {"metadata.name": "p1", "spec.nodeName": "n1"}
    match = cpu_us(plan, 50_000, calls(lambda: labels.match(carried)))
    yield Line("wire/selectors/3 labels", "us", match)
    yield Line("wire/selectors/1 field", "us", cpu_us(plan, 50_000, calls(lambda: fields.match(held))))


@benchmark("wire/watching")
def watching(plan: Plan) -> Iterator[Line]:
    """Events of a 2 KB pod."""
    body = encode(stored_pod("p1", "n1"))
    line = encode_event("MODIFIED", body)
    feed = WatchDecoder().feed
    yield Line("wire/watching/decode one a read", "us", cpu_us(plan, 30_000, calls(lambda: feed(line))))
    many = line * 8
    eight = cpu_us(plan, 5000, calls(lambda: feed(many)))
    yield Line("wire/watching/decode 8 a read", "us", [value / 8 for value in eight])
    encoded = cpu_us(plan, 50_000, calls(lambda: encode_event("MODIFIED", body)))
    yield Line("wire/watching/encode", "us", encoded)


@benchmark("wire/patch")
def patch(plan: Plan) -> Iterator[Line]:
    """A strategic patch that reports a pod as running."""
    held, body = stored_pod("p1", "n1"), encode(running_status())
    applied = cpu_us(plan, 3000, calls(lambda: apply_patch(STRATEGIC_MERGE_PATCH, held, body, "Pod")))
    yield Line("wire/patch/pod status", "us", applied)


@benchmark("wire/status")
def status(plan: Plan) -> Iterator[Line]:
    def body() -> None:
        forbidden("", "secrets", "s1", 'User "system:node:n1" cannot get resource "secrets"').body()

    yield Line("wire/status/403 body", "us", cpu_us(plan, 20_000, calls(body)))
