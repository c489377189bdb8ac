"""A program that stands in for prometheus: it takes the flags, listens, gets ready, answers one query.

It writes what it was given to ``standin.json`` beside its configuration. How it behaves stands in the file ``behave``
beside the program: "well", "crash" (before it listens), "never-ready", "refuse-flags".
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    asked = 0
    never_ready = False

    def do_GET(self) -> None:
        if self.path == "/-/ready":
            Handler.asked += 1
            ready = Handler.asked > 2 and not Handler.never_ready
            self.reply(200 if ready else 503, b"Ready" if ready else b"Starting")
        elif self.path.startswith("/api/v1/query"):
            found = {"resultType": "vector", "result": [{"metric": {}, "value": [1, "1"]}]}
            self.reply(200, json.dumps({"status": "success", "data": found}).encode())
        elif self.path == "/api/v1/status/buildinfo":
            self.reply(200, b'{"status":"success","data":{"version":"9.9.9"}}')
        else:
            self.reply(404, b"404 page not found")

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def install(folder: Path, behave: str) -> str:
    """The path of a program in `folder` that is this one."""
    program = folder / "prometheus"
    (folder / "behave").write_text(behave)
    program.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}")
    program.chmod(0o755)
    return str(program)


def main() -> None:
    behave = Path(sys.argv[0]).with_name("behave").read_text()
    flags = dict(argument.removeprefix("--").split("=", 1) for argument in sys.argv[1:])
    Path(flags["config.file"]).with_name("standin.json").write_text(json.dumps(flags))
    if behave == "refuse-flags":
        sys.exit("unknown long flag '--storage.tsdb.path'")
    host, _, port = flags["web.listen-address"].rpartition(":")
    if behave == "crash":
        print("error loading config", file=sys.stderr)
        sys.exit(3)
    Handler.never_ready = behave == "never-ready"
    ThreadingHTTPServer((host, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
