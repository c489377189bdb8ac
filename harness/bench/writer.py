"""The benchmark's own client: puts objects there, changes them at a rate, reads the members' counters.

A few threads with a connection each, kept open; it runs in the benchmark's process, whose CPU is nobody's figure.
"""

from __future__ import annotations

import http.client
import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from harness.bench.objects import NAMESPACE, mounted_object
from harness.observe.exposition import samples, split
from harness.wire.errors import SwarmletError

TIMEOUT_S = 60.0
THREADS = 4


class WriteFailed(SwarmletError):
    """The control plane did not take what the benchmark needs there."""


class Writer:
    """One keep-alive connection to one member, as administrator."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None, token: str) -> None:
        self._connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """(status, body); one more try where the server closed the idle connection. Raises OSError."""
        for last in (False, True):
            try:
                self._connection.request(method, path, body or None, self._headers)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (http.client.HTTPException, OSError) as error:
                self._connection.close()
                if last:
                    raise OSError(f"{method} {path}: {error!r}") from error
        raise AssertionError("not reached")

    def close(self) -> None:
        self._connection.close()


def create_all(make: Callable[[int], Writer], objects: Iterable[tuple[str, bytes]], stop_at: float) -> int:
    """POST all of them from a few threads, thread n with ``make(n)``; how many there were. Raises WriteFailed, also at
    the monotonic time `stop_at`."""
    waiting: queue.Queue[tuple[str, bytes] | None] = queue.Queue(maxsize=64)
    failures: list[str] = []

    def work(number: int) -> None:
        writer = make(number)
        try:
            while (item := waiting.get()) is not None:
                if not failures:
                    _create(writer, *item, failures)
        finally:
            writer.close()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    count = 0
    for item in objects:
        if failures or time.monotonic() > stop_at:
            break
        waiting.put(item)
        count += 1
    else:
        stop_at = float("inf")
    for _ in threads:
        waiting.put(None)
    for thread in threads:
        thread.join()
    if failures:
        raise WriteFailed(failures[0])
    if stop_at < float("inf"):
        raise WriteFailed(f"only {count} objects could be created in time")
    return count


def _create(writer: Writer, path: str, body: bytes, failures: list[str]) -> None:
    try:
        status, answer = writer.call("POST", path, body)
    except OSError as error:
        failures.append(str(error))
        return
    if status not in (201, 409):
        failures.append(f"POST {path}: {status} {answer[:200].decode('utf-8', 'replace')}")


class Change:
    """One update of a secret or configmap, as `harness.load.delivery` joins it: (key, sent, answered)."""

    def __init__(self, writer: Writer, generation: int, resource: str, name: str) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/{resource}/{name}"
        sent = time.monotonic()
        status, answer = writer.call("PUT", path, mounted_object(name, generation))
        if status != 200:
            raise WriteFailed(f"PUT {path}: {status} {answer[:200].decode('utf-8', 'replace')}")
        revision = msgspec.json.decode(answer)["metadata"]["resourceVersion"]
        self.note = (f"{resource}/{revision}", sent, time.monotonic())


def counters(writer: Writer) -> dict[str, float]:
    """Of one member: open watches and events sent so far."""
    status, text = writer.call("GET", "/metrics")
    if status != 200:
        raise WriteFailed(f"GET /metrics: {status}")
    found: dict[str, Any] = {"watches": 0.0, "events": 0.0}
    for series, value in samples(text.decode()):
        name, labels = split(series)
        if name == "apiserver_longrunning_requests" and labels.get("verb") == "WATCH":
            found["watches"] += value
        elif name == "apiserver_watch_events_total":
            found["events"] += value
    return found
