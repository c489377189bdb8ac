"""A model's clock that may run slower than real time, by a stated factor.

What is time for the model is then told in model seconds by all processes of a run: timers, periods, timeouts, stamps,
rates. A machine that is too small for a control plane can so play it in slow motion. This is the arithmetic alone; the
clocks that are slowed down are their owners' (`transport.timers`, `apiserver.process.loopclock`, the record's).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from harness.wire.errors import ConfigError

SLOWEST = 100.0
"""An hour of a model takes four days then."""


class Pace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A second of the model takes `factor` real ones. At `origin_s`, in seconds since 1970, both times of day are
    equal; it is the same for all processes of a run, so their stamps agree. With a factor of 1 clocks are handed back
    as they are and cost nothing."""

    factor: float = 1.0
    origin_s: float = 0.0

    @property
    def real(self) -> bool:
        """The model's time is the real one."""
        return self.factor == 1.0

    def real_s(self, model_s: float) -> float:
        """How long so many model seconds take."""
        return model_s * self.factor

    def seconds(self, clock: Callable[[], float]) -> Callable[[], float]:
        """Of a clock of real seconds, of which differences alone mean something, the model's."""
        factor = self.factor
        return clock if self.real else lambda: clock() / factor

    def stamps(self, clock: Callable[[], float]) -> Callable[[], float]:
        """Of a clock of seconds since 1970 the model's. It is behind more and more."""
        factor, origin_s = self.factor, self.origin_s
        return clock if self.real else lambda: origin_s + (clock() - origin_s) / factor

    def real_stamp(self, stamp: float) -> float:
        """When it really was, of the model's time of day."""
        return stamp if self.real else self.origin_s + (stamp - self.origin_s) * self.factor


REAL = Pace()


def parse_factor(value: float, source: str) -> float:
    """Raises ConfigError for a factor that a clock cannot have. A model that runs faster than this machine would skip
    what happens between two of its timers."""
    if not 1.0 <= value <= SLOWEST:
        raise ConfigError(
            f"{source} {value:g}: real seconds that a model second takes, within 1 to {SLOWEST:g}"
        )
    return value
