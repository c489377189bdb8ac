"""CPU and memory of containers: percentiles of their samples, limits and what exceeds them."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from harness.clusterloader.resourceusage import (
    Constraint,
    Looks,
    figures,
    read_constraints,
    summarize,
    violation,
)
from harness.clusterloader.series import Series
from harness.clusterloader.template import TemplateProvider
from harness.wire.errors import ConfigError

MIB = 1 << 20
API = "member-0/kube-apiserver"


def looks(cores: list[float], memory: list[float] | None = None, every_s: float = 5.0) -> Looks:
    """A process that used so many cores before each look but the first, with such a memory at each."""
    times = tuple(every_s * index for index in range(len(cores) + 1))
    counter = [0.0]
    for used in cores:
        counter.append(counter[-1] + used * every_s)
    held = memory or [float(MIB)] * len(times)
    return Looks(times, Series({}, times, counter), Series({}, times, held))


def test_samples_are_growth_between_looks_and_percentiles_are_of_each_for_itself() -> None:
    memory = [1.0, 50.0, 40.0, 30.0, 20.0]
    summary = summarize({API: looks([0.1, 0.4, 0.2, 0.3], memory)}, 0.0, 20.0)
    found = {percentile: (usage.cpu, usage.memory) for percentile, (usage,) in summary.items()}
    assert found == {
        "50": (pytest.approx(0.2), 30),
        "90": (pytest.approx(0.4), 50),
        "99": (pytest.approx(0.4), 50),
        "100": (pytest.approx(0.4), 50),
    }


@pytest.mark.parametrize(("count", "index"), [(1, 0), (99, 98), (100, 98), (101, 99), (200, 197)])
def test_the_99th_percentile_is_the_smallest_that_99_of_100_do_not_exceed(count: int, index: int) -> None:
    cores = [(number + 1) / 100 for number in range(count)]
    (usage,) = summarize({API: looks(cores)}, 0.0, 1e9)["99"]
    assert usage.cpu == pytest.approx(cores[index])


def test_only_looks_between_start_and_gather_count_with_the_one_before_as_their_base() -> None:
    (usage,) = summarize({API: looks([9.0, 0.5, 9.0])}, 5.0, 10.0)["100"]
    assert usage.cpu == pytest.approx(0.5)


def test_a_process_that_was_restarted_used_what_it_shows() -> None:
    times = (0.0, 5.0)
    found = Looks(times, Series({}, times, (100.0, 2.0)), Series({}, times, (1.0, 1.0)))
    (usage,) = summarize({API: found}, 0.0, 5.0)["100"]
    assert usage.cpu == pytest.approx(0.4)


def test_what_was_looked_at_once_is_left_out_and_of_nothing_there_is_no_summary() -> None:
    once = looks([])
    assert summarize({API: once}, -1.0, 9.0) == {}
    summary = summarize({API: once, "etcd-0/etcd": looks([1.0])}, -1.0, 9.0)
    assert [usage.name for usage in summary["50"]] == ["etcd-0/etcd"]


def test_the_layout_is_upstreams_by_percentile_and_name() -> None:
    summary = summarize({"b/kube-apiserver": looks([0.5]), "a/etcd": looks([0.25])}, 0.0, 5.0)
    assert list(summary) == ["50", "90", "99", "100"]
    assert msgspec.to_builtins(summary)["50"] == [
        {"Name": "a/etcd", "CPU": 0.25, "Mem": MIB},
        {"Name": "b/kube-apiserver", "CPU": 0.5, "Mem": MIB},
    ]
    assert figures(summary)["a/etcd CPU perc99, cores"] == 0.25
    assert figures(summary)["a/etcd memory perc99, MiB"] == 1.0


@pytest.mark.parametrize(
    ("cpu", "memory", "told"),
    [
        (0.5, MIB, ""),
        (0, 0, ""),
        (0.25, 0, "container member-0/kube-apiserver is using 0.5/0.25 CPU"),
        (0, MIB // 2, "container member-0/kube-apiserver is using 1/0.5 MB of memory"),
    ],
)
def test_a_limit_holds_for_the_99th_percentile_and_0_is_none(cpu: float, memory: int, told: str) -> None:
    summary = summarize({API: looks([0.5])}, 0.0, 5.0)
    missed = violation(summary, {"kube-apiserver": Constraint(cpu, memory), "etcd": Constraint(0.001, 1)})
    assert missed == (f"resource constraints: 1 constraints violated: [{told}]" if told else "")


def test_everything_above_its_limit_is_named() -> None:
    summary = summarize({API: looks([0.5]), "member-1/kube-apiserver": looks([0.75])}, 0.0, 5.0)
    missed = violation(summary, {"kube-apiserver": Constraint(0.1)})
    assert missed == (
        "resource constraints: 2 constraints violated: [container member-0/kube-apiserver is using 0.5/0.1 CPU "
        "container member-1/kube-apiserver is using 0.75/0.1 CPU]"
    )


def constraints(folder: Path, text: str, nodes: int = 100) -> dict[str, Constraint]:
    (folder / "limits.yaml").write_text(text)
    return read_constraints(TemplateProvider(folder, random.Random(1)), "limits.yaml", nodes)


def test_limits_are_a_template_that_knows_the_number_of_nodes(tmp_path: Path) -> None:
    text = "etcd:\n  cpuConstraint: {{MultiplyFloat 0.01 .Nodes}}\nkube-apiserver: {memoryConstraint: 1024}\n"
    assert constraints(tmp_path, text) == {
        "etcd": Constraint(1.0, 0),
        "kube-apiserver": Constraint(0.0, 1024),
    }
    assert constraints(tmp_path, "") == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- etcd\n", "limits.yaml: resourceConstraints: expected limits by the container's name"),
        ("etcd:\n  cpuConstraint: much\n", "limits.yaml:2: cpuConstraint: expected `float`"),
        (
            "etcd:\n  cpuConstraints: 1\n",
            "limits.yaml:2: cpuConstraints: no such key; did you mean cpuConstraint?",
        ),
    ],
)
def test_what_is_no_limit_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match="limits") as caught:
        constraints(tmp_path, text)
    assert told in str(caught.value)
