"""Certificates, keys and kubeconfigs of a pool of real apiservers: who serves, who signs, who may do what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from harness.pool.binaries.finding import CONTROLLER_MANAGER, SCHEDULER
from harness.pool.certificates import ClientFiles, ServingFiles, make_client_files, write_private
from harness.pool.keys import kept_serving_files
from harness.pool.kubeconfig import write_kubeconfig
from harness.wire.errors import ConfigError

NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ACCOUNT_KEY, _ACCOUNT_PUBLIC_KEY = "sa.key", "sa.pub"
_ACCOUNT_BITS = 2048
"""RSA as kubeadm makes it (kk/cmd/kubeadm/app/util/pkiutil): signing is much of what a token costs."""


class Keys(msgspec.Struct, frozen=True):
    """Paths. `admin` is in system:masters, whom no authorizer is asked about."""

    serving: ServingFiles
    admin: ClientFiles
    account_key: str
    account_public_key: str


def make_keys(kept: Path, folder: Path, addresses: Sequence[str]) -> Keys:
    """`kept` keeps the authority, the serving certificate, good for `addresses`, and the key that signs service
    accounts' tokens; the administrator's certificate is made anew in `folder`. Raises ConfigError."""
    serving = kept_serving_files(kept, NAMES, addresses)
    key = _kept_account_key(kept)
    admin = _client(serving, folder, "kubernetes-admin", ["system:masters"])
    return Keys(serving, admin, str(key), str(key.with_name(_ACCOUNT_PUBLIC_KEY)))


def component_kubeconfig(keys: Keys, folder: Path, component: str, server: str) -> Path:
    """The kubeconfig of a kube-scheduler or kube-controller-manager at one member, under the name that RBAC's own
    bindings know it by."""
    assert component in (SCHEDULER, CONTROLLER_MANAGER)
    client = _client(keys.serving, folder, f"system:{component}", [])
    path = folder / f"{component}.kubeconfig"
    write_kubeconfig(path, {component: server}, Path(keys.serving.ca), client)
    return path


def _client(serving: ServingFiles, folder: Path, name: str, groups: Sequence[str]) -> ClientFiles:
    own = folder / name.replace(":", "-")
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    return make_client_files(serving, own, name, groups)


def _kept_account_key(folder: Path) -> Path:
    """The signing key, with its public half beside it; made where there is none."""
    path = folder / _ACCOUNT_KEY
    try:
        if not path.exists():
            key = rsa.generate_private_key(public_exponent=65537, key_size=_ACCOUNT_BITS)
            public = key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            (folder / _ACCOUNT_PUBLIC_KEY).write_bytes(public)
            private = key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            write_private(path, private)
    except OSError as error:
        raise ConfigError(f"keys: {path}: {error.strerror or error}") from None
    return path
