"""HTTP proxies: which requests go through one, and what becomes of them."""

from __future__ import annotations

import base64
import select
import socket

import pytest

from harness.transport.proxies import Proxy, parse_proxy, proxy_from_environment, refusal
from harness.wire.errors import ConfigError
from harness.wire.request import Failure

from .conftest import answer_of, failure_of, get
from .peers import Http1Session, Http2Peer, Peer, echo

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("host", "none_for", "direct"),
    [
        ("api.example.com", "", False),
        ("api.example.com", "*", True),
        ("api.example.com", "example.com", True),
        ("api.example.com", ".example.com", True),
        ("example.com", ".example.com", False),
        ("example.com", "example.com", True),
        ("api.example.com", "*.example.com", True),
        ("badexample.com", "example.com", False),
        ("API.Example.com.", "api.EXAMPLE.com", True),
        ("api.example.com", "other.org, api.example.com:6443", True),
        ("api.example.com", "api.example.com:443", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.4,192.168.0.0/16", False),
        ("10.1.2.3", "3", False),
        ("10.1.2.3", "10.1.2.3:6443", True),
        ("fd00::1", "fd00::/8", True),
        ("fd00::1", "[fd00::1]:6443", True),
        ("10.1.2.3", "bad/cidr", False),
        ("localhost", "", True),
        ("127.0.0.2", "", True),
        ("::1", "", True),
    ],
)
def test_no_proxy_names_hosts_domains_ranges_and_ports(host, none_for, direct):
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": none_for}
    assert proxy_from_environment(host, 6443, environ) == ("" if direct else PROXY)


def test_lower_case_names_count_where_there_are_no_others():
    assert proxy_from_environment("h", 443, {"https_proxy": PROXY}) == PROXY
    assert proxy_from_environment("h", 443, {"https_proxy": PROXY, "no_proxy": "h"}) == ""
    assert proxy_from_environment("h", 443, {}) == ""


@pytest.mark.parametrize(
    ("url", "host", "port", "authorization"),
    [
        ("http://p:3128", "p", 3128, ""),
        ("p:3128", "p", 3128, ""),
        ("http://p", "p", 80, ""),
        ("http://[::1]:8080", "::1", 8080, ""),
        ("http://u:p%40ss@p:1", "p", 1, "Basic " + base64.b64encode(b"u:p@ss").decode()),
        ("http://u@p:1", "p", 1, "Basic " + base64.b64encode(b"u:").decode()),
    ],
)
def test_the_forms_of_a_proxy(url, host, port, authorization):
    proxy = parse_proxy(url, "here")
    assert (proxy.host, proxy.port, proxy.authorization) == (host, port, authorization)
    assert "Basic" not in repr(proxy)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("socks5://p:1080", "here: socks5:// proxies are not supported, only http://"),
        ("https://p:1", "here: https:// proxies are not supported"),
        ("http://p:port", "here: not a proxy's URL"),
        ("http://", "here: not a proxy's URL"),
    ],
)
def test_what_is_no_usable_proxy_is_said_without_its_password(url, said):
    with pytest.raises(ConfigError, match=said):
        parse_proxy(url, "here")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 200 Connection established\r\n\r\n", ""),
        (b"HTTP/1.0 200\r\n\r\n", ""),
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "it answers 407 Proxy Authentication Required",
        ),
        (b"SSH-2.0-x\r\n", "its answer is none of HTTP: 'SSH-2.0-x'"),
        (b"HTTP/1.1 200 OK\r\nbroken", "its answer is none of HTTP: 'HTTP/1.1 200 OK'"),
        (b"", "it closed the connection"),
    ],
)
def test_only_200_opens_the_tunnel(answer, problem):
    assert refusal(answer) == problem


class Tunnel:
    """A proxy: reads a CONNECT, answers it, and joins the two sides (`answer` None) or closes."""

    def __init__(self, answer: bytes | None = None) -> None:
        self.heads: list[bytes] = []
        self._answer = answer
        self._peers: list[Peer] = []

    def __call__(self, peer: Peer, sock: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(1)
        self.heads.append(head)
        if self._answer is not None:
            sock.sendall(self._answer)
            return
        host, port = head.split()[1].decode().rsplit(":", 1)
        with socket.create_connection((host, int(port))) as there:
            peer._sockets.append(there)
            # In two pieces, as a head may come.
            sock.sendall(b"HTTP/1.1 200 Connection")
            sock.sendall(b" established\r\n\r\n")
            self._join(sock, there)

    @staticmethod
    def _join(one: socket.socket, other: socket.socket) -> None:
        while True:
            for ready in select.select([one, other], [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return
                (other if ready is one else one).sendall(data)


def test_requests_go_through_the_tunnel(serve, connect):
    def session(peer, sock):
        http = Http1Session(sock)
        while (request := http.next_request()) is not None:
            http.reply(request[0].encode())
        http.close()

    tunnel = Tunnel()
    proxy, peer = serve(Peer(tunnel)), serve(Peer(session))
    transport = connect(peer, http="http/1.1", proxy=Proxy("127.0.0.1", proxy.port, "Basic dTpw"))
    assert answer_of(transport, get("/x")).body == b"GET /x HTTP/1.1"
    assert tunnel.heads == [
        f"CONNECT 127.0.0.1:{peer.port} HTTP/1.1\r\nHost: 127.0.0.1:{peer.port}\r\n"
        "User-Agent: swarmlet\r\nProxy-Authorization: Basic dTpw\r\n\r\n".encode()
    ]
    transport.close()


def test_a_proxy_that_refuses_is_named_with_what_it_said(serve, connect):
    proxy = serve(Peer(Tunnel(b"HTTP/1.1 403 Forbidden\r\n\r\n")))
    peer = serve(Http2Peer(echo))
    error = failure_of(connect(peer, proxy=Proxy("127.0.0.1", proxy.port)), get())
    assert (error.failure, error.member) == (Failure.PROTOCOL, "m1")
    assert error.detail == (
        f"proxy 127.0.0.1:{proxy.port} does not connect to 127.0.0.1:{peer.port}: it answers 403 Forbidden"
    )


def test_a_proxy_that_is_not_there_is_named(serve, connect):
    error = failure_of(connect(serve(Http2Peer(echo)), proxy=Proxy("127.0.0.1", 1)), get())
    assert error.failure is Failure.REFUSED
    assert error.detail.startswith("proxy: cannot connect to 127.0.0.1:1")
