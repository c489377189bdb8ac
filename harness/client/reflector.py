"""A reflector: keeps a store like one resource (or one object) of the server, as client-go's does.

Mirrors cg/tools/cache/reflector.go (Kubernetes v1.36). Theory of operation: ListAndWatch first asks for the state as
a stream (watch-list): ADDED events into a temporary store until the bookmark that ends them, then the store is
replaced and the same stream goes on as the watch. Where that fails for a reason that is neither overload nor an
expired revision, it LISTs instead and opens a watch at the list's resourceVersion (a *fallback*). A watch that ends
cleanly is opened again at once at the last resourceVersion. Anything else ends ListAndWatch, and every end of
ListAndWatch waits out the backoff before the next begins.

Who owns a reflector carries out its actions and consumes the `Changed` items among them; it routes events by
``event.key[0]``, the key prefix it gave.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntFlag
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from harness.client.backoff import REFLECTOR, Backoff
from harness.client.delivery import followed, revision_key
from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Closed,
    Disarm,
    Event,
    Failed,
    Fired,
    Key,
    Opened,
    Received,
    Sample,
    Seen,
    Send,
)
from harness.client.pager import PAGE_LIMIT, Pager
from harness.client.reflectorstates import (
    DELAYS,
    STREAMS,
    TRANSITIONS,
    InvalidTransition,
    Outcome,
    State,
)
from harness.client.requests import ResourceRef, list_, watch_
from harness.client.store import Changed, Decode, SingleStore, Store, decode_object_view, object_key
from harness.wire.draws import Draws
from harness.wire.objectviews import PROTOBUF, view_decoder
from harness.wire.request import Failure, TransportError
from harness.wire.status import StatusView, parse_status
from harness.wire.watching import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    ProtobufWatchDecoder,
    WatchDecoder,
    WatchError,
)

VERY_SHORT_S = 1.0
"""A watch that ends sooner, without an event, is an error (reflector.go: VeryShortWatchError)."""
_CHANGES = frozenset({ADDED, MODIFIED, DELETED})
_TAKEN_AS_CLEAN = frozenset({Failure.RESET, Failure.CLOSED, Failure.TIMEOUT})
"""What net.IsProbableEOF and net.IsTimeout know; a connection whose PING is not answered is neither."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Output: TypeAlias = Action | Changed


class ReflectorSpec(msgspec.Struct, frozen=True):
    """What reflectors of one kind have in common.

    `timeout_range_s` bounds timeoutSeconds, drawn for each watch: 300 to 600, 1800 to 3600 for a kubelet's secrets
    and configmaps. `generated_client` False leaves ``timeout=`` out (a kubelet's pods). `watch_list` False is a
    client older than v1.35. `client` names the rate limiter that LISTs pass. `decode` makes the view that is kept.
    One event in `follow_one_of` is `Seen`, 0 for none. `by_name`: each watches one object, which its selector names.
    """

    resource: ResourceRef
    label_selector: str = ""
    timeout_range_s: tuple[float, float] = (300.0, 600.0)
    decode: Decode = decode_object_view
    generated_client: bool = True
    watch_list: bool = True
    page_limit: int = PAGE_LIMIT
    client: str = "main"
    follow_one_of: int = 0
    by_name: bool = False


shared_spec = lru_cache(maxsize=256)(ReflectorSpec)
"""One spec for all reflectors made with the same arguments."""


class _BookmarkMeta(msgspec.Struct, gc=False, rename={"resource_version": "resourceVersion"}):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMeta = msgspec.field(default_factory=_BookmarkMeta)


_decode_bookmark = lru_cache(maxsize=256)(view_decoder(_Bookmark))
"""Watches of a process are sent the same bookmarks; what is shared of them is the resourceVersion, 54 bytes a watch."""


@lru_cache(maxsize=8192)
def _key(prefix: Hashable, part: str) -> Key:
    """One of a reflector's keys, the same object for kubelets whose pods are alike."""
    return (prefix, part)


class _Relist(IntFlag):
    """What a reflector remembers for its next list."""

    NOTHING = 0
    VERSION_UNAVAILABLE = 1
    """The server does not have the last resourceVersion."""
    PAGINATED = 2
    """There is no watch cache: lists come in pages."""


class Reflector:
    """One ListAndWatch loop and its store. See the module for how it works.

    `store` survives a stop; `synced` does not. `member` is the endpoint that serves the watch, "" while none does.
    A kubelet has 35 of these, so what most never need is made when they do.
    """

    __slots__ = (
        "_backoff",
        "_begun_at",
        "_framing",
        "_initial",
        "_pager",
        "_partial",
        "_relist",
        "_rng",
        "_selected",
        "_silent_since",
        "_spec",
        "key_prefix",
        "last_resource_version",
        "member",
        "namespace",
        "state",
        "store",
        "synced",
    )

    def __init__(
        self,
        key_prefix: Hashable,
        resource: ResourceRef,
        namespace: str | None,
        field_selector: str,
        label_selector: str,
        rng: Draws,
        *,
        timeout_range_s: tuple[float, float] = (300.0, 600.0),
        decode: Decode = decode_object_view,
        generated_client: bool = True,
        watch_list: bool = True,
        client: str = "main",
        follow_one_of: int = 0,
        store: Store | None = None,
        name: str = "",
    ) -> None:
        """`name`, instead of a `field_selector`: the one object that is watched."""
        self._spec = shared_spec(
            resource,
            label_selector,
            timeout_range_s,
            decode,
            generated_client,
            watch_list,
            PAGE_LIMIT,
            client,
            follow_one_of,
            bool(name),
        )
        self.key_prefix = key_prefix
        self.namespace = namespace
        self._selected = name or field_selector
        self._rng = rng
        self.store: Store | SingleStore = store if store is not None else SingleStore() if name else Store()
        self.state = State.IDLE
        self.synced = False
        self.last_resource_version = ""
        self.member = ""
        self._relist = _Relist.NOTHING
        self._backoff: Backoff | None = None
        self._framing: type[WatchDecoder | ProtobufWatchDecoder] | None = None  # None: no stream is open
        self._partial: WatchDecoder | ProtobufWatchDecoder | None = None  # has an event that is not whole yet
        self._initial: dict[str, Any] | None = None
        self._pager: Pager | None = None
        self._begun_at = 0.0
        self._silent_since: float | None = None  # when the stream began; None once an event has come

    def __repr__(self) -> str:
        return (
            f"Reflector({self.key_prefix!r}, {self._spec.resource}, {self.state.value}, synced={self.synced}, "
            f"objects={len(self.store)}, resourceVersion={self.last_resource_version!r})"
        )

    @property
    def spec(self) -> ReflectorSpec:
        return self._spec

    @property
    def field_selector(self) -> str:
        return f"metadata.name={self._selected}" if self._spec.by_name else self._selected

    @property
    def _stream_open(self) -> bool:
        return self._framing is not None

    # ---- the machine -------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Output]:
        """Begin, or begin again after `stop` (at the last resourceVersion, as client-go's reflector does)."""
        out: list[Output] = []
        self._begin(now, out)
        return out

    def stop(self, now: float) -> list[Output]:
        """End; the store keeps what it has. `start` may follow."""
        out: list[Output] = []
        if self.state is State.LISTING:
            out.append(Cancel(self._key("list")))
        elif self.state in DELAYS:
            out.append(Disarm(self._key("backoff")))
        self._leave_stream(out)
        self._pager = None
        self.state = State.STOPPED
        self.synced = False
        return out

    def handle(self, event: Event, now: float) -> list[Output]:
        """Take one event of this reflector's keys; what is not of the present state (a late timer) is ignored."""
        if isinstance(event, Received):
            return self._received(event.data, now) if self._framing is not None else []
        out: list[Output] = []
        if isinstance(event, Fired):
            if self.state is State.BACKOFF:
                self._begin(now, out)
            elif self.state in DELAYS:
                self._move(Outcome.DUE, now, out)
        elif isinstance(event, Opened):
            self.member = event.member
            if self._stream_open and event.content_type.startswith(PROTOBUF):
                self._framing = ProtobufWatchDecoder
        elif isinstance(event, Closed):
            if self._stream_open:
                self._closed(event.error, now, out)
        elif isinstance(event, Answered):
            self._answered(event, now, out)
        elif isinstance(event, Failed):
            self._failed(event.error, now, out)
        return out

    def validate(self) -> None:
        """Check what must hold between two events."""
        assert (self._initial is not None) == (self.state is State.WATCH_LISTING), self
        assert (self._pager is not None) == (self.state is State.LISTING), self
        assert self._stream_open == (self.state in STREAMS), self
        assert self.synced or self.state is not State.WATCHING, self

    # ---- transitions -------------------------------------------------------------------------------------------
    def _begin(self, now: float, out: list[Output]) -> None:
        self._begun_at = now
        self._move(Outcome.BEGIN if self._spec.watch_list else Outcome.BEGIN_WITH_LIST, now, out)

    def _move(self, outcome: Outcome, now: float, out: list[Output], cause: str = "") -> None:
        """Go where the table says, and do what entering that state means."""
        before = self.state
        state = TRANSITIONS.get((before, outcome))
        if state is None:
            raise InvalidTransition(f"{outcome.name} in {self!r}")
        self.state = state
        if outcome is Outcome.EXPIRED:
            labels = (("resource", str(self._spec.resource)), ("cause", cause))
            out.append(Sample("reflector_expired", 1.0, labels))
        if outcome is Outcome.SYNCED:  # the stream goes on
            self._silent_since = now
            return
        self._leave_stream(out)
        if state is State.WATCH_LISTING:
            if outcome is Outcome.EXPIRED:
                self._relist |= _Relist.VERSION_UNAVAILABLE
            self._initial = {}
            self._open_stream(now, out, self._rewatch_version(), watch_list=True)
        elif state is State.WATCHING:
            self._open_stream(now, out, self.last_resource_version)
        elif state is State.LISTING:
            if before is State.WATCH_LISTING:
                labels = (("resource", str(self._spec.resource)), ("cause", cause))
                out.append(Sample("reflector_fallbacks", 1.0, labels))
            self._send_list(out)
        else:
            if self._backoff is None:  # most never need one
                self._backoff = Backoff(REFLECTOR, self._begun_at)
            self._pager = None
            out.append(Arm(self._key("backoff"), now + self._backoff.next_s(now, self._rng)))

    def _key(self, part: str) -> Key:
        return _key(self.key_prefix, part)

    # ---- streams -----------------------------------------------------------------------------------------------
    def _open_stream(
        self, now: float, out: list[Output], resource_version: str, *, watch_list: bool = False
    ) -> None:
        spec = self._spec
        low, high = spec.timeout_range_s
        request = watch_(
            spec.resource,
            self.namespace,
            field_selector=self.field_selector,
            label_selector=spec.label_selector,
            resource_version=resource_version,
            watch_list=watch_list,
            timeout_seconds=int(low + self._rng.random() * (high - low)),
            generated_client=spec.generated_client,
            client=spec.client,
        )
        self._framing = WatchDecoder
        self._silent_since = now
        out.append(Send(self._key("watch"), request))

    def _leave_stream(self, out: list[Output]) -> None:
        if self._stream_open:
            out.append(Cancel(self._key("watch")))
        self._drop_stream()
        self._initial = None

    def _drop_stream(self) -> None:
        """The stream has ended by itself."""
        self._framing = self._partial = None
        self.member = ""

    def _received(self, data: bytes, now: float) -> list[Output]:
        out: list[Output] = []
        assert self._framing is not None
        decoder = self._partial or self._framing()
        try:
            events = decoder.feed(data)
            self._partial = decoder if decoder.pending_bytes else None
            for kind, raw in events:
                if kind is ERROR:
                    status = parse_status(raw)
                    self._move(_outcome(status), now, out, _cause(status))
                    break
                self._silent_since = None
                if kind in _CHANGES:
                    self._take(kind, raw, out)
                elif kind is BOOKMARK:
                    self._bookmark(raw, now, out)
        except (WatchError, msgspec.DecodeError, UnicodeDecodeError):
            self._move(Outcome.FAILED, now, out, "undecodable")
        return out

    def _take(self, kind: str, raw: bytes, out: list[Output]) -> None:
        """One ADDED, MODIFIED or DELETED."""
        obj = self._spec.decode(raw)
        if self._initial is not None:
            if kind is DELETED:
                self._initial.pop(object_key(obj), None)
            else:
                self._initial[object_key(obj)] = obj
            return
        changed = self.store.apply(self.key_prefix, kind is DELETED, obj)
        if changed is not None:
            out.append(changed)
        self.last_resource_version = version = obj.metadata.resource_version
        if self._spec.follow_one_of and followed(version, self._spec.follow_one_of):
            resource = self._spec.resource.resource
            labels = (("member", self.member), ("resource", resource))
            out.append(Seen(revision_key(resource, version), "watch_delivery_ms", labels))

    def _bookmark(self, raw: bytes, now: float, out: list[Output]) -> None:
        metadata = _decode_bookmark(raw).metadata
        if self._initial is None:
            self.last_resource_version = metadata.resource_version
        elif metadata.annotations and metadata.annotations.get(INITIAL_EVENTS_END) == "true":
            initial, self._initial = self._initial, None
            self._replace(initial, metadata.resource_version, "watch-list", now, out)
            self._move(Outcome.SYNCED, now, out)

    def _closed(self, error: TransportError | None, now: float, out: list[Output]) -> None:
        """The stream ended: cleanly, by a connection that broke or timed out (which client-go takes as clean:
        am/watch/streamwatcher.go, ``receive``), or otherwise."""
        self._drop_stream()
        if error is None or error.failure in _TAKEN_AS_CLEAN:
            self._ended(now, out)
        else:
            self._move(Outcome.FAILED, now, out, error.failure.name.lower())

    def _ended(self, now: float, out: list[Output]) -> None:
        if self._silent_since is not None and now - self._silent_since < VERY_SHORT_S:
            self._move(Outcome.VERY_SHORT, now, out, "very short")
            return
        if self._initial is not None:  # a server that never says that the initial events are over shows here
            labels = (("resource", str(self._spec.resource)),)
            out.append(Sample("reflector_unfinished_watch_lists", 1.0, labels))
        self._move(Outcome.ENDED, now, out)

    # ---- answers -----------------------------------------------------------------------------------------------
    def _answered(self, event: Answered, now: float, out: list[Output]) -> None:
        response = event.response
        if self._stream_open and event.key[1] == "watch":
            self._drop_stream()
            status = parse_status(response.body, response.status)
            self._move(_outcome(status), now, out, _cause(status))
        elif self.state is State.LISTING and event.key[1] == "list":
            if response.ok:
                self._listed(response.body, now, out)
            else:
                self._list_refused(parse_status(response.body, response.status), now, out)

    def _failed(self, error: TransportError, now: float, out: list[Output]) -> None:
        if self.state is State.LISTING:
            self._move(Outcome.FAILED, now, out)
        elif self._stream_open:
            self._drop_stream()
            if error.failure is Failure.REFUSED:
                self._move(Outcome.BUSY, now, out)
            elif error.failure in _TAKEN_AS_CLEAN:  # an empty watch (cg/rest/request.go: Watch)
                self._ended(now, out)
            else:
                self._move(Outcome.FAILED, now, out, error.failure.name.lower())

    # ---- lists -------------------------------------------------------------------------------------------------
    def _send_list(self, out: list[Output]) -> None:
        pager = self._pager
        if pager is None:
            version = self._relist_version()
            # Without limit a list at a known resourceVersion comes from the watch cache (reflector.go:664-682).
            whole = version not in ("", "0") and not self._relist & _Relist.PAGINATED
            pager = self._pager = Pager(version, 0 if whole else self._spec.page_limit)
        request = list_(
            self._spec.resource,
            self.namespace,
            field_selector=self.field_selector,
            label_selector=self._spec.label_selector,
            resource_version=pager.resource_version,
            limit=pager.limit,
            continue_token=pager.continue_token,
            client=self._spec.client,
        )
        out.append(Send(self._key("list"), request))

    def _listed(self, body: bytes, now: float, out: list[Output]) -> None:
        pager = self._pager
        assert pager is not None
        try:
            last = pager.page(body, self._spec.decode)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._move(Outcome.FAILED, now, out)
            return
        if not last:
            self._move(Outcome.MORE, now, out)
            return
        self._pager = None
        if pager.from_any_version and pager.paginated:
            self._relist |= _Relist.PAGINATED  # no watch cache here: page from now on
        self._replace(pager.objects, pager.result_version, "list", now, out)
        self._move(Outcome.LISTED, now, out)

    def _list_refused(self, status: StatusView, now: float, out: list[Output]) -> None:
        pager = self._pager
        assert pager is not None
        if status.expired and pager.expired():
            self._move(Outcome.MORE, now, out)
        elif (status.expired or status.too_large) and not pager.second:
            self._relist |= _Relist.VERSION_UNAVAILABLE
            pager.again(self._relist_version())
            self._move(Outcome.MORE, now, out)
        else:
            self._move(Outcome.FAILED, now, out)

    # ---- resource versions -------------------------------------------------------------------------------------
    def _replace(
        self, objects: dict[str, Any], version: str, how: str, now: float, out: list[Output]
    ) -> None:
        self.last_resource_version = version
        self._relist &= ~_Relist.VERSION_UNAVAILABLE
        self.synced = True
        labels = (("resource", str(self._spec.resource)), ("how", how))
        out.append(Sample("reflector_sync_ms", (now - self._begun_at) * 1000.0, labels))
        out.extend(self.store.replace(self.key_prefix, objects))

    def _relist_version(self) -> str:
        """ "" reads from etcd, "0" takes whatever the watch cache has (relistResourceVersion)."""
        if self._relist & _Relist.VERSION_UNAVAILABLE:
            return ""
        return self.last_resource_version or "0"

    def _rewatch_version(self) -> str:
        return "" if self._relist & _Relist.VERSION_UNAVAILABLE else self.last_resource_version


def _outcome(status: StatusView) -> Outcome:
    """What an error Status means, as an answer or as an ERROR event."""
    if status.too_many_requests:
        return Outcome.BUSY
    return Outcome.EXPIRED if status.expired or status.too_large else Outcome.FAILED


def _cause(status: StatusView) -> str:
    """A bounded label."""
    return str(status.code or status.reason or "unknown")
