"""A started pool, asked over TLS and HTTP/2 through real sockets, by the `h2` library: nothing of ours is on this side.

A target is one case's: it keeps a connection to each member and sends each request to one of them, drawn by a seed.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import NamedTuple

import h2.config
import h2.connection
import h2.events

from tests.conformance.recorded import Answered, Sent, events_in

_INFORMERS_S = 0.05  # how long a member's own informers may need to hear of what its caches have
_ANSWER_S = 60.0


class Address(NamedTuple):
    host: str
    port: int


class SocketPool:
    def __init__(self, members: Sequence[Address], ca_file: str, seed: int = 0) -> None:
        context = ssl.create_default_context(cafile=ca_file)
        context.set_alpn_protocols(["h2"])
        self._members = members
        self._context = context
        self._connections = [Connection(address, context) for address in members]
        self._rng = Random(seed)
        self._written: set[str] = set()
        self._authorization: dict[str, str] = {}

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def wait(self, seconds: float) -> None:
        """A list of no older than some revision waits until the member's cache of that resource has come to it."""
        for path in self._written:
            now = self._list(self._connections[0], path)
            if now.status != 200:
                continue
            version = json.loads(now.body)["metadata"]["resourceVersion"]
            for connection in self._connections:
                while self._list(connection, f"{path}?resourceVersion={version}").status == 504:
                    pass  # some seconds behind
        time.sleep(max(seconds, _INFORMERS_S if self._written else 0.0))

    def _list(self, connection: Connection, path: str) -> Answered:
        return connection.ask(Sent("GET", path, {**self._authorization, "accept": "application/json"}, b""))

    def ask(self, *requests: Sent) -> list[Answered]:
        """Several at once take connections of their own."""
        self._written = {
            path for request in requests if request.method != "GET" and (path := collection(request.path))
        }
        for request in requests:
            if "authorization" in request.headers:
                self._authorization = {"authorization": request.headers["authorization"]}
        if len(requests) == 1:
            return [self._rng.choice(self._connections).ask(requests[0])]
        members = [self._rng.choice(self._members) for _ in requests]
        with ThreadPoolExecutor(len(requests)) as threads:
            return list(threads.map(self._ask_alone, members, requests))

    def _ask_alone(self, member: Address, request: Sent) -> Answered:
        connection = Connection(member, self._context)
        try:
            return connection.ask(request)
        finally:
            connection.close()


def collection(path: str) -> str:
    """The path of all objects that the resource of a request's path has where it is; "" where it is none's."""
    parts = path.partition("?")[0].strip("/").split("/")
    at = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    if parts[at : at + 1] == ["namespaces"] and len(parts) > at + 2:
        at += 2
    return "/" + "/".join(parts[: at + 1]) if len(parts) > at else ""


class Connection:
    """One request after the other."""

    def __init__(self, address: Address, context: ssl.SSLContext) -> None:
        plain = socket.create_connection(address, timeout=_ANSWER_S)
        self._socket = context.wrap_socket(plain, server_hostname=address.host)
        assert self._socket.selected_alpn_protocol() == "h2"
        self._authority = f"{address.host}:{address.port}"
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._h2.initiate_connection()
        self._flush()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Sent) -> Answered:
        stream = self._send(request)
        status, headers, body = 0, {}, b""
        deadline = time.monotonic() + _ANSWER_S
        waits = request.watch_s is not None
        while True:
            if waits and status and events_in(body) >= request.events:
                waits, deadline = False, time.monotonic() + (request.watch_s or 0.0)
            for event in self._events(deadline):
                if getattr(event, "stream_id", stream) != stream:
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    headers = {key: value for key, value in event.headers if not key.startswith(":")}
                    status = int(dict(event.headers)[":status"])
                elif isinstance(event, h2.events.DataReceived):
                    self._h2.acknowledge_received_data(event.flow_controlled_length, stream)
                    body += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    self._flush()
                    return Answered(status, headers, body)
                elif isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated):
                    raise ConnectionError(f"{request.method} {request.path}: {event}")
            self._flush()
            if time.monotonic() >= deadline:
                assert request.watch_s is not None, f"{request.method} {request.path}: no answer"
                self._h2.reset_stream(stream, error_code=8)  # CANCEL
                self._flush()
                return Answered(status, headers, body)

    def _send(self, request: Sent) -> int:
        stream: int = self._h2.get_next_available_stream_id()
        pseudo = [(":method", request.method), (":scheme", "https"), (":authority", self._authority)]
        headers = [*pseudo, (":path", request.path), *request.headers.items()]
        self._h2.send_headers(stream, headers, end_stream=not request.body)
        body = request.body
        while body:
            self._flush()
            window = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
            if not window:
                self._events(time.monotonic() + _ANSWER_S)
                continue
            part, body = body[:window], body[window:]
            self._h2.send_data(stream, part, end_stream=not body)
        self._flush()
        return stream

    def _events(self, deadline: float) -> list[h2.events.Event]:
        """What has come by the deadline, [] where that is nothing. Raises ConnectionError."""
        self._socket.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return []
        if not data:
            raise ConnectionError("the server has closed the connection")
        events: list[h2.events.Event] = self._h2.receive_data(data)
        return events

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data:
            self._socket.sendall(data)
