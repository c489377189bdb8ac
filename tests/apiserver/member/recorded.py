"""Replaying recorded answers of a real kube-apiserver v1.36.2 against a member.

A case is a file of steps (tests/data/conformance); volatile values are tokens in it (``<rv>``, ``<uid>``, ``<time>``,
``<continue>``, ``<token>``) and are replaced in our answers before the two are compared.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fakemember import Server

DATA = Path(__file__).parents[2] / "data" / "conformance"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_VERSIONS = (
    re.compile(r"(?<=Too large resource version: )\d+"),
    re.compile(r"(?<=current: )\d+"),
    re.compile(r"(?<=ResourceVersion in record \()\d+"),
)
_KEYS = {"resourceVersion": "<rv>", "continue": "<continue>", "token": "<token>"}


def normalised(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: normalised(item, name) for name, item in value.items() if name != "managedFields"}
    if isinstance(value, list):
        return [normalised(item) for item in value]
    if not isinstance(value, str):
        return value
    if key in _KEYS and value:
        return _KEYS[key]
    value = _STAMP.sub("<time>", _UUID.sub("<uid>", value))
    for pattern in _VERSIONS:
        value = pattern.sub("<rv>", value)
    return value


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return value


def _filled(value: Any, saved: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in saved.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, dict):
        return {key: _filled(item, saved) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, saved) for item in value]
    return value


def differences(
    server: Server,
    name: str,
    left_out: set[int] = frozenset(),
    folder: Path = DATA,  # type: ignore[assignment]
) -> list[str]:
    """One text for each step of the case that was answered otherwise than recorded; `left_out` are not sent."""
    found = []
    saved: dict[str, str] = {}
    case = json.loads((folder / f"{name}.json").read_text())
    for number, step in enumerate(case["steps"]):
        if number in left_out:
            continue
        server.settle(step.get("sleep", 0.05))
        exchange = server.send(
            step["method"],
            _filled(step["path"], saved),
            _filled(step.get("body"), saved),
            step["as"],
            headers=step.get("headers"),
        )
        limit = step["watch"]["seconds"] if "watch" in step else 61.0
        while not exchange.finished and limit > 0:
            server.settle(0.1)
            limit -= 0.1
        if not exchange.finished:
            exchange.leave()
        body = _body(exchange, step)
        for key, path in step.get("save", {}).items():
            saved[key] = _at(body, path)
        found += [
            f"{name} {number} {step['method']} {step['path']}: {text}"
            for text in _compare(exchange, step, body)
        ]
    return found


def _body(exchange: Any, step: dict[str, Any]) -> Any:
    if "watch" in step and exchange.status == 200:
        return exchange.events
    try:
        return exchange.json
    except ValueError:
        return exchange.data.decode()


def _compare(exchange: Any, step: dict[str, Any], body: Any) -> list[str]:
    wanted = step["response"]
    found = []
    if exchange.status != wanted["status"]:
        found.append(f"status {exchange.status}, recorded {wanted['status']}: {exchange.data[:300]!r}")
    for key, value in wanted["headers"].items():
        if exchange.answer_headers.get(key.lower()) != value:
            found.append(f"header {key} {exchange.answer_headers.get(key.lower())!r}, recorded {value!r}")
    if not step.get("ignore_body") and normalised(body) != normalised(wanted["body"]):
        found.append(f"body\n  {json.dumps(normalised(body))}\n  recorded\n  {json.dumps(wanted['body'])}")
    return found
