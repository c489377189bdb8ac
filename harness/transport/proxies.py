"""HTTP proxies between us and an apiserver: which one, if any, and what it is told.

As client-go v1.36: a kubeconfig's ``proxy-url`` wins, else HTTPS_PROXY and NO_PROXY decide
(golang.org/x/net/http/httpproxy; CIDR ranges in NO_PROXY: am/pkg/util/net/http.go ``NewProxierWithNoProxyCIDR``).
Only proxies that take CONNECT in cleartext are used; others are refused by name.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from harness.wire.errors import ConfigError

_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Proxy:
    """`authorization` is the value of Proxy-Authorization, "" for none."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)

    def request(self, authority: str) -> bytes:
        """CONNECT to ``host:port``."""
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}", "User-Agent: swarmlet"]
        if self.authorization:
            lines.append(f"Proxy-Authorization: {self.authorization}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def refusal(answer: bytes) -> str:
    """What speaks against using the tunnel; "" where the proxy answered CONNECT with 200."""
    line = answer.split(b"\r\n", 1)[0].decode("latin-1")
    version, _, rest = line.partition(" ")
    if b"\r\n\r\n" not in answer or not version.startswith("HTTP/1."):
        return f"its answer is none of HTTP: {line[:_SHOWN]!r}" if answer else "it closed the connection"
    return "" if rest.startswith("200") else f"it answers {rest[:_SHOWN]}"


def parse_proxy(url: str, where: str) -> Proxy:
    """`where` names the setting in a ConfigError. A URL without a scheme is one of http, as for Go."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        port = parts.port or 80
    except ValueError:
        raise ConfigError(f"{where}: not a proxy's URL, expected http://[USER:PASSWORD@]HOST:PORT") from None
    if parts.scheme != "http":
        raise ConfigError(
            f"{where}: {parts.scheme}:// proxies are not supported, only http://, which tunnels TLS all the same"
        )
    if not parts.hostname:
        raise ConfigError(f"{where}: not a proxy's URL, expected http://[USER:PASSWORD@]HOST:PORT")
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, port, authorization)


def proxy_from_environment(host: str, port: int, environ: Mapping[str, str]) -> str:
    """The URL of the proxy for an https server; "" for none. Lower-case names count where there are no upper-case
    ones."""
    url = environ.get("HTTPS_PROXY") or environ.get("https_proxy") or ""
    none_for = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return "" if not url or _direct(host.lower().rstrip("."), port, none_for) else url


def _direct(host: str, port: int, none_for: str) -> bool:
    """httpproxy.config.useProxy: never for this machine itself, nor for what NO_PROXY lists."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in none_for.split(",")]
    return any(_matches(entry, host, port, address) for entry in entries if entry)


def _matches(
    entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if entry == "*":
        return True
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit() and (name.count(":") == 0 or name.endswith("]")):
        if int(number) != port:
            return False
        entry = name.strip("[]")
    if address is not None:
        return entry == host
    if entry.startswith("*."):
        entry = entry[1:]
    # ".example.com" is what lies below, "example.com" that too and itself.
    return host.endswith(entry) if entry.startswith(".") else host == entry or host.endswith(f".{entry}")
