"""Bodies, selectors and paths that nobody sends by mistake: a refusal within a moment, never a fault of ours."""

from __future__ import annotations

from typing import Any

import pytest
from fakemember import ADMIN, FakeExchange, Server

MAPS = "/api/v1/namespaces/default/configmaps"


def send(server: Server, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> Any:
    headers = {"authorization": f"Bearer {ADMIN}", "content-type": kind, "accept": "application/json"}
    exchange = FakeExchange(method, path, headers, body)
    server.member.handle(exchange)
    for _ in range(100):
        if exchange.finished:
            return exchange
        server.clock.advance(0.01)
    raise AssertionError("no answer within a second")


def deep(levels: int) -> bytes:
    return b'{"metadata":{"name":"a"},"data":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"


@pytest.mark.parametrize("levels", [2_000, 100_000])
@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("POST", "application/json"),
        ("PUT", "application/json"),
        ("DELETE", "application/json"),
        ("PATCH", "application/merge-patch+json"),
        ("PATCH", "application/strategic-merge-patch+json"),
        ("PATCH", "application/apply-patch+yaml"),
    ],
)
def test_json_nested_too_deep_is_refused(server: Server, levels: int, method: str, kind: str) -> None:
    send(server, "POST", MAPS, b'{"metadata":{"name":"a"}}')
    path = MAPS if method == "POST" else f"{MAPS}/a?fieldManager=f"
    answer = send(server, method, path, deep(levels), kind)
    assert answer.status == 400
    assert any(words in answer.data for words in (b"exceeded max depth", b"maximum recursion depth"))


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (name, name, b",".join([b"*%c" % (name - 1)] * 9)) for name in b"bcdefghi"
)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (BOMB, b"excessive aliasing"),
        (b"a: &a [*a]", b"contains itself"),
        (b"a: " + b"[" * 5000 + b"]" * 5000, b"yaml: "),
        (b"a: \xff\xfe", b"yaml: "),
        (b"a: \x00", b"yaml: "),
        (b"a: !!python/object/apply:os.system [ls]", b"yaml: "),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_yaml_that_is_far_larger_than_it_looks_is_refused(
    server: Server, body: bytes, words: bytes, method: str
) -> None:
    kind, path = (
        ("application/yaml", MAPS)
        if method == "POST"
        else ("application/apply-patch+yaml", f"{MAPS}/a?fieldManager=f")
    )
    answer = send(server, method, path, body, kind)
    assert answer.status == 400
    assert words in answer.data


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"name":"\xff\xfe"}}',
        b'{"metadata":{"name":"a"},"data":{"a":"\xff"}}',
        b'{"metadata":{"name":"a"},"data":{"a":"\\ud800"}}',
        b'{"metadata":{"name":"a"},"x":' + b"9" * 100_000 + b"}",
        b'{"metadata":{"name":"a"},"x":1e999999999}',
        b'{"metadata"',
        b"",
        b"\x00",
    ],
)
def test_bytes_that_are_no_json_are_refused(server: Server, body: bytes) -> None:
    answer = send(server, "POST", MAPS, body)
    assert answer.status == 400
    assert len(answer.data) < 4000


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=" + "a" * 100_000,
        "labelSelector=" + "(" * 100_000,
        "labelSelector=" + ",".join(f"k{number}=v" for number in range(12_000)),
        "labelSelector=x+in+(" + ",".join(f"v{number}" for number in range(15_000)) + ")",
        "fieldSelector=metadata.name%3D" + "a" * 100_000,
        "fieldSelector=" + ",".join(["metadata.name!=a"] * 6_000),
        "fieldSelector=%ff%00",
        "limit=" + "9" * 5_000,
        "limit=-" + "9" * 5_000,
        "resourceVersion=" + "9" * 5_000,
        "resourceVersion=18446744073709551616",
        "continue=" + "A" * 100_000,
        "continue=%ff",
        "timeout=" + "9" * 1_000 + "s",
        "timeoutSeconds=" + "9" * 30 + "&watch=1",
        "watch=" + "1" * 100_000,
    ],
    ids=lambda query: query[:32],
)
def test_parameters_of_100_kb_and_numbers_that_are_none_get_an_answer(server: Server, query: str) -> None:
    answer = (
        send(server, "GET", f"{MAPS}?{query}")
        if "watch=" not in query
        else server.send("GET", f"{MAPS}?{query}")
    )
    server.settle()
    assert answer.status in (200, 400)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/%ff%fe/pods/%00",
        "/api/v1/namespaces/\xff/pods",
        "/api/v1/namespaces/%zz/pods",
        "/api/v1/" + "a/" * 50_000,
        "/" + "%2f" * 50_000,
        "//////",
        "*",
        "https://x/api/v1/pods",
        "/api/v1/pods?" + "&" * 100_000,
        "/api/v1/pods?" + "a=b&" * 20_000,
    ],
    ids=lambda path: path[:32],
)
@pytest.mark.parametrize("method", ["GET", "BREW"])
def test_paths_and_methods_that_are_none_get_an_answer(server: Server, method: str, path: str) -> None:
    assert send(server, method, path).status in (200, 400, 404, 405, 500)
    assert server.member.metrics_text()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_without_credentials_health_and_version_answer(server: Server, path: str) -> None:
    assert server.ask("GET", path, user="anonymous").status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/api"),
        ("GET", "/apis"),
        ("GET", "/openapi/v2"),
        ("GET", "/openapi/v3"),
        ("GET", "/metrics"),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/nosuch"),
        ("GET", "/swarmlet/faults"),
        ("POST", "/swarmlet/faults"),
        ("DELETE", "/swarmlet/faults"),
        ("POST", "/swarmlet/verify"),
        ("POST", "/healthz"),
        ("POST", "/api/v1/namespaces"),
    ],
)
def test_without_credentials_nothing_else_does(server: Server, method: str, path: str) -> None:
    assert server.ask(method, path, {} if method == "POST" else None, user="anonymous").status == 403
    wrong = {"authorization": "Bearer wrong"}
    assert server.ask(method, path, {} if method == "POST" else None, headers=wrong).status == 401
