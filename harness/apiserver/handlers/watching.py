"""watch: opening the stream, shaping its events, holding the request until it ends (as/endpoints/handlers/watch.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from harness.apiserver.apierrors import unclassified
from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.watchers import Transform, Watcher, WatchOptions, WatchSink
from harness.apiserver.clock import Promise
from harness.apiserver.exchange import Exchange
from harness.apiserver.handlers.call import Call
from harness.apiserver.handlers.negotiate import AVAILABLE, JSON, View
from harness.apiserver.handlers.options import list_options
from harness.apiserver.handlers.reading import invalid_version
from harness.apiserver.handlers.shaping import tables_for
from harness.apiserver.views.partial import partial_object
from harness.wire.status import StatusError, not_acceptable
from harness.wire.watching import encode_event


class Watches(Protocol):
    """Whatever serves watches of a resource: its cacher, or the store's own watches."""

    def watch(self, options: WatchOptions, sink: WatchSink) -> Watcher: ...


class _Stream:
    """The sink of one watch: an exchange with a head. `ended` settles when the stream has finished."""

    __slots__ = ("_exchange", "_headers", "_initialized", "ended")

    def __init__(
        self, exchange: Exchange, headers: Mapping[str, str], initialized: Callable[[], object]
    ) -> None:
        self._exchange = exchange
        self._headers = headers
        self._initialized = initialized
        self.ended: Promise[None] = Promise()

    def opened(self) -> None:
        self._exchange.start(200, self._headers)

    def initialized(self) -> None:
        self._initialized()

    def write(self, data: bytes) -> None:
        self._exchange.write(data)

    def finish(self) -> None:
        self._exchange.finish()
        self.ended.resolve(None)

    @property
    def buffered(self) -> int:
        return self._exchange.buffered

    def on_drain(self, callback: Callable[[], None]) -> None:
        self._exchange.on_drain(callback)


def watch_options(call: Call, event_us: float | None = None) -> WatchOptions:
    """The watch that a request asks for, validated; `event_us` as in `WatchOptions`. Raises StatusError."""
    info = call.info
    options = list_options(info.query, call.resource, watch=True)
    version = options.resource_version
    if version and not (version.isascii() and version.isdecimal()):
        raise unclassified(invalid_version(version))
    return WatchOptions(
        namespace=info.namespace if call.resource.namespaced else "",
        name=info.parts[1] if len(info.parts) > 1 else "",
        labels=options.labels,
        fields=options.fields,
        resource_version=int(version) if version else None,
        send_initial_events=options.send_initial_events,
        allow_bookmarks=options.bookmarks,
        timeout_s=float(options.timeout_s) if options.timeout_s else None,
        transform=_transform(call),
        event_us=event_us,
    )


def _transform(call: Call) -> Transform | None:
    """How events are re-encoded; None where objects go out as they are."""
    representation = call.representation
    if representation.media_type != JSON:
        raise StatusError(not_acceptable(AVAILABLE))
    if representation.view is View.TABLE:
        tables = tables_for(call)

        def as_table(kind: str, obj: CachedObject) -> bytes:
            return encode_event(kind, tables.event(obj.body, str(obj.revision)))

        return as_table
    if representation.view in (View.PARTIAL, View.PARTIAL_LIST):
        version = representation.version
        return lambda kind, obj: encode_event(kind, partial_object(obj.body, version))
    return None


async def serve_watch(
    call: Call,
    watches: Watches,
    options: WatchOptions,
    headers: Mapping[str, str],
    initialized: Callable[[], object],
) -> None:
    """Open the watch and wait for its end; cancelled when the client goes. The source must be ready.

    `initialized` is called once the initial events are queued.
    """
    stream = _Stream(call.exchange, headers, initialized)
    watcher = watches.watch(options, stream)
    try:
        await stream.ended
    finally:
        watcher.stop()
