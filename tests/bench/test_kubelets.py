"""What the benchmark makes of what it has measured; and one of four kubelets for real."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from harness.bench.kubelets import Bench, BenchOptions, Phase, Result, bad_answers
from harness.bench.table import print_result
from harness.bench.usage import Usage
from harness.load import openfiles
from harness.wire.errors import ConfigError

MB = 2**20


def a_result() -> Result:
    result = Result(BenchOptions(nodes=100, members=1), baseline_bytes=50 * MB)
    result.watches = {"member-0": 3500.0}
    for name, load_s, events in (("at rest", 0.2, 100.0), ("events", 0.5, 3100.0)):
        used = {
            "load": Usage(load_s, 60 * MB),
            "member-0": Usage(0.1, 80 * MB),
            "store": Usage(0.01, 20 * MB),
        }
        result.phases.append(Phase(name, 60.0, used, {"member-0": events}))
    result.delivery.add(1500.0)
    return result


def test_costs_are_of_the_load_process_less_what_it_was_before_and_does_at_rest() -> None:
    result = a_result()
    assert result.memory_a_kubelet_kb == pytest.approx(10 * 1024 / 100)
    assert result.rest_cpu_ms == pytest.approx(0.2e3 / 60 / 100)
    assert result.event_cpu_us == pytest.approx(0.3e6 / 3000)


def test_too_few_events_have_no_price() -> None:
    result = a_result()
    result.phases[1].events["member-0"] = 150.0
    assert result.event_cpu_us is None


def test_what_registering_always_brings_is_no_error() -> None:
    answers = {"404 get nodes": 5, "409 create nodes": 1, "200 get nodes": 9, "201 create pods": 1}
    bad = {"0 update leases": 2, "403 watch secrets": 3, "429 get pods": 1, "500 get pods": 1}
    assert bad_answers({**answers, **bad}) == bad


def test_the_table_has_every_process_and_every_aim() -> None:
    console = Console(record=True, width=140)
    result = a_result()
    result.answers = {"0 update leases": 2}
    print_result(result, console)
    text = console.export_text()
    for word in ("load", "member-0", "store", "3,500", "KB", "0.033 ms", "100.0 us", "2 x 0 update leases"):
        assert word in text, word


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"watches": 3}, "--watches 3"),
        ({"nodes": 0}, "--nodes must"),
        ({"duration_s": 5.0}, "--duration"),
        ({"duration_s": float("nan")}, "--duration"),
        ({"spawn_rate": 0.0}, "--rate"),
        ({"members": 99}, "members: 99"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_started(
    options: dict[str, float], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        Bench(BenchOptions(**options), lambda _: None).run()  # type: ignore[arg-type]


def test_too_few_open_files_are_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openfiles, "hard_limit", lambda: 1000)
    with pytest.raises(ConfigError, match=r"--nodes 5000: needs 5150 open files .* enough for 850 kubelets"):
        BenchOptions(nodes=5000).validate()


def test_a_fleet_of_four_holds_its_watches_and_leaves_nothing_behind(tmp_path: Path) -> None:
    lines: list[str] = []
    result = Bench(BenchOptions(4, 12, 2, 10.0, 20.0, 60.0), lines.append).run()
    assert sum(result.watches.values()) == 4 * 12
    assert result.errors == {}
    assert result.failures == []
    assert set(result.phases[1].used) == {"load", "store", "member-0", "member-1"}
    assert any("all up: 48 watches" in line for line in lines)
