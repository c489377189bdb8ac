"""A started pool, asked over TLS and HTTP/2 through real sockets, by the `h2` library: nothing of ours is on this side.

A target is one case's: it keeps a connection to each member and sends each request to one of them, drawn by a seed.
"""

from __future__ import annotations

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

from tests.conformance.recorded import Answered, Sent

_CACHES_S = 0.05  # how long caches may need to hear of a write on another member
_ANSWER_S = 30.0


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
        self._wrote = False

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def wait(self, seconds: float) -> None:
        time.sleep(max(seconds, _CACHES_S if self._wrote else 0.0))

    def ask(self, *requests: Sent) -> list[Answered]:
        """Several at once take connections of their own."""
        self._wrote = any(request.method != "GET" for request in requests)
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
        deadline = time.monotonic() + (_ANSWER_S if request.watch_s is None else request.watch_s)
        while True:
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
