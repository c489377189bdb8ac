"""Fleets whose connections break or whose credentials end: HTTP/1.1 alone, a member that sends GOAWAY, a proxy that
cuts every connection, client certificates, a token.

Every kubelet recovers, no request is counted twice, and the record says how often what happened.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from harness.apiserver.auth.accounttokens import AccountTokens, Ref
from harness.compare.run import Run
from harness.observe.record import read_table
from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.stores import StoreOptions
from tests.cutting import CuttingProxy
from tests.load.plays import DEPLOYED, TINY, Outcome, Play, put_on

pytestmark = pytest.mark.slow

KUBELETS = 5  # as `plays.command` has it
WATCHES = 5  # of a kubelet without pods: its node, services, CSI drivers, runtime classes, pods
CUT_EVERY_S = 5.0
MADE_ONCE = ("nodes", "csinodes", "leases")
"""By kubelets, in the first seconds: what members count long before their last scrape, and nobody else makes."""


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
        DEPLOYED,
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


def renewed(folder: Path) -> Outcome:
    """Certificates that are due for renewal as soon as they are made, since their life began 5 min before."""
    lifetime = ("--identity", "certificate", "--cluster-signing-duration", "30")
    arguments = ("--scenario", "none", "--cores", "host", "-t", "25s", "--members", "2", *lifetime)
    return Play(folder, *arguments, "--json-file", str(folder)).end()


def refreshed(folder: Path) -> Outcome:
    """A master with two workers, and a token that ends while they run; its file is replaced before, and not looked at
    within the minute unless a server refuses the old one."""
    kubeconfig, file = folder.with_name("token.kubeconfig"), folder.with_name("token")
    store = StoreOptions(data_dir=str(folder.with_name("data")))
    options = PoolOptions(nodes=KUBELETS, cores="host", kubeconfig=str(kubeconfig), store=store)
    pool = EmulatedPool(options, lambda _: None)
    try:
        pool.start()
        grant(kubeconfig)
        file.write_text(token(folder.with_name("data"), 25))
        config = yaml.safe_load(kubeconfig.read_text())
        config["users"][0]["user"] = {"tokenFile": str(file)}
        kubeconfig.write_text(yaml.safe_dump(config))
        arguments = ("--scenario", "none", "-t", "32s", "--kubeconfig", str(kubeconfig))
        play = Play(folder, *arguments, "--json-file", str(folder), workers=2)
        play.wait_for_event("target-ready")
        fresh = file.with_suffix(".new")
        fresh.write_text(token(folder.with_name("data"), 600))
        fresh.replace(file)
        return play.end()
    finally:
        pool.stop()


RUNNER = "runner"  # of kube-system


def grant(kubeconfig: Path) -> None:
    """Make the service account an administrator, as the pool's own."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    binding = {
        "metadata": {"name": RUNNER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": RUNNER, "namespace": "kube-system"}],
    }
    request = urllib.request.Request(
        f"{cluster['server']}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        json.dumps(binding).encode(),
        {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"},
    )
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    with urllib.request.urlopen(request, context=ssl.create_default_context(cadata=authority)) as answer:
        assert answer.status == 201


def token(data: Path, seconds: int) -> str:
    """Of that account, signed by the pool's own key: the API gives none that ends so soon."""
    key = (data / "keys" / "token.key").read_bytes()
    return (
        AccountTokens(key, time.time, Random(seconds)).issue("kube-system", Ref(RUNNER, "1"), seconds).token
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Any]:
    folder = tmp_path_factory.mktemp("recovery")
    plays = (http1, goaway, cut, renewed, refreshed)
    return put_on(plays, folder, 3)


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
    for resource in MADE_ONCE:
        assert answered(outcome, "create", resource, 201) == counted_by_members(outcome, resource)


def counted_by_members(outcome: Outcome, resource: str) -> int:
    """Objects of a kind that were made since the members began, by their own count."""
    where = {"verb": "POST", "resource": resource, "code": "201"}
    frame = Run(outcome.record).frame("apiserver_request_total", where)
    return int(frame.ffill().iloc[-1].sum())


def answered(outcome: Outcome, verb: str, name: str, code: int) -> int:
    rows = read_table(outcome.record, "requests").to_pylist()
    keys = ("kubelet", verb, name, code)
    return sum(r["count"] for r in rows if (r["user"], r["verb"], r["name"], r["code"]) == keys)


def with_code(outcome: Outcome, code: int) -> int:
    rows = read_table(outcome.record, "requests").to_pylist()
    return sum(row["count"] for row in rows if row["code"] == code)


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
    for mounted in ("secrets", "configmaps"):
        opened = sum(answered(outcome, verb, mounted, 200) for verb in ("watch", "watchlist"))
        assert opened >= KUBELETS, f"pods of each node have {mounted}"


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


def test_certificates_are_renewed_before_they_end(results: Callable[[Any], Any]) -> None:
    outcome = results(renewed)
    assert_counted_once(outcome)
    assert with_code(outcome, 401) == 0
    samples = read_table(outcome.record, "samples").to_pylist()
    counts = Counter[tuple[str, str]]()
    for row in samples:
        counts[row["name"], row["labels"]] += row["count"]
    closed = counts["connections_closed", "why=new certificate"]
    assert closed >= KUBELETS, "each kubelet's at least once: it looks each 10 s"
    assert counts["certificate_signing_ms", ""] >= closed
    assert connections(outcome)["closed"] == closed
    assert "lost" not in connections(outcome)
    assert answered(outcome, "create", "nodes", 201) == KUBELETS


def test_a_token_that_ends_is_replaced_on_every_worker(results: Callable[[Any], Any]) -> None:
    outcome = results(refreshed)
    assert_counted_once(outcome)
    assert outcome.worker_codes == [0, 0]
    (renewal,) = outcome.events("credentials-renewed")
    refusals = with_code(outcome, 401)
    assert refusals >= 1, "what was sent before the fresh one came"
    assert outcome.events("credentials-refused"), "by whom the master heard of it"
    rows = read_table(outcome.record, "requests").to_pylist()
    after = [row for row in rows if row["t"] >= renewal["t"] + 3 and row["user"] == "kubelet"]
    assert sum(row["count"] for row in after if row["name"] == "leases" and row["code"] == 200) >= KUBELETS
    assert not any(row["code"] == 401 for row in after)
    assert outcome.manifest.marks == []
