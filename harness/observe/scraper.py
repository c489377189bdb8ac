"""Scrapes every member's /metrics and samples every process's cost, in a process of its own.

Parsing thousands of lines and writing Parquet inside Locust's process would stall its loop, and with it the load
and the latencies it measures. ``python -m harness.observe.scraper`` is told what to do by JSON lines on standard input
(a `Plan` first, then further processes to watch) and works until that pipe ends, so it outlives a killed run just long
enough to write what it has. On standard output it says after each round what may be shown while the run goes on
(`harness.observe.digest`).

A series is written when it differs from the last scrape's value; `up` (1 or 0) is written at every scrape and says
whether the member answered, so a reader fills forward between them and knows the gaps. A series that is gone is written
as 0 once.

Members of etcd are scraped beside the apiservers, but are none: they have `swarmlet_store_up` in place of `up`, their
process's figures and what begins with ``etcd_``; a token of the target's is never shown to them.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import psutil

from harness.observe.digest import Scraped, digest_of
from harness.observe.exposition import samples
from harness.observe.record import SERIES, Parts
from harness.wire.pace import REAL, Pace

FLUSH_EVERY_S = 10.0
ANSWER_WITHIN_S = 4.0
PROCESS_CPU = "swarmlet_process_cpu_seconds_total"
PROCESS_MEMORY = "swarmlet_process_resident_memory_bytes"
"""What a process of the run really used, as the system has it; a member's own metrics of similar names are modelled."""

STORE_UP, STORE_UNREAD = "swarmlet_store_up", "swarmlet_store_unread"
"""Whether a member of etcd answered (1 or 0), at every scrape; 1 with the label `why` at each where it did not."""
OWN_CPU, OWN_MEMORY = "process_cpu_seconds_total", "process_resident_memory_bytes"
"""What a process says of itself at its /metrics."""
_OF_STORES = ("etcd_", OWN_CPU, OWN_MEMORY)
_Read = Callable[[str], Iterator[tuple[str, float]]]


class Source(msgspec.Struct, frozen=True):
    """One member: where its /metrics is and how to be let in. No `ca_file`: no verification; `server_name` is what its
    certificate must be good for, "" for the URL's host; `proxy` is the URL of one that takes CONNECT."""

    member: str
    url: str
    ca_file: str = ""
    token: str = ""
    cert_file: str = ""
    key_file: str = ""
    server_name: str = ""
    proxy: str = ""
    headers: list[tuple[str, str]] = []


class Plan(msgspec.Struct):
    """`processes`: name -> pid, sampled with every scrape. `interval_s` and the series' times are at `pace`. `stores`
    are members of etcd."""

    record: str
    sources: list[Source]
    interval_s: float = 5.0
    processes: dict[str, int] = {}
    pace: Pace = REAL
    stores: list[Source] = []


class More(msgspec.Struct):
    """A later line: processes that have joined, and the token that replaces the one of all members."""

    processes: dict[str, int] = {}
    token: str = ""


class _Https(http.client.HTTPSConnection):
    """With a name of its own for the certificate, and maybe through a proxy."""

    def __init__(self, source: Source, context: ssl.SSLContext) -> None:
        url, proxy = urlsplit(source.url), urlsplit(source.proxy)
        at = proxy if source.proxy else url
        super().__init__(at.hostname or "", at.port, timeout=ANSWER_WITHIN_S, context=context)
        self._name = source.server_name or url.hostname or ""
        self._context_used = context
        if source.proxy:
            headers = {}
            if proxy.username is not None:
                pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
                headers["Proxy-Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
            self.set_tunnel(url.hostname or "", url.port, headers)

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._context_used.wrap_socket(self.sock, server_hostname=self._name)


class _Member:
    """Keeps one connection to one member; a scrape that fails is tried again on a new one next time. `why` the last one
    failed."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.last: dict[str, float] = {}
        self.why = ""
        self._connection: http.client.HTTPConnection | None = None

    def fetch(self) -> str | None:
        self.why = "no answer in time"
        try:
            connection = self._connection or self._connect()
            self._connection = connection
            path = urlsplit(self.source.url).path.rstrip("/") + "/metrics"
            connection.putrequest("GET", path)
            for header in self._headers():
                connection.putheader(*header)
            connection.endheaders()
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.why = str(error) or type(error).__name__
            self.close()
            return None
        if answer.status != 200:
            self.why = f"GET {path} was answered by status {answer.status}"
            return None
        return body.decode("utf-8", "replace")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _headers(self) -> list[tuple[str, str]]:
        headers = [("Accept", "text/plain"), ("User-Agent", "swarmlet-scraper"), *self.source.headers]
        if self.source.token:
            headers.append(("Authorization", f"Bearer {self.source.token}"))
        return headers

    def _connect(self) -> http.client.HTTPConnection:
        url = urlsplit(self.source.url)
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname or "", url.port, timeout=ANSWER_WITHIN_S)
        context = ssl.create_default_context(cafile=self.source.ca_file or None)
        if not self.source.ca_file:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.source.cert_file:
            context.load_cert_chain(self.source.cert_file, self.source.key_file or None)
        return _Https(self.source, context)


class Scraper:
    """Owns the series of a record. `scrape` is one round over all members (in parallel) and processes, and gives what
    may be shown of it."""

    def __init__(self, plan: Plan) -> None:
        self._parts = Parts(Path(plan.record) / "series", SERIES)
        self._members = [_Member(source) for source in plan.sources]
        self._stores = [_Member(source) for source in plan.stores]
        self._processes: dict[str, psutil.Process] = {}
        self._flushed = time.monotonic()
        self._wall = plan.pace.stamps(time.time)
        self.watch_processes(plan.processes)

    def watch_processes(self, processes: dict[str, int]) -> None:
        for name, pid in processes.items():
            try:
                self._processes[name] = psutil.Process(pid)
            except psutil.Error:
                continue

    def use_token(self, token: str) -> None:
        for member in self._members:
            member.source = msgspec.structs.replace(member.source, token=token)

    def scrape(self) -> Scraped:
        now = self._wall()
        scraped = [*self._members, *self._stores]
        texts: list[str | None] = [None] * len(scraped)

        def fetch(index: int, member: _Member) -> None:
            texts[index] = member.fetch()

        threads = [threading.Thread(target=fetch, args=item, daemon=True) for item in enumerate(scraped)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(ANSWER_WITHIN_S + 1)
        for member, text in zip(self._members, texts, strict=False):
            self._keep(now, member, text)
        for store, text in zip(self._stores, texts[len(self._members) :], strict=True):
            self._keep_store(now, store, text)
        self._sample_processes(now)
        if time.monotonic() - self._flushed >= FLUSH_EVERY_S:
            self.flush()
        return Scraped(
            now,
            {
                member.source.member: None if text is None else digest_of(member.last)
                for member, text in zip(self._members, texts, strict=False)
            },
        )

    def flush(self) -> None:
        self._parts.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        self.flush()
        for member in (*self._members, *self._stores):
            member.close()

    def _keep(self, now: float, member: _Member, text: str | None) -> None:
        name = member.source.member
        self._parts.add((now, name, "up", 0.0 if text is None else 1.0))
        if text is not None:
            self._changes(now, member, samples, text)

    def _keep_store(self, now: float, store: _Member, text: str | None) -> None:
        name = store.source.member
        self._parts.add((now, name, STORE_UP, 0.0 if text is None else 1.0))
        if text is None:
            self._parts.add((now, name, f'{STORE_UNREAD}{{why="{_escaped(store.why)}"}}', 1.0))
        else:
            self._changes(now, store, _of_store, text)

    def _changes(self, now: float, member: _Member, read: _Read, text: str) -> None:
        name, last, shown = member.source.member, member.last, 0
        for series, value in read(text):
            shown += 1
            if last.get(series) != value:
                last[series] = value
                self._parts.add((now, name, series, value))
        if shown < len(last):
            self._end(now, member, {series for series, _ in read(text)})

    def _end(self, now: float, member: _Member, shown: set[str]) -> None:
        """What a member shows no longer, as after a restart, is 0; a reader would carry it forward."""
        for series in member.last.keys() - shown:
            del member.last[series]
            self._parts.add((now, member.source.member, series, 0.0))

    def _sample_processes(self, now: float) -> None:
        for name, process in list(self._processes.items()):
            try:
                with process.oneshot():
                    cpu = process.cpu_times()
                    memory = process.memory_info().rss
            except psutil.Error:
                del self._processes[name]
                continue
            self._parts.add((now, name, PROCESS_CPU, cpu.user + cpu.system))
            self._parts.add((now, name, PROCESS_MEMORY, float(memory)))


def _of_store(text: str) -> Iterator[tuple[str, float]]:
    return (sample for sample in samples(text) if sample[0].startswith(_OF_STORES))


def _escaped(text: str) -> str:
    """As the value of a label."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def main() -> None:
    """Scrape until standard input ends; one more scrape and a flush then."""
    scraper: Scraper | None = None
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    ended = threading.Event()
    scraper = Scraper(plan)
    _say({"ready": True})

    def listen() -> None:
        for line in sys.stdin.buffer:
            more = msgspec.json.decode(line, type=More)
            scraper.watch_processes(more.processes)
            if more.token:
                scraper.use_token(more.token)
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    due = time.monotonic()
    while True:
        _say(scraper.scrape())
        due = max(due + plan.pace.real_s(plan.interval_s), time.monotonic())
        if ended.wait(max(0.0, due - time.monotonic())):
            break
    scraper.scrape()
    scraper.close()


def _say(message: Scraped | dict[str, bool]) -> None:
    """Nobody may listen any more: a run that was killed."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
