"""Options of a fleet's kubelets as a user writes them: ``kube_proxy=true``, ``qps=10``, ``start_delay_s=0.5:2``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from harness.fleet.options import KubeletOptions
from harness.wire.errors import ConfigError

Options = TypeVar("Options")


def parse_settings(texts: Iterable[str], source: str = "--fleet") -> dict[str, Any]:
    """Fields of KubeletOptions by name, as `parse_fields`; what does not go together is said here, not by a worker."""
    found = parse_fields(KubeletOptions, texts, source, "a kubelet")
    KubeletOptions(**found)
    return found


def parse_fields(kind: type[Options], texts: Iterable[str], source: str, whose: str) -> dict[str, Any]:
    """Fields of a dataclass by name, from ``name=value`` texts, several of them in one separated by commas. A range is
    ``low:high``, or one number for both ends. Raises ConfigError, with the nearest name for one that is unknown; whose
    options these are is `whose`."""
    types = get_type_hints(kind)
    found: dict[str, Any] = {}
    for text in texts:
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, equals, value = part.partition("=")
            name = name.strip().replace("-", "_")
            if name not in types:
                near = difflib.get_close_matches(name, types, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ConfigError(f"{source} {part}: there is no option {name!r} of {whose}{hint}")
            if not equals:
                raise ConfigError(f"{source} {part}: a value is missing, as in {name}=...")
            found[name] = _value(types[name], value.strip(), f"{source} {part}")
    return found


def _value(kind: Any, text: str, where: str) -> Any:
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
