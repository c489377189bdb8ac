"""The options of a run that has informers and clients that list, and the file that says what these ask for."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.documents.decoding import decode_struct
from harness.documents.single import read_keys
from harness.fleet.informers.listmix import ListMix, broken_rule
from harness.fleet.informers.options import Crowd, WriterOptions
from harness.fleet.settings import parse_fields
from harness.load.informerplan import AUDIT_EVERY_S, InformerPlan
from harness.wire.errors import ConfigError

_SHOWN = 80  # characters of a value in a message


def add_informer_arguments(add: Callable[..., None]) -> None:
    """`add(flag, **keywords)` adds one, as argparse does."""
    add(
        "--informers",
        action="append",
        default=[],
        metavar="OPTION=VALUE,...",
        help="a crowd of informers, as count=200, resource=configmaps, selector=shard=3, mode=list, spread_s=30, "
        "restart_every_s=60, restart_share=0.5, relist_every_s=30 (docs/informers.md); each time it is given is one "
        "more crowd",
    )
    add(
        "--lists",
        default="none",
        metavar="FILE",
        help="YAML file with the mix of LISTs and GETs that further clients send; none: no such clients",
    )
    add(
        "--writer",
        action="append",
        default=[],
        metavar="OPTION=VALUE,...",
        help="what informers find and what changes beside them, as objects=10000, size=500, rate=50, replace_share=0.1",
    )
    add(
        "--audit-every",
        type=float,
        default=AUDIT_EVERY_S,
        metavar="SECONDS",
        help="between comparisons of all that informers were told with a consistent LIST; 0: at the end alone",
    )


def informers_of(parsed: argparse.Namespace) -> InformerPlan:
    """Raises ConfigError."""
    if not 0 <= parsed.audit_every < float("inf"):
        raise ConfigError(f"--audit-every {parsed.audit_every:g}: 0 or more seconds are needed")
    return informer_plan(parsed.informers, parsed.lists, parsed.writer, parsed.audit_every)


def informer_plan(
    informers: Sequence[str], lists: str, writer: Sequence[str], audit_every_s: float = AUDIT_EVERY_S
) -> InformerPlan:
    """By the texts of the options of these names. Raises ConfigError."""
    crowds = [Crowd(**parse_fields(Crowd, [text], "--informers", "a crowd")) for text in informers]
    return InformerPlan(
        crowds=tuple(crowds or (Crowd(),)),
        lists=None if lists == "none" else read_mix(Path(lists)),
        writer=WriterOptions(**parse_fields(WriterOptions, writer, "--writer", "the writer")),
        audit_every_s=audit_every_s,
    )


def read_mix(path: Path) -> ListMix:
    """The list mix of a file. Raises ConfigError with file, line, key, value and what is allowed."""
    document, where = read_keys(
        path, given_as="--lists", empty="an empty mix asks for nothing; kinds are needed (docs/informers.md)"
    )
    ignored: list[str] = []
    mix = decode_struct(document, ListMix, where, ignored, any_case=False)
    if ignored:
        raise ConfigError(f"{ignored[0]}: no such key")
    broken = broken_rule(mix)
    if broken is not None:
        key, value, rule = broken
        raise ConfigError(f"{where(key)}: {key}: {value!r:.{_SHOWN}}: {rule}")
    return mix
