"""Options of a fleet's kubelets as a user writes them: ``kube_proxy=true``, ``qps=10``, ``start_delay_s=0.5:2``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from harness.fleet.options import KubeletOptions
from harness.wire.errors import ConfigError

_TYPES = get_type_hints(KubeletOptions)
_NAMES = [field.name for field in fields(KubeletOptions)]


def parse_settings(texts: Iterable[str], source: str = "--fleet") -> dict[str, Any]:
    """Fields of KubeletOptions by name, from ``name=value`` texts, several of them in one separated by commas. A range
    is ``low:high``, or one number for both ends. Raises ConfigError, with the nearest name for one that is unknown."""
    found: dict[str, Any] = {}
    for text in texts:
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, equals, value = part.partition("=")
            name = name.strip().replace("-", "_")
            if name not in _TYPES:
                near = difflib.get_close_matches(name, _NAMES, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ConfigError(f"{source} {part}: there is no option {name!r} of a kubelet{hint}")
            if not equals:
                raise ConfigError(f"{source} {part}: a value is missing, as in {name}=...")
            found[name] = _value(name, value.strip(), f"{source} {part}")
    KubeletOptions(**found)  # what does not go together is said here, not by a worker
    return found


def _value(name: str, text: str, where: str) -> Any:
    kind = _TYPES[name]
    given: Any = text
    if kind == tuple[float, float]:
        low, _, high = text.partition(":")
        given = (low, high or low)
    elif kind == tuple[tuple[str, str], ...]:
        given = tuple(tuple(pair.partition("=")[::2]) for pair in filter(None, text.split(";")))
    if get_origin(kind) is Literal and text not in get_args(kind):
        raise ConfigError(f"{where}: allowed are {', '.join(get_args(kind))}")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {str(error).lower()}") from error
