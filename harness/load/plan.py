"""What the master decides and every worker needs: the target, the fleet, the scenario.

It travels inside Locust's own spawn message, as one custom option, so that a worker on another machine needs no
argument but ``--worker`` and its master's address.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from harness.load.informerplan import InformerPlan
from harness.load.provisionerplan import Provisioners
from harness.transport.endpoints import Policy
from harness.wire.pace import REAL, Pace

OPTION = "swarmlet_plan"  # the attribute of Locust's parsed options that carries it


class TargetMember(msgspec.Struct, frozen=True):
    """One apiserver; `name` is what figures are told apart by."""

    name: str
    host: str
    port: int


class Target(msgspec.Struct, frozen=True):
    """How to reach the control plane and as whom. PEM texts, not paths: a worker may be on another machine.

    `front` is where clients connect, if not to the members themselves: links before them, with their names, or a
    balancer. `insecure` skips verification of the server; an empty `ca` without it means the system's authorities.
    `headers` are those by which the run's own credentials impersonate somebody; `proxy` is a URL; `rotates`: the master
    sends fresh credentials when these change. `context` is the kubeconfig's, "" where there is none.
    """

    members: tuple[TargetMember, ...]
    tls: bool = True
    ca: str = ""
    insecure: bool = False
    server_name: str = ""
    token: str = ""
    cert: str = ""
    key: str = ""
    has_scheduler: bool = False
    has_controllers: bool = False
    path_prefix: str = ""
    headers: dict[str, tuple[str, ...]] = {}
    proxy: str = ""
    rotates: bool = False
    context: str = ""
    front: tuple[TargetMember, ...] = ()


class Identity(msgspec.Struct, frozen=True):
    """How nodes show who they are. `tokens`: by user name or by node name, for "token". `ca_cert` and `ca_key` sign the
    nodes' certificates, for "certificate"; without them each node has its own signed by the API."""

    kind: Literal["impersonate", "token", "certificate"] = "impersonate"
    tokens: dict[str, str] = {}
    ca_cert: str = ""
    ca_key: str = ""


class Controllers(msgspec.Struct, frozen=True):
    """Which controllers run where the target has none, by service account, and the limit of each one's client; None is
    all of them."""

    names: tuple[str, ...] | None = None
    qps: float = 20.0
    burst: int = 30


class Plan(msgspec.Struct, frozen=True):
    """One run. `kubelets` is the size of the whole fleet; `scenario` is the path of a ClusterLoader2 config, "" for
    none; `overrides` are its override files; `files` has the texts of all of these by their path, so that no worker
    needs them on its disk; `environ` are the CL2_* variables of the master; `policy` and `streams` are how
    connections are spread and filled (`connect.Connections`); `run` labels what the run makes; `fleet` and
    `scheduler` override fields of KubeletOptions and SchedulerOptions."""

    seed: int
    kubelets: int
    target: Target
    scenario: str = ""
    overrides: tuple[str, ...] = ()
    files: dict[str, str] = {}
    environ: dict[str, str] = {}
    http: Literal["auto", "h2", "http/1.1"] = "auto"
    policy: Policy = "random"
    streams: int | None = None
    identity: Identity = Identity()
    run: str = ""
    fleet: dict[str, Any] = {}
    scheduler: dict[str, Any] = {}
    controllers: Controllers = Controllers()
    provisioners: Provisioners | None = None
    """None where no user is a provisioner."""
    informers: InformerPlan | None = None
    """None where no user is an informer."""
    prometheus: bool = False
    """Whether the master has a Prometheus to ask."""
    executors: int = 0
    """On how many workers the scenario's operations are spread; 0 is as many as they need."""
    settled: bool = False
    """Whether the whole fleet was there before this worker came."""
    pace: Pace = REAL
    """Of everything that is time for the model."""


def encode(plan: Plan) -> str:
    return msgspec.json.encode(plan).decode()


def decode(text: str) -> Plan:
    return msgspec.json.decode(text, type=Plan)
