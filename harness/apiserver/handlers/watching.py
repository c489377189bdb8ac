"""watch: opening the stream, shaping its events, holding the request until it ends (as/endpoints/handlers/watch.go)."""

from __future__ import annotations

from harness.apiserver.apierrors import unclassified
from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.watchers import Transform, WatchOptions
from harness.apiserver.conversion import shown
from harness.apiserver.handlers.call import Call
from harness.apiserver.handlers.negotiate import AVAILABLE, JSON, PROTOBUF, View
from harness.apiserver.handlers.options import list_options
from harness.apiserver.handlers.reading import invalid_version, is_version
from harness.apiserver.handlers.shaping import tables_for
from harness.apiserver.views import protobuf
from harness.apiserver.views.partial import partial_object
from harness.wire.status import StatusError, not_acceptable
from harness.wire.watching import encode_event


def watch_options(call: Call, event_us: float | None = None) -> WatchOptions:
    """The watch that a request asks for, validated; `event_us` as in `WatchOptions`. Raises StatusError."""
    info = call.info
    options = list_options(info.query, call.resource, watch=True)
    version = options.resource_version
    if version and not is_version(version):
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
        error=protobuf.error_event if call.representation.media_type == PROTOBUF else None,
    )


def _transform(call: Call) -> Transform | None:
    """How events are re-encoded; None where objects go out as they are."""
    representation = call.representation
    if representation.media_type == PROTOBUF:
        if representation.view is not View.OBJECT:
            return protobuf.partial_events(representation.version)
        return protobuf.object_events(call.resource)
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
    if call.resource.hub is not None:
        return lambda kind, obj: encode_event(kind, shown(call.resource, obj.body))
    return None
