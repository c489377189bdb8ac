"""What tests of sessions get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.load import session as sessions
from harness.load.workers import oversight
from tests.load.sessions import Clock, Makes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sessions, "time", clock)
    monkeypatch.setattr(oversight, "time", clock)
    return clock


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Makes]:
    makes = Makes(tmp_path)
    yield makes
    for session in makes.made:
        session.over = True
        session.finish()
