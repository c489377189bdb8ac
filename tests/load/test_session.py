"""A session's own logic, with no process started: what ends a run, what it is then called, what is kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from harness.apiserver.faults.spec import parse_spec
from harness.load import plan as plans
from harness.load import session as sessions
from harness.load.clusterarguments import ClusterOptions
from harness.load.plan import Plan, Target, TargetMember
from harness.load.session import Session
from harness.observe.record import read_events, read_manifest, read_table
from harness.pool.disturbances import BeginFault
from harness.transport.credentials import Credentials
from harness.wire.errors import ConfigError
from harness.wire.pace import Pace
from tests.conftest import DATA
from tests.load.sessions import ROW, TINY, Clock, Makes, ended, kinds, report


def test_the_scenarios_end_ends_the_run(make: Makes) -> None:
    session = make()
    session.look()
    assert not session.over
    session.tell("scenario-ended", {"failures": [], "violations": []})
    assert session.over
    assert ended(session) == ("completed", 0, [])
    assert session.record.manifest.results["scenario"] == "Success"
    assert kinds(session) == ["scenario-ended", "run-ended"]


def test_a_failed_step_is_exit_code_1_and_a_missed_threshold_3(make: Makes, tmp_path: Path) -> None:
    failed = make(record=tmp_path / "failed")
    failed.tell("scenario-ended", {"failures": ["step 3: no"], "violations": ["p99 is 6 s"]})
    assert ended(failed)[:2] == ("failed", 1)
    missed = make(record=tmp_path / "missed")
    missed.tell("scenario-ended", {"failures": [], "violations": ["p99 is 6 s"]})
    assert ended(missed)[:2] == ("completed", 3)


def test_a_run_whose_figures_must_not_be_used_is_exit_code_4_whatever_threshold_it_missed(
    make: Makes,
) -> None:
    session = make()
    session.record.mark("the host could not keep up", invalid=True)
    session.tell("scenario-ended", {"failures": [], "violations": ["p99 is 6 s"]})
    assert ended(session)[1] == 4


def test_the_cap_counts_from_the_first_kubelet(make: Makes, clock: Clock) -> None:
    session = make()
    clock.now += 500  # waiting for workers
    session.begin()
    clock.now += 59.9
    session.look()
    assert not session.over
    clock.now += 0.1
    session.look()
    text = "ended by -t after 60 s, before its scenario was complete"
    assert ended(session) == ("capped", 0, [(text, False)])


def test_at_a_pace_the_cap_counts_model_seconds(make: Makes, clock: Clock) -> None:
    session = make(scenario="", pace=Pace(4.0, clock.time()))
    clock.now += 239.9
    session.look()
    assert not session.over
    clock.now += 0.1
    session.look()
    assert session.over
    manifest = read_manifest(session.options.record)
    assert (manifest.started, manifest.pace) == (1_001_000.0, Pace(4.0, 1_001_000.0))


def test_the_cap_is_the_end_of_a_fleet_at_rest(make: Makes, clock: Clock) -> None:
    session = make(scenario="")
    clock.now += 60
    session.look()
    assert ended(session) == ("completed", 0, [])


def test_an_executor_that_fell_silent_makes_the_run_invalid(make: Makes) -> None:
    session = make()
    session.tell("executor-lost", {"message": "executor worker-1 has said nothing for 20 s"})
    session.tell("scenario-ended", {"failures": ["it did"], "violations": []})
    assert ended(session) == ("failed", 1, [("executor worker-1 has said nothing for 20 s", True)])


def test_a_restart_is_told_and_its_process_measured(make: Makes, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make()
    watched: list[tuple[str, int]] = []
    monkeypatch.setattr(session._scraping, "watch", lambda *process: watched.append(process))
    session._pool_says({"kind": "member-ended", "member": "member-0", "seconds": 1.0, "code": 0})
    session._pool_says({"kind": "member-restarted", "member": "member-0", "seconds": 4.0, "pid": 77})
    assert watched == [("member-0", 77)]
    session.over = True
    session._end(sessions.Status.COMPLETED)
    ended(session)
    assert kinds(session) == ["member-ended", "member-restarted", "run-ended"]


def test_a_scenario_with_commands_is_refused_unless_they_are_allowed(make: Makes, tmp_path: Path) -> None:
    commands = str(DATA / "scenarios" / "spread.yaml")
    with pytest.raises(ConfigError, match=r"spread\.yaml:\d+: .*; --allow-exec allows it"):
        make(scenario=commands, record=tmp_path / "refused")
    assert make(scenario=commands, record=tmp_path / "allowed", allow_exec=True).options.allow_exec


@pytest.mark.parametrize(
    ("name", "members", "over"),
    [
        ("store", 3, True),
        ("pool", 3, True),
        ("member-0", 1, True),
        ("member-0", 3, False),
        ("scraper", 1, False),
    ],
)
def test_a_process_that_others_replace_does_not_end_the_run(
    make: Makes, name: str, members: int, over: bool
) -> None:
    session = make(members=members)
    session._process_exited(name, -9)
    assert session.over is over
    session.tell("scenario-ended", {"failures": [], "violations": []})
    _, code, marks = ended(session)
    assert marks == [(f"{name} ended unasked (signal 9)", True)]
    assert code == 1
    assert "process-exited" in kinds(session)


def test_a_store_that_is_started_again_does_not_end_the_run(make: Makes) -> None:
    session = make()
    session._pool_says({"kind": "process-exited", "process": "etcd-1", "code": -9, "restarts": True})
    session._pool_says({"kind": "process-restarted", "process": "etcd-1", "pid": 12, "seconds": 0.5})
    assert not session.over
    session.tell("scenario-ended", {"failures": [], "violations": []})
    assert ended(session) == ("completed", 1, [("etcd-1 ended unasked (signal 9)", True)])
    told = [event for event in read_events(session.options.record) if event["kind"].startswith("process-")]
    assert [(event["kind"], event["process"]) for event in told] == [
        ("process-exited", "etcd-1"),
        ("process-restarted", "etcd-1"),
    ]


def test_one_that_cannot_be_started_again_ends_it(make: Makes) -> None:
    session = make()
    session._pool_says({"kind": "process-exited", "process": "store", "code": 1, "restarts": True})
    session._pool_says({"kind": "process-failed", "process": "store", "message": "FORMAT is missing"})
    assert session.over
    marks = [
        ("store ended unasked (exit code 1)", True),
        ("store could not be started again: FORMAT is missing", True),
    ]
    assert ended(session) == ("failed", 1, marks)


def test_a_member_may_end_before_the_pool_is_announced(make: Makes) -> None:
    session = make(members=3)
    del session._target
    session._pool_says({"kind": "process-exited", "process": "member-1", "code": -9})
    assert not session.over


def test_an_exit_code_is_told_from_a_signal(make: Makes) -> None:
    session = make()
    session._pool_says({"kind": "process-exited", "process": "store", "code": 3})
    assert ended(session)[2] == [("store ended unasked (exit code 3)", True)]


def test_a_user_that_failed_ends_the_run(make: Makes) -> None:
    session = make()
    session.tell("user-failed", {"user": "clusterloader", "error": "pod.yaml cannot be read"})
    assert ended(session) == ("failed", 1, [("a clusterloader failed: pod.yaml cannot be read", True)])


def test_the_first_signal_is_looked_at_and_only_the_first_is_first(make: Makes) -> None:
    session = make()
    assert session.interrupt("SIGTERM")
    assert not session.interrupt("SIGINT")
    session.look()
    assert session.over
    assert ended(session) == ("interrupted", 1, [("interrupted by SIGTERM", True)])


def test_a_signal_is_the_end_of_a_fleet_at_rest_without_a_cap(make: Makes) -> None:
    session = make(scenario="", run_time_s=None)
    session.interrupt("SIGINT")
    session.look()
    assert ended(session) == ("completed", 0, [])


def test_an_end_before_the_first_kubelet_says_so(make: Makes) -> None:
    session = make()
    session.started = False
    assert ended(session) == ("interrupted", 1, [("interrupted by Locust before it began", True)])


def test_a_start_that_fails_closes_the_record(make: Makes) -> None:
    session = make()
    session.fail_to_start(ConfigError("port 80 is taken"))
    assert ended(session) == ("failed", 1, [("port 80 is taken", True)])


def test_what_workers_count_is_kept_and_summed(make: Makes) -> None:
    session = make()
    session.take(report(1, ROW, counts={"nodes_by_members": {"1": 2}}))
    session.take(report(2, ROW, counts={"nodes_by_members": {"1": 1, "2": 4}}))
    session.over = True
    session.finish()
    session.take(report(3, ROW, counts={"nodes_by_members": {"1": 1}}))
    assert session.record.manifest.results["nodes_by_members"] == {"1": 3, "2": 4}
    assert read_table(session.options.record, "requests").num_rows == 2


def test_what_is_seen_of_a_run_while_it_goes_on(make: Makes) -> None:
    session = make(arm="HA", sample=2)
    session.tell("progress", {"step": "create", "what": "pods", "done": 3, "total": 9}, 6.0)
    session.take(report(1, ROW))
    session.view.scraped(
        {"kind": "scraped", "t": 7.0, "members": {"member-0": {"watches": 4, "requests": 1}}}
    )
    assert [(piece.done, piece.left) for piece in session.view.steps.pieces()] == [(3, 6)]
    (figures,) = session.view.members.figures()
    assert (figures.sent, figures.watches) == (3, 4)
    assert session.view.run["arm"] == "HA"
    assert "progress" not in kinds(session)  # once a run is over it is of no use


def test_what_was_counted_is_written_while_the_run_goes_on(make: Makes, clock: Clock) -> None:
    session = make()
    session.take(report(1, ROW))
    clock.now += 9
    session.look()
    assert read_table(session.options.record, "requests").num_rows == 0
    clock.now += 1
    session.look()
    assert read_table(session.options.record, "requests").num_rows == 1


def test_a_measurement_that_was_skipped_is_marked_but_spoils_nothing(make: Makes) -> None:
    session = make()
    session.tell("skipped-measurement", {"method": "Prometheus", "reason": "not here"})
    found = {"name": "x", "values": {}, "summary": {}, "at": "2026-01-01T00:00:00.000000Z"}
    session.tell("measurement", found)
    session.over = True
    assert ended(session)[2] == [("not measured: Prometheus (not here)", False)]
    assert session.record.manifest.results["measurements"] == [found]


def test_a_prometheus_that_ends_costs_its_answers_and_not_the_run(make: Makes) -> None:
    session = make()
    session._process_exited("prometheus", 2)
    assert not session.over
    session.tell("scenario-ended", {"failures": [], "violations": []})
    assert ended(session) == ("completed", 1, [("prometheus ended unasked (exit code 2)", False)])


def test_faults_wait_for_the_load_and_end_with_the_run(make: Makes) -> None:
    fault = parse_spec("stall-informer member=member-0 for=20s at=100s")
    session = make(faults=(fault,))
    session.tell("phase-started", {"step": 1})
    session.tell("phase-started", {"step": 2})
    session.over = True
    (mark,) = ended(session)[2]
    assert mark == (f"fault {fault.text} was not begun: the run ended before", True)


def test_a_fault_of_the_pool_is_ordered_of_its_supervisor_when_its_step_begins(
    make: Makes, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make(faults=(parse_spec("kill member=member-0 step='create objects'"),))
    sent: list[object] = []
    monkeypatch.setattr(session, "_pool", SimpleNamespace(send=sent.append, stop=lambda: None))
    session.tell("step-started", {"number": 1, "name": "Starting measurements"})
    gevent.sleep(0)
    assert sent == []
    session.tell("step-started", {"number": 2, "name": "create objects"})
    gevent.sleep(0.01)
    assert sent == [BeginFault("kill member=member-0 step='create objects'")]


@pytest.mark.parametrize(("scenario", "begun"), [("", 1), (TINY, 0)])
def test_without_a_scenario_the_load_has_begun_when_all_kubelets_are_spawned(
    make: Makes, monkeypatch: pytest.MonkeyPatch, scenario: str, begun: int
) -> None:
    session = make(scenario=scenario, faults=(parse_spec("kill member=member-0 at=0s"),))
    sent: list[object] = []
    monkeypatch.setattr(session, "_pool", SimpleNamespace(send=sent.append, stop=lambda: None))
    monkeypatch.setattr(session, "_plan", SimpleNamespace(settled=True), raising=False)
    for _ in range(2):  # Locust says it again when users of a lost worker are spawned elsewhere
        session.spawned()
        gevent.sleep(0.01)
    assert len(sent) == begun


def test_a_fault_at_a_step_that_the_scenario_has_not_is_refused(make: Makes) -> None:
    with pytest.raises(ConfigError, match=r"no step 'x'.*'create objects'"):
        make(faults=(parse_spec("kill step=x"),))


def test_a_fault_that_was_refused_makes_the_run_invalid(make: Makes) -> None:
    session = make()
    session._target = Target((TargetMember("member-0", "127.0.0.1", 1),), ca="")
    session._inject(parse_spec("stall-informer at=0s"))
    session.over = True
    (mark,) = ended(session)[2]
    assert mark[0].startswith("fault stall-informer at=0s on member-0 failed: [Errno 111]")
    assert mark[1]


def test_faults_that_the_pool_tells_of_reach_the_record(make: Makes) -> None:
    session = make()
    about = {"fault": "goaway", "member": "member-1", "seconds": 5.0, "hits": 2}
    for kind in ("fault-started", "fault-ended", "something-else"):
        session._pool_says({"kind": kind, **about})
    session._pool_says({"kind": "fault-failed", **about, "error": "no store"})
    session.over = True
    assert ended(session)[2] == [("fault goaway on member-1 failed: no store", True)]
    told = [event for event in read_events(session.options.record) if event["kind"].startswith("fault")]
    assert [event["kind"] for event in told] == ["fault-started", "fault-ended", "fault-failed"]
    assert {event["member"] for event in told} == {"member-1"}


def test_faults_that_a_member_of_somebody_else_s_tells_of_are_when_they_were(make: Makes) -> None:
    session = make()
    about = {"id": 1, "fault": "compact", "fault_kind": "compact", "member": "apiserver", "seconds": None}
    before = session.record.wall()
    session._fault_told({"kind": "fault-started", **about}, 30.0)
    after = session.record.wall()
    session._fault_told({"kind": "fault-failed", **about, "error": "no store"}, 0.0)
    session.over = True
    assert ended(session)[2] == [("fault compact on apiserver failed: no store", True)]
    events = read_events(session.options.record)
    started = next(event for event in events if event["kind"] == "fault-started")
    assert {**about, "kind": "fault-started", "t": started["t"]} == started
    assert before - 30.001 <= started["t"] <= after - 29.999


def test_a_run_that_the_shape_does_not_end_is_ended_all_the_same(
    make: Makes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(sessions, "SHAPE_ENDS_WITHIN_S", 0.001)
    session = make()
    session.over = True
    gevent.spawn(session._follow).join()
    assert make.runner.quits == 1
    session.ending = True
    gevent.spawn(session._follow).join()
    assert make.runner.quits == 1


def test_a_record_that_cannot_be_written_ends_the_run(make: Makes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(sessions, "SHAPE_ENDS_WITHIN_S", 0.001)
    session = make()

    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session, "look", full)
    gevent.spawn(session._follow).join()
    assert ended(session)[:2] == ("failed", 1)


def test_a_folder_that_holds_a_run_or_cannot_hold_one_is_refused(make: Makes) -> None:
    make()
    with pytest.raises(ConfigError, match="already holds a run; give another with --record"):
        make()
    with pytest.raises(ConfigError, match="--record /proc/x: cannot be written"):
        make(record=Path("/proc/x"))


# ---- connections and credentials -------------------------------------------------------------------------------------
def test_what_became_of_connections_is_summed_by_member(make: Makes) -> None:
    session = make()
    session.take(report(1, connections={"member-0": {"dialled": 2}}))
    session.take(report(2, connections={"member-0": {"dialled": 1, "lost": 1}, "member-1": {"goaway": 3}}))
    assert session.record.manifest.results["connections"] == {
        "member-0": {"dialled": 3, "lost": 1},
        "member-1": {"goaway": 3},
    }


class Rotating:
    """Credentials that are always due, and always new."""

    def __init__(self) -> None:
        self.fetched = 0

    def due(self, now: float) -> bool:
        return True

    def fetch(self) -> Credentials:
        self.fetched += 1
        return Credentials(f"token-{self.fetched}")


def with_fresh_credentials(make: Makes, runner: Any) -> tuple[Session, Rotating]:
    session, rotation = make(), Rotating()
    session._environment = SimpleNamespace(
        runner=runner, swarmlet_context=None, parsed_options=SimpleNamespace()
    )
    session._plan = Plan(seed=1, kubelets=5, target=session._target)
    session._keep_fresh(rotation, session._target)
    return session, rotation


def test_fresh_credentials_reach_the_workers_there_are_and_those_to_come(make: Makes) -> None:
    sent: list[tuple[str, dict[str, str]]] = []
    runner = SimpleNamespace(clients=(), send_message=lambda kind, data: sent.append((kind, data)))
    session, _ = with_fresh_credentials(make, runner)
    assert session._refresher is not None
    session._refresher.look()
    assert sent == [(sessions.CREDENTIALS, {"token": "token-1", "cert": "", "key": ""})]
    told = plans.decode(getattr(session._environment.parsed_options, plans.OPTION))
    assert told.target.token == session._target.token == "token-1"


def test_in_one_process_they_reach_its_context(make: Makes) -> None:
    session, _ = with_fresh_credentials(make, SimpleNamespace())
    got: list[Credentials] = []
    session._environment.swarmlet_context = SimpleNamespace(refresh=got.append, report=lambda: report(1))
    assert session._refresher is not None
    session._refresher.look()
    assert [found.token for found in got] == ["token-1"]


def test_a_refusal_that_a_worker_saw_fetches_fresh_ones(make: Makes) -> None:
    runner = SimpleNamespace(clients=(), send_message=lambda *_: None)
    session, rotation = with_fresh_credentials(make, runner)
    session.tell("credentials-refused", {})
    gevent.sleep(0)
    assert rotation.fetched == 1
    assert session.record.manifest.marks == []


def test_credentials_that_cannot_be_renewed_make_the_run_invalid_once(make: Makes) -> None:
    session = make()
    for _ in range(2):
        session.tell("credentials-refused", {})
    session.over = True
    assert ended(session)[2] == [("the server refuses our credentials (401)", True)]


# ---- pools of binaries -----------------------------------------------------------------------------------------------
def test_a_scheduler_that_ends_and_comes_back_is_told_and_ends_no_run(make: Makes) -> None:
    session = make()
    session._pool_says({"kind": "component-ended", "process": "kube-scheduler-0", "code": 1})
    session._pool_says({"kind": "component-restarted", "process": "kube-scheduler-0", "pid": 7})
    assert not session.over
    assert kinds(session)[-2:] == ["component-ended", "component-restarted"]


@pytest.mark.parametrize(
    ("kind", "controllers", "signed"),
    [("certificate", False, True), ("certificate", True, False), ("impersonate", False, False)],
)
def test_a_pool_s_authority_signs_nodes_where_no_controller_manager_does(
    make: Makes, tmp_path: Path, kind: Any, controllers: bool, signed: bool
) -> None:
    for name in ("ca.crt", "ca.key"):
        (tmp_path / name).write_text(name)
    session = make(cluster=ClusterOptions(identity=kind))
    session.record.manifest.target = {
        "has_controllers": controllers,
        "signs": {"cert": str(tmp_path / "ca.crt"), "key": str(tmp_path / "ca.key")},
    }
    identity = session._identity()
    assert (identity.kind, identity.ca_cert, identity.ca_key) == (
        kind,
        *(("ca.crt", "ca.key") if signed else ("", "")),
    )
