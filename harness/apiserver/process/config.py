"""What the processes of an emulated control plane are told on the first line of their standard input."""

from __future__ import annotations

import msgspec


class StoreConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one store process behind all members. `members` are the names of the etcd replicas, one on each member's
    host; the first leads."""

    socket: str
    members: tuple[str, ...]
    seed: int = 0
    etcd: dict[str, float] = {}


class MemberConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One apiserver. `cores` is what its modelled host has, None for no model; `port` 0 takes a free one."""

    name: str
    index: int
    members: tuple[str, ...]
    store_socket: str
    cert: str
    key: str
    admin_token: str
    token_key: str
    host: str = "127.0.0.1"
    port: int = 0
    cores: float | None = None
    seed: int = 0
    costs: dict[str, float] = {}
    server_concurrency: int = 600
    service_cluster_ip: str = "10.0.0.1"
