"""Valid conversations with a member as bytes, and how they are spoilt."""

from __future__ import annotations

import json
from random import Random

from harness.wire.http2 import GO_CLIENT_CONNECTION_WINDOW, GO_CLIENT_SETTINGS, Connection, Role
from harness.wire.http2.frames import PREFACE, pack_frame

PATHS = (
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps?limit=2&labelSelector=a%3Db%2Cc+in+%28d%2Ce%29",
    "/api/v1/pods?watch=1&timeoutSeconds=1&allowWatchBookmarks=true",
    "/api/v1/nodes?fieldSelector=metadata.name%3Dn1&resourceVersion=0",
    "/api/v1/nodes?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=1",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis?x=y",
    "/openapi/v3",
    "/readyz?verbose",
    "/metrics",
    "/swarmlet/faults",
)
OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"generateName": "f-"},
    "data": {"a": "b" * 50},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "p-", "labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}]},
}
WRITES = (
    ("POST", "/api/v1/namespaces/default/configmaps", "application/json", OBJECT),
    ("POST", "/api/v1/namespaces/default/pods?fieldManager=f&dryRun=All", "application/json", POD),
    (
        "PATCH",
        "/api/v1/namespaces/default/configmaps/x",
        "application/merge-patch+json",
        {"data": {"a": None, "b": "c"}},
    ),
    (
        "PATCH",
        "/api/v1/namespaces/default/configmaps/x",
        "application/json-patch+json",
        [{"op": "add", "path": "/data/x", "value": "y"}],
    ),
    (
        "PATCH",
        "/api/v1/namespaces/default/configmaps/x?fieldManager=f&force=true",
        "application/apply-patch+yaml",
        {**OBJECT, "metadata": {"name": "x"}},
    ),
    (
        "PUT",
        "/api/v1/namespaces/default/configmaps/x",
        "application/json",
        {**OBJECT, "metadata": {"name": "x"}},
    ),
    (
        "DELETE",
        "/api/v1/namespaces/default/configmaps/x",
        "application/json",
        {"propagationPolicy": "Background"},
    ),
)
_AWKWARD = (
    *(
        b"\x00",
        b"\xff",
        b"\x80",
        b"\x00" * 9,
        b"\xff" * 9,
        b"\xc3\x28",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b":",
        b" ",
    ),
    *(b"%00", b"%ff", b"&", b"=", b"null", b'"', b"\\", b"*", b"&a", b"{", b"[" * 2000, b"A" * 70_000),
    *(
        b"0" * 400,
        b"9" * 5000,
        b"-1",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Length: 5\r\n",
        b"HTTP/1.1",
    ),
    PREFACE,
)


def http1(rng: Random, token: str) -> bytes:
    """Some requests, one after another, on one connection."""
    parts = []
    for _ in range(rng.randint(1, 4)):
        method, path, kind, body = _request(rng)
        head = [
            f"{method} {path} HTTP/1.1",
            "Host: 127.0.0.1",
            "User-Agent: fuzz",
            "Accept: application/json",
        ]
        head.append(f"Authorization: Bearer {token}")
        chunked = body and rng.random() < 0.4
        if body:
            head += [f"Content-Type: {kind}"]
            head.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}")
        parts.append("\r\n".join([*head, "", ""]).encode())
        parts.append(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body)
    return b"".join(parts)


def http2(rng: Random, token: str) -> bytes:
    """A client's preface and some streams, with frames of other kinds in between."""
    client = Connection(Role.CLIENT, GO_CLIENT_SETTINGS, GO_CLIENT_CONNECTION_WINDOW)
    client.initiate()
    for _ in range(rng.randint(1, 20)):
        method, path, kind, body = _request(rng)
        head = [(":method", method), (":scheme", "https"), (":authority", "127.0.0.1"), (":path", path)]
        head += [("authorization", f"Bearer {token}"), ("accept", "application/json")]
        if body:
            head.append(("content-type", kind))
        stream = client.request([(name.encode(), value.encode()) for name, value in head], body)
        extra = rng.random()
        if extra < 0.1:
            client.reset(stream)
        elif extra < 0.2:
            client.ping(b"12345678")
    return client.take_output()


def spoil(rng: Random, data: bytes) -> bytes:
    """One to eight changes: bytes flipped, cut, doubled, moved, or something awkward put in."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(changed) + 1)
        length = min(rng.choice((1, 1, 2, 9, 30, 300)), len(changed) - at)
        match rng.randrange(7):
            case 0 if length:
                changed[at] = rng.randrange(256)
            case 1 if length:
                changed[at] ^= 1 << rng.randrange(8)
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = changed[at : at + length] * rng.choice((1, 2, 50))
            case 4:
                changed[at:at] = rng.choice(_AWKWARD)
            case 5:
                changed[at:at] = rng.randbytes(length)
            case 6:
                kind, stream = rng.randrange(12), rng.choice((0, 1, 2, 3, 101, 2**31 - 1))
                changed[at:at] = pack_frame(
                    kind, rng.randrange(256), stream, rng.randbytes(rng.choice((0, 4, 5, 8, 60)))
                )
    return bytes(changed)


def flood(rng: Random, token: str) -> bytes:
    """Something valid, far too often."""
    client = Connection(Role.CLIENT, GO_CLIENT_SETTINGS)
    client.initiate()
    head = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", b"x"),
        (b":path", b"/api/v1/nodes?limit=1"),
    ]
    head.append((b"authorization", f"Bearer {token}".encode()))
    match rng.randrange(6):
        case 0:  # rapid resets
            for _ in range(3000):
                client.reset(client.request(head))
        case 1:
            return client.take_output() + pack_frame(6, 0, 0, b"12345678") * 20_000
        case 2:
            return client.take_output() + pack_frame(4, 0, 0) * 20_000
        case 3:  # CONTINUATION without end
            return (
                client.take_output()
                + pack_frame(1, 0, 1, b"\x82")
                + pack_frame(9, 0, 1, b"\x82" * 500) * 2000
            )
        case 4:  # a table of one long entry, referred to again and again
            entry = b"\x40\x01a\x7f\xd9\x1e" + b"b" * 4000
            return client.take_output() + pack_frame(1, 5, 1, b"\x82\x87\x84" + entry + b"\xbe" * 200_000)
        case _:  # windows of 0, and answers that nobody takes
            client = Connection(Role.CLIENT)
            client.initiate()
            client.settings = GO_CLIENT_SETTINGS
            out = client.take_output() + pack_frame(4, 0, 0, b"\x00\x04\x00\x00\x00\x00")
            for _ in range(99):
                client.request(head)
            return out + client.take_output()
    return client.take_output()


def _request(rng: Random) -> tuple[str, str, str, bytes]:
    if rng.random() < 0.5:
        return "GET", rng.choice(PATHS), "", b""
    method, path, kind, value = rng.choice(WRITES)
    return method, path, kind, json.dumps(value).encode()
