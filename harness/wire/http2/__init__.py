"""HTTP/2 (RFC 9113) as bytes in, events out: one codec for the client's connections and the emulated apiserver's.

What belongs here: frames, header compression, flow control, stream states. What does not: sockets, TLS, time,
retries, URLs. PINGs that nobody answers and idle connections are the business of a shell that has a clock.

Theory of operation
-------------------
A `Connection` holds the state of one side (`Role`). Nothing is written or read by it:

- The shell gives what it read, in any split, to `feed()`, which returns events. `feed()` raises `ProtocolError` when
  the connection cannot go on (a connection error of RFC 9113 5.4.1); a GOAWAY is queued then, and the error's
  ``events`` holds what had been understood before. It raises nothing else, whatever the peer sends.
- A fault of one stream (5.4.2) does not end the connection: RST_STREAM is queued, the stream is forgotten and a
  `Reset` event with ``by_peer=False`` tells of it.
- All methods that send only queue. The shell writes `take_output()` after each call of `feed()` and after its own
  calls; queued frames are in the order in which they must be written, so there is one writer for a connection.

Stream identifiers are handed out by the client's `request()`. A stream exists from its HEADERS until both sides have
ended it or one has reset it; then it is forgotten at once. What comes for a forgotten stream is dropped (a peer may
not know yet that we gave up), and what is sent on one is dropped too, so a caller need not check before each call.

Flow control, outwards: `send_data()` takes any amount. What the stream's or the connection's window does not admit
waits on its stream (`unsent()`) and goes out as WINDOW_UPDATEs come, one frame a stream in turn; `Drained` says when
all of it has. Inwards: windows are given back in one WINDOW_UPDATE when half has been used; with
``manual_window=True`` only what the caller has acknowledged counts as used up.

Header names and values are bytes, names in lower case. Malformed requests and answers (8.1.1) are stream errors. A
request whose header list is too long is answered 431 by the codec itself, as golang.org/x/net/http2 does
(server.go, ``handleHeaderListTooLong``). Interim answers (1xx) are passed over; server push is refused.

Floods: frames that make us answer or work without any request or data between them, and streams that are reset
before they were answered, are counted against a budget (`limits.py`); beyond it the connection ends with
ENHANCE_YOUR_CALM.

Upstream behaviour mirrored: golang.org/x/net/http2 (transport.go, server.go) as in Kubernetes v1.36, and the SETTINGS
of a kube-apiserver v1.36.2.
"""

from harness.wire.http2.connection import Connection
from harness.wire.http2.errors import ErrorCode, ProtocolError
from harness.wire.http2.events import (
    Data,
    Drained,
    Event,
    GoAway,
    Headers,
    PingAck,
    Reset,
    SettingsReceived,
    Trailers,
)
from harness.wire.http2.settings import (
    GO_CLIENT_CONNECTION_WINDOW,
    GO_CLIENT_SETTINGS,
    KUBE_APISERVER_CONNECTION_WINDOW,
    KUBE_APISERVER_SETTINGS,
    Role,
    Settings,
)

__all__ = [
    "GO_CLIENT_CONNECTION_WINDOW",
    "GO_CLIENT_SETTINGS",
    "KUBE_APISERVER_CONNECTION_WINDOW",
    "KUBE_APISERVER_SETTINGS",
    "Connection",
    "Data",
    "Drained",
    "ErrorCode",
    "Event",
    "GoAway",
    "Headers",
    "PingAck",
    "ProtocolError",
    "Reset",
    "Role",
    "Settings",
    "SettingsReceived",
    "Trailers",
]
