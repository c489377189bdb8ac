"""What a crowd of informers and the writer beside it can be told: unit, meaning and the reason for each default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.client import requests
from harness.client.requests import ResourceRef
from harness.wire.errors import ConfigError

NAMESPACE = "informers"
"""Where the writer makes its objects; with several namespaces ``informers-0``, ``informers-1``..."""
SHARDS = 10
"""Values of the label ``shard`` that the writer gives to objects in turn: ``shard=3`` selects a tenth of them."""

_KNOWN = {
    str(value): value
    for name, value in vars(requests).items()
    if isinstance(value, ResourceRef) and name.isupper()
}


def resource_of(text: str, where: str) -> ResourceRef:
    """``configmaps``, ``leases.coordination.k8s.io``, or in full ``deployments.v1.apps``. Raises ConfigError."""
    if text in _KNOWN:
        return _KNOWN[text]
    name, _, rest = text.partition(".")
    version, _, group = rest.partition(".")
    if name and group and version[:1] == "v" and version[1:2].isdecimal():
        return ResourceRef(group, version, name)
    raise ConfigError(
        f"{where}: {text!r} is neither a resource as deployments.v1.apps nor one of {', '.join(sorted(_KNOWN))}"
    )


def _at_least(what: str, name: str, value: float, least: float) -> None:
    if not least <= value < float("inf"):
        raise ConfigError(f"{what} option {name}={value:g}: must be {least:g} or more")


@dataclass(frozen=True, slots=True)
class Crowd:
    """Informers that are alike, each a client of its own with its own connection."""

    count: int = 20
    """How many."""
    resource: str = "configmaps"
    """What they follow, as ``pods`` or ``deployments.v1.apps``."""
    namespace: str = ""
    """Of one namespace; "" all."""
    selector: str = ""
    """Label selector; several requirements are separated by semicolons."""
    fields: str = ""
    """Field selector; likewise."""
    mode: Literal["watch-list", "list"] = "watch-list"
    """How they begin: client-go's default since v1.35, or a list and a watch as before."""
    spread_s: float = 0.0
    """They begin so long after one another at most, drawn evenly; s. 0: all at once, as after an outage."""
    restart_every_s: float = 0.0
    """A restart storm so often, all at the same moment: the client loses what it knows, and its connection; s. 0:
    none."""
    restart_share: float = 1.0
    """Share of the informers that a storm restarts, drawn for each storm."""
    relist_every_s: float = 0.0
    """So often an informer's reflector begins anew at the revision that it has, as after an expired watch; each by
    itself, jittered by 10 %; s. 0: never."""
    resync_s: float = 0.0
    """resyncPeriod: how often all objects are handed to the handlers again, which asks nothing of the server; counted;
    s. 0: never."""
    timeout_s: tuple[float, float] = (300.0, 600.0)
    """timeoutSeconds of watches: minWatchTimeout to twice that (cg/tools/cache/reflector.go:58)."""
    qps: float = 0.0
    """Client limit, which LISTs pass and watches do not; requests a second. 0: none."""
    burst: int = 10
    """Tokens of that limit's bucket."""
    content_type: Literal["json", "protobuf"] = "json"
    """Encoding that is asked for. A dynamic client, as most operators have, takes JSON."""

    def __post_init__(self) -> None:
        what = "informers"
        _at_least(what, "count", self.count, 1)
        for name in ("spread_s", "restart_every_s", "relist_every_s", "resync_s", "qps"):
            _at_least(what, name, getattr(self, name), 0)
        _at_least(what, "burst", self.burst, 1)
        if not 0 < self.restart_share <= 1:
            raise ConfigError(
                f"{what} option restart_share={self.restart_share:g}: must be above 0, and 1 at most"
            )
        if not 1 <= self.timeout_s[0] <= self.timeout_s[1]:
            raise ConfigError(f"{what} option timeout_s={self.timeout_s}: two seconds, 1 <= low <= high")
        for name in ("restart_every_s", "relist_every_s", "resync_s"):
            if 0 < getattr(self, name) < 1:
                raise ConfigError(f"{what} option {name}={getattr(self, name):g}: 1 or more, or 0 for never")
        resource_of(self.resource, f"{what} option resource")

    @property
    def ref(self) -> ResourceRef:
        return resource_of(self.resource, "resource")

    @property
    def label_selector(self) -> str:
        return self.selector.replace(";", ",")

    @property
    def field_selector(self) -> str:
        return self.fields.replace(";", ",")


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """What is there before the crowd begins, and what changes beside it."""

    objects: int = 1000
    """Objects that are made first; those of an earlier run are taken as they are."""
    resource: Literal["configmaps", "secrets"] = "configmaps"
    """Of which kind. These are what clients list in bulk, and they bind no other part of a control plane."""
    namespaces: int = 1
    """Over how many namespaces the objects are spread."""
    size: int = 500
    """Bytes of data in each object; its JSON has about 350 more."""
    rate: float = 10.0
    """Writes a second once the crowd begins, at Poisson times; 0: none."""
    replace_share: float = 0.1
    """Of the writes, those that delete an object and make it anew (two requests); the others update one."""
    in_flight: int = 32
    """Requests at a time while objects are made; no limit of a client's stands in their way."""

    def __post_init__(self) -> None:
        what = "writer"
        _at_least(what, "objects", self.objects, 0)
        _at_least(what, "namespaces", self.namespaces, 1)
        _at_least(what, "size", self.size, 0)
        _at_least(what, "rate", self.rate, 0)
        _at_least(what, "in_flight", self.in_flight, 1)
        if not 0 <= self.replace_share <= 1:
            raise ConfigError(f"{what} option replace_share={self.replace_share:g}: must be 0 to 1")
        if self.size > 900_000:
            raise ConfigError(
                f"{what} option size={self.size}: etcd takes no object beyond 1.5 MB; 900000 at most"
            )
        if self.rate and not self.objects:
            raise ConfigError(f"{what} option rate={self.rate:g}: nothing to write, as objects=0")

    @property
    def ref(self) -> ResourceRef:
        return resource_of(self.resource, "resource")

    def namespace(self, number: int) -> str:
        """Of the object with this number."""
        return NAMESPACE if self.namespaces == 1 else f"{NAMESPACE}-{number % self.namespaces}"
