"""Certificate signing requests: whose they are, who may approve and sign, and what a member does with them itself."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from fakemember import FakeExchange, Server

from harness.apiserver.clock import VirtualClock
from tests.apiserver.certificates import request

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
NODE_USAGES = ["digital signature", "client auth"]
MERGE = {"content-type": "application/merge-patch+json"}
APPROVE = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}}
Object = dict[str, Any]


def authority() -> tuple[bytes, bytes]:
    """A certificate authority that is good when a virtual clock begins, and for two days."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    begins = datetime.datetime.fromtimestamp(VirtualClock().wall(), datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins - datetime.timedelta(days=1))
        .not_valid_after(begins + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), secret


CA = authority()


@pytest.fixture
def signing() -> Iterator[Server]:
    """A member that signs."""
    server = Server(signing_ca=CA)
    yield server
    server.close()


def ask_for(server: Server, user: str = "", name: str = "r", **spec: Any) -> FakeExchange:
    body = {
        "metadata": {"name": name},
        "spec": {
            "request": request("jane", ("team",)),
            "signerName": CLIENT,
            "usages": ["client auth"],
            **spec,
        },
    }
    answer = server.ask("POST", REQUESTS, body, user)
    server.settle()
    return answer


def approve(server: Server, name: str = "r", user: str = "") -> FakeExchange:
    answer = server.ask("PATCH", f"{REQUESTS}/{name}/approval", APPROVE, user, headers=MERGE)
    server.settle()
    return answer


def status_of(server: Server, name: str = "r") -> Object:
    status: Object = server.ask("GET", f"{REQUESTS}/{name}").json["status"]
    return status


def certificate_of(server: Server, name: str = "r") -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(status_of(server, name)["certificate"]))


def kinds(status: Object) -> list[str]:
    return [item["type"] for item in status.get("conditions") or ()]


def test_a_request_is_its_author_s_whatever_it_says(server: Server) -> None:
    made = ask_for(server, username="root", groups=["system:masters"], uid="0", extra={"a": ["b"]})
    spec = made.json["spec"]
    assert spec["username"] == "kubernetes-admin"
    assert spec["groups"] == ["system:masters", "system:authenticated"]
    assert "uid" not in spec
    assert "extra" not in spec
    assert made.json["status"] == {}


def test_without_an_authority_an_approved_request_waits(server: Server) -> None:
    ask_for(server)
    assert approve(server).status == 200
    assert kinds(status_of(server)) == ["Approved"]
    assert "certificate" not in status_of(server)


def test_an_approved_request_is_signed(signing: Server) -> None:
    ask_for(signing, expirationSeconds=3600)
    assert "certificate" not in status_of(signing)
    assert approve(signing).status == 200
    found = certificate_of(signing)
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(CA[0]))
    assert found.subject.rfc4514_string() == "CN=jane,O=team"
    usages = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    lasts = found.not_valid_after_utc - found.not_valid_before_utc
    assert lasts == datetime.timedelta(seconds=3600) + datetime.timedelta(minutes=5)
    assert found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False


def test_no_certificate_outlives_its_authority(signing: Server) -> None:
    ask_for(signing)
    approve(signing)
    assert (
        certificate_of(signing).not_valid_after_utc
        == x509.load_pem_x509_certificate(CA[0]).not_valid_after_utc
    )


@pytest.mark.parametrize(("asked_s", "lasts_s"), [(None, 900), (600, 600), (3600, 900)])
def test_no_certificate_lives_longer_than_the_signer_was_told(asked_s: int | None, lasts_s: int) -> None:
    server = Server(signing_ca=CA, signing_duration_s=900.0)
    ask_for(server, **({"expirationSeconds": asked_s} if asked_s else {}))
    approve(server)
    found = certificate_of(server)
    server.close()
    assert found.not_valid_after_utc - found.not_valid_before_utc == datetime.timedelta(seconds=lasts_s + 300)


def test_names_and_key_usages_are_taken_over(signing: Server) -> None:
    wanted = request("jane", (), ("a.example.com",))
    ask_for(signing, request=wanted, usages=["digital signature", "key encipherment", "client auth"])
    approve(signing)
    extensions = certificate_of(signing).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example.com"]
    usage = extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, True, False)


def test_a_request_that_no_client_would_make_fails(signing: Server) -> None:
    ask_for(signing, usages=["server auth"])
    approve(signing)
    (_, failed) = status_of(signing)["conditions"]
    assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
    assert failed["message"] == "invalid usage for client certificate: server auth"


@pytest.mark.parametrize("signer", ["kubernetes.io/kubelet-serving", "example.com/mine"])
def test_other_signers_are_others(signing: Server, signer: str) -> None:
    ask_for(signing, signerName=signer)
    approve(signing)
    assert kinds(status_of(signing)) == ["Approved"]
    assert "certificate" not in status_of(signing)


def test_a_denied_request_is_not_signed(signing: Server) -> None:
    ask_for(signing)
    denied = {"status": {"conditions": [{"type": "Denied", "status": "True"}]}}
    assert signing.ask("PATCH", f"{REQUESTS}/r/approval", denied, headers=MERGE).status == 200
    assert signing.ask("PUT", f"{REQUESTS}/r/approval", {"metadata": {"name": "r"}, **APPROVE}).status == 422
    signing.settle()
    assert "certificate" not in status_of(signing)


NODE = {"request": request("system:node:n1", ("system:nodes",)), "signerName": KUBELET, "usages": NODE_USAGES}


def test_a_kubelet_s_own_request_is_approved_and_signed_at_once(signing: Server) -> None:
    ask_for(signing, "system:node:n1", **NODE)
    status = status_of(signing)
    assert kinds(status) == ["Approved"]
    assert status["conditions"][0]["reason"] == "AutoApproved"
    assert status["conditions"][0]["message"] == (
        "Auto approving self kubelet client certificate after SubjectAccessReview."
    )
    assert certificate_of(signing).subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"


def test_a_node_asks_for_nobody_else(signing: Server) -> None:
    ask_for(signing, "system:node:n2", **NODE)
    assert kinds(status_of(signing)) == []


def test_a_bootstrapping_node_is_approved_by_its_group(signing: Server) -> None:
    headers = {"impersonate-group": "system:bootstrappers,system:bootstrappers:kubeadm:default-node-token"}
    body = {"metadata": {"name": "r"}, "spec": NODE}
    assert signing.ask("POST", REQUESTS, body, "system:bootstrap:abcdef", headers=headers).status == 201
    signing.settle()
    message = status_of(signing)["conditions"][0]["message"]
    assert message == "Auto approving kubelet client certificate after SubjectAccessReview."
    assert certificate_of(signing)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"request": request("system:node:n1", ("team",))}, "subject organization is not system:nodes"),
        (
            {"request": request("n1", ("system:nodes",))},
            "subject common name does not begin with system:node:",
        ),
        (
            {"request": request("system:node:n1", ("system:nodes",), ("a.example.com",))},
            "DNS, IP, email or URI subjectAltNames are not allowed",
        ),
        (
            {"usages": ["client auth"]},
            (
                "usages did not match [client auth digital signature], [client auth digital signature key "
                "encipherment]"
            ),
        ),
    ],
)
def test_what_is_no_kubelet_s_request_fails_even_approved(signing: Server, spec: Object, fault: str) -> None:
    ask_for(signing, "system:node:n1", **{**NODE, **spec})
    assert kinds(status_of(signing)) == []
    approve(signing)
    assert status_of(signing)["conditions"][-1]["message"] == fault


def test_generated_names_are_found(signing: Server) -> None:
    body = {"metadata": {"generateName": "csr-"}, "spec": NODE}
    name = signing.ask("POST", REQUESTS, body, "system:node:n1").json["metadata"]["name"]
    signing.settle()
    assert certificate_of(signing, name)


def test_a_dry_run_leaves_nothing_to_sign(signing: Server) -> None:
    body = {"metadata": {"name": "r"}, "spec": NODE}
    assert signing.ask("POST", f"{REQUESTS}?dryRun=All", body, "system:node:n1").status == 201
    signing.settle()
    assert signing.ask("GET", f"{REQUESTS}/r").status == 404


# ---- who may -------------------------------------------------------------------------------------------------------
def grant(server: Server, *rules: Object) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1"
    server.ask("POST", f"{roles}/clusterroles", {"metadata": {"name": "x"}, "rules": list(rules)})
    body = {
        "metadata": {"name": "x"},
        "subjects": [{"kind": "User", "name": "bob"}],
        "roleRef": {"kind": "ClusterRole", "name": "x"},
    }
    server.ask("POST", f"{roles}/clusterrolebindings", body)
    server.settle()


def rule(verb: str, resource: str, *names: str) -> Object:
    plain = {"verbs": [verb], "apiGroups": ["certificates.k8s.io"], "resources": [resource]}
    return {**plain, "resourceNames": list(names)} if names else plain


@pytest.mark.parametrize(
    ("names", "status"), [((CLIENT,), 200), (("kubernetes.io/*",), 200), (("kubernetes.io/other",), 403)]
)
def test_approving_needs_the_signer_too(server: Server, names: tuple[str, ...], status: int) -> None:
    ask_for(server)
    grant(
        server,
        rule("patch", "certificatesigningrequests/approval"),
        rule("approve", "signers", *names),
    )
    answer = approve(server, user="bob")
    assert answer.status == status
    if status == 403:
        assert answer.json["message"] == (
            'certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to approve requests '
            f'with signerName "{CLIENT}"'
        )


def test_signing_needs_the_signer_too(server: Server) -> None:
    ask_for(server)
    approve(server)
    grant(server, rule("patch", "certificatesigningrequests/status"))
    pem = base64.b64encode(CA[0]).decode()
    path, body = f"{REQUESTS}/r/status", {"status": {"certificate": pem}}
    refused = server.ask("PATCH", path, body, "bob", headers=MERGE)
    assert refused.status == 403
    assert "user not permitted to sign requests with signerName" in refused.json["message"]
    assert server.ask("PATCH", path, body, headers=MERGE).status == 200
    assert status_of(server)["certificate"] == pem


def test_nobody_is_made_a_master(server: Server) -> None:
    answer = ask_for(server, request=request("root", ("system:masters",)))
    assert answer.status == 403
    assert answer.json["message"].endswith(
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    )


def test_a_request_changes_by_its_subresources_alone(server: Server) -> None:
    made = ask_for(server).json
    changed = {**made, "spec": {**made["spec"], "usages": ["server auth"]}, **APPROVE}
    changed["metadata"] = {**made["metadata"], "labels": {"a": "b"}}
    answer = server.ask("PUT", f"{REQUESTS}/r", changed).json
    assert answer["metadata"]["labels"] == {"a": "b"}
    assert (answer["spec"], answer["status"]) == (made["spec"], {})
    assert server.ask("GET", f"{REQUESTS}/r/approval").status == 200
    found = server.ask("GET", f"{REQUESTS}?fieldSelector=spec.signerName%3D{CLIENT.replace('/', '%2F')}").json
    assert len(found["items"]) == 1


def test_a_table_says_what_became_of_it(signing: Server) -> None:
    headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    def row() -> list[Any]:
        cells: list[Any] = signing.ask("GET", REQUESTS, headers=headers).json["rows"][0]["cells"]
        return cells

    ask_for(signing, expirationSeconds=7200)
    assert row()[2:] == [CLIENT, "kubernetes-admin", "120m", "Pending"]
    approve(signing)
    assert row()[5] == "Approved,Issued"
