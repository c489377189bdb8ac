"""The kubeconfig of a pool: a context for each member, the first one current."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import yaml

from harness.pool.certificates import write_private


def write_kubeconfig(path: Path, servers: Mapping[str, str], ca_file: Path, token: str) -> None:
    """Write `path` (mode 0600, as it holds the administrator's token). `servers`: member name -> https URL."""
    ca = base64.b64encode(ca_file.read_bytes()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(servers)),
        "clusters": [
            {"name": name, "cluster": {"server": url, "certificate-authority-data": ca}}
            for name, url in servers.items()
        ],
        "users": [{"name": "swarmlet-admin", "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": "swarmlet-admin"}} for name in servers
        ],
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
