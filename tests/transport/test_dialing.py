"""Ports that refuse, hosts that say nothing, TLS."""

from __future__ import annotations

import datetime
import ipaddress
import random
import socket
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.transport.endpoints import Endpoint, Endpoints
from harness.transport.pool import Transport
from harness.transport.tls import client_context
from harness.wire.errors import ConfigError
from harness.wire.request import Failure

from .conftest import Recorder, answer_of, failure_of, get, wait_until
from .peers import Http1Session, Http2Peer, Peer, echo

PEM = serialization.Encoding.PEM


class Authority:
    """A certificate authority and what it signs."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test ca")])
        self.certificate = self._sign(self._name, self._key, x509.BasicConstraints(True, None))

    def _sign(self, name, key, *extensions) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(PEM)

    def issue(self, name: str, *alternatives: x509.GeneralName) -> tuple[bytes, bytes]:
        """Certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key, x509.SubjectAlternativeName(alternatives))
        pem = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return certificate, pem


LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def server_tls(authority, tmp_path):
    """Makes a server's context for a certificate with these names."""

    def make(*names, alpn=("h2", "http/1.1"), client_ca=None):
        path = tmp_path / "server.pem"
        path.write_bytes(b"".join(authority.issue("server", *names)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=client_ca.decode())
        return context

    return make


def one_http1_answer(peer, sock):
    session = Http1Session(sock)
    if session.next_request():
        session.reply(b"old")
    session.close()


def test_http2_over_tls_with_a_client_certificate(serve, connect, authority, server_tls):
    peer = serve(Http2Peer(echo, tls=server_tls(LOOPBACK, client_ca=authority.certificate)))
    context = client_context(authority.certificate, *authority.issue("system:node:n1"))
    body = answer_of(connect(peer, tls=context, http="auto"), get()).body
    assert body == b"GET /api "


def test_a_missing_client_certificate_is_a_tls_failure(serve, connect, authority, server_tls):
    peer = serve(Http2Peer(echo, tls=server_tls(LOOPBACK, client_ca=authority.certificate)))
    error = failure_of(connect(peer, tls=client_context(authority.certificate), http="auto"), get())
    assert (error.failure, error.member) == (Failure.TLS, "m1")
    assert "certificate required" in error.detail


def test_large_answers_cross_tls_records(serve, connect, authority, server_tls):
    body = bytes(range(256)) * 1_000

    def answer(session, stream_id, headers, _):
        session.head(stream_id)
        for start in range(0, len(body), 10_000):
            session.data(stream_id, body[start : start + 10_000])
        session.data(stream_id, b"", end=True)

    peer = serve(Http2Peer(answer, tls=server_tls(LOOPBACK)))
    assert answer_of(connect(peer, tls=client_context(authority.certificate)), get()).body == body


@pytest.mark.parametrize(("end", "heard"), [("close", ["goodbye"]), ("kill", ["nothing"])])
def test_a_client_that_is_killed_says_no_goodbye(serve, connect, authority, server_tls, end, heard):
    """What its peer hears is the kernel closing a socket: no close_notify, no GOAWAY."""
    context, begun, ended = server_tls(LOOPBACK), [], []

    def listen(peer, sock):
        with context.wrap_socket(sock, server_side=True, suppress_ragged_eofs=False) as served:
            try:
                while data := served.recv(65536):
                    begun.append(data)
                ended.append("goodbye")
            except (ssl.SSLEOFError, ConnectionError):
                ended.append("nothing")

    transport = connect(serve(Peer(listen)), tls=client_context(authority.certificate))
    sink = Recorder()
    transport.send(get(), sink)
    wait_until(lambda: begun)
    getattr(transport, end)()
    wait_until(lambda: ended)
    assert ended == heard
    assert sink.error.failure is Failure.CLOSED
    assert not transport.statistics().open_connections


def test_without_h2_in_the_peers_alpn_http_1_1_is_spoken(serve, connect, authority, server_tls):
    peer = serve(Peer(one_http1_answer, server_tls(LOOPBACK, alpn=("http/1.1",))))
    context = client_context(authority.certificate)
    assert answer_of(connect(peer, tls=context, http="auto"), get()).body == b"old"


def test_a_peer_that_does_not_speak_the_wanted_protocol_is_a_protocol_failure(
    serve, connect, authority, server_tls
):
    peer = serve(Peer(one_http1_answer, server_tls(LOOPBACK, alpn=())))
    error = failure_of(connect(peer, tls=client_context(authority.certificate, http="h2"), http="h2"), get())
    assert error.failure is Failure.PROTOCOL
    assert "wanted is h2" in error.detail


def test_a_wrong_certificate_authority_is_a_tls_failure(serve, connect, server_tls):
    peer = serve(Http2Peer(echo, tls=server_tls(LOOPBACK)))
    context = client_context(Authority().certificate)
    error = failure_of(connect(peer, tls=context, http="auto"), get())
    assert (error.failure, error.member) == (Failure.TLS, "m1")
    assert "certificate verify failed" in error.detail


def test_a_certificate_for_another_name_is_a_tls_failure(serve, connect, authority, server_tls):
    peer = serve(Http2Peer(echo, tls=server_tls(x509.DNSName("kubernetes"))))
    context = client_context(authority.certificate)
    error = failure_of(connect(peer, tls=context, http="auto"), get())
    assert error.failure is Failure.TLS
    assert "127.0.0.1" in error.detail
    assert answer_of(connect(peer, tls=context, http="auto", server_name="kubernetes"), get()).status == 200


def test_an_insecure_context_checks_nothing(serve, connect, server_tls):
    peer = serve(Http2Peer(echo, tls=server_tls(x509.DNSName("other"))))
    assert answer_of(connect(peer, tls=client_context(insecure=True), http="auto"), get()).status == 200


def test_a_peer_without_tls_is_a_tls_failure(serve, connect, authority):
    peer = serve(Http2Peer(echo))
    error = failure_of(connect(peer, tls=client_context(authority.certificate), http="auto"), get())
    assert error.failure is Failure.TLS


def test_a_peer_that_closes_during_the_handshake_is_a_reset(serve, connect, authority):
    peer = serve(Peer(lambda peer, sock: sock.recv(5)))
    error = failure_of(connect(peer, tls=client_context(authority.certificate), http="auto"), get())
    assert error.failure is Failure.RESET


def test_a_handshake_that_takes_too_long_is_a_timeout(serve, connect, authority):
    peer = serve(Peer(lambda peer, sock: [None for _ in iter(lambda: sock.recv(4096), b"")]))
    context = client_context(authority.certificate)
    error = failure_of(connect(peer, tls=context, http="auto", tls_handshake_timeout_s=0.05), get())
    assert (error.failure, error.member) == (Failure.TIMEOUT, "m1")
    assert "TLS handshake" in error.detail


def test_a_port_that_refuses_fails_all_that_wait_with_the_members_name(timers):
    endpoints = Endpoints([Endpoint("127.0.0.1", 1, "gone")], random.Random(1))
    transport = Transport(endpoints, None, timers, http="h2")
    sinks = [Recorder(), Recorder()]
    for sink in sinks:
        transport.send(get(), sink)
    for sink in sinks:
        error = sink.until_end().error
        assert (error.failure, error.member) == (Failure.REFUSED, "gone")
    assert transport.statistics().failed_dials == {"gone": 1}
    transport.close()


def test_a_connection_that_is_not_accepted_in_time_is_a_timeout(timers, connect, serve):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = []
        for _ in range(4):  # a full backlog drops further SYNs
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            fillers.append(filler)

        class Full:
            port = listener.getsockname()[1]

        error = failure_of(connect(Full, connect_timeout_s=0.05), get())
        for filler in fillers:
            filler.close()
    assert (error.failure, error.member) == (Failure.TIMEOUT, "m1")


def test_a_name_that_does_not_resolve_is_said(timers):
    endpoints = Endpoints([Endpoint("nowhere.invalid", 1, "m1")], random.Random(1))
    transport = Transport(endpoints, None, timers, http="h2")
    error = failure_of(transport, get())
    assert error.failure is Failure.RESET
    assert "nowhere.invalid:1" in error.detail
    transport.close()


def test_closing_while_a_connection_is_dialled_leaves_nothing(serve, connect, authority):
    peer = serve(Peer(lambda peer, sock: [None for _ in iter(lambda: sock.recv(4096), b"")]))
    transport = connect(peer, tls=client_context(authority.certificate), http="auto")
    sink = Recorder()
    transport.send(get(), sink)
    transport.close()
    assert sink.until_end().error.failure is Failure.CLOSED


def test_one_context_serves_all_who_ask_for_the_same(authority):
    assert client_context(authority.certificate) is client_context(authority.certificate)
    assert client_context(authority.certificate) is not client_context(authority.certificate, http="h2")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((b"no pem",), "certificate authority is not PEM"),
        ((None, b"no pem", b"no key"), "cannot be used"),
        ((None, b"no pem", None), "client key is missing"),
    ],
)
def test_tls_material_that_openssl_refuses_is_a_config_error(arguments, said):
    with pytest.raises(ConfigError, match=said):
        client_context(*arguments, source="kc")
