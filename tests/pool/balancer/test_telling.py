"""Connections behind a balancer, told when they change."""

from __future__ import annotations

from typing import Any

from harness.pool.balancer.telling import EVERY_S, KIND, Telling
from harness.wire.errors import ConfigError


def test_what_changes_is_told_and_asked_for_no_oftener_than_needed() -> None:
    now = 100.0
    asked: list[float] = []
    told: list[dict[str, Any]] = []
    answers = iter(
        [{"member-0": {"current": 1}}, {"member-0": {"current": 1}}, None, {"member-0": {"current": 2}}]
    )

    def ask() -> dict[str, dict[str, Any]]:
        asked.append(now)
        answer = next(answers)
        if answer is None:
            raise ConfigError("it does not answer")
        return answer  # type: ignore[return-value]

    telling = Telling(ask, told.append, lambda: now)
    for second in range(16):
        now = 100.0 + second
        telling.look()
    assert asked == [100.0 + EVERY_S * n for n in range(4)]
    assert told == [
        {"kind": KIND, "members": {"member-0": {"current": 1}}},
        {"kind": KIND, "members": {"member-0": {"current": 2}}},
    ]
