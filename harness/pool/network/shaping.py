"""When bytes that came in at one end of a link go out at the other. Values and times; no I/O, no clock.

A `Wire` is one direction of a link, shared by all its connections; a `Lane` one direction of one connection. What a
lane is given goes out in order: later for latency and jitter, after what is before it on the wire where there is a
rate, after a retransmission where a segment was lost, and not at all while the wire is cut.
"""

from __future__ import annotations

from collections import deque

import msgspec

from harness.wire.draws import Draws

SEGMENT_BYTES = 1448
"""TCP's payload in an Ethernet frame, with timestamps."""
RTO_MIN_S = 0.2
RTO_MAX_S = 120.0
"""Linux (include/net/tcp.h, TCP_RTO_MIN and TCP_RTO_MAX): a lost segment is sent again after a round trip, at least
the former; each further loss doubles that, at most to the latter."""
HELD_BYTES = 256 << 10
"""What a lane takes in before it wants its sender to wait, as full socket buffers make a sender wait."""
PIECE_BYTES = 16 << 10
"""Where there is a rate or loss, bytes pass in pieces of this size at most, so that connections share the wire."""

END = b""
"""The end of a sender's stream, which comes behind its bytes."""


class Shape(msgspec.Struct, frozen=True):
    """One direction of a link. `rate_bit_s` 0 is no limit; `drop` is the chance that a segment is lost; with `cut`
    nothing passes."""

    latency_s: float = 0.0
    jitter_s: float = 0.0
    rate_bit_s: float = 0.0
    drop: float = 0.0
    cut: bool = False


OPEN = Shape()


class Wire:
    """`rng` draws jitter and loss. `reshape` is for what comes from now on; each lane has its own for what it holds."""

    __slots__ = ("_busy_until_s", "_rng", "shape")

    def __init__(self, rng: Draws) -> None:
        self.shape = OPEN
        self._rng = rng
        self._busy_until_s = 0.0

    def reshape(self, shape: Shape, now: float) -> None:
        self.shape = (
            OPEN if shape == OPEN else shape
        )  # the one object that is asked for on each piece of data
        self._busy_until_s = now

    def arrival_s(self, size: int, now: float) -> float:
        """When so many bytes are at the other end, if they are sent now."""
        shape = self.shape
        left_s = now
        if shape.rate_bit_s:
            left_s = self._busy_until_s = max(now, self._busy_until_s) + size * 8 / shape.rate_bit_s
        late_s = shape.latency_s
        if shape.jitter_s:
            late_s += shape.jitter_s * self._rng.random()
        if shape.drop:
            late_s += self._resent_s(size)
        return left_s + late_s

    def _resent_s(self, size: int) -> float:
        """How long the retransmissions take. Segments of one piece that are lost together are sent again together."""
        segments = max(1, -(-size // SEGMENT_BYTES))
        lost = 1 - (1 - self.shape.drop) ** segments
        rto_s = max(RTO_MIN_S, 2 * self.shape.latency_s)
        total_s = 0.0
        while self._rng.random() < lost:
            total_s += rto_s
            rto_s = min(2 * rto_s, RTO_MAX_S)
            lost = self.shape.drop
        return total_s


class Lane:
    """`put` gives it bytes, `due` takes out what has come through; `next_s` is when to ask again, None where nothing is
    on its way or the wire is cut. `full` says that its sender should wait."""

    __slots__ = ("_held", "_last_s", "_size", "_wire")

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._held: deque[tuple[float, bytes]] = deque()
        self._size = 0
        self._last_s = 0.0

    @property
    def full(self) -> bool:
        return self._size >= HELD_BYTES

    @property
    def next_s(self) -> float | None:
        return self._held[0][0] if self._held and not self._wire.shape.cut else None

    def put(self, data: bytes, now: float) -> None:
        """`END` is the sender's last."""
        shape = self._wire.shape
        if len(data) > PIECE_BYTES and (shape.rate_bit_s or shape.drop):
            for start in range(0, len(data), PIECE_BYTES):
                self._put(data[start : start + PIECE_BYTES], now)
        else:
            self._put(data, now)

    def due(self, now: float) -> list[bytes]:
        """In order; `END` is the last one there will be."""
        if self._wire.shape.cut:
            return []
        found = []
        while self._held and self._held[0][0] <= now:
            _, data = self._held.popleft()
            self._size -= len(data)
            found.append(data)
        return found

    def reshaped(self, now: float) -> None:
        """The wire has another shape: what is held is sent anew."""
        held, self._held, self._size, self._last_s = self._held, deque(), 0, now
        for _, data in held:
            self.put(data, now)

    def validate(self) -> None:
        times = [at for at, _ in self._held]
        assert times == sorted(times), "in order"
        assert self._size == sum(len(data) for _, data in self._held)
        assert END not in [data for _, data in list(self._held)[:-1]], "nothing comes behind the end"

    def _put(self, data: bytes, now: float) -> None:
        self._last_s = max(self._last_s, self._wire.arrival_s(len(data), now))
        self._held.append((self._last_s, data))
        self._size += len(data)
