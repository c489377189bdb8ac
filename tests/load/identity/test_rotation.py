"""A renewed certificate is shown by the connections that follow, with the key that was made for it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from harness.load.connect import Connector
from harness.load.identity.authority import Authority
from harness.load.identity.rotation import Renewal, renewal_of
from harness.load.plan import Target, TargetMember
from harness.pool.certificates import ServingFiles, make_serving_files
from harness.transport.endpoints import Endpoint, Endpoints
from harness.transport.pool import Transport
from harness.transport.timers import Timers
from harness.transport.tls import ClientTls

NODE, GROUPS = "system:node:n1", ("system:nodes",)


@pytest.fixture
def files(tmp_path: Path) -> ServingFiles:
    return make_serving_files(tmp_path, ["localhost"], ["127.0.0.1"])


@pytest.fixture
def timers() -> Iterator[Timers]:
    made = Timers()
    yield made
    made.close()


def client_tls(files: ServingFiles, timers: Timers, pem: bytes) -> ClientTls:
    target = Target((TargetMember("m", "127.0.0.1", 1),), ca=Path(files.ca).read_text())
    context = Connector(target, timers).anonymous_tls()
    assert isinstance(context, ssl.SSLContext)
    return ClientTls(context, pem)


def test_a_request_names_the_node_and_its_group_and_its_key_goes_with_the_certificate(
    files: ServingFiles, timers: Timers
) -> None:
    authority = Authority(Path(files.ca).read_bytes(), Path(files.ca_key).read_bytes(), "here")
    tls = client_tls(files, timers, authority.make(NODE, GROUPS))
    renewal = Renewal(tls, NODE, GROUPS)
    validity = renewal.validity()
    assert validity is not None
    assert validity.ends_s - validity.begins_s > 3600
    assert validity.begins_s < time.time() < validity.ends_s
    asked = x509.load_pem_x509_csr(renewal.request())
    assert asked.is_signature_valid
    assert {attribute.value for attribute in asked.subject} == {NODE, *GROUPS}
    signed = authority.make(NODE, GROUPS)  # another key's certificate stands for the one that was signed
    certificate = signed[signed.index(b"-----BEGIN CERTIFICATE") :]
    renewal.accept(certificate)
    key = serialization.load_pem_private_key(tls.pem, None)
    assert key.public_key() == asked.public_key()
    assert tls.pem.endswith(certificate)
    assert renewal.validity(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----") is None
    assert renewal.validity(b"no certificate") is None


def test_a_life_that_was_asked_for_is_seen_by_who_renews(files: ServingFiles, timers: Timers) -> None:
    authority = Authority(Path(files.ca).read_bytes(), Path(files.ca_key).read_bytes(), "here", 600)
    renewal = Renewal(client_tls(files, timers, authority.make(NODE, GROUPS)), NODE, GROUPS)
    validity = renewal.validity()
    assert validity is not None
    assert validity.ends_s - validity.begins_s == 900, "5 min of it have passed when it is made"


def test_who_shows_no_certificate_has_nothing_to_renew(timers: Timers) -> None:
    import random

    endpoints = Endpoints([Endpoint("127.0.0.1", 1, "m")], random.Random(1))
    assert renewal_of(Transport(endpoints, None, timers), NODE, GROUPS) is None


def test_who_shows_one_can_renew_it(files: ServingFiles, timers: Timers) -> None:
    import random

    authority = Authority(Path(files.ca).read_bytes(), Path(files.ca_key).read_bytes(), "here")
    tls = client_tls(files, timers, authority.make(NODE, GROUPS))
    endpoints = Endpoints([Endpoint("127.0.0.1", 1, "m")], random.Random(1))
    assert isinstance(renewal_of(Transport(endpoints, tls, timers), NODE, GROUPS), Renewal)
