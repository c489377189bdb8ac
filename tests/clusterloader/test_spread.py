"""One test on several executors: what each does, when, and what the leader hears of it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest

from harness.client.machine import Machine
from harness.clusterloader import Config, schema
from harness.clusterloader.bundles import Replicas, bundles_of
from harness.clusterloader.durations import Seconds
from harness.clusterloader.messages import Dismiss, Order, Ping, Recruit, Recruits, Report, decode, encode
from harness.clusterloader.shares import Share, executors_needed, owner, part, parts_of, seed_of
from harness.clusterloader.tuning import schedule
from harness.wire import status
from harness.wire.paths import RequestInfo, parse_path
from harness.wire.request import Request, Response
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import FakeCluster, refusal
from tests.clusterloader.together import LEADER, Together, crew

HEAD = """\
name: spread
namespace: {number: 2, prefix: ns, deleteAutomanagedNamespaces: false}
tuningSets:
- {name: pace, %s}
steps:
"""
LOADS = {
    "qps": "qpsLoad: {qps: 40}",
    "randomized": "randomizedLoad: {averageQps: 40}",
    "stepped": "steppedLoad: {burstSize: 7, stepDelay: 300ms}",
    "time limited": "timeLimitedLoad: {timeLimit: 5s}",
    "randomized time limited": "randomizedTimeLimitedLoad: {timeLimit: 5s}",
    "poisson": "poissonLoad: {expectedActionsPerSecond: 40}",
}
MAP = "{basename: map, objectTemplatePath: configmap.yaml}"


def phase(replicas: int, *, bundle: str = MAP, namespaces: int = 2, step: str = "step") -> str:
    head = f"- name: {step}\n  phases:\n" if step else ""
    return (
        f"{head}  - {{namespaceRange: {{min: 1, max: {namespaces}}}, replicasPerNamespace: {replicas},\n"
        f"     tuningSet: pace, objectBundle: [{bundle}]}}\n"
    )


def written(together: Together) -> list[tuple[str, str]]:
    """Who wrote which object, in order: ("worker-1", "create ns-1/map-0")."""
    found = []
    for name, send in together.sent:
        info = parse_path(send.request.path, send.request.method)
        if info.resource != "configmaps" or send.request.verb not in ("create", "patch", "delete"):
            continue
        what = info.name or send.request.body.decode().partition('"name":"')[2].partition('"')[0]
        found.append((name, f"{send.request.verb} {info.namespace}/{what}"))
    return found


def run(cluster: FakeCluster, together: Machine) -> tuple[str, ...]:
    finished = cluster.run(together)
    assert finished is not None
    return finished.failures


# ---- shares --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_shares_are_all_operations_and_none_twice(of: int) -> None:
    replicas = [Replicas("ns-1", 100), Replicas("ns-2", 400), Replicas("ns-3", 250), Replicas("", 0)]
    every = list(bundles_of(replicas, 250, ()))
    shares = [[bundle for bundle in every if Share(number, of).has(bundle)] for number in range(of)]
    assert Counter(bundle for share in shares for bundle in share) == Counter(every)
    assert min(map(len, shares)) > 0.7 * len(every) / of


def test_a_replica_has_one_owner_whatever_is_done_to_it() -> None:
    operations = [
        bundle for wanted in (50, 50, 20) for bundle in bundles_of([Replicas("ns-1", 50)], wanted, ())
    ]
    owners = defaultdict(set)
    for bundle in operations:
        owners[bundle.replica].add(owner(bundle.namespace, bundle.replica, 3))
    assert all(len(who) == 1 for who in owners.values())


@pytest.mark.parametrize("of", [1, 2, 3, 5])
def test_what_executors_share_is_divided_and_nothing_is_lost(of: int) -> None:
    limited, shared = (
        schema.ParallelismLimitedLoad(parallelism_limit=5),
        schema.GlobalQPSLoad(qps=9.0, burst=7),
    )
    parts = [part(limited, Share(number, of)) for number in range(of)]
    assert sum(load.parallelism_limit for load in parts) == 5  # type: ignore[union-attr]
    buckets = [part(shared, Share(number, of)) for number in range(of)]
    assert sum(load.burst for load in buckets) == 7  # type: ignore[union-attr]
    assert sum(load.qps for load in buckets) == pytest.approx(9.0)  # type: ignore[union-attr]


def test_a_load_is_not_cut_into_nothings() -> None:
    assert parts_of(schema.ParallelismLimitedLoad(parallelism_limit=2), 8) == 2
    assert parts_of(schema.GlobalQPSLoad(qps=100.0, burst=1), 8) == 1
    assert parts_of(schema.TimeLimitedLoad(time_limit=Seconds(1)), 8) == 8


def test_as_many_executors_are_needed_as_the_busiest_step_has_requests_for(write: Write) -> None:
    def needed(replicas: int, load: str, nodes: int = 100) -> int:
        return executors_needed(write(HEAD % load + phase(replicas), nodes=nodes))

    assert needed(5000, "qpsLoad: {qps: 100}") == 1
    assert needed(9000, "qpsLoad: {qps: 1500}", nodes=5000) == 2
    closed = "parallelismLimitedLoad: {parallelismLimit: 1000}"
    assert needed(50_000, closed, nodes=5000) == 5, "the clients' limit"
    assert needed(20, "steppedLoad: {burstSize: 50, stepDelay: 1s}") == 1, "few, if all at once"
    assert (
        executors_needed(
            write(
                HEAD % LOADS["qps"] + "- name: wait\n  measurements:\n"
                "  - {method: Sleep, identifier: s, params: {duration: 1s}}\n"
            )
        )
        == 1
    )


def test_a_message_travels_as_bytes() -> None:
    order = Order(
        number=7,
        step=1,
        phase=0,
        digest="ab",
        replicas=(("ns-1", 3),),
        seed=2**47,
        start_s=1.5,
        share=1,
        of=2,
        executors=3,
    )
    report = Report(number=7, done=2, total=3, ended=True, failures=(("text", "kind"),), more={"kind": 9})
    assert [decode(encode(message)) for message in (order, report)] == [order, report]


# ---- a whole test --------------------------------------------------------------------------------------------------
def steps() -> str:
    red = "{basename: map, objectTemplatePath: configmap.yaml, templateFillMap: {Color: red}}"
    return phase(40) + phase(60) + phase(60, bundle=red) + phase(25) + phase(0)


@pytest.mark.parametrize("others", [1, 3])
def test_executors_together_do_what_one_does_alone(write: Write, others: int) -> None:
    config = write(HEAD % LOADS["qps"] + steps())
    alone, cluster = crew(config, 0), FakeCluster()
    assert run(cluster, alone) == ()
    together, spread = crew(config, others), FakeCluster()
    assert run(spread, together) == ()
    assert Counter(what for _, what in written(together)) == Counter(what for _, what in written(alone))
    assert len({who for who, _ in written(together)}) == others + 1
    ended, single = spread.of("scenario-finished")[0], cluster.of("scenario-finished")[0]
    assert ended["operations"] == single["operations"]
    sizes = [note["operations"] for note in spread.of("phase-finished")]
    assert sizes == [note["operations"] for note in cluster.of("phase-finished")] == [80, 40, 120, 70, 50]


def test_operations_on_an_object_are_in_order_and_by_one_executor(write: Write) -> None:
    together, cluster = crew(write(HEAD % LOADS["randomized time limited"] + steps()), 2), FakeCluster()
    assert run(cluster, together) == ()
    of_object: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for who, what in written(together):
        verb, name = what.split()
        of_object[name].append((who, verb))
    assert len(of_object) == 120
    assert {tuple(verb for _, verb in done) for done in of_object.values()} == {("create", "patch", "delete")}
    assert all(len({who for who, _ in done}) == 1 for done in of_object.values())
    assert cluster.of("warning") == []


@pytest.mark.parametrize("name", LOADS)
@pytest.mark.parametrize("ahead_s", [(0.0, 0.0, 0.0), (1000.0, 0.25, -500.0)])
def test_every_executor_starts_each_operation_when_it_is_due(
    write: Write, name: str, ahead_s: tuple[float, ...]
) -> None:
    """The same times as with one executor, whatever the workers' clocks show."""
    config = write(HEAD % LOADS[name] + phase(100))
    together, cluster = crew(config, 2, ahead_s=ahead_s), FakeCluster()
    assert run(cluster, together) == ()
    load = config.tuning_sets["pace"].load
    intended = schedule(load, 200, random.Random(seed_of(random.Random(1).getrandbits(63), 0, 0)))
    assert intended is not None
    actual = cluster.made("configmaps")
    began = actual[0] - min(intended.due_s)
    assert actual == pytest.approx([began + due for due in sorted(intended.due_s)], abs=1e-6)
    late = [sample for sample in cluster.samples if sample.name == "operation_late_ms"]
    assert max(sample.value for sample in late) < 1e-3
    assert {dict(sample.labels)["executor"] for sample in late} == {"0", "1", "2"}
    assert [clock["uncertain_ms"]["worker-1"] for clock in cluster.of("executor-clock")] == [
        pytest.approx(2.0)
    ]


def test_clients_limits_and_shared_buckets_are_divided(write: Write) -> None:
    """One client of 100 a second after 200 at once; with a bucket of 50 a second of which 10 at once."""
    config = write(HEAD % "globalQPSLoad: {qps: 1000, burst: 1000}" + phase(500))
    cluster = FakeCluster()
    assert run(cluster, crew(config, 2)) == ()
    at = cluster.made("configmaps")
    assert 270 <= sum(later - at[0] <= 1.0 for later in at) <= 300
    slow = write(HEAD % "globalQPSLoad: {qps: 50, burst: 10}" + phase(100))
    cluster = FakeCluster()
    assert run(cluster, crew(slow, 2)) == ()
    at = cluster.made("configmaps")
    assert sum(later - at[0] < 0.01 for later in at) == 10
    assert 55 <= sum(later - at[0] <= 1.0 for later in at) <= 60


def test_parallelism_is_divided(write: Write) -> None:
    config = write(HEAD % "parallelismLimitedLoad: {parallelismLimit: 5}" + phase(50))
    cluster = FakeCluster(latency_s=0.25)
    assert run(cluster, crew(config, 2)) == ()
    times = Counter(round(at, 3) for at in cluster.made("configmaps"))
    assert max(times.values()) == 5


def test_parallel_phases_of_a_step_are_spread_too(write: Write) -> None:
    other = "{basename: other, objectTemplatePath: configmap.yaml}"
    config = write(HEAD % LOADS["qps"] + phase(30) + phase(20, bundle=other, step=""))
    together, cluster = crew(config, 1), FakeCluster()
    assert run(cluster, together) == ()
    assert Counter(who for who, _ in written(together)).keys() == {LEADER, "worker-1"}
    assert len(written(together)) == 100
    assert cluster.of("scenario-finished")[0]["operations"]["create"] == 100 + 2


def test_progress_and_failures_of_all_are_told(write: Write) -> None:
    def rule(request: Request, info: RequestInfo, number: int) -> Response | None:
        forbidden = request.verb == "create" and info.resource == "configmaps"
        return refusal(status.forbidden("", "configmaps", "", "no")) if forbidden else None

    cluster = FakeCluster(rule=rule)
    failures = run(cluster, crew(write(HEAD % LOADS["qps"] + phase(100)), 2))
    assert len(failures) == 21
    assert failures[-1].endswith("and 180 more: ConfigMap creation error Forbidden")
    progress = [note["done"] for note in cluster.of("progress")]
    assert progress == sorted(progress)
    assert progress[-1] == 200
    assert cluster.of("phase-finished")[0]["failures"] == 200


# ---- what goes wrong -----------------------------------------------------------------------------------------------
def test_one_executor_alone_asks_nobody(write: Write) -> None:
    together, cluster = crew(write(HEAD % LOADS["qps"] + phase(5)), 0), FakeCluster()
    assert run(cluster, together) == ()
    assert together.told == []
    assert cluster.of("executors") == []


def test_fewer_workers_than_wanted_are_what_there_is(write: Write) -> None:
    together, cluster = crew(write(HEAD % LOADS["qps"] + phase(20)), 3), FakeCluster()
    together.master = lambda by, message: Recruits(number=message.number, you=by, members=("worker-2",))
    assert run(cluster, together) == ()
    assert {who for who, _ in written(together)} == {LEADER, "worker-2"}
    assert [(note["count"], note["wanted"]) for note in cluster.of("executors")] == [(2, 4)]


def test_a_worker_that_does_not_join_is_left_out_aloud(write: Write) -> None:
    together, cluster = crew(write(HEAD % LOADS["qps"] + phase(20)), 2), FakeCluster()
    together.deaf.add("worker-1")
    assert run(cluster, together) == ()
    assert {who for who, _ in written(together)} == {LEADER, "worker-2"}
    (warning,) = cluster.of("warning")
    assert warning["message"] == "worker-1 did not join the executors within 60 s"


def test_a_master_that_says_nothing_leaves_the_leader_alone(write: Write) -> None:
    together, cluster = crew(write(HEAD % LOADS["qps"] + phase(20)), 2), FakeCluster()
    together.master = lambda by, message: None
    assert run(cluster, together) == ()
    assert {who for who, _ in written(together)} == {LEADER}


def test_an_executor_that_falls_silent_fails_its_phase(write: Write) -> None:
    together, cluster = crew(write(HEAD % LOADS["qps"] + phase(200)), 1), FakeCluster()
    cluster.at(5.0, lambda: together.deaf.add("worker-1"))
    (failure,) = run(cluster, together)
    done = [what for who, what in written(together) if who == "worker-1"]
    known = int(failure.split(": ")[-1].split()[0])
    assert 0 < known <= len(done) < 150
    assert failure.startswith("[step: 01] step: executor worker-1 has said nothing for 20 s: ")
    assert failure.endswith(
        f"{known} of its {sum(owner(ns, i, 2) for ns in ('ns-1', 'ns-2') for i in range(200))} "
        "operations are known to be done"
    )
    assert [note["message"] for note in cluster.of("executor-lost")] == [
        failure.partition("step: executor")[2].join(("executor", ""))
    ]
    assert any(isinstance(message, Dismiss) for _, to, message in together.told if to == "worker-1")


def test_an_executor_with_another_config_refuses(write: Write) -> None:
    other = write(HEAD % LOADS["qps"] + phase(19))
    together, cluster = crew(other, 1), FakeCluster()
    leading = crew(write(HEAD % LOADS["qps"] + phase(20)), 1)
    together.machines[LEADER] = leading.machines[LEADER]
    (failure,) = run(cluster, together)
    assert failure == "[step: 01] step: executor worker-1: step 1, phase 1 is not the leader's"


def test_an_abort_reaches_the_executors(write: Write) -> None:
    config: Config = write(HEAD % LOADS["qps"] + phase(400))
    together, cluster = crew(config, 1), FakeCluster()
    leader = loader(config, executors=2)
    together.machines[LEADER] = leader
    cluster.at(
        4.0,
        lambda: cluster.carry_out(together._out(LEADER, leader.abort("enough", cluster.now), cluster.now)),
    )
    assert run(cluster, together) == ("enough",)
    assert any(isinstance(message, Dismiss) for _, to, message in together.told if to == "worker-1")


def test_only_the_first_message_to_the_master_is_for_executors(write: Write) -> None:
    together, cluster = crew(write(HEAD % LOADS["qps"] + phase(5)), 1), FakeCluster()
    run(cluster, together)
    kinds = [type(message) for by, _, message in together.told if by == LEADER]
    assert kinds == [Recruit, *[Ping] * 6, Order]
