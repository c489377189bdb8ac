"""A program that stands in for haproxy: it reads the configuration, listens, hands connections round, tells of them.

How it behaves stands in the file ``behave`` beside the program: "well", "crash" (before it listens), "mute" (no stats).
"""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from pathlib import Path


class Backend:
    def __init__(self, name: str, host: str, port: int) -> None:
        self.name, self.host, self.port = name, host, port
        self.current = self.total = 0


def install(folder: Path, behave: str = "well") -> str:
    """The path of a program in `folder` that is this one."""
    folder.mkdir(exist_ok=True)
    program = folder / "haproxy"
    (folder / "behave").write_text(behave)
    program.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}")
    program.chmod(0o755)
    return str(program)


def copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client: socket.socket, backends: list[Backend], first: int) -> None:
    """In turn; a server that refuses is passed over, as with redispatch."""
    for step in range(len(backends)):
        backend = backends[(first + step) % len(backends)]
        try:
            server = socket.create_connection((backend.host, backend.port), 5)
        except OSError:
            continue
        server.settimeout(None)
        backend.current += 1
        backend.total += 1
        back = threading.Thread(target=copy, args=(server, client), daemon=True)
        back.start()
        copy(client, server)
        back.join()
        server.close()
        backend.current -= 1
        break
    client.close()


def tell(path: str, backends: list[Backend]) -> None:
    listener = socket.socket(socket.AF_UNIX)
    if os.path.exists(path):
        os.unlink(path)
    listener.bind(path)
    listener.listen()
    while True:
        asker, _ = listener.accept()
        with asker:
            asker.recv(100)
            rows = [
                "# pxname,svname,qcur,qmax,scur,smax,slim,stot,status,",
                "clients,FRONTEND,,,0,0,9,0,OPEN,",
            ]
            rows += [f"members,{b.name},0,0,{b.current},9,,{b.total},UP," for b in backends]
            asker.sendall(("\n".join([*rows, "members,BACKEND,0,0,0,0,9,0,UP,"]) + "\n\n").encode())


def main() -> None:
    behave = Path(sys.argv[0]).with_name("behave").read_text()
    text = Path(sys.argv[sys.argv.index("-f") + 1]).read_text()
    Path(sys.argv[0]).with_name("given.cfg").write_text(text)
    if behave == "crash":
        print("[ALERT] config : no good", file=sys.stderr)
        sys.exit(1)
    host, port = re.search(r"bind (\S+):(\d+)", text).groups()  # type: ignore[union-attr]
    backends = [Backend(name, at, int(p)) for name, at, p in re.findall(r"server (\S+) (\S+):(\d+)", text)]
    listener = socket.create_server((host, int(port)))
    if behave != "mute":
        path = re.search(r"stats socket (\S+)", text)[1]  # type: ignore[index]
        threading.Thread(target=tell, args=(path, backends), daemon=True).start()
    turn = 0
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, backends, turn), daemon=True).start()
        turn += 1


if __name__ == "__main__":
    main()
