"""Fleets whose connections break or whose credentials end: HTTP/1.1 alone, a member that sends GOAWAY, a proxy that
cuts every connection, client certificates, a token.

Every kubelet recovers, no request is counted twice, and the record says how often what happened.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from harness.apiserver.auth.accounttokens import AccountTokens, Ref
from harness.compare.run import Run
from harness.observe.exposition import samples, split
from harness.observe.record import read_events, read_table
from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.stores import StoreOptions
from tests.conftest import DATA
from tests.cutting import CuttingProxy
from tests.load.plays import (
    AT_MOST,
    DEPLOYED,
    REST,
    TINY,
    WHOLE_RUNS,
    Outcome,
    Outcomes,
    Play,
    marks_but_for_the_host,
    put_on,
)

pytestmark = WHOLE_RUNS

HELD = str(DATA / "scenarios" / "held.yaml")
KUBELETS = 5  # as `plays.command` has it
WATCHES = 5  # of a kubelet without pods: its node, services, CSI drivers, runtime classes, pods
CUT_EVERY_S = 5.0
FIRST_TOKEN_S = 40
"""Longer than a slow machine takes to get to the run's first requests, and shorter than until the file is looked at."""
MADE_ONCE = ("nodes", "csinodes", "leases")
"""By kubelets, in the first seconds: what members count long before their last scrape, and nobody else makes."""
MOUNTED = ("secrets", "configmaps")

Watched = dict[str, int]
"""Watches that are open, by resource of `MOUNTED`."""


@dataclass
class Cut(Outcome):
    """`cuts` are the connections that were cut. `held`: what was watched at each cut while pods were there."""

    cuts: int = 0
    held: list[Watched] = field(default_factory=list)


def http1(folder: Path) -> Outcome:
    arguments = ("--scenario", TINY, "--cores", "host", *AT_MOST, "--http", "http/1.1")
    return Play(folder, *arguments, "--json-file", str(folder)).end()


def goaway(folder: Path) -> Outcome:
    arguments = (
        "--scenario",
        DEPLOYED,
        "--cores",
        "host",
        *AT_MOST,
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
        straight = kubeconfig.read_text()
        config = yaml.safe_load(straight)
        cluster = config["clusters"][0]["cluster"]
        host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
        with CuttingProxy((host, int(port))) as proxy:
            cluster["server"] = f"https://127.0.0.1:{proxy.port}"
            kubeconfig.write_text(yaml.safe_dump(config))
            arguments = ("--scenario", HELD, *AT_MOST, "--kubeconfig", str(kubeconfig))
            play = Play(folder, *arguments, "--json-file", str(folder))
            held = cut_until_the_end(play, proxy, straight)
            return Cut(**vars(play.end()), cuts=proxy.cuts, held=held)
    finally:
        pool.stop()


def cut_until_the_end(play: Play, proxy: CuttingProxy, kubeconfig: str) -> list[Watched]:
    """Every so many seconds, whatever is under way, once the target was found to be well. While the scenario holds its
    pods, a cut waits until everything is watched again."""
    play.wait_for_event("target-ready")
    held: list[Watched] = []

    def everything_is_watched() -> Watched | str:
        if not is_held(play.record):
            return "it is held no longer"
        found = watched(kubeconfig)
        least = held[0] if held else dict.fromkeys(MOUNTED, KUBELETS)
        return found if all(found[each] >= least[each] for each in MOUNTED) else ""

    while True:
        with suppress(subprocess.TimeoutExpired):
            play.master.wait(CUT_EVERY_S)
            return held
        if is_held(play.record):
            found = play.wait_for(everything_is_watched)
            held += [found] if isinstance(found, dict) else []
        proxy.cut()


def is_held(record: Path) -> bool:
    steps = [event["name"] for event in read_events(record) if event["kind"] == "step-started"]
    return steps[-1:] == ["hold"]


def watched(kubeconfig: str) -> Watched:
    """By a member's own count; only kubelets watch single ones."""
    counts = dict.fromkeys(MOUNTED, 0)
    for series, value in samples(ask(kubeconfig, "/metrics").decode()):
        name, labels = split(series)
        if name == "apiserver_longrunning_requests" and labels["resource"] in counts:
            counts[labels["resource"]] += int(value) if labels["scope"] == "resource" else 0
    return counts


def renewed(folder: Path) -> Outcome:
    """Certificates that are due for renewal as soon as they are made, since their life began 5 min before."""
    lifetime = ("--identity", "certificate", "--cluster-signing-duration", "30")
    play = Play(folder, *REST, "--members", "2", *lifetime, "--json-file", str(folder))
    play.wait_for(lambda: closed_for_a_new_certificate(folder) >= KUBELETS)
    return play.end_at_rest()


def refreshed(folder: Path) -> Outcome:
    """A master with two workers, and a token that ends while they run; its file is replaced before, and not looked at
    within the minute unless a server refuses the old one. It goes on until every kubelet has shown the new one."""
    kubeconfig, file = folder.with_name("token.kubeconfig"), folder.with_name("token")
    store = StoreOptions(data_dir=str(folder.with_name("data")))
    options = PoolOptions(nodes=KUBELETS, cores="host", kubeconfig=str(kubeconfig), store=store)
    pool = EmulatedPool(options, lambda _: None)
    try:
        pool.start()
        grant(kubeconfig.read_text())
        config = yaml.safe_load(kubeconfig.read_text())
        config["users"][0]["user"] = {"tokenFile": str(file)}
        kubeconfig.write_text(yaml.safe_dump(config))
        file.write_text(token(folder.with_name("data"), FIRST_TOKEN_S))
        arguments = ("--scenario", "none", "--kubeconfig", str(kubeconfig))
        play = Play(folder, *arguments, "--json-file", str(folder), workers=2)
        play.wait_for_event("target-ready")
        fresh = file.with_suffix(".new")
        fresh.write_text(token(folder.with_name("data"), 3600))
        fresh.replace(file)
        play.wait_for_event("credentials-renewed")
        play.wait_for(lambda: leases_since_the_last_refusal(folder) >= KUBELETS)
        return play.end_at_rest()
    finally:
        pool.stop()


RUNNER = "runner"  # of kube-system


def grant(kubeconfig: str) -> None:
    """Make the service account an administrator, as the pool's own."""
    binding = {
        "metadata": {"name": RUNNER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": RUNNER, "namespace": "kube-system"}],
    }
    ask(kubeconfig, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)


def ask(kubeconfig: str, path: str, made: dict[str, Any] | None = None) -> bytes:
    """What a member answers to its administrator, who makes something where `made` is given."""
    config = yaml.safe_load(kubeconfig)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    request = urllib.request.Request(
        f"{cluster['server']}{path}",
        None if made is None else json.dumps(made).encode(),
        {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"},
    )
    authority = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
    )
    with urllib.request.urlopen(request, timeout=60, context=authority) as answer:
        body: bytes = answer.read()
        return body


def token(data: Path, seconds: int) -> str:
    """Of that account, signed by the pool's own key: the API gives none that ends so soon."""
    key = (data / "keys" / "token.key").read_bytes()
    return (
        AccountTokens(key, time.time, Random(seconds)).issue("kube-system", Ref(RUNNER, "1"), seconds).token
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return put_on((refreshed, cut, renewed, goaway, http1), tmp_path_factory.mktemp("recovery"), 3)


# ---- what a record says ----------------------------------------------------------------------------------------------
def connections(outcome: Outcome) -> dict[str, int]:
    """Counts of all members together."""
    total: dict[str, int] = {}
    for counts in outcome.manifest.results["connections"].values():
        for what, number in counts.items():
            total[what] = total.get(what, 0) + number
    return total


def rows_of(record: Path) -> list[dict[str, Any]]:
    return read_table(record, "requests").to_pylist()


def answered(outcome: Outcome, verb: str, name: str, code: int) -> int:
    keys = ("kubelet", verb, name, code)
    rows = rows_of(outcome.record)
    return sum(r["count"] for r in rows if (r["user"], r["verb"], r["name"], r["code"]) == keys)


def with_code(outcome: Outcome, code: int) -> int:
    return sum(row["count"] for row in rows_of(outcome.record) if row["code"] == code)


def watches_opened(outcome: Outcome, resource: str) -> int:
    """By kubelets, each time it was answered."""
    return sum(answered(outcome, verb, resource, 200) for verb in ("watch", "watchlist"))


def counted_by_members(outcome: Outcome, resource: str) -> int:
    """Objects of a kind that were made since the members began, by their own count."""
    where = {"verb": "POST", "resource": resource, "code": "201"}
    frame = Run(outcome.record).frame("apiserver_request_total", where)
    return int(frame.ffill().iloc[-1].sum())


def sampled(record: Path) -> Counter[tuple[str, str]]:
    """How often each sample was taken, by name and labels."""
    counts = Counter[tuple[str, str]]()
    for row in read_table(record, "samples").to_pylist():
        counts[row["name"], row["labels"]] += row["count"]
    return counts


def closed_for_a_new_certificate(record: Path) -> int:
    return sampled(record)["connections_closed", "why=new certificate"]


def leases_since_the_last_refusal(record: Path) -> int:
    """Leases that kubelets renewed after the last 401, of which there was one."""
    rows = rows_of(record)
    refused = max(row["t"] for row in rows if row["code"] == 401)
    return sum(
        row["count"]
        for row in rows
        if row["t"] > refused and (row["user"], row["name"], row["code"]) == ("kubelet", "leases", 200)
    )


# ---- what holds for all ----------------------------------------------------------------------------------------------
def assert_counted_once(outcome: Outcome) -> None:
    assert outcome.code in (0, 4), outcome.output  # 4: this machine did not keep up, which is no matter here
    assert "Traceback" not in outcome.output
    entries = json.loads(outcome.record.with_suffix(".json").read_text())
    assert outcome.requests == sum(entry["num_requests"] for entry in entries)


def assert_made_once(outcome: Outcome) -> None:
    """Where no request is without its answer."""
    for resource in MADE_ONCE:
        assert answered(outcome, "create", resource, 201) == counted_by_members(outcome, resource)
    assert answered(outcome, "create", "nodes", 201) == KUBELETS


def assert_made_once_though_answers_were_lost(outcome: Outcome) -> None:
    """A creation whose answer was lost is asked for again, and refused (409) or found to be there."""
    for resource in MADE_ONCE:
        acknowledged = answered(outcome, "create", resource, 201)
        assert acknowledged <= counted_by_members(outcome, resource) <= KUBELETS
    acknowledged, refused = (answered(outcome, "create", "nodes", code) for code in (201, 409))
    assert acknowledged <= KUBELETS <= acknowledged + refused


# ---- what each of them shows -----------------------------------------------------------------------------------------
def test_http1_alone_is_enough(results: Outcomes) -> None:
    outcome = results(http1)
    assert_counted_once(outcome)
    assert_made_once(outcome)
    assert outcome.manifest.results["scenario"] == "Success"
    counts = connections(outcome)
    assert counts["dialled"] > KUBELETS * WATCHES, "a connection for each watch"
    assert "goaway" not in counts


def test_goaway_moves_connections_and_nothing_else(results: Outcomes) -> None:
    outcome = results(goaway)
    assert_counted_once(outcome)
    assert_made_once(outcome)
    assert outcome.manifest.results["scenario"] == "Success"
    counts = connections(outcome)
    assert counts["goaway"] > 0
    assert counts["redialled"] <= counts["goaway"]
    assert "lost" not in counts
    for mounted in MOUNTED:
        assert watches_opened(outcome, mounted) >= KUBELETS, f"pods of each node have {mounted}"


def test_every_kubelet_comes_back_after_every_cut(results: Outcomes) -> None:
    """Of its watches that the proxy found before a cut, none outlives it; pods are deleted by kubelets that are back
    after the last one."""
    outcome = results(cut)
    assert isinstance(outcome, Cut)
    assert_counted_once(outcome)
    assert_made_once_though_answers_were_lost(outcome)
    assert outcome.manifest.results["scenario"] == "Success", "nothing is lost"
    assert len(outcome.held) >= 2, "the second cut waited until all were back after the first"
    for mounted in MOUNTED:
        assert watches_opened(outcome, mounted) >= 2 * outcome.held[0][mounted] >= 2 * KUBELETS
    assert watches_opened(outcome, "pods") >= 2 * KUBELETS


def test_the_record_says_how_many_connections_were_cut(results: Outcomes) -> None:
    """Those that were being dialled, or carried nothing, are not lost; what was cut last may not be back."""
    outcome = results(cut)
    assert isinstance(outcome, Cut)
    counts = connections(outcome)
    assert KUBELETS * len(outcome.held) <= counts["lost"] <= outcome.cuts
    back = KUBELETS * (len(outcome.held) - 1)
    assert back <= counts["redialled"] <= counts["lost"], "each in place of one that was lost"


def test_certificates_are_renewed_before_they_end(results: Outcomes) -> None:
    outcome = results(renewed)
    assert_counted_once(outcome)
    assert_made_once_though_answers_were_lost(outcome)
    assert outcome.manifest.status == "completed"
    assert with_code(outcome, 401) == 0
    closed = closed_for_a_new_certificate(outcome.record)
    assert closed >= KUBELETS, "it looks each 10 s"
    assert sampled(outcome.record)["certificate_signing_ms", ""] >= closed
    counts = connections(outcome)
    assert 0 < counts["closed"] <= closed, "of one that is just being dialled there is nothing to close"
    assert "lost" not in counts


def test_a_token_that_ends_is_replaced_on_every_worker(results: Outcomes) -> None:
    outcome = results(refreshed)
    assert_counted_once(outcome)
    assert_made_once(outcome)
    assert outcome.worker_codes == [0, 0]
    assert outcome.manifest.status == "completed"
    assert len(outcome.events("credentials-renewed")) == 1
    assert with_code(outcome, 401) >= 1, "what was sent before the fresh one came"
    assert outcome.events("credentials-refused"), "by whom the master heard of it"
    assert leases_since_the_last_refusal(outcome.record) >= KUBELETS, (
        "a kubelet that is refused says so each 10 s"
    )
    assert marks_but_for_the_host(outcome) == []
