"""A kube-apiserver that is an emulated member behind a real one's flags, over the etcd that these name: whole runs of a
pool of binaries without a real binary."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from harness.apiserver.process.config import MemberConfig
from harness.apiserver.store.etcd3.endpoints import EtcdServers

ROOT = Path(__file__).parents[3]


def install(folder: Path) -> Path:
    """A kube-apiserver in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "kube-apiserver"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.pool.binaries.emulating import main\nmain()\n"
    )
    program.chmod(0o755)
    return folder


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print("Kubernetes v1.36.2")
        return
    flags = dict(argument.removeprefix("--").split("=", 1) for argument in sys.argv[1:])
    name = Path(flags["cert-dir"]).name
    config = MemberConfig(
        name=name,
        index=int(name.rpartition("-")[2]),
        members=("member-0", "member-1", "member-2"),
        store_socket="",
        cert=flags["tls-cert-file"],
        key=flags["tls-private-key-file"],
        client_ca=flags["client-ca-file"],
        admin_token="",
        token_key=Path(flags["service-account-signing-key-file"]).read_text(),
        host=flags["bind-address"],
        port=int(flags["secure-port"]),
        server_concurrency=int(flags["max-requests-inflight"]) + int(flags["max-mutating-requests-inflight"]),
        etcd=EtcdServers(tuple(flags["etcd-servers"].split(","))),
    )
    ours, its = os.pipe()  # what a member is told, on an input that does not end before we do
    os.write(its, msgspec.json.encode(config) + b"\n")
    os.dup2(ours, 0)
    os.set_inheritable(its, True)
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "harness.apiserver.process.member"])
