"""The functions that ClusterLoader2 adds to Go templates.

Behaviour follows perf-tests 4b341544, clusterloader2/pkg/config/template_functions.go:44-78 (the table) and below. A
function raises ValueError where the Go one panics or returns an error; gotpl adds file, line and column.

Two differences: numbers of overrides and parameters stay integers here (Go reads them through JSON as float64 and
prints 1000000 as 1e+06), and RandDataWithSeed gives the same data for the same seed, but not Go's bytes.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml
from gotpl.runtime.values import INVALID, UNTYPED_NIL

from harness.documents.files import Files

Function = Callable[..., object]

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

IMPURE = frozenset({"RandData", "RandInt", "RandIntRange", "IncludeFile"})
"""Functions whose result may differ between two calls with the same arguments."""


def is_nil(value: object) -> bool:
    """True for what Go passes to an interface{} parameter as nil: a missing key, a nil value, the constant."""
    return value is None or value is INVALID or value is UNTYPED_NIL


def to_float(value: object) -> float:
    """A number, or a string that holds one (template_functions.go:86-111: toFloat64); booleans are refused."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value == value.strip():
        try:
            return float(value)
        except ValueError:
            pass
    raise ValueError(f"cannot cast {'<nil>' if is_nil(value) else repr(value)} to float64")


def to_int(value: object) -> int:
    """`to_float`, cut towards zero as Go's int() does."""
    number = to_float(value)
    if math.isinf(number) or math.isnan(number):
        raise ValueError(f"cannot cast {value!r} to int")
    return int(number)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"incorrect argument type: got: {_go_type(value)} want: string")
    return value


def _go_type(value: object) -> str:
    if is_nil(value):
        return "<nil>"
    return {bool: "bool", int: "int", float: "float64", str: "string"}.get(type(value), type(value).__name__)


def _add(*numbers: object) -> float:
    return math.fsum(to_float(number) for number in numbers)


def _multiply(*numbers: object) -> float:
    return math.prod((to_float(number) for number in numbers), start=1.0)


def _divide(first: object, second: object) -> float:
    divisor = to_float(second)
    if divisor == 0:
        raise ValueError("division by zero")
    return to_float(first) / divisor


def _largest(*numbers: object) -> float:
    if not numbers:
        raise ValueError("maximum undefined")
    return max(to_float(number) for number in numbers)


def _smallest(*numbers: object) -> float:
    if not numbers:
        raise ValueError("minimum undefined")
    return min(to_float(number) for number in numbers)


def _mod(first: object, second: object) -> int:
    divisor = to_int(second)
    if divisor == 0:
        raise ValueError("integer divide by zero")
    return int(math.fmod(to_int(first), divisor))


def _default_param(param: object, default: object) -> object:
    chosen = default if is_nil(param) else param
    return None if is_nil(chosen) else chosen


def _if_then_else(condition: object, first: object, second: object) -> object:
    if not isinstance(condition, bool):
        raise ValueError(f"incorrect argument type: got: {_go_type(condition)} want: bool")
    chosen = first if condition else second
    return None if is_nil(chosen) else chosen


def _yaml_quote(text: object, tabs: object) -> str:
    if not isinstance(tabs, int) or isinstance(tabs, bool):
        raise ValueError(f"incorrect argument type: got: {_go_type(tabs)} want: int")
    quoted = yaml.safe_dump(_text(text), default_flow_style=False, allow_unicode=True, width=1 << 30)
    quoted = quoted.removesuffix("...\n")  # PyYAML marks the end of a bare scalar document, go-yaml does not
    return quoted.replace("\n", "\n" + "  " * tabs)


def _counts(size: object) -> list[int]:
    return list(range(to_int(size)))


def _zeros(size: object) -> list[int]:
    return [0] * to_int(size)


def _concat(*items: object) -> str:
    return "".join(_text(item) for item in items)


def _random_text(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(_ALPHABET, k=length))


def _seeded_text(length: object, seed: object) -> str:
    digest = hashlib.sha256(_text(seed).encode()).digest()
    return _random_text(random.Random(int.from_bytes(digest[:8], "big")), to_int(length))


def _include(root: Path, files: Files) -> Function:
    def include(name: object) -> str:
        path = root / _text(name).lstrip("/")
        try:
            return files.read(path)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"unable to read file {path}: {error}") from error

    return include


def template_functions(rng: random.Random, root: Path, files: Files | None = None) -> Mapping[str, Function]:
    """The table, by template name. `rng` feeds the random functions, `root` is the directory of the test config.

    IncludeFile is relative to ClusterLoader2's binary upstream; here both Include functions are relative to `root`.
    """

    include = _include(root, files or Files())

    def rand_data(length: object) -> str:
        return _random_text(rng, to_int(length))

    def rand_int(limit: object) -> int:
        return rng.randint(0, to_int(limit))

    def rand_int_range(first: object, last: object) -> int:
        low, high = to_int(first), to_int(last)
        return low if low >= high else rng.randint(low, high)

    return {
        "AddFloat": _add,
        "AddInt": lambda *numbers: to_int(_add(*numbers)),
        "Ceil": lambda value: float(math.ceil(to_float(value))),
        "Concat": _concat,
        "DefaultParam": _default_param,
        "DivideFloat": _divide,
        "DivideInt": lambda first, second: to_int(_divide(first, second)),
        "IfThenElse": _if_then_else,
        "IncludeEmbedFile": include,
        "IncludeFile": include,
        "Loop": _counts,
        "Lowercase": lambda text: _text(text).lower(),
        "MaxFloat": _largest,
        "MaxInt": lambda *numbers: to_int(_largest(*numbers)),
        "MinFloat": _smallest,
        "MinInt": lambda *numbers: to_int(_smallest(*numbers)),
        "Mod": _mod,
        "MultiplyFloat": _multiply,
        "MultiplyInt": lambda *numbers: to_int(_multiply(*numbers)),
        "RandData": rand_data,
        "RandDataWithSeed": _seeded_text,
        "RandInt": rand_int,
        "RandIntRange": rand_int_range,
        "Seq": _zeros,
        "SliceOfZeros": _zeros,
        "StringSplit": lambda text: _text(text).split(","),
        "SubtractFloat": lambda first, second: to_float(first) - to_float(second),
        "SubtractInt": lambda first, second: to_int(to_float(first) - to_float(second)),
        "YamlQuote": _yaml_quote,
    }
