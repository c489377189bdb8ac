"""What a test will do, before it does it."""

from __future__ import annotations

import pytest

from harness.clusterloader import load_config
from harness.clusterloader.config import describe
from harness.clusterloader.plan import plan, plan_lines
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import FakeCluster
from tests.conftest import DATA

UPSTREAM = DATA / "clusterloader2"
NAMESPACES = "name: p\nnamespace: {number: 2, prefix: ns}\n"
SETS = """\
tuningSets:
- {name: qps, qpsLoad: {qps: 5}}
- {name: random, randomizedLoad: {averageQps: 5}}
- {name: stepped, steppedLoad: {burstSize: 2, stepDelay: 3s}}
- {name: limited, timeLimitedLoad: {timeLimit: 8s}}
- {name: spread, randomizedTimeLimitedLoad: {timeLimit: 9s}}
- {name: parallel, parallelismLimitedLoad: {parallelismLimit: 2}}
- {name: global, globalQPSLoad: {qps: 2, burst: 4}}
- {name: poisson, poissonLoad: {expectedActionsPerSecond: 7}}
steps:
"""


MAP = "{basename: map, objectTemplatePath: configmap.yaml}"


def step(replicas: int, tuning_set: str, bundle: str = MAP) -> str:
    namespaces = "namespaceRange: {min: 1, max: 2}"
    return (
        f"- name: to {replicas}\n  phases:\n  - {{{namespaces}, replicasPerNamespace: {replicas}, "
        f"tuningSet: {tuning_set}, objectBundle: [{bundle}]}}\n"
    )


@pytest.mark.parametrize(
    ("tuning_set", "seconds"),
    [
        ("qps", 8 / 5),
        ("random", 8 / 5),
        ("stepped", 12.0),
        ("limited", 8.0),
        ("spread", 8.0),
        ("parallel", 0.08),  # as fast as the client may
        ("global", 2.0),
        ("poisson", 1.0),
    ],
)
def test_a_phase_takes_as_long_as_its_tuning_set_says(write: Write, tuning_set: str, seconds: float) -> None:
    found = plan(write(NAMESPACES + SETS + step(4, tuning_set)))
    assert found.steps[0].phases[0].bundles == 8
    assert found.seconds == pytest.approx(seconds)


def test_the_state_is_played_through(write: Write) -> None:
    text = NAMESPACES + SETS + step(3, "qps") + step(5, "qps") + step(5, "qps") + step(1, "qps")
    found = plan(write(text))
    assert [dict(item.phases[0].operations) for item in found.steps] == [
        {"create": 6},
        {"create": 4},
        {"patch": 10},
        {"delete": 8},
    ]
    assert found.requests == 6 + 4 + 20 + 8


def test_a_run_does_what_the_plan_says(write: Write) -> None:
    bundle = "{basename: a, objectTemplatePath: configmap.yaml}, {basename: a, objectTemplatePath: two.yaml}"
    two = "apiVersion: v1\nkind: Secret\n---\napiVersion: v1\nkind: Service\n"
    text = NAMESPACES + SETS + "".join(step(count, "limited", bundle) for count in (3, 3, 1))
    config = write(text, files={"two.yaml": two})
    found, cluster = plan(config), FakeCluster()
    assert cluster.run(loader(config)) is not None
    verbs = cluster.verbs()
    for verb in ("create", "patch", "delete"):
        of = sum(
            count for name, count in verbs.items() if name.split()[0] == verb and "namespaces" not in name
        )
        assert of == found.operations[verb]
    steps = cluster.of("step-finished")
    assert [round(note["seconds"]) for note in steps] == [round(item.seconds) for item in found.steps]


def test_sleeps_waits_and_what_is_skipped_are_told(write: Write) -> None:
    text = NAMESPACES + (
        "steps:\n- name: m\n  measurements:\n"
        "  - {method: Sleep, identifier: s, params: {duration: 90s}}\n"
        "  - {method: NegLatency, identifier: e, params: {action: start}}\n"
        "  - {method: WaitForRunningPods, identifier: w, params: {desiredPodCount: 1}}\n"
        "  - {method: TestMetrics, identifier: t, params: {action: start}}\n"
        "owner: me\n"
    )
    config = write(text)
    found = plan(config)
    assert (found.seconds, found.waits) == (90.0, 1)
    assert "NegLatency: needs a cloud's network endpoint groups" in found.skipped
    assert any(item.startswith("TestMetrics SchedulingMetrics: ") for item in found.skipped)
    assert not any("EtcdMetrics" in item for item in found.skipped)
    lines = list(plan_lines(config))
    assert lines[1] == "  1 m  [1 min 30 s, until the cluster is as wanted]"
    assert "      NegLatency e start  [skipped]" in lines
    assert lines[-1].endswith("config.yaml:10: owner: no such key")


def test_which_nodes_fail_when_is_told(write: Write) -> None:
    failure = "failureRate: 0.015, interval: 1m, simulatedDowntime: 10m"
    text = NAMESPACES + (
        f"chaosMonkey: {{nodeFailure: {{{failure}, jitterFactor: 10}}}}\n"
        "steps:\n- name: m\n  measurements:\n"
        f"  - {{method: ChaosMonkey, identifier: c, params: {{action: start, {failure}}}}}\n"
        "  - {method: ChaosMonkey, identifier: c, params: {action: stop}}\n"
    )
    config = write(text)
    whom = "0.015 of the nodes that have not failed yet (at first 2 of 100) are down for 10m0s, again"
    assert plan(config).failing == (
        f"from the first step to the last: {whom} 1m0s to 11m0s later",
        f"from step 1 on, c: {whom} 1m0s later",
    )
    assert f"nodes fail from step 1 on, c: {whom} 1m0s later" in list(plan_lines(config))
    assert any(line.startswith("  nodes fail all the time: 0.015 of the nodes") for line in describe(config))


def test_what_a_prometheus_measures_is_told_apart(write: Write) -> None:
    query = "params: {action: start, metricName: m, metricVersion: v1}"
    text = NAMESPACES + (
        "steps:\n- name: m\n  measurements:\n"
        f"  - {{method: GenericPrometheusQuery, identifier: q, {query}}}\n"
        "  - {method: ContainerRestarts, identifier: r, params: {action: start}}\n"
    )
    config = write(text)
    found = plan(config)
    assert found.promql == ("GenericPrometheusQuery", "ContainerRestarts")
    assert found.skipped == ()
    lines = list(plan_lines(config))
    assert "      GenericPrometheusQuery q start  [PromQL]" in lines
    assert lines[-1] == (
        "by a Prometheus, skipped without one (--prometheus-url): GenericPrometheusQuery, ContainerRestarts"
    )


@pytest.mark.parametrize("nodes", [20, 5000])
@pytest.mark.parametrize("path", sorted(UPSTREAM.glob("*/config.yaml")), ids=lambda path: path.parent.name)
def test_upstreams_configs_have_a_plan(path: object, nodes: int) -> None:
    config = load_config(str(path), nodes)
    found = plan(config)
    assert len(found.steps) == len(config.steps)
    assert found.operations.total() > 0
    assert len(list(plan_lines(config))) > len(config.steps)


def test_the_load_test_of_5000_nodes_takes_hours() -> None:
    found = plan(load_config(UPSTREAM / "load" / "config.yaml", 5000))
    assert 9 * 3600 < found.seconds < 14 * 3600
    assert found.operations["create"] == found.operations["delete"]
