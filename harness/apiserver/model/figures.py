"""Figures that a user may replace by name: of an operation's cost, of etcd's times."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Protocol, TypeVar

from harness.wire.errors import ConfigError


class Figures(Protocol):
    """A dataclass whose fields are all numbers with defaults."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


T = TypeVar("T", bound=Figures)


def parse_figures(type_: type[T], what: str, mapping: Mapping[str, float], limit: float) -> T:
    """A `type_` with the given fields replaced. `what` begins the messages. Raises ConfigError on an unknown key, and
    on a value that is no number from 0 to below `limit`."""
    known = [field.name for field in fields(type_)]
    for key, value in mapping.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"{what}: unknown key {key!r}{hint} (known: {', '.join(known)})")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < limit:
            raise ConfigError(f"{what}: {key} is {value!r}; allowed are numbers from 0 to {limit:g}")
    return type_(**{key: float(value) for key, value in mapping.items()})
