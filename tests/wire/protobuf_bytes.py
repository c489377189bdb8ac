"""Recorded bodies of tests/data/protobuf, and a hand that writes protobuf without the code under test."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parents[1] / "data" / "protobuf"


def recorded() -> list[tuple[str, bytes, dict[str, Any]]]:
    """(name, envelope, the same object in JSON) as kube-apiserver v1.36.2 sent them, watch events by themselves."""
    found = []
    for case in json.loads((_DATA / "recorded.json").read_text()):
        body = b64decode(case["body_b64"])
        if "json" in case:
            found.append((case["name"], body, case["json"]))
        else:
            events = case["json_events"]
            found += [
                (f"{case['name']} {number}", envelope, event["object"])
                for number, (envelope, event) in enumerate(zip(_frames(body), events, strict=True))
            ]
    return found


def streams() -> list[bytes]:
    """Watches as they were recorded, frame after frame."""
    cases = json.loads((_DATA / "recorded.json").read_text())
    return [b64decode(case["body_b64"]) for case in cases if "json" not in case]


def kubectl() -> dict[str, bytes]:
    """What kubectl v1.32 posts, by command."""
    cases = json.loads((_DATA / "kubectl.json").read_text())
    return {case["command"]: b64decode(case["body_b64"]) for case in cases}


def _frames(body: bytes) -> list[bytes]:
    """The envelopes of watch frames: a length, WatchEvent.object (2), RawExtension.raw (1)."""
    found = []
    while body:
        size = int.from_bytes(body[:4], "big")
        frame, body = body[4 : 4 + size], body[4 + size :]
        found.append(frame[frame.index(b"k8s\x00") :])
    return found


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes((value & 0x7F | 0x80,)), value >> 7
    return out + bytes((value,))


def put(number: int, value: int | str | bytes) -> bytes:
    """One field: a varint, or text or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + put(1, put(1, api_version) + put(2, kind)) + put(2, raw)


def raw_object(body: bytes) -> bytes:
    """What an envelope holds: the second field, between the types and two empty fields."""
    after_types = 6 + body[5]
    size = body[after_types + 1 :]
    while size[0] & 0x80:
        size = size[1:]
    return size[1:-4]


def contained(part: Any, whole: Any) -> bool:
    """Is `part` in `whole`, but for what omitempty leaves out?"""
    if isinstance(part, dict):
        return all(contained(item, (whole or {}).get(key)) for key, item in part.items())
    if isinstance(part, list):
        return len(part) == len(whole or []) and all(map(contained, part, whole or []))
    return bool(part == whole or (whole is None and not part))
