"""Servers to be talked to: sockets and threads, `h2` for frames. A test says what they answer."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from tests.conftest import HANG_S

Serve = Callable[["Peer", socket.socket], None]


class Peer:
    """Listens on 127.0.0.1 and runs `serve` in a thread for each connection, until `close`."""

    def __init__(self, serve: Serve, tls: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.accepted = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(HANG_S)
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(HANG_S)
            assert not thread.is_alive()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._sockets.append(sock)
            thread = threading.Thread(target=self._run, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, sock: socket.socket) -> None:
        served = sock
        try:
            if self._tls is not None:
                served = self._tls.wrap_socket(sock, server_side=True)
                self._sockets.append(served)
            self._serve(self, served)
        except (OSError, ProtocolError, ValueError):
            pass  # the connection ended while the script was at it
        finally:
            served.close()
            sock.close()


class Http2Peer(Peer):
    """Answers through `answer(connection, stream_id, headers, body)`; what it saw is kept for the test."""

    def __init__(
        self,
        answer: Callable[[Http2Session, int, dict[str, str], bytes], object],
        *,
        max_streams: int = 100,
        tls: ssl.SSLContext | None = None,
        silent: bool = False,
    ) -> None:
        self.answer = answer
        self.max_streams = max_streams
        self.silent = silent
        self.sessions: list[Http2Session] = []
        super().__init__(Http2Peer._session, tls)

    @staticmethod
    def _session(peer: Peer, sock: socket.socket) -> None:
        assert isinstance(peer, Http2Peer)
        session = Http2Session(peer, sock)
        peer.sessions.append(session)
        session.run()

    @property
    def resets(self) -> list[int]:
        return [code for session in self.sessions for code in session.resets]


class Http2Session:
    """One connection of an `Http2Peer`. The test's thread may call what sends."""

    def __init__(self, peer: Http2Peer, sock: socket.socket) -> None:
        self._peer = peer
        self._sock = sock
        self._lock = threading.Lock()
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._h2.local_settings = Settings(
            client=False, initial_values={SettingCodes.MAX_CONCURRENT_STREAMS: peer.max_streams}
        )
        self._requests: dict[int, tuple[dict[str, str], bytearray]] = {}
        self.resets: list[int] = []

    def run(self) -> None:
        with self._lock:
            self._h2.initiate_connection()
            self._send()
        while data := self._sock.recv(65536):
            if self._peer.silent:
                continue
            with self._lock:
                events = self._h2.receive_data(data)
                self._send()
            for event in events:
                self._handle(event)

    def _handle(self, event: Any) -> None:
        if isinstance(event, RequestReceived):
            self._requests[event.stream_id] = (dict(event.headers), bytearray())
        elif isinstance(event, DataReceived):
            self._requests[event.stream_id][1].extend(event.data)
            with self._lock:
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self._send()
        elif isinstance(event, StreamReset):
            self.resets.append(event.error_code)
        elif isinstance(event, StreamEnded):
            headers, body = self._requests.pop(event.stream_id)
            self._peer.answer(self, event.stream_id, headers, bytes(body))

    def head(self, stream_id: int, status: int = 200, *fields: tuple[str, str], end: bool = False) -> None:
        with self._lock:
            self._h2.send_headers(stream_id, [(":status", str(status)), *fields], end_stream=end)
            self._send()

    def data(self, stream_id: int, data: bytes, end: bool = False) -> None:
        with self._lock:
            self._h2.send_data(stream_id, data, end_stream=end)
            self._send()

    def reply(self, stream_id: int, body: bytes, status: int = 200) -> None:
        self.head(stream_id, status, ("content-type", "application/json"))
        self.data(stream_id, body, end=True)

    def reset(self, stream_id: int, code: int) -> None:
        with self._lock:
            self._h2.reset_stream(stream_id, code)
            self._send()

    def goaway(self, last_stream_id: int, code: int = 0) -> None:
        """As raw bytes: h2 takes nothing more once it has sent GOAWAY, a real server goes on."""
        payload = last_stream_id.to_bytes(4, "big") + code.to_bytes(4, "big")
        self.raw(len(payload).to_bytes(3, "big") + b"\x07\x00\x00\x00\x00\x00" + payload)

    def raw(self, data: bytes) -> None:
        with self._lock:
            self._sock.sendall(data)

    def drop(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)

    def _send(self) -> None:
        if data := self._h2.data_to_send():
            self._sock.sendall(data)


def echo(session: Http2Session, stream_id: int, headers: dict[str, str], body: bytes) -> None:
    """200 with the method, path and body of the request."""
    session.reply(stream_id, f"{headers[':method']} {headers[':path']} ".encode() + body)


class Http1Session:
    """Reads HTTP/1.1 requests off a socket, one after the other."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._file = sock.makefile("rb")

    def next_request(self) -> tuple[str, dict[str, str], bytes] | None:
        """Request line, headers with lower-case names, body; None where the client has closed."""
        line = self._file.readline().decode().rstrip()
        if not line:
            self._file.close()
            return None
        headers = {}
        while field := self._file.readline().decode().rstrip():
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        return line, headers, self._file.read(int(headers.get("content-length", 0)))

    def reply(self, body: bytes, status: int = 200, *fields: str) -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n" + "".join(f"{f}\r\n" for f in fields)
        self.sock.sendall(head.encode() + b"\r\n" + body)

    def close(self) -> None:
        self._file.close()
        self.sock.close()
