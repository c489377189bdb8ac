"""A run whose model goes slower than real time: what it is told, what is slowed down, what cannot be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from cryptography import x509

from harness.apiserver.faults.spec import parse_spec
from harness.load import context as contexts
from harness.load import plan as plans
from harness.load.arguments import RunOptions
from harness.load.commandline import check
from harness.load.context import WorkerContext
from harness.load.faults import RunFaults
from harness.load.identity.authority import Authority
from harness.load.plan import Plan, Target, TargetMember
from harness.load.shape import ScenarioShape
from harness.pool.certificates import make_serving_files
from harness.transport.options import TransportOptions
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace

SLOW = Pace(4.0, 1_000_000.0)


def options(*arguments: str) -> RunOptions:
    return check(["--scenario", "none", *arguments])


# ---- what is given -------------------------------------------------------------------------------------------------
def test_without_a_word_it_is_real_time() -> None:
    assert options().pace == REAL


def test_a_pace_counts_from_the_options_reading_and_starts_no_prometheus() -> None:
    before = time.time()
    given = options("--pace", "2.5")
    assert given.pace.factor == 2.5
    assert before <= given.pace.origin_s <= time.time()
    assert (options().prometheus.binary, given.prometheus.binary) == ("auto", "none")
    assert given.pool.pace == REAL, "it is the run that tells its pool"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--pace", "0.5"), "--pace 0.5: real seconds that a model second takes, within 1 to 100"),
        (("--pace", "4", "--host", "https://h"), "--pace 4: the clock of a cluster that is there goes on"),
        (("--pace", "4", "--backend", "existing"), "--pace 4: the clock of a cluster that is there goes on"),
        (("--pace", "4", "--etcd-servers", "http://127.0.0.1:1"), "--pace 4: a real etcd"),
        (("--pace", "4", "--prometheus-url", "http://h"), "--pace 4: a Prometheus stamps in real time"),
        (("--pace", "4", "--prometheus", "/bin/p"), "--pace 4: a Prometheus stamps in real time"),
    ],
)
def test_what_cannot_be_slowed_down_is_refused(arguments: tuple[str, ...], why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        options(*arguments)
    assert str(refused.value).startswith(why)


def test_a_plan_brings_it_to_the_workers() -> None:
    plan = Plan(seed=1, kubelets=1, target=Target(()), pace=SLOW)
    assert plans.decode(plans.encode(plan)).pace == SLOW


# ---- what is slowed down -------------------------------------------------------------------------------------------
@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerContext]:
    """Of a worker that begins 400 s after the run."""
    system = SimpleNamespace(time=lambda: SLOW.origin_s + 400.0, monotonic=time.monotonic)
    monkeypatch.setattr(contexts, "time", system)
    target = Target((TargetMember("m", "127.0.0.1", 1),), tls=False)
    plan = Plan(seed=1, kubelets=1, target=target, pace=SLOW)
    made = WorkerContext(plan, 0, lambda **_: None, lambda kind, fields: None)
    yield made
    made.close()


def test_a_worker_s_clocks_are_the_models(context: WorkerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("harness.load.context.gevent.sleep", slept.append)
    assert context.timers.pace == SLOW
    assert context.epoch_s + context.timers.now() == pytest.approx(SLOW.origin_s + 100.0, abs=60.0)
    context.sleep(0.5)
    assert slept == [2.0]


def test_a_worker_reports_in_the_models_time_and_compares_clocks_in_real_time(context: WorkerContext) -> None:
    context.statistics.sample("kubelet", SimpleNamespace(name="pod_startup_ms", labels=(), value=1.0))  # type: ignore[arg-type]
    report = context.report()
    assert [row[0] for row in report["samples"]] == [SLOW.origin_s + 100.0]
    assert report["sent"] == SLOW.origin_s + 400.0


def test_dialling_waits_as_long_in_the_models_time(context: WorkerContext) -> None:
    plain, given = TransportOptions(), context.connector._options
    assert given.connect_timeout_s == 4 * plain.connect_timeout_s
    assert given.tls_handshake_timeout_s == 4 * plain.tls_handshake_timeout_s
    assert given.read_idle_s == plain.read_idle_s, "a timer's, which is slow by itself"


def test_a_fault_waits_for_its_time_in_the_models() -> None:
    begun: list[str] = []
    specs = [parse_spec("kill at=10ms"), parse_spec("stop at=0s")]
    faults = RunFaults(specs, lambda spec: begun.append(spec.fault.kind), Pace(100.0))
    faults.load_began()
    gevent.sleep(0.05)
    assert begun == ["stop"]
    faults.stop()


def test_kubelets_register_at_their_rate_in_the_models_time() -> None:
    shape: Any = object.__new__(ScenarioShape)
    asked = SimpleNamespace(kubelets=100, spawn_rate=50.0, pace=SLOW)
    session = SimpleNamespace(over=False, options=asked, helpers=2)
    shape.runner = SimpleNamespace(environment=SimpleNamespace(swarmlet_session=session))
    assert shape.tick() == (102, 12.5)


def test_a_certificate_is_valid_by_the_servers_time_of_day(tmp_path: Path) -> None:
    files = make_serving_files(tmp_path, ["localhost"], ["127.0.0.1"])
    certificate, key = Path(files.ca).read_bytes(), Path(files.ca_key).read_bytes()
    late = time.time() - 4000.0
    made = Authority(certificate, key, "here", 600.0, lambda: late).make("system:node:n", ("system:nodes",))
    found = x509.load_pem_x509_certificate(made[made.index(b"-----BEGIN CERTIFICATE") :])
    assert found.not_valid_before_utc.timestamp() < late < found.not_valid_after_utc.timestamp() < time.time()
