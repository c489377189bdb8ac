"""All cases at once over a pool of three processes, by TLS, HTTP/2 and real time: over the embedded store, and over a
real etcd where there is one."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml

from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.etcd import find_etcd
from harness.pool.stores import StoreOptions
from harness.wire.errors import ConfigError
from tests.conformance.recorded import CASES, Step, described, replay
from tests.conformance.sockets import Address, SocketPool

pytestmark = pytest.mark.slow

# Each case was recorded on a fresh server: node-authorizer lists all services, and would see what these create.
AFTER_THE_OTHERS = ("services",)


class Access(NamedTuple):
    members: list[Address]
    ca_file: str
    token: str


def access(kubeconfig: Path, folder: Path) -> Access:
    """What a kubeconfig of a pool says."""
    document: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    clusters = [entry["cluster"] for entry in document["clusters"]]
    urls = [urlsplit(cluster["server"]) for cluster in clusters]
    ca_file = folder / "ca.crt"
    ca_file.write_bytes(base64.b64decode(clusters[0]["certificate-authority-data"]))
    token = document["users"][0]["user"]["token"]
    return Access([Address(url.hostname or "", url.port or 0) for url in urls], str(ca_file), token)


def replay_all(pool: Access, cases: tuple[str, ...]) -> list[Step]:
    """The steps of all cases, which run at the same time, each over connections of its own."""

    def run(numbered: tuple[int, str]) -> list[Step]:
        seed, case = numbered
        target = SocketPool(pool.members, pool.ca_file, seed)
        try:
            return list(replay(case, target, pool.token, shared=True))
        finally:
            target.close()

    with ThreadPoolExecutor(len(cases)) as threads:
        return [step for steps in threads.map(run, enumerate(cases)) for step in steps]


@pytest.fixture(params=["embedded store", "real etcd"])
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Access]:
    store = StoreOptions()
    if request.param == "real etcd":
        try:
            store = StoreOptions(etcd_servers="binary", etcd_binary=find_etcd())
        except ConfigError as error:
            pytest.skip(str(error))
    pool = EmulatedPool(PoolOptions(members=3, cores="host", store=store), lambda event: None)
    pool.start()
    try:
        yield access(pool.kubeconfig, tmp_path)
    finally:
        pool.stop()


def test_every_case_is_answered_as_the_real_server_did(started: Access) -> None:
    together = tuple(case for case in CASES if case not in AFTER_THE_OTHERS)
    steps = replay_all(started, together) + replay_all(started, AFTER_THE_OTHERS)
    assert not described(steps), described(steps)
