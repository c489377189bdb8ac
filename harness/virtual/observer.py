"""Who hears of what happens in a virtual world. All times are the world's, seconds since its start."""

from __future__ import annotations

from typing import NamedTuple

from harness.client.machine import Finished, Note, Sample, Seen, Tell
from harness.wire.request import Request, Response

NO_ANSWER = 0
"""The code of an exchange that got no answer."""


class Call(NamedTuple):
    """One exchange: its number among all of the world's; the machine that sends it, as `World.add` numbered it, and
    that machine's kind."""

    serial: int
    client: int
    kind: str
    request: Request
    sent_at: float


class Observer:
    """Hears nothing; a subclass overrides what it needs. `kind` is the machine's, as given to `World.add`."""

    def sent(self, call: Call) -> None:
        """A request leaves its client."""

    def answered(self, call: Call, response: Response, seconds: float, error: str = "") -> None:
        """An exchange has ended, or a watch has been answered; `response.status` is NO_ANSWER where `error` says why
        there is none. `seconds` since it was sent."""

    def sampled(self, kind: str, sample: Sample) -> None:
        """A machine has measured something."""

    def seen(self, kind: str, seen: Seen) -> None:
        """A machine knows of a followed write."""

    def noted(self, kind: str, note: Note) -> None:
        """A machine has something for the record."""

    def told(self, kind: str, tell: Tell) -> None:
        """A machine has something for another part of the run."""

    def finished(self, kind: str, end: Finished) -> None:
        """A machine has nothing more to do."""
