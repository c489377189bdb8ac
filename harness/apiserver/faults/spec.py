"""Faults as they are written: ``goaway chance=0.01 member=member-1 for=20s at=5s``, ``kill member=etcd-0 step='create
objects'``.

The kind comes first, then options in any order; quotes hold words together, as in a shell. Those of the kind are its
fields; `member` (a name, or ``all``), `for` (how long), and `at` and `step` (when it begins) go with every kind.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from harness.apiserver.faults.kinds import KINDS, AnyFault
from harness.apiserver.faults.poolkinds import NetworkFault, PoolFault
from harness.wire.errors import ConfigError

ALL = "all"
MAX_FOR_S = 3600.0
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_RATES = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_COMMON = ("member", "for", "at", "step")


class FaultSpec(msgspec.Struct, frozen=True):
    """`for_s` None: as long as the pool lives (or nothing, for what happens at once). `at_s` None and no `step`: from
    the start of the pool; else so many seconds after its load began, or after that step of its scenario did."""

    fault: AnyFault
    member: str = ALL
    for_s: float | None = None
    at_s: float | None = None
    step: str = ""

    @property
    def of_pool(self) -> bool:
        """It is done to the pool from outside, not by a member."""
        return isinstance(self.fault, PoolFault)

    @property
    def later(self) -> bool:
        """It waits for the load."""
        return self.at_s is not None or bool(self.step)

    @property
    def text(self) -> str:
        """As it is written, less what is the default."""
        parts = [self.fault.kind]
        for field in msgspec.structs.fields(self.fault):
            value = getattr(self.fault, field.name)
            if value != field.default:
                parts.append(f"{field.encode_name}={_written(field.name, value)}")
        parts += [f"member={self.member}"] if self.member != ALL else []
        parts += [f"for={self.for_s:g}s"] if self.for_s is not None else []
        parts += [f"at={self.at_s:g}s"] if self.at_s is not None else []
        parts += [f"step={shlex.quote(self.step)}"] if self.step else []
        return " ".join(parts)


def parse_spec(text: str) -> FaultSpec:
    """Raises ConfigError with one line that says what is allowed."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"fault {text!r}: {str(error).lower()}") from None
    if not words:
        raise ConfigError(
            f"fault {text!r}: expected KIND [OPTION=VALUE ...] with KIND one of {', '.join(KINDS)}"
        )
    return make_spec(words[0], words[1:])


def make_spec(kind: str, options: Iterable[str]) -> FaultSpec:
    """A fault of a kind with options as ``key=value``. Raises ConfigError."""
    type_ = KINDS.get(kind)
    if type_ is None:
        raise ConfigError(f"fault {kind!r}: unknown kind{_hint(kind, KINDS)} (known: {', '.join(KINDS)})")
    fields = {field.encode_name: field for field in msgspec.structs.fields(type_)}
    values: dict[str, Any] = {}
    common: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise ConfigError(f"fault {kind}: {option!r} is not OPTION=VALUE")
        if key in _COMMON:
            common[key] = value
        elif key not in fields:
            known = [*fields, *_COMMON]
            raise ConfigError(
                f"fault {kind}: unknown option {key!r}{_hint(key, known)} (known: {', '.join(known)})"
            )
        else:
            values[key] = _value(kind, key, fields[key], value)
    try:
        fault: AnyFault = msgspec.convert({"kind": kind, **values}, type_, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"fault {kind}: {_plain(error)}") from None
    for_s = _seconds(kind, "for", common["for"]) if "for" in common else None
    check_length(fault, for_s)
    at_s = _seconds(kind, "at", common["at"]) if "at" in common else None
    if isinstance(fault, NetworkFault) and "member" in common:
        raise ConfigError(f"fault {kind}: it has between=, and takes no member=")
    if not common.get("step", "step"):
        raise ConfigError(f"fault {kind}: step= is empty; expected the name of a step of the scenario")
    return FaultSpec(fault, common.get("member", ALL), for_s, at_s, common.get("step", ""))


def check_length(fault: AnyFault, for_s: float | None) -> None:
    """Raises ConfigError for a length that a fault cannot have."""
    if for_s is None:
        return
    if fault.instant:
        how = "it ends by itself" if isinstance(fault, PoolFault) else "it happens at once"
        raise ConfigError(f"fault {fault.kind}: {how} and takes no for=")
    if not 0 < for_s <= MAX_FOR_S:
        raise ConfigError(f"fault {fault.kind}: for is {for_s:g} s; allowed is above 0 to {MAX_FOR_S:g} s")


def describe_kinds() -> list[tuple[str, str, str]]:
    """(kind, its options with their defaults, what it does) of each kind, for help texts."""
    rows = []
    for kind, type_ in KINDS.items():
        options = " ".join(
            f"{field.encode_name}={_written(field.name, field.default)}"
            for field in msgspec.structs.fields(type_)
        )
        rows.append((kind, options, type_.summary))
    return rows


def _value(kind: str, key: str, field: Any, text: str) -> Any:
    if field.type == tuple[str, ...]:
        return tuple(filter(None, text.split(",")))
    allowed = get_args(field.type)
    if allowed and isinstance(allowed[0], str) and text not in allowed:
        raise ConfigError(f"fault {kind}: {key} is {text!r}; allowed are {', '.join(allowed)}")
    if field.name.endswith("_bit_s"):
        return _rate(kind, key, text)
    if field.name.endswith("_s") and field.type is float:
        negative = text.startswith("-")
        seconds = _seconds(kind, key, text[negative:])
        return -seconds if negative else seconds
    if field.type is float and text.endswith("%"):
        return _percent(kind, key, text)
    return text


def _seconds(kind: str, key: str, text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ConfigError(f"fault {kind}: {key}={text} is no duration, as 50ms, 20s or 5m")
    return float(found[1]) * _UNITS[found[2]]


def _rate(kind: str, key: str, text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?bit)", text)
    if found is None:
        raise ConfigError(f"fault {kind}: {key}={text} is no rate, as 500kbit, 10mbit or 1gbit (a second)")
    return float(found[1]) * _RATES[found[2]]


def _percent(kind: str, key: str, text: str) -> float:
    try:
        return float(text[:-1]) / 100
    except ValueError:
        raise ConfigError(f"fault {kind}: {key}={text} is no share, as 0.01 or 1%") from None


def _written(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    if name.endswith("_bit_s"):
        unit = next(unit for unit, size in reversed(_RATES.items()) if value >= size or unit == "bit")
        return f"{value / _RATES[unit]:.12g}{unit}"
    if name.endswith("_s") and isinstance(value, float):
        return f"{value:g}s"
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _plain(error: msgspec.ValidationError) -> str:
    """msgspec's words for a wrong value, with the option's name instead of a path."""
    text, _, path = str(error).partition(" - at `$.")
    return f"{path.rstrip('`')}: {text}" if path else text


def _hint(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
