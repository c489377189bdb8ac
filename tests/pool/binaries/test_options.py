"""What a pool of binaries is asked for, and what goes with one backend alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.pool.emulated import PoolOptions
from harness.pool.flags import FLAGS, pool_options
from harness.wire.errors import ConfigError
from tests.pool.binaries.standin import install


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs where test tools look: a kube-apiserver and an etcd."""
    found = install(tmp_path / "assets", "kube-apiserver", "etcd")
    for name in ("TEST_ASSET_KUBE_APISERVER", "TEST_ASSET_ETCD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(found))
    return found


def options(**given: Any) -> PoolOptions:
    values = {flag.key: flag.initial for flag in FLAGS}
    return pool_options({**values, **given}, nodes=30, seed=1)


def test_without_a_word_a_pool_is_emulated() -> None:
    assert options().backend == "emulated"


def test_a_pool_of_binaries_has_an_etcd_of_its_own_and_any_feature_gate() -> None:
    made = options(backend="binaries", feature_gates="OnlyARealOneKnows=true", members=3)
    assert made.feature_gates == {"OnlyARealOneKnows": True}
    assert made.binaries.etcd(made.store).own_members == 1
    assert options(backend="binaries", etcd_servers="binary=3").store.own_members == 3
    running = options(backend="binaries", etcd_servers="http://127.0.0.1:2379")
    assert running.binaries.etcd(running.store).own_members is None


def test_etcd_is_taken_from_the_folder_that_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_ASSET_ETCD", "/elsewhere")
    made = options(backend="binaries", binaries_dir=str(folder))
    assert made.binaries.etcd(made.store).etcd_binary == str(folder / "etcd")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cores": "2"}, "--cores: only an emulated member has it, a real kube-apiserver"),
        ({"cost": ["get_cached_us=1"]}, "--cost: only an emulated"),
        ({"etcd": ["fsync_s=1"]}, "--etcd: only an emulated"),
        ({"node_authorizer": ["lag=5ms"]}, "--node-authorizer: only an emulated"),
        ({"protobuf_answers": "true"}, "--protobuf-answers: only an emulated"),
        ({"sign_csrs": "false"}, "--sign-csrs: only an emulated"),
        ({"fault": ["slow median=5ms"]}, "--fault slow: only an emulated member can do it"),
        ({"apiserver_flag": ["secure-port=1"]}, "--apiserver-flag secure-port: the pool sees to it"),
        ({"members": 10}, "members: 10 is not within 1 to 9"),
        ({"max_requests_inflight": "auto"}, "max-requests-inflight: auto follows from modelled cores"),
        ({"feature_gates": "A"}, "'A' is not NAME=true"),
        ({"binaries_dir": "/none"}, "--binaries-dir /none has none"),
        ({"etcd_servers": "127.0.0.1:1"}, "is no address of the form"),
    ],
)
def test_what_a_real_apiserver_cannot_be_asked_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        options(backend="binaries", **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"binaries_dir": "/x"}, "--binaries-dir: it is for real kube-apiservers, with --backend binaries"),
        ({"apiserver_flag": ["v=2"]}, "--apiserver-flag: it is for real"),
        ({"backend": "existing", "members": 3}, "--members: no pool is started for a cluster that is there"),
        ({"backend": "existing", "fault": ["slow median=5ms"]}, "--fault: no pool is started"),
        ({"backend": "real"}, "--backend 'real': none of emulated, binaries, existing"),
    ],
)
def test_other_backends_refuse_what_is_for_binaries(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        options(**given)


def test_without_an_etcd_it_is_said_how_to_get_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "etcd").unlink()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("harness.pool.etcd._of_the_extra", lambda: None)
    with pytest.raises(ConfigError, match=r"^etcd: there is no binary; .*swarmlet\[etcd\]"):
        options(backend="binaries")
