"""A program that stands in for kube-apiserver, kube-scheduler and kube-controller-manager, by the name it is called.

Like those it refuses a flag that it does not know, ends when it lacks one that it needs, serves TLS to whom the client
CA vouches for, ends slowly on the first SIGTERM and at once on the second. It writes each start as a line of
``starts.jsonl`` beside itself, and as a kube-apiserver what it was asked to apply to ``applied.jsonl``.

How it behaves stands in ``behave.json`` beside it, by name: "crash" (before it listens), "never-ready", "deaf" (to
SIGTERM), "unwell" (it cannot say its version), "no-lease" (ends a moment after it is well, once).
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

HERE = Path(sys.argv[0]).parent
NAME = Path(sys.argv[0]).name
SERVING = ["bind-address", "secure-port", "tls-cert-file", "tls-private-key-file"]
NEEDED = {
    "kube-apiserver": [
        *SERVING,
        *("etcd-servers", "cert-dir", "client-ca-file", "service-account-issuer", "service-cluster-ip-range"),
        *("service-account-key-file", "service-account-signing-key-file", "authorization-mode"),
    ],
    "kube-scheduler": [*SERVING, "kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"],
    "kube-controller-manager": [
        *SERVING,
        *("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "root-ca-file"),
        *("service-account-private-key-file", "cluster-signing-cert-file", "cluster-signing-key-file"),
    ],
}
KNOWN = {
    "kube-apiserver": {
        *(
            "advertise-address",
            "allow-privileged",
            "enable-admission-plugins",
            "enable-priority-and-fairness",
        ),
        *("endpoint-reconciler-type", "event-ttl", "feature-gates", "goaway-chance", "max-requests-inflight"),
        *("max-mutating-requests-inflight", "shutdown-delay-duration", "audit-log-path"),
    },
    "kube-scheduler": {"feature-gates", "leader-elect", "kube-api-qps"},
    "kube-controller-manager": {
        *("feature-gates", "use-service-account-credentials", "cluster-signing-duration", "leader-elect"),
    },
}
KINDS = {
    "/api/v1": [("namespaces", "Namespace", False), ("serviceaccounts", "ServiceAccount", True)],
    "/apis/flowcontrol.apiserver.k8s.io/v1": [("flowschemas", "FlowSchema", False)],
}
METRICS = """\
go_goroutines 1200
go_memstats_heap_inuse_bytes 1.5e+08
process_start_time_seconds 1.7e+09
"""


def fail(text: str, code: int = 1) -> None:
    print(text, file=sys.stderr, flush=True)
    os._exit(code)


def append(file: str, entry: object) -> None:
    with (HERE / file).open("a") as lines:
        lines.write(json.dumps(entry) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0
    never_ready = False

    def do_GET(self) -> None:
        subject = dict(pair[0] for pair in (self.connection.getpeercert() or {}).get("subject", ()))
        if self.path in ("/readyz", "/healthz"):
            Handler.asked += 1
            if NAME == "kube-apiserver" and subject.get("organizationName") != "system:masters":
                self.reply(403, b"forbidden")
            else:
                ready = Handler.asked > 2 and not Handler.never_ready
                self.reply(200 if ready else 500, b"ok" if ready else b"[-]poststarthook/rbac failed")
        elif self.path == "/metrics":
            self.reply(200, METRICS.encode())
        elif self.path in KINDS:
            kinds = [{"name": n, "kind": k, "namespaced": scoped} for n, k, scoped in KINDS[self.path]]
            self.reply(200, json.dumps({"kind": "APIResourceList", "resources": kinds}).encode())
        else:
            self.reply(404, b"404 page not found")

    def do_PATCH(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "refused" in self.path:
            self.reply(422, b'{"kind":"Status","code":422,"message":"spec: Required value"}')
            return
        append("applied.jsonl", [self.path, self.headers["Content-Type"], json.loads(body)])
        self.reply(201, body)

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def install(folder: Path, *names: str, **behave: str) -> Path:
    """Programs of these names in `folder`; `behave` by name, with underscores."""
    folder.mkdir(parents=True, exist_ok=True)
    behaviour = {name.replace("_", "-"): how for name, how in behave.items()}
    (folder / "behave.json").write_text(json.dumps(behaviour))
    for name in names:
        (folder / name).write_text(f"#!{sys.executable} -ISs\n{Path(__file__).read_text()}")
        (folder / name).chmod(0o755)
    return folder


def parse(arguments: list[str]) -> dict[str, str]:
    flags = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
    for name in flags:
        if name not in NEEDED[NAME] and name not in KNOWN[NAME]:
            fail(f"Error: unknown flag: --{name}")
    for name in NEEDED[NAME]:
        if name not in flags:
            fail(f"Error: --{name} is a required flag")
    for name, value in flags.items():
        if name.endswith(("-file", "kubeconfig")) and "-----BEGIN" not in Path(value).read_text().replace(
            "apiVersion", "-----BEGIN"
        ):
            fail(f"Error: --{name} {value}: no PEM, no kubeconfig")
    return flags


def end_in_time(times: list[int]) -> None:
    """As Kubernetes' components: the first SIGTERM begins a shutdown, the second ends the process."""
    times.append(1)
    if len(times) > 1:
        fail("second signal, exiting")
    if NAME != "kube-apiserver":
        fail("told to end", 0)
    threading.Timer(0.3, fail, ("shutdown complete", 0)).start()


def main() -> None:
    behave = json.loads((HERE / "behave.json").read_text()).get(NAME, "")
    if sys.argv[1:] == ["--version"]:
        if behave == "unwell":
            fail("exec format error", 126)
        print("Kubernetes v1.36.2")
        return
    flags = parse(sys.argv[1:])
    before = (HERE / "starts.jsonl").read_text().count(NAME) if (HERE / "starts.jsonl").exists() else 0
    append("starts.jsonl", [NAME, os.getpid(), flags])
    if behave == "crash":
        fail("failed to initialize: context deadline exceeded", 3)
    if NAME == "kube-apiserver":
        for url in flags["etcd-servers"].split(","):
            assert b'"health":"true"' in urlopen(f"{url}/health", timeout=60).read()
        (Path(flags["cert-dir"]) / "written").touch()
    Handler.never_ready = behave == "never-ready"
    times: list[int] = []
    handler = (lambda *_: None) if behave == "deaf" else (lambda *_: end_in_time(times))
    signal.signal(signal.SIGTERM, handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=flags.get("client-ca-file"))
    context.verify_mode = ssl.CERT_OPTIONAL if "client-ca-file" in flags else ssl.CERT_NONE
    context.load_cert_chain(flags["tls-cert-file"], flags["tls-private-key-file"])
    server = ThreadingHTTPServer((flags["bind-address"], int(flags["secure-port"])), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    if behave == "no-lease" and not before:
        threading.Timer(1.0, fail, ("leaderelection lost",)).start()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
