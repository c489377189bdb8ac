"""Kubelets renew their client certificates against real members over TLS, whoever signed the first one: all connections
are closed, the next ones show the new certificate, every watch begins anew, and cleanup removes the requests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gevent
import msgspec
import pytest
from gevent.event import AsyncResult

from harness.client.machine import Sample
from harness.client.requests import CERTIFICATESIGNINGREQUESTS, ResourceRef, create_, list_
from harness.client.rest import Rest
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.load.cluster.cleanup import find, remove
from harness.load.cluster.errands import Errands
from harness.load.context import WorkerContext
from harness.load.identity.rotation import renewal_of
from harness.load.identity.shown import Identities
from harness.load.plan import Identity, Plan
from harness.load.shell import Shell
from harness.load.target import existing_target
from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.transport.pool import Transport
from harness.wire.request import Response
from tests.conftest import HANG_S

pytestmark = pytest.mark.slow

GROUPS = ("system:nodes",)
REVIEWS = ResourceRef("authentication.k8s.io", "v1", "selfsubjectreviews")
WATCHES = {"nodes", "services", "csidrivers", "runtimeclasses", "pods"}
LIFE_S = 33  # of every certificate: as long as may be for over nine tenths of a life that began 5 min before


@dataclass
class Node:
    """One kubelet, running."""

    name: str
    transport: Transport
    shell: Shell
    closed: list[str] = field(default_factory=list)
    shown_at_first: str = ""

    def noted(self, item: object) -> None:
        if isinstance(item, Sample) and item.name == "connections_closed":
            self.closed.append(dict(item.labels)["why"])


@dataclass
class Fleet:
    """What a worker counts, by node where it can be told."""

    context: WorkerContext
    errands: Errands
    nodes: list[Node] = field(default_factory=list)
    watched: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, transport: Transport) -> None:
        renewal = renewal_of(transport, f"system:node:{name}", GROUPS)
        assert renewal is not None
        context, options = self.context, self.context.kubelet_options
        kubelet = Kubelet(name, options, context.rng(name), context.epoch_s, certificate=renewal)
        rest = Rest(kubelet, kubelet_limiters(options), content=options.content_type)
        node = Node(name, transport, None)  # type: ignore[arg-type]  # its shell tells the node
        node.shell = Shell(
            *("kubelet", rest, transport, context.timers, context.statistics),
            *(node.noted, lambda _: None, _raise, renewal.accept),
        )
        node.shown_at_first = shown(transport)
        self.nodes.append(node)
        node.shell.start()

    def fired(self, request_type: str, name: str, exception: object = None, **_: Any) -> None:
        if request_type.startswith("WATCH") and exception is None:
            self.watched[name] += 1


def _raise(error: Exception) -> None:
    raise error


def shown(transport: Transport) -> str:
    """The certificate by which the server knows who asks."""
    result: AsyncResult = AsyncResult()
    request = create_(REVIEWS, None, b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}')
    transport.unary(msgspec.structs.replace(request, timeout_s=HANG_S), result.set)
    answer = result.get()
    assert isinstance(answer, Response), answer
    user = msgspec.json.decode(answer.body)["status"]["userInfo"]
    assert user["username"].startswith("system:node:"), user
    return str(user["extra"]["authentication.kubernetes.io/credential-id"][0])


def wait(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < until, f"not within {HANG_S:g} s: {what}"
        gevent.sleep(0.05)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """A node whose first certificate the cluster signed, and one that an authority of ours made it for."""
    kubeconfig = tmp_path / "kubeconfig"
    options = PoolOptions(members=2, cores="host", kubeconfig=str(kubeconfig), signing_duration_s=LIFE_S)
    pool = EmulatedPool(options, lambda _: None)
    pool.start()
    target = existing_target("", str(kubeconfig), ()).target
    ca, key = ((Path(pool._folder) / name).read_text() for name in ("ca.crt", "ca.key"))
    fired: list[Callable[..., None]] = []
    plan = Plan(seed=1, kubelets=2, target=target, identity=Identity("certificate"), run="r1")
    context = WorkerContext(plan, 0, lambda **fields: fired[0](**fields), lambda kind, fields: None)
    with Errands(target, HANG_S) as errands:
        made = Fleet(context, errands)
        fired.append(made.fired)
        made.add("by-the-api", context.transport("kubelet", "system:node:by-the-api", GROUPS))
        own = Identities(Identity("certificate", {}, ca, key), context.connector, "r1", context.ask, LIFE_S)
        certified = own.of("system:node:by-a-ca", GROUPS)
        rng = context.rng("by-a-ca")
        transport = context.connector.transport("kubelet", rng, tls=certified.tls, bearer=certified.bearer)
        made.add("by-a-ca", transport)
        try:
            yield made
        finally:
            for node in made.nodes:
                node.shell.stop()
            context.close()
            pool.stop()


def test_renewals_over_tls(fleet: Fleet) -> None:
    """One test, as a renewal takes ten seconds: that is how often a kubelet looks for one."""
    renewed(fleet)
    removed(fleet)


def renewed(fleet: Fleet) -> None:
    """A renewed certificate closes all connections and is shown by the next."""
    wait(lambda: set(fleet.watched) >= WATCHES, "every watch")
    wait(lambda: all(node.closed for node in fleet.nodes), "a renewal of each node")
    wait(lambda: all(fleet.watched[name] >= 4 for name in WATCHES), "each watch of both nodes, twice")
    for node in fleet.nodes:
        assert set(node.closed) == {"new certificate"}
        assert shown(node.transport) != node.shown_at_first, node.name
    taken = fleet.context.connector.tally.take()
    assert sum(counts.get("closed", 0) for counts in taken.values()) >= 2
    assert not any({"lost", "dial-failed"} & set(counts) for counts in taken.values())


def removed(fleet: Fleet) -> None:
    """Requests are removed with the run, and no others; after the kubelets have stopped, which would go on making
    them."""
    for node in fleet.nodes:
        node.shell.stop()
    errands = fleet.errands
    everything = requests_there(errands)
    assert {labels.get("swarmlet.io/run") for labels in everything.values()} == {"r1"}
    assert {name.partition("-")[0] for name in everything} == {"swarmlet", "csr"}, "first ones, and renewals"
    foreign = {**next(iter_bodies(errands)), "metadata": {"name": "somebodys"}}
    answer = errands.ask(create_(CERTIFICATESIGNINGREQUESTS, None, msgspec.json.encode(foreign)))
    assert isinstance(answer, Response)
    assert answer.status == 201, answer.body
    found = find(errands, "r1")
    assert {made.name for made in found.objects if made.ref.resource == "certificatesigningrequests"} == set(
        everything
    )
    remove(errands, found.objects)
    assert set(requests_there(errands)) == {"somebodys"}


def iter_bodies(errands: Errands) -> Iterator[dict[str, Any]]:
    answer = errands.ask(list_(CERTIFICATESIGNINGREQUESTS))
    assert isinstance(answer, Response)
    for item in msgspec.json.decode(answer.body)["items"]:
        spec = {name: item["spec"][name] for name in ("request", "signerName", "usages")}
        yield {"metadata": item["metadata"], "spec": spec}


def requests_there(errands: Errands) -> dict[str, dict[str, str]]:
    """Labels by name."""
    metadata = [body["metadata"] for body in iter_bodies(errands)]
    return {each["name"]: each.get("labels", {}) for each in metadata}
