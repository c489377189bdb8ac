"""What the master decides and every worker needs: the target, the fleet, the scenario.

It travels inside Locust's own spawn message, as one custom option, so that a worker on another machine needs no
argument but ``--worker`` and its master's address.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

OPTION = "swarmlet_plan"  # the attribute of Locust's parsed options that carries it


class TargetMember(msgspec.Struct, frozen=True):
    """One apiserver; `name` is what figures are told apart by."""

    name: str
    host: str
    port: int


class Target(msgspec.Struct, frozen=True):
    """How to reach the control plane and as whom. PEM texts, not paths: a worker may be on another machine.

    `insecure` skips verification of the server; an empty `ca` without it means the system's authorities.
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


class Plan(msgspec.Struct, frozen=True):
    """One run. `kubelets` is the size of the whole fleet; `scenario` is the path of a ClusterLoader2 config, "" for
    none; `overrides` are its override files; `files` has the texts of all of these by their path, so that no worker
    needs them on its disk; `environ` are the CL2_* variables of the master; `fleet` and `scheduler` override fields of
    KubeletOptions and SchedulerOptions."""

    seed: int
    kubelets: int
    target: Target
    scenario: str = ""
    overrides: tuple[str, ...] = ()
    files: dict[str, str] = {}
    environ: dict[str, str] = {}
    http: Literal["auto", "h2", "http/1.1"] = "auto"
    fleet: dict[str, Any] = {}
    scheduler: dict[str, Any] = {}


def encode(plan: Plan) -> str:
    return msgspec.json.encode(plan).decode()


def decode(text: str) -> Plan:
    return msgspec.json.decode(text, type=Plan)
