"""How much useless work a peer may cause before the connection ends. There is no clock here, so these are counts."""

from __future__ import annotations

MAX_IDLE_FRAMES = 10_000
"""Frames in a row that carry neither a request nor data in either direction (PING, SETTINGS, PRIORITY, empty DATA,
frames of forgotten streams). As golang.org/x/net/http2 server.go ``maxQueuedControlFrames``."""

MAX_UNANSWERED_RESETS = 1_000
"""Streams that the peer reset before we answered, less those that we did answer (CVE-2023-44487, rapid reset). A
client with 100 streams that cancels on a time limit of seconds stays far below it."""

MAX_CONTINUATIONS = 1_000
"""CONTINUATION frames of one header block; the block's length is bounded by the header-list limit besides."""

MAX_WINDOW = 2**31 - 1
MAX_STREAM_ID = 2**31 - 1
