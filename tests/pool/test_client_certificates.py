"""Certificates against a real pool: the administrator's, a kubelet's that the pool signs, and one that has expired."""

from __future__ import annotations

import base64
import datetime
import http.client
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from harness.pool.certificates import ClientFiles, ServingFiles, make_client_files, write_private
from harness.pool.emulated import EmulatedPool, PoolOptions
from tests.apiserver.certificates import key, request

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def pool() -> Iterator[EmulatedPool]:
    started = EmulatedPool(
        PoolOptions(members=2, cores="host", credentials="certificate"), lambda event: None
    )
    started.start()
    yield started
    started.stop()


def material(pool: EmulatedPool, folder: Path) -> tuple[str, ClientFiles]:
    """The kubeconfig's authority and client, as files."""
    document = yaml.safe_load(pool.kubeconfig.read_text())
    user = document["users"][0]["user"]
    ca = document["clusters"][0]["cluster"]["certificate-authority-data"]
    assert set(user) == {"client-certificate-data", "client-key-data"}
    paths = [folder / name for name in ("ca.crt", "admin.crt", "admin.key")]
    for path, text in zip(paths, (ca, user["client-certificate-data"], user["client-key-data"]), strict=True):
        write_private(path, base64.b64decode(text))
    return str(paths[0]), ClientFiles(str(paths[1]), str(paths[2]))


def ask(
    pool: EmulatedPool, ca: str, client: ClientFiles | None, path: str, body: Any = None, member: int = 0
) -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=ca)
    if client is not None:
        context.load_cert_chain(client.cert, client.key)
    address = pool.members[member]
    connection = http.client.HTTPSConnection(address.host, address.port, timeout=WITHIN_S, context=context)
    try:
        raw = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, raw, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def whoami(pool: EmulatedPool, ca: str, client: ClientFiles | None, member: int = 0) -> tuple[int, Any]:
    status, answer = ask(pool, ca, client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, member)
    return status, answer.get("status")


def test_certificates_of_all_kinds(pool: EmulatedPool, tmp_path: Path) -> None:
    ca, admin = material(pool, tmp_path)
    for member in range(2):
        status, answer = whoami(pool, ca, admin, member)
        assert (status, answer["userInfo"]["username"]) == (201, "kubernetes-admin")
        assert "system:masters" in answer["userInfo"]["groups"]
    assert whoami(pool, ca, None)[0] == 403

    folder = Path(pool._folder)
    files = ServingFiles(
        *(str(folder / name) for name in ("ca.crt", "apiserver.crt", "apiserver.key", "ca.key"))
    )
    node = make_client_files(files, tmp_path, "system:node:n1", ["system:nodes"])
    signed = sign(pool, ca, node, tmp_path)
    status, answer = whoami(pool, ca, signed, member=1)
    assert (status, answer["userInfo"]["username"]) == (201, "system:node:n1")
    assert answer["userInfo"]["groups"] == ["system:nodes", "system:authenticated"]
    assert ask(pool, ca, signed, "/api/v1/namespaces/default/secrets/s")[0] == 403

    expired = make_client_files(files, tmp_path, "jane", [], datetime.timedelta(minutes=-5))
    assert whoami(pool, ca, expired) == (401, "Failure")


def sign(pool: EmulatedPool, ca: str, node: ClientFiles, folder: Path) -> ClientFiles:
    """Ask for a new certificate as a kubelet does, and wait for it."""
    spec = {
        "request": request("system:node:n1", ("system:nodes",)),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    }
    assert ask(pool, ca, node, REQUESTS, {"metadata": {"name": "n1"}, "spec": spec})[0] == 201
    until = time.monotonic() + WITHIN_S
    certificate = None
    while not certificate:
        assert time.monotonic() < until, "not signed in time"
        certificate = ask(pool, ca, node, f"{REQUESTS}/n1")[1]["status"].get("certificate")
    paths = folder / "new.crt", folder / "new.key"
    paths[0].write_bytes(base64.b64decode(certificate))
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    write_private(paths[1], key().private_bytes(pem, form, serialization.NoEncryption()))
    return ClientFiles(*map(str, paths))
