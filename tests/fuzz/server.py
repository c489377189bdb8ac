"""Raw bytes at a member's process: ``python -m tests.fuzz.server --seconds 60 --seed 1``.

Starts a pool of one member and sends it spoilt conversations on many connections, over TLS, as HTTP/1.1 and HTTP/2.
Meanwhile a well-behaved client of its own asks and writes, one request after another. The run fails where the member's
process ends, where its log holds a traceback, where the other client is not answered, or where the member's memory has
grown without bound: over what it held when it had answered everything once, and for each connection of a crowd that
stays open in the middle of its first request. The same seed sends the same bytes on each connection; how connections
interleave is the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random

import psutil
import yaml

from harness.pool.emulated import EmulatedPool, PoolOptions
from tests.fuzz.conversations import PATHS, WRITES, flood, http1, http2, spoil

CONNECTIONS = 16
ANSWER_WITHIN_S = 60.0
"""For the other client, on a machine that is shared; a member that hangs does not answer at all."""
READ_FOR_S = 0.1
HELD = 100
"""Connections that are open at the same time, at the beginning, while a member has no memory to spare."""

HELD_AFTER_BYTES = 100

CONNECTION_BYTES = 64 << 10
"""What a connection may cost a member, buffers of TLS and of what was half sent included."""

ANSWER_BYTES = 4 << 20
"""Answers on one connection that nobody takes: five of /metrics."""

GROWTH_BYTES, GROWTH_BYTES_A_S = 40 << 20, 8 << 20
"""What a member may grow by beside its connections, and each second: what is written to it stays."""


@dataclass
class Outcome:
    """`ended` is how fuzzed connections went; `failures` is empty where the member stood it."""

    sent: int = 0
    sent_bytes: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    slowest_s: float = 0.0
    start_bytes: int = 0
    peak_bytes: int = 0
    held_bytes: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ways = ", ".join(f"{count} {way}" for way, count in sorted(self.ended.items()))
        text = (
            f"{self.sent} conversations, {self.sent_bytes / 1e6:.1f} MB sent; connections: {ways}\n"
            f"the other client asked {self.asked} times, at most {self.slowest_s * 1000:.0f} ms; "
            f"the member held at most {self.peak_bytes / 1e6:.0f} MB, {self.start_bytes / 1e6:.0f} MB at the start, "
            f"{self.held_bytes / HELD / 1e3:.0f} KB for each of {HELD} open connections"
        )
        return "\n".join([text, *(f"FAILED: {failure}" for failure in self.failures)])


def fuzz(seconds: float, seed: int) -> Outcome:
    """Run against a pool of its own, until the time is over and each connection was made once, if that takes longer."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="swf-") as folder:
        logs = Path(folder) / "logs"
        died: list[str] = []
        options = PoolOptions(cores="host", kubeconfig=str(Path(folder) / "kubeconfig"), logs=str(logs))
        pool = EmulatedPool(options, lambda event: died.append(str(event)))
        pool.start()
        try:
            token, context = _access(pool.kubeconfig)
            _ask_everything(pool.members[0].port, token, context)
            outcome.start_bytes = _held(pool)
            asyncio.run(_hold(outcome, pool, token, Random(seed)))
            asyncio.run(_fuzz(outcome, pool, token, context, seconds, seed))
        finally:
            pool.stop()
        outcome.failures += died
        outcome.failures += _faults_in((logs / "member-0.log").read_text("utf-8", "replace"))
    return outcome


def _faults_in(log: str) -> list[str]:
    """Each kind of error once, by its end, with the first line that has it."""
    lines = [line for line in log.splitlines() if "Traceback" in line or "Error" in line]
    return list({line[-80:]: f"{line[:300]} ... {line[-500:]}" for line in reversed(lines)}.values())


def _access(kubeconfig: Path) -> tuple[str, ssl.SSLContext]:
    document = yaml.safe_load(kubeconfig.read_text())
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return document["users"][0]["user"]["token"], context


async def _fuzz(
    outcome: Outcome, pool: EmulatedPool, token: str, context: ssl.SSLContext, seconds: float, seed: int
) -> None:
    until = time.monotonic() + seconds

    def goes_on() -> bool:
        done = time.monotonic() >= until and outcome.sent >= CONNECTIONS and outcome.asked > 0
        return not (done or outcome.failures)

    port = pool.members[0].port
    other = asyncio.to_thread(_other_client, outcome, port, context, token, goes_on)
    attackers = [
        _attacker(outcome, port, token, Random(f"{seed}/{number}"), goes_on) for number in range(CONNECTIONS)
    ]
    await asyncio.gather(other, _watch_memory(outcome, pool, goes_on), *attackers)


async def _attacker(
    outcome: Outcome, port: int, token: str, rng: Random, goes_on: Callable[[], bool]
) -> None:
    while goes_on():
        alpn = rng.choice(("h2", "h2", "http/1.1"))
        if rng.random() < 0.03:
            alpn, data = "h2", flood(rng, token)
        else:
            data = (http2 if alpn == "h2" else http1)(rng, token)
            data = spoil(rng, data) if rng.random() < 0.95 else data
        outcome.sent += 1
        outcome.sent_bytes += len(data)
        outcome.ended[await _converse(port, alpn, rng, data)] += 1


@lru_cache
def _client_context(alpn: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    return context


async def _converse(port: int, alpn: str, rng: Random, data: bytes) -> str:
    """Send in pieces, read for a while or not at all; how it went."""
    try:
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", port, ssl=_client_context(alpn)), ANSWER_WITHIN_S
        )
    except (OSError, TimeoutError):
        return "not made"
    try:
        at = 0
        while at < len(data):
            step = rng.choice((1, 9, 100, 5000, 1 << 20))
            writer.write(data[at : at + step])
            at += step
            if rng.random() < 0.2:
                await asyncio.sleep(0)
        if rng.random() < 0.1:
            return "left"
        read = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READ_FOR_S):
                while piece := await reader.read(1 << 16):
                    read += len(piece)
                return "closed by the member" if read else "closed without a word"
        return "left open"
    except (OSError, ssl.SSLError):
        return "broken off"
    finally:
        writer.transport.abort()


def _other_client(
    outcome: Outcome, port: int, context: ssl.SSLContext, token: str, goes_on: Callable[[], bool]
) -> None:
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=ANSWER_WITHIN_S, context=context)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    name = "/api/v1/namespaces/kube-public/configmaps"
    try:
        while goes_on():
            for method, path, body, expected in (
                ("GET", "/readyz", None, 200),
                ("POST", name, json.dumps({"metadata": {"name": "other"}}), 201),
                ("GET", f"{name}/other", None, 200),
                ("DELETE", f"{name}/other", None, 200),
            ):
                began = time.monotonic()
                connection.request(method, path, body=body, headers=headers)
                answer = connection.getresponse()
                text = answer.read()
                outcome.asked += 1
                outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - began)
                if answer.status != expected:
                    outcome.failures.append(f"{method} {path}: {answer.status} {text[:200]!r}")
            time.sleep(0.02)
    except (OSError, http.client.HTTPException) as error:
        outcome.failures.append(f"the other client: {error!r}")
    finally:
        connection.close()


def _ask_everything(port: int, token: str, context: ssl.SSLContext) -> None:
    """What a member makes at the first such request, and then keeps, is no growth: schemas, discovery, OpenAPI."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=ANSWER_WITHIN_S, context=context)
    asked = [("GET", path, "", None) for path in PATHS] + [
        (method, path, kind, json.dumps(value)) for method, path, kind, value in WRITES
    ]
    for method, path, kind, body in asked:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        connection.request(method, path, body=body, headers=headers)
        connection.getresponse().read()
    connection.close()


def _held(pool: EmulatedPool) -> int:
    """Resident bytes of the member; 0 where it has gone."""
    try:
        return psutil.Process(pool.members[0].pid).memory_info().rss
    except psutil.NoSuchProcess:
        return 0


async def _watch_memory(outcome: Outcome, pool: EmulatedPool, goes_on: Callable[[], bool]) -> None:
    began = time.monotonic()
    while goes_on():
        held = _held(pool)
        outcome.peak_bytes = max(outcome.peak_bytes, held)
        allowed = GROWTH_BYTES + CONNECTIONS * (CONNECTION_BYTES + ANSWER_BYTES)
        allowed += int(GROWTH_BYTES_A_S * (time.monotonic() - began))
        if not held:
            outcome.failures.append("the member has gone")
        elif held > outcome.start_bytes + allowed:
            outcome.failures.append(
                f"the member holds {held / 1e6:.0f} MB, {outcome.start_bytes / 1e6:.0f} at the start"
            )
        await asyncio.sleep(0.2)


async def _hold(outcome: Outcome, pool: EmulatedPool, token: str, rng: Random) -> None:
    """Many connections, each in the middle of its first request."""
    before, port = _held(pool), pool.members[0].port
    writers = []
    for number in range(HELD):
        alpn = "h2" if number % 2 else "http/1.1"
        data = (http2 if alpn == "h2" else http1)(rng, token)
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=_client_context(alpn))
        writer.write(data[:HELD_AFTER_BYTES])
        writers.append(writer)
    await asyncio.gather(*(writer.drain() for writer in writers))
    await asyncio.sleep(READ_FOR_S)
    outcome.held_bytes = max(0, _held(pool) - before)
    for writer in writers:
        writer.transport.abort()
    if outcome.held_bytes > HELD * CONNECTION_BYTES:
        outcome.failures.append(f"each of {HELD} connections takes {outcome.held_bytes / HELD / 1e3:.0f} KB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    outcome = fuzz(arguments.seconds, arguments.seed)
    print(outcome)
    sys.exit(1 if outcome.failures else 0)


if __name__ == "__main__":
    main()
