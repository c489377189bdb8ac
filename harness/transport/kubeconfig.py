"""Kubeconfig files: which server, how to trust it, who we are. Every fault is one ConfigError line.

Follows client-go v1.36 tools/clientcmd: several files in KUBECONFIG are merged, the first to define a name wins, and
paths are relative to the file that holds them. Exec plugins are run by `execplugin`.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import os
import random
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from harness.transport import execplugin
from harness.transport.credentials import Credentials, Rotation, TokenFile
from harness.transport.endpoints import Endpoint, Endpoints
from harness.transport.execplugin import API_VERSIONS, ExecPlugin
from harness.transport.options import HttpMode
from harness.transport.proxies import parse_proxy, proxy_from_environment
from harness.transport.tls import client_context
from harness.wire.errors import ConfigError

_REFUSED_USER_KEYS = {
    "auth-provider": "auth-provider plugins were removed from Kubernetes in 1.26; use exec",
    "username": "basic authentication was removed from Kubernetes in 1.19; use a token or a client certificate",
}


@dataclass(frozen=True)
class ClusterAccess:
    """One context of a kubeconfig. Key and token stay out of `repr`.

    `rotation` is where fresh credentials come from, None where they stay what they are. `proxy_url` is the kubeconfig's
    own, which counts for every host.
    """

    context: str
    source: str
    server: str
    tls: bool
    host: str
    port: int
    path_prefix: str = ""
    ca: bytes | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    insecure: bool = False
    server_name: str = ""
    namespace: str = "default"
    impersonate: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proxy_url: str = field(default="", repr=False)
    rotation: Rotation | None = None

    def proxy_for(self, host: str, port: int) -> str:
        """The URL of the proxy by which to reach a server, "" for none: the kubeconfig's, else HTTPS_PROXY's. Raises
        ConfigError for one that cannot be used."""
        if self.proxy_url or not self.tls:
            return self.proxy_url
        found = proxy_from_environment(host, port, os.environ)
        if found:
            parse_proxy(found, "HTTPS_PROXY")
        return found

    def headers(self) -> dict[str, str | Sequence[str]]:
        """What `Transport(headers=...)` takes: Authorization, Impersonate-*."""
        found: dict[str, str | Sequence[str]] = {}
        if self.token:
            found["Authorization"] = f"Bearer {self.token}"
        found.update(self.impersonate)
        return found

    def ssl_context(self, http: HttpMode = "auto") -> ssl.SSLContext | None:
        """The context for this server, shared in the process; None for an http:// server. Raises ConfigError."""
        if not self.tls:
            return None
        return client_context(
            self.ca, self.certificate, self.key, insecure=self.insecure, http=http, source=self.source
        )

    def endpoints(self, rng: random.Random) -> Endpoints:
        """The one endpoint of the server; its name in reports is ``host:port``."""
        return Endpoints([Endpoint(self.host, self.port, f"{self.host}:{self.port}")], rng)


def load_kubeconfig(path: Path | str | None = None, context: str | None = None) -> ClusterAccess:
    """Read `path`, else the files of KUBECONFIG, else ~/.kube/config; take `context`, else current-context.

    Raises ConfigError, one line that names file, key and what is allowed. An exec plugin is run and waited for.
    """
    files = _files(path)
    config = _Merged([(file, _read(file)) for file in files])
    source = ", ".join(str(file) for file in files)
    name = context or config.current_context
    if not name:
        raise ConfigError(
            f"{source}: current-context is not set and no context was named; {config.known('contexts')}"
        )
    found = config.find("contexts", "context", name, f"context {name!r}")
    cluster = config.find(
        "clusters", "cluster", found.text("cluster"), f"context {name!r} names a cluster that"
    )
    user_name = found.text("user", required=False)
    user = (
        config.find("users", "user", user_name, f"context {name!r} names a user that") if user_name else None
    )
    return _access(name, found, cluster, user)


class _Entry:
    """The mapping of one named entry, and the file it came from."""

    def __init__(self, file: Path, where: str, values: Mapping[str, Any]) -> None:
        self.file = file
        self.where = where
        self.values = values

    def fail(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.file}: {self.where}: {key} {problem}")

    def text(self, key: str, *, required: bool = True) -> str:
        value = self.values.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value):
            raise self.fail(key, "is missing" if not value else f"is {value!r}, a text is expected")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.fail(key, f"is {value!r}, allowed are true and false")
        return value

    def material(self, key: str) -> bytes | None:
        """``<key>-data`` in base64, else the content of the file that ``<key>`` names; data win, as in client-go."""
        data = self.text(f"{key}-data", required=False)
        if data:
            try:
                return base64.b64decode(data, validate=True)
            except binascii.Error as error:
                raise self.fail(f"{key}-data", f"is not base64: {error}") from error
        return self.file_content(key)

    def file_content(self, key: str) -> bytes | None:
        name = self.text(key, required=False)
        if not name:
            return None
        path = self.file.parent / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.fail(key, f"names {path}, which cannot be read: {error.strerror}") from error


class _Merged:
    """Several kubeconfig files as one."""

    def __init__(self, files: Sequence[tuple[Path, Mapping[str, Any]]]) -> None:
        self._files = files
        self.current_context = next(
            (str(content["current-context"]) for _, content in files if content.get("current-context")), ""
        )

    def _entries(self, kind: str) -> list[tuple[Path, Any]]:
        found: list[tuple[Path, Any]] = []
        for file, content in self._files:
            entries = content.get(kind) or []
            if not isinstance(entries, list):
                raise ConfigError(f"{file}: {kind} is not a list")
            found += [(file, entry) for entry in entries]
        return found

    def known(self, kind: str) -> str:
        names = [str(entry.get("name")) for _, entry in self._entries(kind) if isinstance(entry, Mapping)]
        return f"{kind} there: {', '.join(names) or 'none'}"

    def find(self, kind: str, inner: str, name: str, what: str) -> _Entry:
        for file, entry in self._entries(kind):
            if isinstance(entry, Mapping) and entry.get("name") == name:
                values = entry.get(inner)
                if not isinstance(values, Mapping):
                    raise ConfigError(f"{file}: {inner} {name!r} has no {inner!r} mapping")
                return _Entry(file, f"{inner} {name!r}", values)
        named = "" if repr(name) in what else f" ({name!r})"
        source = ", ".join(str(file) for file, _ in self._files)
        raise ConfigError(f"{source}: {what} is not there{named}; {self.known(kind)}")


def _files(path: Path | str | None) -> list[Path]:
    if path is not None:
        return [Path(path).expanduser()]
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    # Missing files are passed over as in client-go, as long as one is there.
    return [file for file in named if file.exists()] or named[:1] or [Path.home() / ".kube" / "config"]


def _read(file: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"kubeconfig {file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"kubeconfig {file} is not YAML: {reason[:200]}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"kubeconfig {file} is not a mapping with clusters, contexts and users")
    return content


def _access(name: str, context: _Entry, cluster: _Entry, user: _Entry | None) -> ClusterAccess:
    server = cluster.text("server")
    url = _server_url(cluster, server)
    tls = url.scheme == "https"
    host, port = url.hostname or "", url.port or (443 if tls else 80)
    insecure = cluster.flag("insecure-skip-tls-verify")
    ca = cluster.material("certificate-authority")
    if insecure and ca is not None:
        # client-go rest/config.go refuses the same.
        raise cluster.fail("insecure-skip-tls-verify", "is true although a certificate authority is given")
    rotation, found = _credentials(user, cluster) if user is not None else (None, Credentials())
    return ClusterAccess(
        context=name,
        source=str(cluster.file),
        server=server,
        tls=tls,
        host=host,
        port=port,
        path_prefix=url.path.rstrip("/"),
        ca=ca,
        certificate=found.certificate,
        key=found.key,
        token=found.token,
        insecure=insecure,
        server_name=cluster.text("tls-server-name", required=False),
        namespace=context.text("namespace", required=False) or "default",
        impersonate=_impersonation(user) if user is not None else {},
        proxy_url=_proxy(cluster, tls),
        rotation=rotation,
    )


def _proxy(cluster: _Entry, tls: bool) -> str:
    given = cluster.text("proxy-url", required=False)
    if given and not tls:
        raise cluster.fail("proxy-url", "is set for an http:// server; only https:// is tunnelled")
    if given:
        parse_proxy(given, f"{cluster.file}: {cluster.where}: proxy-url")
    return given


def _server_url(cluster: _Entry, server: str) -> Any:
    try:
        url = urlsplit(server)
        port_is_valid = url.port is None or url.port > 0
    except ValueError:
        port_is_valid = False
    if not port_is_valid or not url.hostname or url.scheme not in ("http", "https"):
        # Without a scheme client-go guesses http or https from the rest (rest/url_utils.go); a guess is no target.
        raise cluster.fail("server", f"is {server!r}, expected is https://host:port")
    return url


def _credentials(user: _Entry, cluster: _Entry) -> tuple[Rotation | None, Credentials]:
    """Where fresh ones come from, and the first. A token wins over tokenFile (client-go clientcmd/client_config.go);
    exec comes last."""
    for key, reason in _REFUSED_USER_KEYS.items():
        if user.values.get(key):
            raise user.fail(key, f"is not supported: {reason}")
    certificate, private_key = user.material("client-certificate"), user.material("client-key")
    if (certificate is None) != (private_key is None):
        missing = "client-certificate" if certificate is None else "client-key"
        raise user.fail(missing, "is missing; a client certificate needs both")
    if certificate is not None:
        _check_dates(user, certificate)
    token = user.text("token", required=False)
    if token:
        return None, Credentials(token, certificate, private_key)
    rotation: Rotation | None = None
    if name := user.text("tokenFile", required=False):
        rotation = TokenFile(user.file.parent / name)
        try:
            token = rotation.fetch().token
        except ConfigError as error:
            raise user.fail("tokenFile", f"names a {error}") from error
    elif certificate is None and user.values.get("exec"):
        rotation = _plugin(user, cluster)
        return rotation, rotation.fetch()
    return rotation, Credentials(token, certificate, private_key)


def _check_dates(user: _Entry, certificate: bytes) -> None:
    """What OpenSSL would send to a server that then refuses it, without a word in a log of ours."""
    from cryptography import x509  # 70 ms to import

    try:
        found = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return  # OpenSSL says what is wrong with it
    now = datetime.datetime.now(datetime.UTC)
    for moment, wrong, word in (
        (found.not_valid_after_utc, now > found.not_valid_after_utc, "expired at"),
        (found.not_valid_before_utc, now < found.not_valid_before_utc, "is not valid before"),
    ):
        if wrong:
            raise user.fail("client-certificate", f"{word} {moment:%Y-%m-%dT%H:%M:%SZ}")


def _plugin(user: _Entry, cluster: _Entry) -> ExecPlugin:
    """The exec section, checked. Raises ConfigError."""
    values = user.values["exec"]
    if not isinstance(values, Mapping):
        raise user.fail("exec", f"is {str(values)[:100]!r}, a mapping with a command is expected")
    section = _Entry(user.file, f"{user.where}: exec", values)
    version = section.text("apiVersion")
    if version not in API_VERSIONS:
        raise section.fail("apiVersion", f"is {version!r}, allowed are {' and '.join(API_VERSIONS)}")
    if section.text("interactiveMode", required=False) == "Always":
        raise section.fail("interactiveMode", "is Always; a plugin that asks questions cannot be used here")
    environ: dict[str, str] = {}
    for entry in values.get("env") or ():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise section.fail("env", "is no list of names and values")
        environ[entry["name"]] = str(entry.get("value", ""))
    return ExecPlugin(
        where=f"{user.file}: {user.where}",
        folder=user.file.parent,
        command=section.text("command"),
        arguments=[str(each) for each in values.get("args") or ()],
        environ=environ,
        api_version=version,
        install_hint=section.text("installHint", required=False),
        cluster=cluster.values if section.flag("provideClusterInfo") else None,
        within_s=execplugin.WITHIN_S,
    )


def _impersonation(user: _Entry) -> dict[str, tuple[str, ...]]:
    """``as``, ``as-uid``, ``as-groups`` and ``as-user-extra`` as headers (client-go transport/round_trippers.go)."""
    headers: dict[str, tuple[str, ...]] = {}
    if name := user.text("as", required=False):
        headers["Impersonate-User"] = (name,)
    if uid := user.text("as-uid", required=False):
        headers["Impersonate-Uid"] = (uid,)
    if groups := user.values.get("as-groups"):
        headers["Impersonate-Group"] = tuple(map(str, groups))
    for key, values in (user.values.get("as-user-extra") or {}).items():
        headers[f"Impersonate-Extra-{key}"] = tuple(map(str, values))
    if headers and "Impersonate-User" not in headers:
        raise user.fail("as", "is missing although groups, a uid or extras are to be impersonated")
    return headers
