"""A reflector of one secret on a driver, and the requests that are expected of it."""

from __future__ import annotations

from typing import Any

from harness.client.reflector import Reflector
from harness.client.reflectorstates import State
from harness.client.requests import SECRETS
from harness.wire import status

from .conftest import Driver, FixedRandom, bookmark, obj

BASE = "/api/v1/namespaces/ns/secrets?"
SELECTOR = "fieldSelector=metadata.name%3Ds"


def watch_list(version: str = "") -> str:
    at = f"resourceVersion={version}&" if version else ""
    return (
        f"{BASE}allowWatchBookmarks=true&{SELECTOR}&{at}resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
        "&timeout=7m30s&timeoutSeconds=450&watch=true"
    )


def watch(version: str) -> str:
    return (
        f"{BASE}allowWatchBookmarks=true&{SELECTOR}&resourceVersion={version}"
        "&timeout=7m30s&timeoutSeconds=450&watch=true"
    )


def list_path(version: str = "", limit: int = 500, token: str = "") -> str:
    parts = [f"continue={token}" if token else "", SELECTOR, f"limit={limit}" if limit else ""]
    parts.append(f"resourceVersion={version}" if version else "")
    return BASE + "&".join(part for part in parts if part)


def items(version: str, *objects: dict[str, Any], token: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": version, "continue": token} if token else {"resourceVersion": version}
    return {"kind": "SecretList", "metadata": metadata, "items": list(objects)}


class Setup(Driver):
    machine: Reflector

    def __init__(self, **options: Any) -> None:
        reflector = Reflector("r", SECRETS, "ns", "metadata.name=s", "", FixedRandom(0.5), **options)  # type: ignore[arg-type]
        super().__init__(reflector)

    @property
    def state(self) -> State:
        return self.machine.state

    def begin(self, version: str = "10") -> None:
        """Up to a watch that has its initial state: one object s."""
        self.start()
        self.open()
        self.receive(("ADDED", obj("s", 5)), bookmark(version, end=True))
        self.take()
        self.take_changes()
        self.take_samples("reflector_sync_ms")

    def back_off(self) -> None:
        """Ten seconds of a healthy watch, then an end that leads to the outer backoff."""
        self.advance(10)
        self.receive(("ERROR", status.too_old(1, 5).as_dict()))
        assert self.state is State.BACKOFF
