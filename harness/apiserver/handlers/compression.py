"""gzip of large answers, for clients that ask for it (as/endpoints/handlers/responsewriters/writers.go:146): bodies of
more than 128 KiB, at level 1. Watches are never compressed. client-go asks unless it is told not to."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from harness.apiserver.handlers.call import Answer

THRESHOLD_BYTES = 128 * 1024  # defaultGzipThresholdBytes
_LEVEL = 1
_GZIP_WINDOW = 31  # 16 for gzip's header and trailer, 15 for a window of 32 KiB


def is_wanted(answer: Answer, headers: Mapping[str, str]) -> bool:
    if len(answer.body) <= THRESHOLD_BYTES:
        return False
    accepted = headers.get("accept-encoding", "")
    return any(coding.strip() == "gzip" for coding in accepted.split(","))


def compress(answer: Answer) -> None:
    """Replace the body by its gzip; about 4 us for each KiB."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    answer.body = packer.compress(answer.body) + packer.flush()
    answer.headers = {**answer.headers, "content-encoding": "gzip", "vary": "Accept-Encoding"}
