"""The states of a reflector, what each can come to, and where it goes from there: the one table of its transitions.

What entering a state does is in `harness.client.reflector`. An outcome that a state does not list is a bug.
"""

from __future__ import annotations

from enum import Enum

from harness.wire.errors import SwarmletError


class State(Enum):
    IDLE = "idle"
    WATCH_LISTING = "watch-listing"
    """Streaming the initial state."""
    WATCH_LIST_DELAY = "watch-list delayed"
    LISTING = "listing"
    WATCHING = "watching"
    WATCH_DELAY = "watch delayed"
    BACKOFF = "backing off"
    """Between two ListAndWatch."""
    STOPPED = "stopped"


class Outcome(Enum):
    """What the present state came to."""

    BEGIN = "begin"
    BEGIN_WITH_LIST = "begin with a list"
    SYNCED = "initial state complete"
    MORE = "more pages, or the list again"
    LISTED = "list complete"
    ENDED = "clean end"
    VERY_SHORT = "ended within a second without an event"
    BUSY = "connection refused or 429"
    EXPIRED = "resourceVersion too old or too large"
    FAILED = "any other error"
    DUE = "waited long enough"


TRANSITIONS: dict[tuple[State, Outcome], State] = {
    (State.IDLE, Outcome.BEGIN): State.WATCH_LISTING,
    (State.IDLE, Outcome.BEGIN_WITH_LIST): State.LISTING,
    (State.STOPPED, Outcome.BEGIN): State.WATCH_LISTING,
    (State.STOPPED, Outcome.BEGIN_WITH_LIST): State.LISTING,
    (State.WATCH_LISTING, Outcome.SYNCED): State.WATCHING,
    (State.WATCH_LISTING, Outcome.ENDED): State.WATCH_LISTING,
    (State.WATCH_LISTING, Outcome.BUSY): State.WATCH_LIST_DELAY,
    (State.WATCH_LISTING, Outcome.EXPIRED): State.WATCH_LISTING,
    (State.WATCH_LISTING, Outcome.VERY_SHORT): State.LISTING,
    (State.WATCH_LISTING, Outcome.FAILED): State.LISTING,
    (State.WATCH_LIST_DELAY, Outcome.DUE): State.WATCH_LISTING,
    (State.LISTING, Outcome.MORE): State.LISTING,
    (State.LISTING, Outcome.LISTED): State.WATCHING,
    (State.LISTING, Outcome.FAILED): State.BACKOFF,
    (State.WATCHING, Outcome.ENDED): State.WATCHING,
    (State.WATCHING, Outcome.BUSY): State.WATCH_DELAY,
    (State.WATCHING, Outcome.VERY_SHORT): State.BACKOFF,
    (State.WATCHING, Outcome.EXPIRED): State.BACKOFF,
    (State.WATCHING, Outcome.FAILED): State.BACKOFF,
    (State.WATCH_DELAY, Outcome.DUE): State.WATCHING,
    (State.BACKOFF, Outcome.BEGIN): State.WATCH_LISTING,
    (State.BACKOFF, Outcome.BEGIN_WITH_LIST): State.LISTING,
}
DELAYS = frozenset({State.WATCH_LIST_DELAY, State.WATCH_DELAY, State.BACKOFF})
STREAMS = frozenset({State.WATCH_LISTING, State.WATCHING})


class InvalidTransition(SwarmletError):
    """A bug: an outcome that the table does not know in this state."""
