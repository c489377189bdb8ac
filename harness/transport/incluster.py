"""Credentials of a pod: its service account's token and CA, the apiserver's address from the environment.

client-go v1.36 rest/config.go, ``InClusterConfig``. The token is re-read as kubelets replace it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.transport.credentials import TokenFile
from harness.transport.kubeconfig import ClusterAccess
from harness.wire.errors import ConfigError

IN_CLUSTER = "in-cluster"
"""What stands for it where a kubeconfig's path is expected, and the name of its context."""

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_in_cluster(environ: Mapping[str, str], folder: Path = FOLDER) -> ClusterAccess:
    """Raises ConfigError where this is no pod, or one without a token."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port.isdigit():
        raise ConfigError(
            f"{IN_CLUSTER}: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; this is no pod"
        )
    rotation = TokenFile(folder / "token")
    token = rotation.fetch().token
    try:
        ca = (folder / "ca.crt").read_bytes()
    except OSError as error:
        raise ConfigError(f"{IN_CLUSTER}: {folder / 'ca.crt'} cannot be read: {error.strerror}") from error
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return ClusterAccess(
        context=IN_CLUSTER,
        source=str(folder),
        server=f"https://{authority}",
        tls=True,
        host=host,
        port=int(port),
        ca=ca,
        token=token,
        rotation=rotation,
    )
