"""Recorded cases, and the comparison of an answer with the recorded one. No I/O but reading the files.

Volatile values are tokens in the recordings (``<rv>``, ``<uid>``, ``<time>``, ``<continue>``, ``<token>``) and are
replaced in our answers before the two are compared; managedFields were left out when the cases were recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.conformance.differences import DIFFERENCES, OF_LATER_MEMBERS

FOLDER = Path(__file__).parents[1] / "data" / "conformance"
CASES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
_ADMIN, _NOBODY = "", "anonymous"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
_VERSIONS = (
    re.compile(r"(?<=Too large resource version: )\d+"),
    re.compile(r"(?<=current: )\d+"),
    re.compile(r"(?<=ResourceVersion in record \()\d+"),
    re.compile(r"(?<=too old resource version: )\d+"),
    re.compile(r"(?<=too old resource version: <rv> \()\d+"),
)
_KEYS = {"resourceVersion": "<rv>", "continue": "<continue>", "token": "<token>"}


class Sent(NamedTuple):
    """One request. `watch_s` None for one that is answered whole; else how long more events are read for, once the
    `events` that are expected have come."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    watch_s: float | None = None
    events: int = 0


class Answered(NamedTuple):
    """Header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Target(Protocol):
    """Whatever the cases are replayed against: one member, or a pool that sends each request to some member."""

    def wait(self, seconds: float) -> None:
        """Let time pass; 0 is as long as caches need to hear of the last write."""
        ...

    def ask(self, *requests: Sent) -> list[Answered]:
        """Send them, at the same time where time is real."""
        ...


class Step(NamedTuple):
    """How one step went: `faults` is empty where it matched, `differs` that it matched a difference of ours."""

    case: str
    number: int
    about: str
    faults: list[str]
    differs: bool = False


def steps_of(name: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())["steps"]
    return steps


def replay(name: str, target: Target, token: str, shared: bool = False) -> Iterator[Step]:
    """Send a case's steps in their order; `token` is the administrator's.

    `shared`: other cases are replayed on the same pool at the same time, and its members did not start together. Then
    bookmarks that only say how far the pool has come are left out, and `OF_LATER_MEMBERS` are accepted too.
    """
    saved: dict[str, str] = {}
    for together in _grouped(steps_of(name)):
        target.wait(together[0][1].get("sleep", 0.0))
        answers = target.ask(*(_request(step, saved, token) for _, step in together))
        for (number, step), answer in zip(together, answers, strict=True):
            body = _decoded(answer, "watch" in step)
            for key, path in step.get("save", {}).items():
                saved[key] = _at(body, path)
            yield _judged(name, number, step, answer, body, shared)


def _grouped(steps: list[dict[str, Any]]) -> list[list[tuple[int, dict[str, Any]]]]:
    """Watches that follow one another, with nothing written in between, can be open at the same time."""
    groups: list[list[tuple[int, dict[str, Any]]]] = []
    for number, step in enumerate(steps):
        if "watch" in step and "sleep" not in step and groups and "watch" in groups[-1][-1][1]:
            groups[-1].append((number, step))
        else:
            groups.append([(number, step)])
    return groups


def _judged(name: str, number: int, step: dict[str, Any], answer: Answered, body: Any, shared: bool) -> Step:
    if shared and isinstance(body, list):
        body = [event for event in body if not _is_plain_bookmark(event)]
    recorded = step["response"]
    ours = DIFFERENCES.get((name, number))
    wanted = recorded if ours is None else ours.response(recorded)
    faults = _compare(answer, body, wanted, step.get("ignore_body", False))
    other = OF_LATER_MEMBERS.get((name, number)) if shared and faults else None
    if other is not None and not _compare(answer, body, other.response(recorded), False):
        faults, ours = [], other
    return Step(name, number, f"{step['method']} {step['path']}", faults, ours is not None)


def events_in(body: bytes) -> int:
    """Whole events of a watch's answer so far, without bookmarks that only say how far the pool has come."""
    return sum(not _is_plain_bookmark(json.loads(line)) for line in body.split(b"\n")[:-1] if line)


def _is_plain_bookmark(event: Any) -> bool:
    return event.get("type") == "BOOKMARK" and "annotations" not in event["object"]["metadata"]


def described(steps: list[Step]) -> str:
    """The faults of these steps, "" where all matched."""
    return "\n".join(
        f"{step.case} {step.number} {step.about}: {fault}" for step in steps for fault in step.faults
    )


def _request(step: dict[str, Any], saved: dict[str, str], token: str) -> Sent:
    user, body = step["as"], _filled(step.get("body"), saved)
    headers = {"accept": "application/json"}
    if user != _NOBODY:
        headers["authorization"] = f"Bearer {token}"
    if user not in (_ADMIN, _NOBODY):
        headers["impersonate-user"] = user
        if user.startswith("system:node:"):
            headers["impersonate-group"] = "system:nodes"
    raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    if raw:
        headers["content-type"] = "application/json"
    headers |= {key.lower(): value for key, value in (step.get("headers") or {}).items()}
    watch = step["watch"]["seconds"] if "watch" in step else None
    told = step["response"]["body"] if watch is not None else ()
    events = len(told) if isinstance(told, list) else 0
    return Sent(step["method"], _filled(step["path"], saved), headers, raw, watch, events)


def _filled(value: Any, saved: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in saved.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, dict):
        return {key: _filled(item, saved) for key, item in value.items()}
    return [_filled(item, saved) for item in value] if isinstance(value, list) else value


def _decoded(answer: Answered, watch: bool) -> Any:
    if watch and answer.status == 200:
        return [json.loads(line) for line in answer.body.splitlines()]
    try:
        return json.loads(answer.body)
    except ValueError:
        return answer.body.decode()


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return value


def normalised(value: Any, key: str = "") -> Any:
    """`value` with tokens for what differs from run to run."""
    if isinstance(value, dict):
        return {name: normalised(item, name) for name, item in value.items() if name != "managedFields"}
    if isinstance(value, list):
        return [normalised(item) for item in value]
    if not isinstance(value, str):
        return value
    if key in _KEYS and value:
        return _KEYS[key]
    value = _ADDRESS.sub("<address>", _STAMP.sub("<time>", _UUID.sub("<uid>", value)))
    for pattern in _VERSIONS:
        value = pattern.sub("<rv>", value)
    return value


def _compare(answer: Answered, body: Any, wanted: dict[str, Any], ignore_body: bool) -> list[str]:
    found = []
    if answer.status != wanted["status"]:
        found.append(f"status {answer.status}, recorded {wanted['status']}: {answer.body[:300]!r}")
    for key, value in wanted["headers"].items():
        ours = answer.headers.get(key.lower())
        if ours != value:
            found.append(f"header {key} {ours!r}, recorded {value!r}")
    if not ignore_body and normalised(body) != normalised(wanted["body"]):
        ours, theirs = json.dumps(normalised(body)), json.dumps(normalised(wanted["body"]))
        found.append(f"body\n  {ours}\n  recorded\n  {theirs}")
    return found
