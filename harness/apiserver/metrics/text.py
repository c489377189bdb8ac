"""Counters, gauges and histograms, and their Prometheus text.

`prometheus_client` costs 1 us for a counter and 2 to 3 us for a histogram, and 39 ms to render the 1,700 lines that a
member has after a minute: longer than the lateness at which a run is called invalid. These cells cost a tenth, hold
label text ready for rendering, and also write the families whose names upstream gave no ``_total``, which
prometheus_client cannot. The names of methods are the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Counter:
    """Only grows."""

    __slots__ = ("value",)
    kind = "counter"

    def __init__(self, bounds: Sequence[float] = ()) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount


class Gauge:
    """Goes up and down, or is asked for when scraped (`set_function`)."""

    __slots__ = ("_function", "_value")
    kind = "gauge"

    def __init__(self, bounds: Sequence[float] = ()) -> None:
        self._value = 0.0
        self._function: Callable[[], float] | None = None

    def set(self, value: float) -> None:
        self._value = value

    def inc(self, amount: float = 1.0) -> None:
        self._value += amount

    def dec(self, amount: float = 1.0) -> None:
        self._value -= amount

    def set_function(self, function: Callable[[], float]) -> None:
        self._function = function

    @property
    def value(self) -> float:
        return self._function() if self._function is not None else self._value


class Histogram:
    """Counts by upper bound, inclusive as Prometheus has it; `counts` are not cumulative, the last is above all."""

    __slots__ = ("_bounds", "counts", "total")
    kind = "histogram"

    def __init__(self, bounds: Sequence[float] = ()) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self._bounds, value)] += times
        self.total += value * times

    @property
    def count(self) -> int:
        return sum(self.counts)


C = TypeVar("C", Counter, Gauge, Histogram)


class Family(Generic[C]):
    """All series of one name. `labels(...)` finds or makes one; callers on a hot path keep what it returns."""

    __slots__ = ("_bounds", "_cell", "_rendered", "_text", "children", "help", "label_names", "name")

    def __init__(
        self, cell: type[C], name: str, help_text: str, label_names: Sequence[str], bounds: Sequence[float]
    ) -> None:
        self.name = name
        self.help = help_text
        self.label_names = tuple(label_names)
        self.children: dict[tuple[str, ...], C] = {}
        self._cell: type[C] = cell
        self._bounds = tuple(bounds)
        self._text: dict[tuple[str, ...], list[str]] = {}
        # Of histograms, as they were: count, sum, text.
        self._rendered: dict[tuple[str, ...], tuple[float, float, str]] = {}

    def labels(self, *values: str, **named: str) -> C:
        """The series of these label values, given in the family's order or all by name."""
        if named:
            if values or named.keys() != set(self.label_names):
                raise ValueError(f"{self.name} has the labels {self.label_names}, not {tuple(named)}")
            values = tuple(named[name] for name in self.label_names)
        child = self.children.get(values)
        if child is None:
            if len(values) != len(self.label_names):
                raise ValueError(f"{self.name} has the labels {self.label_names}, not {len(values)} values")
            child = self.children[values] = self._cell(self._bounds)
        return child

    def remove(self, *values: str) -> None:
        """Forget a series; no effect if there is none."""
        self.children.pop(values, None)
        self._text.pop(values, None)
        self._rendered.pop(values, None)

    def render(self, out: list[str]) -> None:
        """Append the family's text; nothing if it has no series."""
        if not self.children:
            return
        kind = self._cell.kind
        out.append(f"# HELP {self.name} {self.help}\n# TYPE {self.name} {kind}\n")
        for values, child in self.children.items():
            text = self._text.get(values)
            if text is None:
                bounds = self._bounds if self._cell is Histogram else None
                text = self._text[values] = _series(self.name, self.label_names, values, bounds)
            if isinstance(child, Histogram):
                out.append(self._histogram(values, child, text))
            else:
                out.append(f"{text[0]} {_number(child.value)}\n")

    def _histogram(self, values: tuple[str, ...], child: Histogram, text: list[str]) -> str:
        """A histogram's lines. Few of a member's change between two scrapes, and most of its lines are histograms'."""
        count = child.count
        known = self._rendered.get(values)
        if known is not None and known[0] == count and known[1] == child.total:
            return known[2]
        rendered = _render_histogram(child, text)
        self._rendered[values] = (count, child.total, rendered)
        return rendered


def _series(
    name: str, label_names: Sequence[str], values: Sequence[str], bounds: Sequence[float] | None
) -> list[str]:
    """The text before the value on each line of one series; `bounds` makes it a histogram's."""
    pairs = [f'{label}="{_escape(value)}"' for label, value in zip(label_names, values, strict=True)]
    braces = "{" + ",".join(pairs) + "}" if pairs else ""
    if bounds is None:
        return [name + braces]
    uppers = [*map(_number, bounds), "+Inf"]
    lines = [name + "_bucket{" + ",".join([*pairs, f'le="{upper}"']) + "}" for upper in uppers]
    return [*lines, f"{name}_sum{braces}", f"{name}_count{braces}"]


def _render_histogram(child: Histogram, text: list[str]) -> str:
    total, out = 0, []
    for line, count in zip(text, child.counts, strict=False):
        total += count
        out.append(f"{line} {total}\n")
    out.append(f"{text[-2]} {_number(child.total)}\n{text[-1]} {total}\n")
    return "".join(out)


def _number(value: float) -> str:
    """As Go prints it closely enough for any parser: whole numbers without a point."""
    if not value:  # as most are
        return "0"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class Declared(Generic[C]):
    """A family stated as a class attribute, whose name is the metric's; `Families` makes it for each instance."""

    def __init__(self, cell: type[C], help_text: str, labels: str, bounds: Sequence[float] = ()) -> None:
        self._cell: type[C] = cell
        self._help = help_text
        self._labels = labels.split()
        self._bounds = bounds
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: Any) -> Declared[C]: ...
    @overload
    def __get__(self, instance: object, owner: Any) -> Family[C]: ...
    def __get__(self, instance: object | None, owner: Any) -> Declared[C] | Family[C]:
        # Reached on the class only: the instance's own dictionary holds the family and is looked at first.
        if instance is None:
            return self
        raise AttributeError(f"{self._name} is used before Families.__init__")

    def make(self) -> Family[C]:
        return Family(self._cell, self._name, self._help, self._labels, self._bounds)


def counter(help_text: str, labels: str = "") -> Declared[Counter]:
    """`labels` are names in order, separated by spaces."""
    return Declared(Counter, help_text, labels)


def gauge(help_text: str, labels: str = "") -> Declared[Gauge]:
    return Declared(Gauge, help_text, labels)


def histogram(help_text: str, labels: str, bounds: Sequence[float]) -> Declared[Histogram]:
    return Declared(Histogram, help_text, labels, bounds)


class Families:
    """Base of classes whose attributes declare families."""

    def __init__(self) -> None:
        self.families: dict[str, Family[Any]] = {}
        self._before_render: list[Callable[[], object]] = []
        for cls in reversed(type(self).__mro__):
            for name, declared in vars(cls).items():
                if isinstance(declared, Declared):
                    family = declared.make()
                    self.families[name] = family
                    self.__dict__[name] = family

    def on_render(self, fill: Callable[[], object]) -> None:
        """Call `fill` before each rendering, for values that are cheaper to look up than to keep."""
        self._before_render.append(fill)

    def render(self) -> bytes:
        """Prometheus text format 0.0.4, families in order of name."""
        for fill in self._before_render:
            fill()
        out: list[str] = []
        for name in sorted(self.families):
            self.families[name].render(out)
        return "".join(out).encode()


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**i for i in range(count))
