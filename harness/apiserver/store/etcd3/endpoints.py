"""Where etcd is, and how it is spoken to."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from harness.wire.errors import ConfigError


class EtcdServers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`urls` as --etcd-servers has them; paths of PEM files as --etcd-cafile, --etcd-certfile and --etcd-keyfile.
    `compaction_s` is --etcd-compaction-interval, 0 for never."""

    urls: tuple[str, ...]
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    compaction_s: float = 300.0

    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each. Raises ConfigError."""
        found = []
        for url in self.urls:
            try:
                parts = urlsplit(url)
                host, port = parts.hostname, parts.port
            except ValueError:
                host = port = None
            if parts.scheme not in ("http", "https") or not host or not port or parts.path not in ("", "/"):
                raise ConfigError(f"etcd: {url!r} is no address of the form http://127.0.0.1:2379")
            found.append((host, port))
        schemes = {urlsplit(url).scheme for url in self.urls}
        if len(schemes) != 1:
            raise ConfigError(f"etcd: {', '.join(self.urls) or 'no address'}: all must be http, or all https")
        return found

    def context(self) -> ssl.SSLContext | None:
        """TLS where the addresses say https. Raises ConfigError."""
        if not self.urls[0].startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"etcd: certificates: {error}") from None
        context.set_alpn_protocols(["h2"])
        return context


def from_first(addresses: Sequence[tuple[str, int]], first: int) -> list[tuple[str, int]]:
    """Each apiserver begins with another member, its own where there are as many."""
    start = first % len(addresses)
    return [*addresses[start:], *addresses[:start]]
