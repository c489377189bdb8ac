"""Fleets whose connections break: HTTP/1.1 alone, a member that sends GOAWAY, a proxy that cuts every connection.

Every kubelet recovers, no request is counted twice, and the record says how often what happened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.observe.record import read_table
from harness.pool.emulated import EmulatedPool, PoolOptions
from tests.cutting import CuttingProxy
from tests.load.plays import TINY, Outcome, Play

pytestmark = pytest.mark.slow

KUBELETS = 5  # as `plays.command` has it
WATCHES = 5  # of a kubelet without pods: its node, services, CSI drivers, runtime classes, pods
CUT_EVERY_S = 5.0


@dataclass
class Cut:
    outcome: Outcome
    cuts: int


def http1(folder: Path) -> Outcome:
    arguments = ("--scenario", TINY, "--cores", "host", "-t", "60s", "--http", "http/1.1")
    return Play(folder, *arguments, "--json-file", str(folder)).end()


def goaway(folder: Path) -> Outcome:
    arguments = (
        "--scenario",
        TINY,
        "--cores",
        "host",
        "-t",
        "60s",
        "--goaway-chance",
        "0.01",
        "--members",
        "2",
    )
    return Play(folder, *arguments, "--json-file", str(folder)).end()


def cut(folder: Path) -> Cut:
    """A pool of the test's own, reached through the proxy."""
    kubeconfig = folder.with_name("cut.kubeconfig")
    pool = EmulatedPool(PoolOptions(nodes=KUBELETS, cores="host", kubeconfig=str(kubeconfig)), lambda _: None)
    try:
        pool.start()
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
        with CuttingProxy((host, int(port)), CUT_EVERY_S) as proxy:
            cluster["server"] = f"https://127.0.0.1:{proxy.port}"
            kubeconfig.write_text(yaml.safe_dump(config))
            arguments = ("--scenario", "none", "-t", "18s", "--kubeconfig", str(kubeconfig))
            outcome = Play(folder, *arguments, "--json-file", str(folder)).end()
            return Cut(outcome, proxy.cuts)
    finally:
        pool.stop()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Any]:
    folder = tmp_path_factory.mktemp("recovery")
    with ThreadPoolExecutor(3) as executor:
        started = {play: executor.submit(play, folder / play.__name__) for play in (http1, goaway, cut)}
        for future in started.values():
            future.exception()
    return lambda play: started[play].result()


def connections(outcome: Outcome) -> dict[str, int]:
    """Counts of all members together."""
    total: dict[str, int] = {}
    for counts in outcome.manifest.results["connections"].values():
        for what, number in counts.items():
            total[what] = total.get(what, 0) + number
    return total


def assert_counted_once(outcome: Outcome) -> None:
    assert outcome.code in (0, 4), outcome.output  # 4: this machine did not keep up, which is no matter here
    assert "Traceback" not in outcome.output
    entries = json.loads(outcome.record.with_suffix(".json").read_text())
    assert outcome.requests == sum(entry["num_requests"] for entry in entries)


def answered(outcome: Outcome, verb: str, name: str, code: int) -> int:
    rows = read_table(outcome.record, "requests").to_pylist()
    keys = ("kubelet", verb, name, code)
    return sum(r["count"] for r in rows if (r["user"], r["verb"], r["name"], r["code"]) == keys)


def test_http1_alone_is_enough(results: Callable[[Any], Any]) -> None:
    outcome = results(http1)
    assert_counted_once(outcome)
    assert outcome.manifest.results["scenario"] == "Success"
    counts = connections(outcome)
    assert counts["dialled"] > KUBELETS * WATCHES, "a connection for each watch"
    assert "goaway" not in counts


def test_goaway_moves_connections_and_nothing_else(results: Callable[[Any], Any]) -> None:
    outcome = results(goaway)
    assert_counted_once(outcome)
    assert outcome.manifest.results["scenario"] == "Success"
    counts = connections(outcome)
    assert counts["goaway"] > 0
    assert counts["redialled"] <= counts["goaway"]
    assert "lost" not in counts
    assert answered(outcome, "create", "nodes", 201) == KUBELETS


def test_every_kubelet_comes_back_after_every_cut(results: Callable[[Any], Any]) -> None:
    outcome, cuts = results(cut).outcome, results(cut).cuts
    assert_counted_once(outcome)
    counts = connections(outcome)
    assert counts["lost"] <= cuts
    assert counts["redialled"] == counts["lost"], "each is back, and none of them twice"
    assert answered(outcome, "create", "nodes", 201) == KUBELETS
    opened = sum(answered(outcome, verb, "pods", 200) for verb in ("watch", "watchlist"))
    assert opened >= 2 * KUBELETS
    assert opened % KUBELETS == 0, "every kubelet's watch, after every cut"
