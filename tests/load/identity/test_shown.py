"""What nodes show: headers, tokens, certificates."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

from harness.load.connect import Connector
from harness.load.identity.authority import Authority
from harness.load.identity.shown import Identities, impersonated
from harness.load.identity.signing import NotSigned, SigningRequest
from harness.load.identity.tokens import made_up, read_tokens, token_of
from harness.load.labels import RUN_LABEL
from harness.load.plan import Identity, Target, TargetMember
from harness.pool.certificates import ServingFiles, make_serving_files
from harness.transport.timers import Timers
from harness.transport.tls import ClientTls
from harness.wire.errors import ConfigError
from harness.wire.request import Failure, Request, Response, TransportError

NODE, GROUPS = "system:node:n1", ("system:nodes",)


@pytest.fixture
def files(tmp_path: Path) -> ServingFiles:
    return make_serving_files(tmp_path, ["localhost"], ["127.0.0.1"])


@pytest.fixture
def connector(files: ServingFiles) -> Iterator[Connector]:
    timers = Timers()
    target = Target((TargetMember("m", "127.0.0.1", 1),), ca=Path(files.ca).read_text())
    yield Connector(target, timers)
    timers.close()


def nobody(_: Request) -> Any:
    raise AssertionError("nobody was to be asked")


def subject(pem: bytes) -> tuple[str, list[str]]:
    """CN and organizations of the certificate in a PEM with its key, which fit each other."""
    certificate = x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERT") :])
    key = serialization.load_pem_private_key(pem, None)
    assert key.public_key() == certificate.public_key()
    names = certificate.subject.get_attributes_for_oid
    return str(names(NameOID.COMMON_NAME)[0].value), [str(o.value) for o in names(NameOID.ORGANIZATION_NAME)]


# ---- the three ways --------------------------------------------------------------------------------------------------
def test_impersonation_shows_both_headers_and_the_runs_own_credentials(connector: Connector) -> None:
    shown = Identities(Identity(), connector, "r", nobody).of(NODE, GROUPS)
    assert shown == ({"impersonate-user": NODE, "impersonate-group": GROUPS}, None, None)
    assert impersonated("jane", ()).headers == {"impersonate-user": "jane"}


def test_a_token_is_the_nodes_own_without_the_runs_certificate(connector: Connector) -> None:
    identities = Identities(Identity("token", {"n1": "t1", "system:node:n2": "t2"}), connector, "r", nobody)
    shown = identities.of(NODE, GROUPS)
    assert (shown.headers, shown.tls) == ({}, connector.anonymous_tls())
    assert shown.bearer is not None
    assert shown.bearer.field == (b"authorization", b"Bearer t1")
    with pytest.raises(ConfigError, match="--tokens: there is none for system:node:n3"):
        identities.of("system:node:n3", GROUPS)
    assert identities.of("system:kube-scheduler", ()).headers == {"impersonate-user": "system:kube-scheduler"}


def test_an_authority_makes_a_certificate_for_everybody(connector: Connector, files: ServingFiles) -> None:
    identity = Identity(
        "certificate", ca_cert=Path(files.ca).read_text(), ca_key=Path(files.ca_key).read_text()
    )
    identities = Identities(identity, connector, "r", nobody)
    for user, groups in ((NODE, GROUPS), ("system:kube-scheduler", ())):
        shown = identities.of(user, groups)
        assert isinstance(shown.tls, ClientTls)
        shown.tls.check("the certificate")
        assert subject(shown.tls.pem) == (user, list(groups))
        assert shown.bearer is not None
        assert shown.bearer.field is None, "the run's token must not speak for the node"


def test_a_server_without_tls_asks_for_no_certificate(files: ServingFiles) -> None:
    timers = Timers()
    target = Target((TargetMember("m", "127.0.0.1", 1),), tls=False)
    identity = Identity(
        "certificate", ca_cert=Path(files.ca).read_text(), ca_key=Path(files.ca_key).read_text()
    )
    identities = Identities(identity, Connector(target, timers), "r", nobody)
    with pytest.raises(ConfigError, match="an http:// server asks for no certificate"):
        identities.of(NODE, GROUPS)
    timers.close()


# ---- certificates by the API -----------------------------------------------------------------------------------------
class Cluster:
    """Signs what is approved: by itself at once, or when somebody else approves."""

    def __init__(self, files: ServingFiles, approves: bool = True, may_approve: bool = True) -> None:
        self._authority = Authority(Path(files.ca).read_bytes(), Path(files.ca_key).read_bytes(), "here")
        self._approves = approves
        self._may_approve = may_approve
        self.object: dict[str, Any] = {}
        self.answers: list[Any] = []
        self.sent: list[str] = []

    def ask(self, request: Request) -> Any:
        self.sent.append(f"{request.verb} {request.name}")
        if self.answers:
            return self.answers.pop(0)
        if request.verb == "create":
            self.object = msgspec.json.decode(request.body)
            self.object["metadata"]["name"] = "swarmlet-x"
            if self._approves:
                self.approve({"type": "Approved"})
        elif request.verb == "update":
            if not self._may_approve:
                return Response(403, {}, b"{}")
            sent = msgspec.json.decode(request.body)["status"]["conditions"][-1]
            self.approve(sent)
        return Response(200, {}, msgspec.json.encode(self.object))

    def approve(self, condition: dict[str, Any]) -> None:
        request = x509.load_pem_x509_csr(base64.b64decode(self.object["spec"]["request"]))
        pem = self._authority.make(str(request.subject.rfc4514_string()), ())
        certificate = base64.b64encode(pem[pem.index(b"-----BEGIN CERT") :]).decode()
        self.object["status"] = {"conditions": [condition], "certificate": certificate}


def obtain(cluster: Cluster) -> bytes:
    return SigningRequest(cluster.ask, "r1", sleep=lambda _: None).obtain(NODE, GROUPS)


def test_what_the_cluster_approves_by_itself_takes_two_requests(files: ServingFiles) -> None:
    cluster = Cluster(files)
    pem = obtain(cluster)
    assert b"BEGIN PRIVATE KEY" in pem
    assert cluster.sent == ["create certificatesigningrequests", "get certificatesigningrequests"]
    assert cluster.object["metadata"]["labels"] == {RUN_LABEL: "r1"}
    assert cluster.object["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
    request = x509.load_pem_x509_csr(base64.b64decode(cluster.object["spec"]["request"]))
    assert request.subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"


def test_a_life_is_asked_for_where_it_is_given(files: ServingFiles) -> None:
    cluster = Cluster(files)
    obtain(cluster)
    assert "expirationSeconds" not in cluster.object["spec"]
    SigningRequest(cluster.ask, "r1", 700, sleep=lambda _: None).obtain(NODE, GROUPS)
    assert cluster.object["spec"]["expirationSeconds"] == 700


def test_what_nobody_approves_is_approved_after_a_second(files: ServingFiles) -> None:
    cluster = Cluster(files, approves=False)
    obtain(cluster)
    assert cluster.sent.count("update certificatesigningrequests/approval") == 1
    assert cluster.sent.index("update certificatesigningrequests/approval") > 3
    assert cluster.object["status"]["conditions"][0]["reason"] == "SwarmletApproved"


def test_one_that_we_may_not_approve_either_is_given_up(files: ServingFiles) -> None:
    cluster = Cluster(files, approves=False, may_approve=False)
    with pytest.raises(NotSigned, match="n1: request swarmlet-x was not approved within 120 s"):
        obtain(cluster)
    assert cluster.sent.count("update certificatesigningrequests/approval") == 1


@pytest.mark.parametrize("kind", ["Denied", "Failed"])
def test_a_refusal_is_quoted(files: ServingFiles, kind: str) -> None:
    cluster = Cluster(files)
    status = {"conditions": [{"type": kind, "message": "not you"}]}
    cluster.answers = [
        Response(201, {}, b'{"metadata":{"name":"a"}}'),
        Response(200, {}, msgspec.json.encode({"metadata": {"name": "a"}, "status": status})),
    ]
    with pytest.raises(NotSigned, match=f"n1: its certificate was {kind.lower()}: not you"):
        obtain(cluster)


def test_what_may_pass_is_tried_again_and_what_may_not_is_not(files: ServingFiles) -> None:
    cluster = Cluster(files)
    cluster.answers = [
        Response(429, {}, b""),
        TransportError(Failure.RESET, "gone", "m"),
        Response(503, {}, b""),
    ]
    obtain(cluster)
    assert cluster.sent.count("create certificatesigningrequests") == 4
    cluster.answers = [Response(403, {}, b'{"message":"forbidden"}')]
    with pytest.raises(NotSigned, match="create certificatesigningrequests: HTTP 403: forbidden"):
        obtain(cluster)


# ---- token files -----------------------------------------------------------------------------------------------------
def test_both_forms_of_a_token_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text('t1,system:node:n1,u1,"system:nodes,x"\n\nt2,n2,u2\n')
    tokens = read_tokens(path)
    assert (token_of(tokens, NODE), token_of(tokens, "system:node:n2")) == ("t1", "t2")
    assert token_of(tokens, "system:node:n3") is None
    path.write_text('{"n1": "t1"}')
    assert read_tokens(path) == {"n1": "t1"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no tokens"),
        ("{}", "has no tokens"),
        ("t1,n1", "line 1: expected token,user,uid"),
        ("t,n,u\n,n2,u", "line 2: expected token,user,uid"),
        ('{"n1": 5}', "no JSON object of names and tokens"),
        ("{", "no JSON object"),
    ],
)
def test_a_token_file_that_is_none_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"--tokens {path}: {said}"):
        read_tokens(path)
    with pytest.raises(ConfigError, match="gone: cannot be read: No such file"):
        read_tokens(tmp_path / "gone")


def test_made_up_tokens_are_those_of_the_fleets_names(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(made_up(2, 2, "system:nodes"))
    tokens = read_tokens(path)
    assert list(tokens) == [f"system:node:swarmlet-{worker}-{index}" for worker in (0, 1) for index in (0, 1)]
    assert len(set(tokens.values())) == 4
