"""The kubeconfig of a pool: a context for each member, and for each address that clients meet before one. The first of
these is current, or the first member. It says where the pool's supervisor takes orders, too."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from harness.pool.certificates import ClientFiles, write_private
from harness.wire.errors import ConfigError

USER = "swarmlet-admin"
EXTENSION = "swarmlet"


def check_kubeconfig_path(path: Path) -> None:
    """Raises ConfigError where a kubeconfig cannot be written to `path`, or a file is there that no pool wrote."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ConfigError(f"kubeconfig {path}: its folder is not there or cannot be written to")
    if path.exists() and not _is_ours(path):
        raise ConfigError(f"kubeconfig {path}: a file that no pool wrote is there; it is not overwritten")


def _is_ours(path: Path) -> bool:
    try:
        document = yaml.safe_load(path.read_bytes())
        return [user["name"] for user in document["users"]] == [USER]
    except (OSError, ValueError, yaml.YAMLError, TypeError, KeyError):
        return False


def write_kubeconfig(
    path: Path,
    servers: Mapping[str, str],
    ca_file: Path,
    credentials: str | ClientFiles,
    *,
    front: Mapping[str, str] | None = None,
    control: str = "",
    others: Sequence[str] = (),
) -> None:
    """Write `path` (mode 0600, as it holds the administrator's token or key). `servers`: member name -> https URL;
    `front`: so too, of what clients meet before members; `control` is the path of the supervisor's socket, and
    `others` are the parts beside members that it can disturb."""
    front = front or {}
    urls = {**servers, **front}
    ca = _encoded(ca_file)
    if isinstance(credentials, str):
        user = {"token": credentials}
    else:
        certificate, key = _encoded(Path(credentials.cert)), _encoded(Path(credentials.key))
        user = {"client-certificate-data": certificate, "client-key-data": key}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(front or servers)),
        "clusters": [
            {"name": name, "cluster": {"server": url, "certificate-authority-data": ca}}
            for name, url in urls.items()
        ],
        "users": [{"name": USER, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": USER}} for name in urls],
        "extensions": [
            {
                "name": EXTENSION,
                "extension": {"control": control, "members": list(servers), "others": list(others)},
            }
        ],
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False).encode())


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
