"""Transports to the target of a run: one place where its credentials, its TLS and its proxy come together."""

from __future__ import annotations

import ssl
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

import msgspec

from harness.load.plan import Target, TargetMember
from harness.pool.network.places import BALANCER
from harness.transport.credentials import Bearer, Credentials
from harness.transport.dialing import Tls
from harness.transport.endpoints import Balance, Endpoint, Endpoints, Policy
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


def has_own_addresses(front: TargetMember) -> bool:
    """Whether clients come from an address each: a balancer on this machine would see one client otherwise, whom it
    could not spread by source. Linux takes all of 127.0.0.0/8 for this machine."""
    return front.name == BALANCER and front.host.startswith("127.") and sys.platform == "linux"


def from_own_address(endpoint: Endpoint, client: str) -> Endpoint:
    """As one of a client that has an address of its own, by its name."""
    first, second, third = blake2b(client.encode(), digest_size=3, usedforsecurity=False).digest()
    return msgspec.structs.replace(endpoint, source=f"127.{1 + first % 254}.{second}.{1 + third % 254}")


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
        met = target.front or target.members
        self._members = tuple(Endpoint(member.host, member.port, member.name) for member in met)
        self._balance = Balance()
        self._apart = bool(target.front) and has_own_addresses(target.front[0])
        plain, pace = TransportOptions(), timers.pace
        self._options = TransportOptions(
            # The one time that is not the timers': a dial waits for the system, and a member may have been cut off.
            connect_timeout_s=pace.real_s(plain.connect_timeout_s),
            tls_handshake_timeout_s=pace.real_s(plain.tls_handshake_timeout_s),
            streams_per_connection=self._connections.streams,
        )
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
        source: str = "",
    ) -> Transport:
        """`tls` and `bearer` are somebody's own; without them it is the run's credentials that are shown. `rng` chooses
        members and spreads retries; `source` is the client's name, by which it may be balanced, "" is `agent`."""
        connections, source = self._connections, source or agent
        members = (
            [from_own_address(member, source) for member in self._members] if self._apart else self._members
        )
        transport = Transport(
            Endpoints(members, rng, connections.policy, balance=self._balance, source=source),
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
