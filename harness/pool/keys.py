"""Keys of a pool: made for it and thrown away with it, or kept in its data folder, so that tokens and kubeconfigs of
one run are good in the next."""

from __future__ import annotations

import datetime
import ipaddress
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec
from cryptography import x509

from harness.pool.certificates import ServingFiles, make_serving_files, write_private
from harness.wire.errors import ConfigError

RENEWED_BEFORE = datetime.timedelta(days=1)
"""A kept certificate that ends sooner than this is made anew, with its authority: no run lasts that long."""


def kept_secret(folder: Path, name: str) -> str:
    """The random secret that `folder` keeps under this name (0600); made where there is none. Raises ConfigError."""
    path = folder / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            write_private(path, secrets.token_urlsafe(32).encode())
        return path.read_text()
    except OSError as error:
        raise ConfigError(f"keys: {path}: {error.strerror or error}") from None


def kept_serving_files(folder: Path, names: Sequence[str], addresses: Sequence[str]) -> ServingFiles:
    """What `make_serving_files` made in `folder` before, if it is good for `names` and `addresses` and for a day yet;
    else made anew. Raises ConfigError."""
    index = folder / "serving.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if index.exists():
            kept = msgspec.json.decode(index.read_bytes(), type=dict[str, str])
            files = msgspec.convert({field: str(folder / name) for field, name in kept.items()}, ServingFiles)
            if _is_good(files, names, addresses):
                return files
        files = make_serving_files(folder, names, addresses)
        kept = {field: Path(path).name for field, path in msgspec.to_builtins(files).items()}
        write_private(index, msgspec.json.encode(kept))
        return files
    except OSError as error:
        raise ConfigError(f"keys: {folder}: {error.strerror or error}") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise ConfigError(f"keys: {folder}: {error}; remove the folder to have new ones made") from None


def _is_good(files: ServingFiles, names: Sequence[str], addresses: Sequence[str]) -> bool:
    paths: dict[str, str] = msgspec.to_builtins(files)
    if not all(Path(path).exists() for path in paths.values()):
        return False
    certificate = x509.load_pem_x509_certificate(Path(files.cert).read_bytes())
    if certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC) < RENEWED_BEFORE:
        return False
    good_for = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names) <= set(good_for.get_values_for_type(x509.DNSName)) and (
        {ipaddress.ip_address(address) for address in addresses}
        <= set(good_for.get_values_for_type(x509.IPAddress))
    )
