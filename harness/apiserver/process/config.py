"""What the processes of an emulated control plane are told on the first line of their standard input."""

from __future__ import annotations

import msgspec

from harness.apiserver.options import SIGNING_DURATION_S
from harness.apiserver.store.etcd3.endpoints import EtcdServers
from harness.wire.pace import REAL, Pace

ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "16777216", "MALLOC_TRIM_THRESHOLD_": "16777216"}
"""With which a member is started. A large answer is copied four or five times on its way to the socket; glibc would
take each copy's megabytes from the system and give them back, which doubles the CPU time of a LIST. Other C libraries
ignore it."""


class StoreConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one store process behind all members. `members` are the names of the etcd replicas, one on each member's
    host; the first leads. `data_dir` is the folder that keeps what is written, "" for memory alone. Model time is at
    `pace`."""

    socket: str
    members: tuple[str, ...]
    seed: int = 0
    etcd: dict[str, float] = {}
    data_dir: str = ""
    pace: Pace = REAL


class MemberConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One apiserver. `cores` is what its modelled host has, None for no model; `port` 0 takes a free one. `faults` as
    `faults.spec` reads them begin when it is ready. `client_ca` is the path of the authority whose clients are
    believed, `signing_key` that of its key where certificate signing requests are to be signed; "" is none. `etcd` is
    what the member keeps objects in, in place of the store process at `store_socket`. `shutdown_delay_s` is
    --shutdown-delay-duration. Model time is at `pace`, except with a real etcd."""

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
    priority_and_fairness: bool = True
    node_authorizer: dict[str, str] = {}
    service_cluster_ip: str = "10.0.0.1"
    client_ca: str = ""
    signing_key: str = ""
    signing_duration_s: float = SIGNING_DURATION_S
    faults: tuple[str, ...] = ()
    shutdown_delay_s: float = 0.0
    event_ttl_s: float = 3600.0
    feature_gates: dict[str, bool] = {}
    protobuf_answers: bool = False
    etcd: EtcdServers | None = None
    pace: Pace = REAL
