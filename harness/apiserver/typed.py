"""Objects of the types that their kinds have, as they go into the store: what a decode into Go's structs ensures.

Here objects are plain values. What is about to be stored is read once against the kind's type (a few microseconds), so
that caches and authorizers, which have typed views of their own, never meet another type; and where handling an object
failed, its type tells a client's mistake (400) from a fault of ours (500).
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from harness.apiserver.apierrors import bad_request
from harness.apiserver.schema.checked import check_of
from harness.apiserver.schema.decode import Decoded, decode_value
from harness.apiserver.strategies import Strategy
from harness.wire.status import StatusError

Object = dict[str, Any]
_encode = msgspec.json.Encoder().encode


class Told(Protocol):
    """Who wants to hear what decoding an object left out; may raise StatusError."""

    careful: bool

    def heard(self, decoded: Decoded, patched: Object) -> None: ...


class Types:
    """One resource's type."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def encoded(self, new: Object, status_only: bool, told: Told | None, typed: bool = False) -> bytes:
        """The bytes to store, without fields that the type does not have. `status_only`: the rest is as it was;
        `typed`: all of it is known to be of its type. Raises StatusError where a value is of another type."""
        strategy = self._strategy
        ordered = strategy.ordered(new)
        value = _encode(ordered)
        if typed:
            return value
        check = check_of(strategy.structure)
        if check.status_fits(value) if status_only else check.fits(value):
            return value
        decoded = self._decoded(ordered, told)
        return _encode(strategy.ordered(decoded.value)) if decoded.strict else value

    def known_at_the_top(self, new: Object, told: Told) -> Object:
        """A patched object without what would not even be encoded: unknown fields beside spec and in metadata."""
        fields = self._strategy.structure.fields
        if told.careful:
            return self._cleaned(new, told)
        if new.keys() <= fields.keys() and new["metadata"].keys() <= fields["metadata"].fields.keys():
            return new
        return self._cleaned(new, told)

    def _cleaned(self, new: Object, told: Told) -> Object:
        decoded: Object = self._decoded(new, told).value
        return decoded

    def explain(self, new: Object, error: Exception, told: Told | None = None) -> None:
        """Raises StatusError where an object of another type was the cause of `error`."""
        decoded = decode_value(new, self._strategy.structure)
        if decoded.fatal:
            raise self._refused(new, decoded, told) from error

    def _decoded(self, new: Object, told: Told | None) -> Decoded:
        decoded = decode_value(new, self._strategy.structure)
        if decoded.fatal:
            raise self._refused(new, decoded, told)
        if told is not None:
            told.heard(decoded, new)
        return decoded

    def _refused(self, new: Object, decoded: Decoded, told: Told | None) -> StatusError:
        if told is not None:
            told.heard(decoded, new)
        resource = self._strategy.resource
        kind, version = resource.kind, resource.version
        return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {decoded.fatal}')
