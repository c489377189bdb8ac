"""Servers that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.load.prometheus.server import RecordedPrometheus

Serve = Callable[..., RecordedPrometheus]


@pytest.fixture
def serve() -> Iterator[Serve]:
    started: list[RecordedPrometheus] = []

    def _serve(*args: Any, **keywords: Any) -> RecordedPrometheus:
        started.append(RecordedPrometheus(*args, **keywords))
        return started[-1]

    yield _serve
    for server in started:
        server.stop()
