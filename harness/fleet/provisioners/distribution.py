"""How long something takes, as a user writes it: ``2``, ``uniform:1:3``, ``exponential:2``, ``lognormal:2:0.5``."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log
from random import Random

import msgspec

from harness.wire.errors import ConfigError

_FORMS = {
    "constant": "constant:SECONDS",
    "uniform": "uniform:LOW:HIGH",
    "exponential": "exponential:MEAN",
    "lognormal": "lognormal:MEDIAN:SIGMA",
}


class Distribution(msgspec.Struct, frozen=True):
    """A kind and its parameters, in seconds; the sigma of a lognormal is of the logarithm."""

    kind: str
    parameters: tuple[float, ...]

    def draw(self, rng: Random) -> float:
        return _DRAWS[self.kind](rng, *self.parameters)

    def __str__(self) -> str:
        return ":".join([self.kind, *(f"{value:g}" for value in self.parameters)])


_DRAWS: dict[str, Callable[..., float]] = {
    "constant": lambda rng, seconds: seconds,
    "uniform": lambda rng, low, high: low + (high - low) * rng.random(),
    "exponential": lambda rng, mean: rng.expovariate(1.0 / mean) if mean else 0.0,
    "lognormal": lambda rng, median, sigma: exp(log(median) + sigma * rng.gauss(0.0, 1.0)) if median else 0.0,
}


def parse_distribution(text: str, where: str) -> Distribution:
    """Raises ConfigError, which names `where` the text came from."""
    kind, _, rest = text.strip().partition(":")
    if kind and kind not in _FORMS and not rest:
        kind, rest = "constant", kind
    form = _FORMS.get(kind)
    if form is None:
        raise ConfigError(f"{where} {text!r}: expected one of {', '.join(_FORMS.values())}")
    try:
        parameters = tuple(map(float, rest.split(":")))
    except ValueError:
        parameters = ()
    ordered = kind != "uniform" or len(parameters) < 2 or parameters[0] <= parameters[1]
    if len(parameters) != form.count(":") or not all(0 <= value < inf for value in parameters) or not ordered:
        raise ConfigError(f"{where} {text!r}: expected {form}, of 0 or more")
    return Distribution(kind, parameters)
