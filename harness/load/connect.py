"""Transports to the target of a run: one place where its credentials, its TLS and its proxy come together."""

from __future__ import annotations

import ssl
import weakref
from collections.abc import Callable, Mapping, Sequence

import msgspec

from harness.load.plan import Target
from harness.transport.credentials import Bearer, Credentials
from harness.transport.dialing import Tls
from harness.transport.endpoints import Endpoint, Endpoints, Policy
from harness.transport.options import HttpMode, TransportOptions
from harness.transport.pool import Transport
from harness.transport.proxies import parse_proxy
from harness.transport.tally import Tally
from harness.transport.timers import Timers
from harness.transport.tls import ClientTls, client_context
from harness.wire.draws import Draws

SOURCE = "the target's TLS files"
AGENT = "swarmlet"


class Connections(msgspec.Struct, frozen=True):
    """How a fleet connects: protocol, choice of a member, and how many streams a connection takes (None: as many as
    the server allows)."""

    http: HttpMode = "auto"
    policy: Policy = "random"
    streams: int | None = None


class Connector:
    """Makes the transports of one process. Raises ConfigError where OpenSSL does not take the target's files.

    `bearer` is the run's own token, and what `replace` changes; it serves every transport that is not given one of its
    own. `tally` counts for all of them.
    """

    def __init__(
        self,
        target: Target,
        timers: Timers,
        connections: Connections | None = None,
        on_refused: Callable[[], object] = lambda: None,
    ) -> None:
        self.target = target
        self.tally = Tally()
        self.bearer = Bearer(target.token, on_refused)
        self._connections = connections or Connections()
        self._timers = timers
        self._members = tuple(Endpoint(member.host, member.port, member.name) for member in target.members)
        self._options = TransportOptions(streams_per_connection=self._connections.streams)
        self._proxy = parse_proxy(target.proxy, "the target's proxy") if target.proxy else None
        self._own: weakref.WeakSet[Transport] = weakref.WeakSet()
        self._tls = self._own_tls()

    def transport(
        self,
        agent: str,
        rng: Draws,
        headers: Mapping[str, str | Sequence[str]] | None = None,
        *,
        tls: Tls | None = None,
        bearer: Bearer | None = None,
        options: TransportOptions | None = None,
    ) -> Transport:
        """`tls` and `bearer` are somebody's own; without them it is the run's credentials that are shown. `rng` chooses
        members and spreads retries."""
        connections = self._connections
        transport = Transport(
            Endpoints(self._members, rng, connections.policy),
            tls or self._tls,
            self._timers,
            server_name=self.target.server_name,
            http=connections.http,
            headers={"user-agent": agent, **(headers or {})},
            path_prefix=self.target.path_prefix,
            options=options or self._options,
            rng=rng,
            bearer=bearer or self.bearer,
            proxy=self._proxy,
            tally=self.tally,
        )
        if tls is None and isinstance(self._tls, ClientTls):
            self._own.add(transport)
        return transport

    def anonymous_tls(self) -> ssl.SSLContext | None:
        """A context that trusts the target and shows no certificate: for clients that have one of their own."""
        target = self.target
        if not target.tls:
            return None
        return client_context(
            target.ca.encode() or None,
            insecure=target.insecure,
            http=self._connections.http,
            source=SOURCE,
            purpose="certificates of nodes",
        )

    def replace(self, credentials: Credentials) -> None:
        """The run's own credentials have changed. As in client-go (transport/cert_rotation.go), a new certificate
        closes the connections that were made with the old one."""
        if credentials.token:
            self.bearer.replace(credentials.token)
        if not (credentials.certificate and credentials.key and isinstance(self._tls, ClientTls)):
            return
        pem = credentials.key.rstrip(b"\n") + b"\n" + credentials.certificate
        if pem != self._tls.pem:
            self._tls.pem = pem
            for transport in list(self._own):
                transport.close_connections()

    def _own_tls(self) -> Tls | None:
        target = self.target
        if not target.tls:
            return None
        ca, certificate, key = (text.encode() or None for text in (target.ca, target.cert, target.key))
        if not (target.rotates and certificate and key):
            return client_context(
                ca, certificate, key, insecure=target.insecure, http=self._connections.http, source=SOURCE
            )
        context = client_context(
            ca, insecure=target.insecure, http=self._connections.http, source=SOURCE, purpose="rotating"
        )
        own = ClientTls(context, key.rstrip(b"\n") + b"\n" + certificate)
        own.check(SOURCE)
        return own
