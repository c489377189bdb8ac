"""Kubeconfig files: which server, how to trust it, who we are. Every fault is one ConfigError line.

Follows client-go v1.36 tools/clientcmd: several files in KUBECONFIG are merged, the first to define a name wins, and
paths are relative to the file that holds them. Exec plugins are run by the `kubernetes` package.
"""

from __future__ import annotations

import base64
import binascii
import os
import random
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from harness.transport.endpoints import Endpoint, Endpoints
from harness.transport.options import HttpMode
from harness.transport.tls import client_context
from harness.wire.errors import ConfigError

_REFUSED_USER_KEYS = {
    "auth-provider": "auth-provider plugins were removed from Kubernetes in 1.26; use exec",
    "username": "basic authentication was removed from Kubernetes in 1.19; use a token or a client certificate",
}


@dataclass(frozen=True)
class ClusterAccess:
    """One context of a kubeconfig. Key and token stay out of `repr`."""

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
    if cluster.text("proxy-url", required=False):
        raise cluster.fail("proxy-url", "is set; proxies are not supported")
    insecure = cluster.flag("insecure-skip-tls-verify")
    ca = cluster.material("certificate-authority")
    if insecure and ca is not None:
        # client-go rest/config.go refuses the same.
        raise cluster.fail("insecure-skip-tls-verify", "is true although a certificate authority is given")
    token, certificate, key = _credentials(user, cluster) if user is not None else ("", None, None)
    return ClusterAccess(
        context=name,
        source=str(cluster.file),
        server=server,
        tls=url.scheme == "https",
        host=url.hostname or "",
        port=url.port or (443 if url.scheme == "https" else 80),
        path_prefix=url.path.rstrip("/"),
        ca=ca,
        certificate=certificate,
        key=key,
        token=token,
        insecure=insecure,
        server_name=cluster.text("tls-server-name", required=False),
        namespace=context.text("namespace", required=False) or "default",
        impersonate=_impersonation(user) if user is not None else {},
    )


def _server_url(cluster: _Entry, server: str) -> Any:
    try:
        url = urlsplit(server if "://" in server else f"https://{server}")
        port_is_valid = url.port is None or url.port > 0
    except ValueError:
        port_is_valid = False
    if not port_is_valid or not url.hostname or url.scheme not in ("http", "https"):
        raise cluster.fail("server", f"is {server!r}, expected is https://host:port")
    return url


def _credentials(user: _Entry, cluster: _Entry) -> tuple[str, bytes | None, bytes | None]:
    """Token, certificate, key. A token wins over tokenFile (client-go clientcmd/client_config.go); exec comes last."""
    for key, reason in _REFUSED_USER_KEYS.items():
        if user.values.get(key):
            raise user.fail(key, f"is not supported: {reason}")
    certificate, private_key = user.material("client-certificate"), user.material("client-key")
    if (certificate is None) != (private_key is None):
        missing = "client-certificate" if certificate is None else "client-key"
        raise user.fail(missing, "is missing; a client certificate needs both")
    token = user.text("token", required=False)
    if not token:
        content = user.file_content("tokenFile")
        token = content.decode("utf-8", "replace").strip() if content is not None else ""
    if not token and certificate is None and user.values.get("exec"):
        return _run_plugin(user, cluster)
    return token, certificate, private_key


def _run_plugin(user: _Entry, cluster: _Entry) -> tuple[str, bytes | None, bytes | None]:
    # Imported here: the package costs 36 MB and half a second, and few kubeconfigs have a plugin.
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.exec_provider import ExecProvider
    from kubernetes.config.kube_config import ConfigNode

    node: Any = ConfigNode  # neither has annotations
    provider: Any = ExecProvider
    try:
        plugin = node("exec", user.values["exec"])
        status = provider(plugin, str(user.file.parent), node("cluster", cluster.values)).run()
    except (ConfigException, OSError, KeyError) as error:
        raise user.fail("exec", f"failed: {' '.join(str(error).split())[:300]}") from error
    certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    if not status.get("token") and not (certificate and key):
        raise user.fail("exec", "gave neither a token nor a client certificate with its key")
    return (
        str(status.get("token") or ""),
        certificate.encode() if certificate and key else None,
        key.encode() if certificate and key else None,
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
