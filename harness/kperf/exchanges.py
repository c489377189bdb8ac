"""One request of a profile under way, from its being sent to its end: retries, and the streams of watch lists.

Retries are client-go's (cg/rest/with_retry.go) as kperf gets them: an answer 429 or 5xx with a Retry-After is asked for
again, after that wait, up to maxRetries times; a broken connection fails the request, but for a watch.
"""

from __future__ import annotations

import msgspec

from harness.client.machine import Answered, Failed
from harness.client.reflector import INITIAL_EVENTS_END
from harness.client.rest import retry_wait_s
from harness.kperf.building import Call
from harness.kperf.failures import NO_BOOKMARK, RequestFailure, of_event
from harness.wire.objectviews import PROTOBUF, view_decoder
from harness.wire.watching import BOOKMARK, ERROR, ProtobufWatchDecoder, WatchDecoder, WatchError


class Exchange:
    """`due` and `sent` are times of the machine's clock; `client` is whose turn it is; `member` is who answers."""

    __slots__ = ("call", "client", "decoder", "due", "member", "received_bytes", "retries", "sent")

    def __init__(self, call: Call, client: int, due: float, sent: float) -> None:
        self.call = call
        self.client = client
        self.due = due
        self.sent = sent
        self.retries = 0
        self.member = ""
        self.received_bytes = 0
        self.decoder: WatchDecoder | ProtobufWatchDecoder | None = None

    def retry_after_s(self, event: Answered | Failed, max_retries: int) -> float | None:
        """Seconds after which it is sent again; None where it has ended."""
        if self.retries >= max_retries or (isinstance(event, Failed) and not self.call.request.is_stream):
            return None
        wait_s = retry_wait_s(event, self.call.request)
        if wait_s is not None:
            self.retries += 1
        return wait_s

    def opened(self, member: str, content_type: str) -> None:
        """A watch was answered 200."""
        self.member = member
        self.decoder = ProtobufWatchDecoder() if content_type.startswith(PROTOBUF) else WatchDecoder()

    def received(self, data: bytes) -> tuple[bool, RequestFailure | None]:
        """Whether the stream has come to its end, which is that of the initial events, and what failed."""
        assert self.decoder is not None
        try:
            for kind, body in self.decoder.feed(data):
                if kind == ERROR:
                    return True, of_event(body)
                if kind == BOOKMARK and _ends_initial_events(body):
                    return True, None
        except WatchError as error:
            return True, RequestFailure("unknown", message=str(error).partition(":")[0])
        return False, None


def closed_early() -> RequestFailure:
    """A watch ended before its initial events did."""
    return RequestFailure("unknown", message=NO_BOOKMARK)


class _Metadata(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct):
    metadata: _Metadata = _Metadata()


_decode_bookmark = view_decoder(_Bookmark)


def _ends_initial_events(body: bytes) -> bool:
    try:
        annotations = _decode_bookmark(body).metadata.annotations
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return annotations.get(INITIAL_EVENTS_END) == "true"
