"""The listener over loopback sockets, with curl, h2 and OpenSSL's own client as peers."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import json
import shutil
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.apiserver.process.loopclock import LoopClock
from harness.apiserver.process.server import Server, serve, server_context
from harness.apiserver.serving.common import ServingOptions
from harness.wire.errors import ConfigError
from harness.wire.http2.frames import RST_STREAM, pack_u32_frame

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

Test = Callable[[Server], Awaitable[None]]


uvloop.new_event_loop().close()  # opens libuv's signal pipe, which stays open as long as the process


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Any:
    return request.param


def handler(exchange: Any) -> None:
    """Answers its own request; /watch streams three lines and stays open, /big is 3 MB."""
    if exchange.path.startswith("/watch"):
        exchange.start(200, {"content-type": "application/json"})
        for number in range(3):
            exchange.write(b"event %d\n" % number)
        if exchange.path == "/watch?timeoutSeconds=0":
            exchange.finish()
    elif exchange.path == "/big":
        exchange.respond(200, {"content-type": "application/octet-stream"}, bytes(range(256)) * 12_000)
    else:
        seen = {
            "method": exchange.method,
            "path": exchange.path,
            "length": len(exchange.body),
            "host": exchange.headers.get("host"),
        }
        exchange.respond(200, {"content-type": "application/json"}, json.dumps(seen).encode())


def run(
    test: Test,
    loop_factory: Any,
    certificate: Path | None = None,
    options: ServingOptions | None = None,
    handle: Any = handler,
    on_connection: Any = None,
) -> None:
    """Run `test` beside a server, then close it."""

    async def main() -> None:
        context = server_context(str(certificate), str(certificate)) if certificate else None
        clock, hook = LoopClock(asyncio.get_running_loop()), on_connection or (lambda go_on: go_on())
        server = await serve(handle, "127.0.0.1", 0, context, clock, options or ServingOptions(), hook)
        try:
            await test(server)
        finally:
            server.close()
            await server.wait_closed()
            await asyncio.sleep(0)  # aborted transports close their sockets in the next turn

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


async def curl(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    return process.returncode or 0, (output or errors).decode()


CODES = "\n%{http_version} %{http_code} %{num_connects}"


@needs_curl
@pytest.mark.parametrize(
    ("scheme", "option", "version"),
    [
        ("https", "--http2", "2"),
        ("https", "--http1.1", "1.1"),
        ("http", "--http2-prior-knowledge", "2"),
        ("http", "--http1.1", "1.1"),
        ("http", "--http1.0", "1.1"),
        ("http", "--http2", "1.1"),
    ],
)
def test_curl_is_answered_in_every_protocol(certificate, scheme: str, option: str, version: str) -> None:
    async def test(server: Server) -> None:
        url = f"{scheme}://127.0.0.1:{server.port}"
        common = ["--cacert", str(certificate), option, "-w", CODES]
        code, output = await curl(*common, f"{url}/api?x=1")
        assert (code, output.rpartition("\n")[2]) == (0, f"{version} 200 1"), output
        assert json.loads(output.rpartition("\n")[0])["path"] == "/api?x=1"
        code, output = await curl(*common, "-X", "POST", "--data-binary", "@" + str(certificate), f"{url}/p")
        assert json.loads(output.rpartition("\n")[0])["length"] == certificate.stat().st_size
        code, output = await curl(*common, f"{url}/watch?timeoutSeconds=0")
        assert output.startswith("event 0\nevent 1\nevent 2\n")

    run(test, uvloop.new_event_loop, certificate if scheme == "https" else None)


@needs_curl
@pytest.mark.parametrize("option", ["--http2-prior-knowledge", "--http1.1"])
def test_curl_keeps_its_connection_and_reads_large_answers(tmp_path: Path, option: str) -> None:
    async def test(server: Server) -> None:
        url = f"http://127.0.0.1:{server.port}"
        out = tmp_path / "big"
        _, output = await curl(option, "-w", "\n%{num_connects}\n", f"{url}/a", f"{url}/b", f"{url}/c")
        assert output.splitlines()[1::2] == ["1", "0", "0"]
        assert server.statistics().accepted == 1
        code, output = await curl(option, "-o", str(out), f"{url}/big")
        assert code == 0
        assert out.read_bytes() == bytes(range(256)) * 12_000

    run(test, uvloop.new_event_loop)


@needs_curl
@pytest.mark.parametrize("option", ["--http2-prior-knowledge", "--http1.1"])
@pytest.mark.parametrize("expect", ["Expect: 100-continue", "Expect:"])
def test_curl_reads_413_for_a_body_above_the_limit(tmp_path: Path, option: str, expect: str) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"x" * (3 * 1024 * 1024 + 1))

    async def test(server: Server) -> None:
        url = f"http://127.0.0.1:{server.port}/"
        _, output = await curl(option, "-H", expect, "-w", CODES, "--data-binary", f"@{body}", url)
        assert output.splitlines()[-1].split()[1] == "413"
        assert json.loads(output.rpartition("\n")[0])["reason"] == "RequestEntityTooLarge"
        body.write_bytes(b"x" * (3 * 1024 * 1024))
        _, output = await curl(option, "-H", expect, "-w", CODES, "--data-binary", f"@{body}", url)
        assert output.splitlines()[-1].split()[1] == "200"

    run(test, uvloop.new_event_loop)


class H2Client:
    """h2 over an asyncio stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.events: list[h2.events.Event] = []

    @classmethod
    async def connect(cls, port: int, certificate: Path | None = None) -> H2Client:
        context = None
        if certificate:
            context = ssl.create_default_context(cafile=str(certificate))
            context.set_alpn_protocols(["h2"])
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=context))

    def get(self, path: str) -> int:
        stream_id = self.h2.get_next_available_stream_id()
        head = [(":method", "GET"), (":scheme", "http"), (":authority", "x"), (":path", path)]
        self.h2.send_headers(stream_id, head, end_stream=True)
        return stream_id

    async def until(self, done: Callable[[h2.events.Event], bool], count: int = 1) -> list[h2.events.Event]:
        """Read until `count` events are `done`."""
        found: list[h2.events.Event] = []
        while len(found) < count:
            self.writer.write(self.h2.data_to_send())
            data = await self.reader.read(65_536)
            if not data:
                break
            for event in self.h2.receive_data(data):
                self.events.append(event)
                if isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if done(event):
                    found.append(event)
        self.writer.write(self.h2.data_to_send())
        return found

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


def ended(event: h2.events.Event) -> bool:
    return isinstance(event, h2.events.StreamEnded)


@pytest.mark.parametrize("secure", [False, True], ids=["cleartext", "tls"])
def test_100_streams_of_an_h2_client_are_served_on_one_connection(loop_factory, certificate, secure) -> None:
    async def test(server: Server) -> None:
        client = await H2Client.connect(server.port, certificate if secure else None)
        await client.until(lambda event: isinstance(event, h2.events.RemoteSettingsChanged))
        for number in range(99):
            client.get(f"/watch?{number}")
        big = client.get("/big")
        await client.until(ended)
        body = b"".join(
            e.data for e in client.events if isinstance(e, h2.events.DataReceived) and e.stream_id == big
        )
        assert body == bytes(range(256)) * 12_000
        heads = [e for e in client.events if isinstance(e, h2.events.ResponseReceived)]
        assert len(heads) == 100
        assert server.statistics().http2 == server.statistics().connections == 1
        await client.close()

    run(test, loop_factory, certificate if secure else None)


def test_shutdown_as_on_sigterm(loop_factory) -> None:
    async def test(server: Server) -> None:
        client = await H2Client.connect(server.port)
        client.get("/watch")
        await client.until(lambda event: isinstance(event, h2.events.DataReceived))
        idle = await H2Client.connect(server.port)
        await idle.until(lambda event: isinstance(event, h2.events.RemoteSettingsChanged))
        server.shutdown(grace_s=60)
        (goaway,) = await client.until(lambda event: isinstance(event, h2.events.ConnectionTerminated))
        assert (goaway.error_code, goaway.last_stream_id) == (0, 1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)
        assert server.statistics().connections >= 1
        client.writer.write(pack_u32_frame(RST_STREAM, 1, 8))  # h2 sends nothing after a GOAWAY
        await server.wait_closed()
        assert await client.reader.read() == b""
        await client.close()
        await idle.close()

    run(test, loop_factory, options=ServingOptions(drained_close_s=0.01))


def test_after_the_grace_period_watches_are_cut_off(loop_factory) -> None:
    async def test(server: Server) -> None:
        client = await H2Client.connect(server.port)
        client.get("/watch")
        await client.until(lambda event: isinstance(event, h2.events.DataReceived))
        server.shutdown(grace_s=0.02)
        server.shutdown(grace_s=0.02)
        await server.wait_closed()
        await client.close()

    run(test, loop_factory)


def test_a_client_that_leaves_is_told_to_its_exchange(loop_factory) -> None:
    gone: asyncio.Event | None = None

    def watch(exchange: Any) -> None:
        assert gone is not None
        exchange.on_gone(gone.set)
        exchange.start(200, {})

    async def test(server: Server) -> None:
        nonlocal gone
        for speak in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", None):
            gone = asyncio.Event()
            if speak is None:
                client = await H2Client.connect(server.port)
                client.get("/")
                await client.until(lambda event: isinstance(event, h2.events.ResponseReceived))
                writer = client.writer
            else:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(speak)
                await reader.readuntil(b"\r\n\r\n")
            writer.close()
            await writer.wait_closed()
            await gone.wait()

    run(test, loop_factory, handle=watch)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b""])
def test_failed_tls_handshakes_are_counted(loop_factory, certificate, data: bytes) -> None:
    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(data)
        if not data:
            writer.close()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        while server.statistics().handshakes or server.statistics().connections:
            await asyncio.sleep(0.001)
        assert server.statistics().handshake_errors == 1
        good = await H2Client.connect(server.port, certificate)
        good.get("/")
        assert await good.until(ended)
        await good.close()

    run(test, loop_factory, certificate)


def test_closing_during_a_handshake_leaves_nothing(loop_factory, certificate) -> None:
    async def test(server: Server) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        while not server.statistics().handshakes:
            await asyncio.sleep(0)
        server.close()
        await server.wait_closed()
        writer.close()

    run(test, loop_factory, certificate)


@pytest.mark.parametrize("http", ["--http1.1", "--http2"])
@needs_curl
def test_a_tls_connection_is_served_once_its_handshake_is_paid_for(
    loop_factory, certificate, http: str
) -> None:
    held: list[Callable[[], None]] = []
    seen: list[str] = []

    def handle(exchange: Any) -> None:
        seen.append(exchange.path)
        handler(exchange)

    async def test(server: Server) -> None:
        url = f"https://127.0.0.1:{server.port}/first"
        asked = asyncio.ensure_future(curl(http, "--cacert", str(certificate), url))
        while not held or server.statistics().handshakes:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert seen == []
        held[0]()
        code, _ = await asked
        assert (code, seen, len(held)) == (0, ["/first"], 1)

    run(test, loop_factory, certificate, handle=handle, on_connection=held.append)


def test_a_connection_that_goes_before_it_is_paid_for_is_forgotten(loop_factory, certificate) -> None:
    held: list[Callable[[], None]] = []

    async def test(server: Server) -> None:
        client = await H2Client.connect(server.port, certificate)
        while not held:
            await asyncio.sleep(0.001)
        client.writer.transport.abort()
        server.close()
        await server.wait_closed()
        held[0]()
        assert server.statistics().connections == 0

    run(test, loop_factory, certificate, on_connection=held.append)


def test_a_port_in_use_is_a_configuration_error(loop_factory) -> None:
    async def test(server: Server) -> None:
        with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{server.port}: .*in use"):
            await serve(handler, "127.0.0.1", server.port, None, LoopClock(asyncio.get_running_loop()))

    run(test, loop_factory)


def test_a_connection_that_says_nothing_is_closed_as_idle(loop_factory) -> None:
    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"PR")
        assert await reader.read() == b""
        writer.close()

    run(test, loop_factory, options=ServingOptions(header_timeout_s=0.05, sweep_s=0.01))


def test_sockets_are_ipv4_loopback_and_the_port_is_the_one_bound(loop_factory) -> None:
    async def test(server: Server) -> None:
        with socket.create_connection(("127.0.0.1", server.port)):
            pass

    run(test, loop_factory)


@pytest.mark.parametrize("secure", [False, True])
def test_a_connection_can_be_reset(loop_factory, certificate, secure) -> None:
    async def test(server: Server) -> None:
        client = await H2Client.connect(server.port, certificate if secure else None)
        client.get("/watch")
        await client.until(lambda event: isinstance(event, h2.events.DataReceived))
        (session,) = server.sessions()
        session.channel.reset()
        with pytest.raises(ConnectionResetError):
            await client.reader.read()
        client.writer.close()
        while server.statistics().connections:
            await asyncio.sleep(0.001)

    run(test, loop_factory, certificate if secure else None)


def test_connections_are_refused_while_told_to_and_the_open_ones_go_on(loop_factory) -> None:
    async def test(server: Server) -> None:
        client = await H2Client.connect(server.port)
        server.refuse()
        server.refuse()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)
        client.get("/")
        assert await client.until(ended)
        server.accept_again()
        server.accept_again()
        again = await H2Client.connect(server.port)
        again.get("/")
        assert await again.until(ended)
        await client.close()
        await again.close()

    run(test, loop_factory)


def test_a_server_that_refuses_can_be_closed(loop_factory) -> None:
    async def test(server: Server) -> None:
        server.refuse()
        server.close()
        server.accept_again()
        await server.wait_closed()

    run(test, loop_factory)


@pytest.mark.parametrize("begun", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n"])
def test_a_handshake_that_never_ends_is_given_up(loop_factory, certificate, begun: bytes) -> None:
    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(begun)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        while server.statistics().handshakes or server.statistics().connections:
            await asyncio.sleep(0.001)
        assert server.statistics().handshake_errors == 1

    run(test, loop_factory, certificate, options=ServingOptions(header_timeout_s=0.05, sweep_s=0.01))
