"""How a Prometheus is reached and as whom: a URL, and a file in the format of promtool's ``--http.config.file``.

Mirrors prometheus/common's config/http_config.go in what a client of the query API needs: paths in the file are
relative to it, and files of secrets are read at each request, so that a token may be exchanged while a run goes on.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import yaml

from harness.wire.errors import ConfigError


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class BasicAuth(_Struct, frozen=True):
    username: str = ""
    username_file: str = ""
    password: str = ""
    password_file: str = ""


class Authorization(_Struct, frozen=True):
    type: str = "Bearer"
    credentials: str = ""
    credentials_file: str = ""


class TlsConfig(_Struct, frozen=True):
    ca: str = ""
    ca_file: str = ""
    cert: str = ""
    cert_file: str = ""
    key: str = ""
    key_file: str = ""
    server_name: str = ""
    insecure_skip_verify: bool = False


class Header(_Struct, frozen=True):
    values: list[str] = []
    files: list[str] = []


class HttpConfig(_Struct, frozen=True):
    """What of the format is supported; any other key is refused."""

    basic_auth: BasicAuth | None = None
    authorization: Authorization | None = None
    bearer_token: str = ""
    bearer_token_file: str = ""
    tls_config: TlsConfig = TlsConfig()
    http_headers: dict[str, Header] = {}


class Access(NamedTuple):
    """`headers` reads the credentials' files each time, and raises OSError; `tls` None is cleartext."""

    host: str
    port: int
    prefix: str
    tls: ssl.SSLContext | None
    server_name: str
    headers: Callable[[], list[tuple[str, str]]]


def access_of(url: str, http_config: str = "") -> Access:
    """`url` is one that `prometheus_options` lets through. Raises ConfigError for a file that is no such config, or
    that names files which are not there."""
    parts = urlsplit(url)
    config, folder = HttpConfig(), Path()
    if http_config:
        config, folder = _read(Path(http_config)), Path(http_config).parent
    try:
        tls = _context(config.tls_config, folder) if parts.scheme == "https" else None
        headers = _Headers(config, folder)
        headers()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"--prometheus-http-config {http_config}: {_said(error)}") from error
    host = parts.hostname or ""
    port = parts.port or (443 if tls else 80)
    return Access(host, port, parts.path.rstrip("/"), tls, config.tls_config.server_name or host, headers)


def _read(path: Path) -> HttpConfig:
    try:
        config = msgspec.convert(yaml.safe_load(path.read_bytes()) or {}, HttpConfig)
    except OSError as error:
        raise ConfigError(f"--prometheus-http-config {path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ConfigError(f"--prometheus-http-config {path}: {' '.join(str(error).split())}") from error
    ways = [
        name
        for name, given in (
            ("basic_auth", config.basic_auth),
            ("authorization", config.authorization),
            ("bearer_token", config.bearer_token or config.bearer_token_file),
        )
        if given
    ]
    if len(ways) > 1:
        raise ConfigError(f"--prometheus-http-config {path}: at most one of {' and '.join(ways)} is allowed")
    return config


class _Headers:
    """Those of one request."""

    def __init__(self, config: HttpConfig, folder: Path) -> None:
        self._config = config
        self._folder = folder

    def __call__(self) -> list[tuple[str, str]]:
        config = self._config
        found = [("Accept", "application/json"), ("User-Agent", "swarmlet")]
        if config.basic_auth is not None:
            basic = config.basic_auth
            user = self._secret(basic.username, basic.username_file)
            pair = f"{user}:{self._secret(basic.password, basic.password_file)}"
            found.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        elif config.authorization is not None:
            given = config.authorization
            found.append(
                ("Authorization", f"{given.type} {self._secret(given.credentials, given.credentials_file)}")
            )
        elif config.bearer_token or config.bearer_token_file:
            found.append(
                ("Authorization", f"Bearer {self._secret(config.bearer_token, config.bearer_token_file)}")
            )
        for name, header in config.http_headers.items():
            found += [(name, value) for value in header.values]
            found += [(name, self._secret("", path)) for path in header.files]
        return found

    def _secret(self, text: str, path: str) -> str:
        return (self._folder / path).read_text().strip() if path else text


def _context(config: TlsConfig, folder: Path) -> ssl.SSLContext:
    """Raises OSError and ValueError."""
    cafile = str(folder / config.ca_file) if config.ca_file else None
    context = ssl.create_default_context(cafile=cafile, cadata=config.ca or None)
    if config.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if bool(config.cert or config.cert_file) != bool(config.key or config.key_file):
        raise ValueError("tls_config: a certificate and its key need each other")
    if config.cert or config.key:
        _load_texts(context, config, folder)
    elif config.cert_file:
        context.load_cert_chain(folder / config.cert_file, folder / config.key_file)
    return context


def _load_texts(context: ssl.SSLContext, config: TlsConfig, folder: Path) -> None:
    """ssl reads certificates from files only."""
    cert = config.cert or (folder / config.cert_file).read_text()
    key = config.key or (folder / config.key_file).read_text()
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # readable by us alone
        file.write(f"{key}\n{cert}")
        file.flush()
        context.load_cert_chain(file.name)


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    return " ".join(str(error).split())
