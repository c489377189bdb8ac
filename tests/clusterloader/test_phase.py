"""What a phase does to its objects, and when."""

from __future__ import annotations

import pytest

from harness.client.rest import Rest
from harness.wire import status
from harness.wire.paths import RequestInfo
from harness.wire.request import Failure, Request, Response, TransportError
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import FakeCluster, refusal

SETS = """\
name: phases
namespace: {number: 2, prefix: ns}
tuningSets:
- {name: ten, qpsLoad: {qps: 10}}
- {name: five, globalQPSLoad: {qps: 5, burst: 2}}
- {name: fast, globalQPSLoad: {qps: 1000, burst: 1000}}
- {name: two, parallelismLimitedLoad: {parallelismLimit: 2}}
- {name: hurried, qpsLoad: {qps: 1000}}
- {name: spread, randomizedTimeLimitedLoad: {timeLimit: 10s}}
steps:
"""


def phase(
    replicas: int, tuning_set: str = "ten", namespaces: int = 1, bundle: str = "", step: str = ""
) -> str:
    bundle = bundle or "{basename: map, objectTemplatePath: configmap.yaml}"
    head = f"- name: {step or 'step'}\n  phases:\n" if step is not None else ""
    return f"""{head}  - namespaceRange: {{min: 1, max: {namespaces}}}
    replicasPerNamespace: {replicas}
    tuningSet: {tuning_set}
    objectBundle: [{bundle}]
"""


def changes(cluster: FakeCluster, resource: str = "configmaps") -> list[str]:
    """The writes to a resource, as ``create map-0``."""
    found = []
    for _, request, info in cluster.requests:
        if info.resource == resource and request.verb in ("create", "patch", "delete"):
            name = info.name or request.body.decode().partition('"name":"')[2].partition('"')[0]
            found.append(f"{request.verb} {name}")
    return found


def test_more_replicas_are_created_fewer_deleted_from_the_tail_equal_patched(write: Write) -> None:
    color = "{basename: map, objectTemplatePath: configmap.yaml, templateFillMap: {Color: red}}"
    config = write(SETS + phase(2) + phase(4) + phase(4, bundle=color) + phase(1) + phase(0))
    cluster = FakeCluster()
    assert cluster.run(loader(config)).failures == ()  # type: ignore[union-attr]
    assert changes(cluster) == [
        *("create map-0", "create map-1"),
        *("create map-2", "create map-3"),
        *("patch map-0", "patch map-1", "patch map-2", "patch map-3"),
        *("delete map-1", "delete map-2", "delete map-3"),
        "delete map-0",
    ]
    patches = [request.body for _, request, _ in cluster.requests if request.verb == "patch"]
    assert set(patches) == {b'{"data":{"color":"red"}}'}


def test_deletions_go_to_the_background(write: Write) -> None:
    cluster = FakeCluster()
    cluster.run(loader(write(SETS + phase(1) + phase(0))))
    bodies = [
        request.body
        for _, request, info in cluster.requests
        if request.verb == "delete" and info.name == "map-0"
    ]
    assert bodies == [b'{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}']


def test_a_bundle_is_made_in_order_and_deleted_in_reverse(write: Write) -> None:
    bundle = (
        "{basename: a, objectTemplatePath: configmap.yaml}, {basename: b, objectTemplatePath: configmap.yaml}"
    )
    cluster = FakeCluster()
    cluster.run(loader(write(SETS + phase(2, bundle=bundle) + phase(1, bundle=bundle))))
    assert changes(cluster) == [
        "create a-0",
        "create b-0",
        "create a-1",
        "create b-1",
        "delete b-1",
        "delete a-1",
    ]


def test_a_bundle_whose_objects_differ_in_number_is_refused(write: Write) -> None:
    both = "{basename: map, objectTemplatePath: configmap.yaml}, {basename: b, objectTemplatePath: configmap.yaml}"
    cluster = FakeCluster()
    finished = cluster.run(loader(write(SETS + phase(2) + phase(3, bundle=both))))
    assert finished is not None
    assert finished.failures == ("[step: 02] step: bundle error: b has 0 replicas while map has 2",)


def test_every_namespace_is_filled_and_state_is_kept_for_each(write: Write) -> None:
    cluster = FakeCluster()
    config = write(SETS + phase(1, namespaces=1) + phase(2, "hurried", namespaces=2))
    cluster.run(loader(config))
    made = [
        f"{info.namespace}"
        for _, request, info in cluster.requests
        if request.verb == "create" and info.resource == "configmaps"
    ]
    assert made == ["ns-1", "ns-1", "ns-2", "ns-2"]


def test_a_phase_without_namespaces_is_cluster_scoped(write: Write) -> None:
    text = SETS + phase(1, bundle="{basename: node, objectTemplatePath: node.yaml}")
    text = text.replace("namespaceRange: {min: 1, max: 1}\n    ", "")
    cluster = FakeCluster()
    cluster.run(loader(write(text, files={"node.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: x}\n"})))
    assert [request.path for _, request, info in cluster.requests if info.resource == "nodes"] == [
        "/api/v1/nodes"
    ]


def test_operations_start_on_the_grid_however_slow_the_answers(write: Write) -> None:
    cluster = FakeCluster(latency_s=3.0)
    cluster.run(loader(write(SETS + phase(30))))
    at = cluster.made("configmaps")
    assert [round(later - at[0], 6) for later in at] == [round(i / 10, 6) for i in range(30)]
    late = [sample.value for sample in cluster.samples if sample.name == "operation_late_ms"]
    assert late == pytest.approx([0.0] * 30, abs=1e-6)


def test_a_late_shell_is_measured_and_does_not_shift_what_follows(write: Write) -> None:
    cluster = FakeCluster()
    machine = loader(write(SETS + phase(5)))
    start = machine.start

    class Late:
        """A shell that stands still for 250 ms at one time."""

        def start(self, now: float) -> list[object]:
            return start(now)  # type: ignore[return-value]

        def handle(self, event: object, now: float) -> list[object]:
            if cluster.made("configmaps") and not self.stood:
                self.stood = True
                cluster.now += 0.25
            return machine.handle(event, cluster.now)  # type: ignore[arg-type,return-value]

        stood = False

    cluster.run(Late())  # type: ignore[arg-type]
    first, *others = cluster.made("configmaps")
    assert [round(at - first, 3) for at in others] == [0.254, 0.254, 0.3, 0.4]
    late = [round(sample.value) for sample in cluster.samples if sample.name == "operation_late_ms"]
    assert late == [0, 154, 54, 0, 0]


def test_phases_share_the_bucket_of_a_global_tuning_set(write: Write) -> None:
    other = "{basename: other, objectTemplatePath: configmap.yaml}"
    two = phase(4, "five") + phase(4, "five", bundle=other).partition("phases:\n")[2]
    cluster = FakeCluster()
    cluster.run(loader(write(SETS + two)))
    at = cluster.made("configmaps")
    assert [round(later - at[0], 3) for later in at] == [0.0, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2]


def test_a_parallelism_limit_is_a_closed_loop(write: Write) -> None:
    cluster = FakeCluster(latency_s=1.0)
    cluster.run(loader(write(SETS + phase(5, "two"))))
    at = cluster.made("configmaps")
    assert [round(later - at[0], 6) for later in at] == [0, 0, 1, 1, 2]


def test_randomized_starts_are_out_of_order_and_within_the_limit(write: Write) -> None:
    cluster = FakeCluster()
    cluster.run(loader(write(SETS + phase(50, "spread"))))
    at = cluster.made("configmaps")
    assert at == sorted(at)
    assert at[-1] - at[0] < 10
    names = changes(cluster)
    assert sorted(names) == sorted(f"create map-{i}" for i in range(50))
    assert names != [f"create map-{i}" for i in range(50)]


def test_one_client_has_a_hundred_requests_a_second_after_its_burst(write: Write) -> None:
    """200 nodes: two clients, each with its own bucket of 200; they are taken in turn."""
    machine = loader(write(SETS + phase(1000, "fast"), nodes=200))
    assert list(machine.limiters()) == ["main", "main-2"]
    cluster = FakeCluster()
    cluster.run(Rest(machine, machine.limiters()))
    at = cluster.made("configmaps")
    within = sum(later - at[0] <= 1.0 for later in at)
    assert 560 <= within <= 610


def rule_for(name: str, *answers: Response | TransportError) -> tuple[FakeCluster, list[float]]:
    """A cluster whose first answers to writes of `name` are given."""
    left = list(answers)
    asked: list[float] = []

    def rule(request: Request, info: RequestInfo, number: int) -> Response | TransportError | None:
        if (
            request.verb == "create"
            and info.resource == "configmaps"
            and f'"{name}"'.encode() in request.body
        ):
            asked.append(cluster.now)
            return left.pop(0) if left else None
        return None

    cluster = FakeCluster(rule=rule, latency_s=0.0)
    return cluster, asked


def test_a_refused_creation_is_tried_again_and_counted(write: Write) -> None:
    busy = Response(429, {}, status.APF_REJECTED)
    cluster, asked = rule_for("map-0", busy, TransportError(Failure.RESET, "EOF"), busy)
    finished = cluster.run(loader(write(SETS + phase(1))))
    assert finished is not None
    assert finished.failures == ()
    assert [round(at - asked[0], 6) for at in asked] == [0, 0.1, 0.4, 1.3]
    assert cluster.of("scenario-finished")[0]["retries"] == {"TooManyRequests": 2, "connection reset": 1}
    retries = [sample.labels for sample in cluster.samples if sample.name == "operation_retry_count"]
    assert retries[0] == (("verb", "create"), ("reason", "TooManyRequests"))


def test_six_attempts_are_all(write: Write) -> None:
    cluster, asked = rule_for("map-1", *[Response(429, {}, status.APF_REJECTED)] * 9)
    finished = cluster.run(loader(write(SETS + phase(3))))
    assert finished is not None
    assert len(asked) == 6
    assert round(asked[-1] - asked[0], 6) == 12.1
    (failure,) = finished.failures
    assert failure.startswith(
        "[step: 01] step: namespace ns-1 ConfigMap map-1 creation error: HTTP 429 TooManyRequests"
    )
    assert failure.endswith("(tried 6 times)")
    assert changes(cluster)[-1] == "create map-1"


def test_an_object_that_exists_already_is_done(write: Write) -> None:
    lost = TransportError(Failure.RESET, "EOF")
    cluster, _ = rule_for("map-0", lost, refusal(status.already_exists("", "configmaps", "map-0")))
    finished = cluster.run(loader(write(SETS + phase(1))))
    assert finished is not None
    assert finished.failures == ()


def test_a_failure_ends_its_bundle_and_nothing_else(write: Write) -> None:
    bundle = "{basename: map, objectTemplatePath: configmap.yaml}, {basename: b, objectTemplatePath: configmap.yaml}"
    cluster, _ = rule_for("map-0", refusal(status.forbidden("", "configmaps", "map-0", "no")))
    finished = cluster.run(loader(write(SETS + phase(2, bundle=bundle) + phase(0, bundle=bundle))))
    assert finished is not None
    assert len(finished.failures) == 1
    created = [change for change in changes(cluster) if change.startswith("create")]
    assert created == ["create map-0", "create map-1", "create b-1"]
    assert changes(cluster)[-4:] == ["delete b-0", "delete map-0", "delete b-1", "delete map-1"]


def test_many_failures_are_counted_and_few_are_named(write: Write) -> None:
    def rule(request: Request, info: RequestInfo, number: int) -> Response | None:
        forbidden = request.verb == "create" and info.resource == "configmaps"
        return refusal(status.forbidden("", "configmaps", "", "no")) if forbidden else None

    cluster = FakeCluster(rule=rule)
    finished = cluster.run(loader(write(SETS + phase(50, "hurried"))))
    assert finished is not None
    assert len(finished.failures) == 21
    assert finished.failures[-1].endswith("and 30 more: ConfigMap creation error Forbidden")


def test_a_template_that_fails_while_running_fails_its_object_alone(write: Write) -> None:
    files = {
        "odd.yaml": "apiVersion: v1\nkind: ConfigMap\ndata: {x: '{{DivideInt 1 (SubtractInt 1 .Index)}}'}\n"
    }
    cluster = FakeCluster()
    config = write(SETS + phase(2, bundle="{basename: map, objectTemplatePath: odd.yaml}"), files=files)
    finished = cluster.run(loader(config))
    assert finished is not None
    (failure,) = finished.failures
    assert "odd.yaml:3: template: function 'DivideInt' failed: division by zero" in failure
    assert changes(cluster) == ["create map-0"]


def test_objects_that_no_phase_made_are_counted_by_their_labels(write: Write) -> None:
    selector = "listUnknownObjectOptions: {labelSelector: {matchLabels: {group: odd}}}"
    listed = f"{{basename: found, objectTemplatePath: configmap.yaml, {selector}}}"
    cluster = FakeCluster()
    config = write(SETS + phase(0, bundle=listed))
    cluster.put("namespaces", {"metadata": {"name": "other", "uid": "u"}})
    for index in range(3):
        meta = {"name": f"found-{index}", "namespace": "ns-1", "uid": f"{index}", "labels": {"group": "odd"}}
        cluster.at(0.0, lambda meta=meta: cluster.put("configmaps", {"metadata": meta}, "ADDED"))  # type: ignore[misc]
    cluster.run(loader(config))
    assert changes(cluster) == ["delete found-0", "delete found-1", "delete found-2"]
    lists = [
        request.path
        for _, request, info in cluster.requests
        if info.resource == "configmaps" and request.verb == "list"
    ]
    assert lists == ["/api/v1/namespaces/ns-1/configmaps?labelSelector=group%3Dodd"]


def test_progress_is_noted_once_a_second_and_at_the_end(write: Write) -> None:
    cluster = FakeCluster()
    cluster.run(loader(write(SETS + phase(30))))
    progress = [(note["done"], note["total"]) for note in cluster.of("progress")]
    assert progress == [(10, 30), (20, 30), (30, 30)] or progress[-1] == (30, 30)
    assert len(progress) == 3
