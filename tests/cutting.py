"""A TCP proxy that cuts every connection through it, when it is told to or every so many seconds.

Also a program: ``python -m tests.cutting LISTEN_PORT HOST:PORT SECONDS`` runs until its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
from types import TracebackType


class CuttingProxy:
    """Passes bytes between its port on 127.0.0.1 and `to`. `cut` resets all connections, as a balancer that
    is restarted does; with `every_s` that happens by itself. `cuts` counts the connections that were cut."""

    def __init__(self, to: tuple[str, int], every_s: float | None = None, port: int = 0) -> None:
        self.cuts = 0
        self._to = to
        self._every_s = every_s
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._run(),), daemon=True
        )
        self._thread.start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def cut(self) -> None:
        """Of any thread; returns when all are cut."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(60)
        assert not self._thread.is_alive()
        self._loop.close()

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, sock=self._listener)
        try:
            while not self._ended.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), self._every_s)
                if not self._ended.is_set():
                    await self._cut()
        finally:
            server.close()
            await self._cut()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _cut(self) -> None:
        cut, self._open = self._open, set()
        self.cuts += len(cut) // 2
        for writer in cut:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, there_writer}
        self._open |= both
        try:
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
        finally:
            self._open -= both
            for each in both:
                each.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


def main() -> None:
    port, to, every_s = sys.argv[1:]
    host, _, number = to.rpartition(":")
    with CuttingProxy((host, int(number)), float(every_s), int(port)) as proxy:
        sys.stdin.read()
    print(proxy.cuts)


if __name__ == "__main__":
    main()
