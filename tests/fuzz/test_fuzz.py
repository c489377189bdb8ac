"""Two seconds of what ``python -m tests.fuzz.server`` does for longer."""

from __future__ import annotations

import pytest

from tests.fuzz.server import CONNECTIONS, fuzz


@pytest.mark.slow
def test_a_member_stands_raw_bytes_and_other_clients_do_not_notice() -> None:
    outcome = fuzz(2.0, seed=7)
    assert outcome.failures == [], str(outcome)
    assert outcome.sent >= CONNECTIONS
    assert outcome.asked >= 4
