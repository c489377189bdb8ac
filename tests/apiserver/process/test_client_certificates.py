"""Client certificates over real sockets: what the core is told, and who does not get so far."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from harness.apiserver.exchange import ClientCertificate, Exchange
from harness.apiserver.process.loopclock import LoopClock
from harness.apiserver.process.server import Server, serve, server_context
from harness.pool.certificates import ClientFiles, ServingFiles, make_client_files, make_serving_files
from tests.conftest import HANG_S

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ServingFiles:
    uvloop.new_event_loop().close()  # libuv opens a pipe of its own with the first loop and keeps it
    return make_serving_files(tmp_path_factory.mktemp("tls"), ["localhost"], ["127.0.0.1"])


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    factory: Callable[[], asyncio.AbstractEventLoop] = request.param
    return factory


def connected(
    factory: Callable[[], asyncio.AbstractEventLoop],
    files: ServingFiles,
    client: ClientFiles | None,
    requests: int = 1,
) -> list[ClientCertificate | None]:
    """The certificates of each request that a client's connection was served; fewer where it was cut off."""
    seen: list[ClientCertificate | None] = []

    def handler(exchange: Exchange) -> None:
        seen.append(exchange.certificate)
        exchange.respond(200, {"content-type": "text/plain"}, b"ok")

    async def ask(server: Server) -> None:
        context = ssl.create_default_context(cafile=files.ca)
        if client is not None:
            context.load_cert_chain(client.cert, client.key)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        try:
            for _ in range(requests):
                writer.write(REQUEST)
                await reader.readuntil(b"ok")
        finally:
            writer.close()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        context = server_context(files.cert, files.key, files.ca)
        server = await serve(handler, "127.0.0.1", 0, context, LoopClock(loop))
        try:
            await asyncio.wait_for(ask(server), HANG_S)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            server.close()
            await server.wait_closed()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
    return seen


Loops = Callable[[], asyncio.AbstractEventLoop]


def test_a_client_without_a_certificate_is_served(loop_factory: Loops, files: ServingFiles) -> None:
    assert connected(loop_factory, files, None) == [None]


def test_a_certificate_s_names_and_times_are_told_once_a_connection(
    loop_factory: Loops, files: ServingFiles, tmp_path: Path
) -> None:
    client = make_client_files(files, tmp_path, "jane", ["team", "system:nodes"])
    first, second = connected(loop_factory, files, client, requests=2)
    assert first is second
    assert first is not None
    assert (first.common_name, first.organizations) == ("jane", ("team", "system:nodes"))
    assert first.not_before < time.time() < first.not_after
    encoded = ssl.PEM_cert_to_DER_cert(Path(client.cert).read_text())
    assert first.fingerprint == hashlib.sha256(encoded).hexdigest()


def test_a_certificate_without_names_names_nobody(
    loop_factory: Loops, files: ServingFiles, tmp_path: Path
) -> None:
    (found,) = connected(loop_factory, files, make_client_files(files, tmp_path, " ", []))
    assert found is not None
    assert found.organizations == ()


def test_an_expired_certificate_is_for_the_authenticator_to_refuse(
    loop_factory: Loops, files: ServingFiles, tmp_path: Path
) -> None:
    client = make_client_files(files, tmp_path, "jane", [], datetime.timedelta(minutes=-5))
    (found,) = connected(loop_factory, files, client)
    assert found is not None
    assert found.not_after < time.time()


def test_a_certificate_of_another_authority_breaks_the_handshake(
    loop_factory: Loops, files: ServingFiles, tmp_path: Path
) -> None:
    other = make_serving_files(tmp_path, ["localhost"], ["127.0.0.1"])
    assert (
        connected(loop_factory, files, make_client_files(other, tmp_path, "jane", ["system:masters"])) == []
    )


def test_a_server_s_certificate_is_no_client_s(loop_factory: Loops, files: ServingFiles) -> None:
    assert connected(loop_factory, files, ClientFiles(files.cert, files.key)) == []


def test_keys_are_their_owner_s_alone(files: ServingFiles, tmp_path: Path) -> None:
    client = make_client_files(files, tmp_path, "jane", [])
    for path in (files.ca_key, files.key, client.key):
        assert Path(path).stat().st_mode & 0o777 == 0o600
