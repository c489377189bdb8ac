"""What tests of the scraper share."""

from __future__ import annotations

import pytest

from tests.conftest import HANG_S


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are waited for, however slow this machine is."""
    monkeypatch.setattr("harness.observe.scraper.ANSWER_WITHIN_S", HANG_S)
