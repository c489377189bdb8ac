"""Each kind of difference between two arms, planted in records that are equal otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.compare.guard import Finding, guard
from harness.compare.run import Run
from harness.observe.record import SERIES, Manifest, Mark, Parts
from tests.records import START, make_record

Change = Callable[[Manifest], object]


def runs(
    folder: Path, arm: str, *, members: int = 1, change: Change = lambda _: None, of: int = 2
) -> list[Run]:
    """`of` samples of an arm; `change` is done to the manifest of the second."""
    made = []
    for sample in (1, 2)[:of]:
        path = make_record(folder / f"{arm}-{sample}", arm=arm, sample=sample, members=members)
        manifest = msgspec.json.decode((path / "manifest.json").read_bytes(), type=Manifest)
        manifest.seed = sample
        manifest.host = {"system": "Linux", "cores": 2, "memory_bytes": 4, "load_average": [0.2, 0, 0]}
        manifest.arguments = {"options": {"pool": {"members": members, "cores": "auto"}, "record": str(path)}}
        manifest.versions = {"swarmlet": "0.1.0"}
        if sample == 2:
            change(manifest)
        (path / "manifest.json").write_bytes(msgspec.json.encode(manifest))
        made.append(Run(path))
    return made


def findings(folder: Path, change: Change, **kwargs: Any) -> list[Finding]:
    arms = {"a": runs(folder, "a"), "b": runs(folder, "b", change=change)}
    return guard(arms, **kwargs)


def test_equal_arms_have_no_findings(tmp_path: Path) -> None:
    assert findings(tmp_path, lambda _: None) == []


def test_what_is_declared_may_differ_and_what_is_not_may_not(tmp_path: Path) -> None:
    arms = {"one": runs(tmp_path, "one"), "ha": runs(tmp_path, "ha", members=3)}
    assert guard(arms, ["pool.members"]) == []
    assert {finding.what: finding.values for finding in guard(arms)} == {
        "pool.members": {"one": "1", "ha": "3"},  # and nothing of target.members, which follows
    }


@pytest.mark.parametrize(
    ("change", "what", "in_b"),
    [
        (lambda m: setattr(m, "nodes", 11), "nodes", "10 and 11"),
        (lambda m: m.versions.update(swarmlet="0.2.0"), "version.swarmlet", "0.1.0 and 0.2.0"),
        (lambda m: m.host.update(cores=8), "host.cores", "2 and 8"),
        (lambda m: m.arguments["options"]["pool"].update(cores="host"), "pool.cores", "auto and host"),
        (lambda m: m.arguments["options"].update(http="1.1"), "http", "– and 1.1"),
        (lambda m: m.scenario.update(path="/x/load.yaml"), "scenario", "none and load.yaml"),
    ],
)
def test_a_setting_that_differs_is_named_in_the_arm_and_between_them(
    tmp_path: Path, change: Change, what: str, in_b: str
) -> None:
    found = [finding for finding in findings(tmp_path, change) if finding.what == what]
    assert [finding.within for finding in found] == ["b", ""]
    assert found[1].values["b"] == in_b


def test_what_follows_from_a_difference_is_not_one_more(tmp_path: Path) -> None:
    def more(manifest: Manifest) -> None:
        manifest.nodes = 11
        manifest.arguments["options"].update(kubelets=11)
        manifest.arguments["options"]["pool"].update(nodes=11)
        manifest.target["cores"] = 0.6

    assert {finding.what for finding in findings(tmp_path, more)} == {"kubelets"}


def test_a_clock_that_goes_slower_in_one_arm_is_found_and_its_origin_is_each_runs_own(tmp_path: Path) -> None:
    def paced(factor: float) -> Change:
        return lambda m: m.arguments["options"].update(
            pace={"factor": factor, "origin_s": m.started + factor}
        )

    arms = {
        "a": runs(tmp_path, "a", change=paced(4.0), of=2)[1:],
        "b": runs(tmp_path, "b", change=paced(8.0), of=2)[1:],
    }
    assert [(finding.what, finding.values) for finding in guard(arms)] == [
        ("pace.factor", {"a": "4.0", "b": "8.0"})
    ]
    equal = {"a": arms["a"], "c": runs(tmp_path, "c", change=paced(4.0), of=2)[1:]}
    assert guard(equal) == []


def test_the_resolved_scenario_counts_and_not_only_its_path(tmp_path: Path) -> None:
    found = findings(tmp_path, lambda m: m.scenario.update(resolved={"steps": 3}))
    assert {finding.what for finding in found} == {"scenario.resolved"}


def test_seeds_are_compared_over_all_samples(tmp_path: Path) -> None:
    arms = {"a": runs(tmp_path, "a"), "b": runs(tmp_path, "b", of=1)}
    assert [(finding.what, finding.values) for finding in guard(arms)] == [("seeds", {"a": "1, 2", "b": "1"})]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("member-restarted", "restarts of apiservers"),
        ("process-exited", "processes that ended unasked"),
        ("worker-lost", "processes that ended unasked"),
        ("fault-started", "faults"),
    ],
)
def test_what_happened_in_one_arm_alone(tmp_path: Path, kind: str, what: str) -> None:
    arms = {"a": runs(tmp_path, "a"), "b": runs(tmp_path, "b")}
    arms["b"][1].events.append({"t": START, "kind": kind, "process": "member-0"})
    assert [(finding.what, finding.values) for finding in guard(arms)] == [(what, {"a": "0", "b": "1"})]
    assert guard(arms, ["faults"]) == [] or kind != "fault-started"


def test_a_restart_is_seen_by_the_members_own_start_time(tmp_path: Path) -> None:
    arms = {"a": runs(tmp_path, "a"), "b": runs(tmp_path, "b")}
    for arm in arms.values():
        for run in arm:
            parts = Parts(run.folder / "series", SERIES)
            for t in (START, START + 5, START + 10):
                restarted = run.folder.name == "b-2" and t == START + 10
                parts.add(
                    (t, "member-0", "process_start_time_seconds", START + 7 if restarted else START - 9)
                )
            parts.flush()
    assert [(finding.what, finding.values) for finding in guard(arms)] == [
        ("restarts of apiservers", {"a": "0", "b": "1"})
    ]


def test_a_metric_that_one_arm_does_not_expose(tmp_path: Path) -> None:
    arms = {"a": runs(tmp_path, "a"), "b": runs(tmp_path, "b")}
    for run in arms["a"]:
        parts = Parts(run.folder / "series", SERIES)
        parts.add((START, "member-0", "go_goroutines", 900.0))
        parts.add((START, "member-0", "apiserver_first_event_total", 1.0))
        if run.folder.name == "a-1":
            parts.add((START, "member-0", "seen_once", 1.0))
        parts.flush()
    assert [(finding.what, finding.values) for finding in guard(arms)] == [
        ("metrics", {"a": "exposed", "b": "not exposed: go_goroutines"})
    ]


def test_an_overloaded_host(tmp_path: Path) -> None:
    def late(manifest: Manifest) -> None:
        manifest.marks.append(Mark("invalid: host could not keep up (9 % of jobs late)", invalid=True))
        manifest.host["load_average"] = [3.0, 0, 0]

    found = {finding.what: finding.values for finding in findings(tmp_path, late)}
    assert found["overloaded host"]["a"] == "kept up"
    assert "1 of 2 samples: invalid: host could not keep up (9 %" in found["overloaded host"]["b"]
    assert found["host's load at the start"] == {"a": "idle", "b": "1 of 2 samples, up to 1.5 a core"}


def test_a_busy_host_is_nothing_to_a_run_over_virtual_time(tmp_path: Path) -> None:
    def virtual(manifest: Manifest) -> None:
        manifest.target = {"backend": "virtual", "members": [{"name": "member-0"}]}
        manifest.host["load_average"] = [3.0, 0, 0]

    assert "host's load at the start" not in {finding.what for finding in findings(tmp_path, virtual)}


def test_an_arm_without_runs_is_not_compared(tmp_path: Path) -> None:
    assert guard({"a": runs(tmp_path, "a"), "b": []}) == []


def test_a_sample_that_was_run_again_counts_once(tmp_path: Path) -> None:
    """Both arms have one fault a sample and the same seeds; of arm b sample 1 was run twice."""

    def faulty(arm: str, *samples: int) -> list[Run]:
        made = []
        for number, sample in enumerate(samples):
            path = make_record(tmp_path / arm / f"{sample}-{number}", arm=arm, sample=sample)
            with (path / "events.jsonl").open("ab") as events:
                events.write(
                    b'{"t":1000021,"kind":"fault-started","fault":"stall","member":"member-0","seconds":1}\n'
                )
            manifest = msgspec.json.decode((path / "manifest.json").read_bytes(), type=Manifest)
            manifest.seed = sample
            (path / "manifest.json").write_bytes(msgspec.json.encode(manifest))
            made.append(Run(path))
        return made

    assert guard({"a": faulty("a", 1, 2), "b": faulty("b", 1, 2, 1)}) == []


# ---- pools of binaries -----------------------------------------------------------------------------------------------
def of_binaries(version: str, folder: str = "", pid: int = 1) -> Change:
    """A target as a pool of binaries describes it; `pid` stands for all that differs from pool to pool."""

    def change(manifest: Manifest) -> None:
        manifest.arguments["options"]["pool"].update(backend="binaries", binaries={"folder": folder})
        manifest.target.update(
            backend="binaries",
            binaries={"kube-apiserver": {"path": f"{folder}/kube-apiserver", "version": version}},
            processes={"etcd-0": pid},
            command_lines={"member-0": [f"--secure-port={pid}"]},
            signs={"cert": f"/tmp/{pid}"},
            front=[{"port": pid}],
            store={"kind": "etcd", "members": [{"name": "etcd-0", "pid": pid, "url": f"http://h:{pid}"}]},
            balancer={"kind": "haproxy"},
        )

    return change


def both(folder: Path, one: Change, other: Change, declared: tuple[str, ...] = ()) -> list[str]:
    arms = {"a": runs(folder, "a", of=1), "b": runs(folder, "b", of=1)}
    for found, change in zip(arms.values(), (one, other), strict=True):
        change(found[0].manifest)
    return [finding.what for finding in guard(arms, declared)]


def test_pids_ports_and_files_of_two_pools_of_binaries_are_no_difference(tmp_path: Path) -> None:
    assert both(tmp_path, of_binaries("v1.36.2", pid=1), of_binaries("v1.36.2", pid=2)) == []


def test_another_version_is_found_and_with_another_folder_follows_from_that(tmp_path: Path) -> None:
    before, after = of_binaries("v1.35.0"), of_binaries("v1.36.2")
    assert both(tmp_path / "path", before, after) == ["target.binaries.kube-apiserver.version"]
    there = of_binaries("v1.36.2", folder="/opt/1.36")
    assert both(tmp_path / "folder", before, there) == ["pool.binaries.folder"]


def test_an_emulated_and_a_real_pool_differ_in_the_backend_and_what_follows(tmp_path: Path) -> None:
    found = both(
        tmp_path, lambda m: m.arguments["options"]["pool"].update(backend="emulated"), of_binaries("v1")
    )
    assert "pool.backend" in found
    assert not any(what.startswith("target.") for what in found)
