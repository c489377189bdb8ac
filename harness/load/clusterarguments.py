"""The options of a run that say which existing cluster is driven, and how its nodes connect and show who they are."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import msgspec

from harness.load.identity.authority import Authority
from harness.load.identity.tokens import read_tokens
from harness.load.plan import Identity
from harness.transport.endpoints import POLICIES, Policy
from harness.wire.errors import ConfigError

IdentityKind = Literal["impersonate", "token", "certificate"]


class ClusterOptions(msgspec.Struct, frozen=True):
    """`context` "" is the kubeconfig's current one. `i_know` names the context of a cluster that has nodes of others.
    `streams` None: as many as the server allows. `tokens`, `ca_cert` and `ca_key` are paths, "" for none."""

    context: str = ""
    discover_members: bool = True
    i_know: str = ""
    policy: Policy = "random"
    streams: int | None = None
    identity: IdentityKind = "impersonate"
    tokens: str = ""
    ca_cert: str = ""
    ca_key: str = ""


def add_cluster_arguments(add: Callable[..., None]) -> None:
    """`add(flag, **keywords)` adds one, as argparse does."""
    add("--context", default="", metavar="NAME", help="context of the kubeconfig; default: its current one")
    add(
        "--no-discover-members",
        action="store_true",
        help="send everything to the kubeconfig's one address, do not look for the apiservers behind it",
    )
    add(
        "--i-know",
        default="",
        metavar="CONTEXT",
        help="put load on this cluster although it has nodes that no run made; must name its context",
    )
    add(
        "--endpoint-policy",
        default="random",
        choices=POLICIES,
        help="which member a connection goes to (docs/balancing.md); with source-hash or pinned a node's all go to one",
    )
    add(
        "--streams-per-connection",
        type=int,
        default=0,
        metavar="N",
        help="requests and watches on an HTTP/2 connection before another is dialled; 0: as the server allows",
    )
    add(
        "--identity",
        default="impersonate",
        choices=get_args(IdentityKind),
        help="how nodes show who they are: impersonated, by --tokens, or by a client certificate each",
    )
    add(
        "--tokens",
        default="",
        metavar="FILE",
        help="tokens of the nodes for --identity token: kube-apiserver's CSV, or JSON of names and tokens",
    )
    add(
        "--ca-cert",
        default="",
        metavar="FILE",
        help="authority that signs the nodes' certificates; default: the cluster signs them",
    )
    add("--ca-key", default="", metavar="FILE", help="key of --ca-cert")


def cluster_options(parsed: argparse.Namespace, *, existing: bool, balancer: str) -> ClusterOptions:
    """`existing`: the target is a cluster that is there. `balancer` is what stands before a pool's members, "" for
    nothing. Raises ConfigError."""
    if not existing:
        _refuse_without_cluster(parsed)
    if balancer and parsed.endpoint_policy != ClusterOptions().policy:
        raise ConfigError(
            f"--endpoint-policy {parsed.endpoint_policy}: clients see one address, that of --balancer {balancer}; "
            "how it chooses is --balancer-policy"
        )
    if parsed.streams_per_connection < 0:
        raise ConfigError(
            f"--streams-per-connection {parsed.streams_per_connection}: at least 1, or 0 for no limit"
        )
    kind = parsed.identity
    if (kind == "token") != bool(parsed.tokens):
        raise ConfigError("--identity token and --tokens FILE need each other")
    if bool(parsed.ca_cert) != bool(parsed.ca_key):
        raise ConfigError("--ca-cert and --ca-key need each other")
    if parsed.ca_key and kind != "certificate":
        raise ConfigError(f"--ca-key: signs certificates of nodes, but --identity is {kind}")
    return ClusterOptions(
        context=parsed.context,
        discover_members=not parsed.no_discover_members,
        i_know=parsed.i_know,
        policy=parsed.endpoint_policy,
        streams=parsed.streams_per_connection or None,
        identity=kind,
        tokens=parsed.tokens,
        ca_cert=parsed.ca_cert,
        ca_key=parsed.ca_key,
    )


def _refuse_without_cluster(parsed: argparse.Namespace) -> None:
    """What says something of a cluster that is there means nothing to a pool of the run's own."""
    for flag, given in (
        ("context", parsed.context),
        ("no-discover-members", parsed.no_discover_members),
        ("i-know", parsed.i_know),
    ):
        if given:
            raise ConfigError(
                f"--{flag}: the run starts a pool of its own; a cluster that is there is named by --kubeconfig, -H, "
                "--endpoints or --backend existing"
            )


def read_identity(options: ClusterOptions) -> Identity:
    """The files' content, checked, for the plan. Raises ConfigError."""
    tokens = read_tokens(Path(options.tokens)) if options.tokens else {}
    certificate = _read("--ca-cert", options.ca_cert)
    key = _read("--ca-key", options.ca_key)
    if key:
        Authority(
            certificate.encode(), key.encode(), f"--ca-cert {options.ca_cert}, --ca-key {options.ca_key}"
        )
    return Identity(options.identity, tokens, certificate, key)


def _read(flag: str, name: str) -> str:
    if not name:
        return ""
    try:
        return Path(name).read_text("ascii")
    except OSError as error:
        raise ConfigError(f"{flag} {name}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{flag} {name}: is not PEM") from None
