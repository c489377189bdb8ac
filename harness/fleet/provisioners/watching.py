"""The direct way to learn of a claim's fate: one watch of the claim, and for its failures and for its successes a LIST
and a watch of events each (es/lib/controller/controller.go, watchProvisioning, watchPVC, getPVCEventWatch).

Events pass no cache, so that each LIST reads those of the namespace in etcd. Watches carry no timeout, which leaves
their end to the server. Once one has ended nothing is learned any more: upstream stops the others with it and reads on
from a closed channel. So ends the watch of a claim that has waited long, whose resourceVersion the server no longer
remembers: an ERROR event holds a Status, not a claim, and is passed over. Its worker then stays until its term as a
leader is over, and as a loser longer than that.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from harness.client.requests import EVENTS, PERSISTENTVOLUMECLAIMS, list_, watch_
from harness.fleet.controllers.api import ApiError
from harness.fleet.controllers.views import Object
from harness.fleet.provisioners.rules import asks
from harness.fleet.provisioners.threads import Open, Routine, Stream, Threads
from harness.wire.objectviews import decode_list
from harness.wire.request import Response
from harness.wire.watching import ADDED, DELETED, ERROR, MODIFIED

_REASONS = (("Warning", "ProvisioningFailed"), ("Normal", "ProvisioningSucceeded"))


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""


class _Event(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    reason: str = ""


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_claim = msgspec.json.Decoder(Object).decode


class ClaimWatch:
    """Of one claim. `report` hears True when it needs no provisioning any more, False when somebody failed to."""

    def __init__(self, threads: Threads, claim: Object, driver: str, report: Callable[[bool], None]) -> None:
        self._threads = threads
        self._claim = claim
        self._driver = driver
        self._report = report
        self._streams: list[Stream] = []
        self._deaf = False

    def open(self) -> Routine[None]:
        """Raises ApiError where one of the requests is refused; nothing stays open then."""
        metadata = self._claim["metadata"]
        try:
            request = watch_(
                PERSISTENTVOLUMECLAIMS,
                field_selector=f"metadata.name={metadata['name']}",
                resource_version=metadata["resourceVersion"],
                bookmarks=False,
            )
            self._streams.append((yield from _opened(Open(request, self._claim_event, self._closed))))
            for kind, reason in _REASONS:
                yield from self._watch_events(kind, reason)
            if self._deaf:
                self.close()
        except ApiError:
            self.close()
            raise

    def close(self) -> None:
        """End all of them."""
        for stream in self._streams:
            self._threads.close(stream)
        self._streams.clear()

    def _closed(self) -> None:
        self._deaf = True
        self.close()

    def _watch_events(self, kind: str, reason: str) -> Routine[None]:
        metadata = self._claim["metadata"]
        namespace = metadata["namespace"]
        selector = (
            f"involvedObject.name={metadata['name']},involvedObject.namespace={namespace},"
            f"involvedObject.kind=PersistentVolumeClaim,involvedObject.uid={metadata['uid']},"
            f"type={kind},reason={reason}"
        )
        answer = yield list_(EVENTS, namespace, field_selector=selector)
        if not isinstance(answer, Response) or not answer.ok:
            raise ApiError(answer)
        request = watch_(
            EVENTS,
            namespace,
            field_selector=selector,
            resource_version=_last_version(answer),
            bookmarks=False,
        )
        self._streams.append((yield from _opened(Open(request, self._event, self._closed))))

    def _claim_event(self, kind: str, raw: bytes) -> None:
        if kind in (ADDED, MODIFIED):
            if not asks(_decode_claim(raw), self._driver):
                self._report(True)
        elif kind == DELETED:
            self._report(True)

    def _event(self, kind: str, raw: bytes) -> None:
        if kind != ERROR:
            self._report(_decode_event(raw).reason == "ProvisioningSucceeded")


def _opened(watch: Open) -> Routine[Stream]:
    answer = yield watch
    if isinstance(answer, Stream):
        return answer
    raise ApiError(answer)


def _last_version(answer: Response) -> str:
    """The last item's, "" without items. Raises ApiError for what is no list."""
    try:
        _, items = decode_list(answer.body)
        return _decode_event(items[-1]).metadata.resource_version if items else ""
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(answer) from error
