"""What is changed of Locust for the whole process."""

from __future__ import annotations

import pytest
from locust import argument_parser

from harness.load import hooks


def test_locusts_own_options_are_told_from_ours_by_one_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(argument_parser, "default_args_dict", lambda: made.append(1) or {"users": 1})
    hooks._spare_workers_parsers()
    assert [argument_parser.default_args_dict() for _ in range(120)] == [{"users": 1}] * 120
    assert made == [1]
