"""Whether clients and members counted the same requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.rows.clients import client_rows
from tests.compare.planted import Planted

_TOTAL = "apiserver_request_total"


def share(planted: Planted) -> float | None:
    run = planted.run()
    (row,) = [row for row in client_rows([run]) if row.key == "counted-share"]
    return row.value(run)


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    planted = Planted(tmp_path / "run")
    planted.series("m0", f'{_TOTAL}{{verb="GET",resource="pods",code="200"}}', {-10: 0, 20: 60})
    planted.series("m1", f'{_TOTAL}{{verb="POST",resource="pods",code="201"}}', {-10: 0, 20: 40})
    planted.series("m0", f'{_TOTAL}{{verb="WATCH",resource="pods",code="200"}}', {-10: 0, 20: 500})
    planted.series("m0", f'{_TOTAL}{{verb="GET",resource="",subresource="/metrics"}}', {-10: 0, 20: 9})
    planted.request("kubelet", "get", "pods", 200, 60).request("kubelet", "watchlist", "pods", 200, 500)
    return planted


def test_the_same_where_every_answer_arrived(planted: Planted) -> None:
    assert share(planted.request("kubelet", "create", "pods", 201, 40)) == 1.0


def test_less_where_answers_were_not_heard(planted: Planted) -> None:
    assert share(planted.request("kubelet", "create", "pods", 0, 40)) == 0.6


def test_unknown_where_members_do_not_tell(tmp_path: Path) -> None:
    assert share(Planted(tmp_path / "run").request("kubelet", "get", "pods", 200, 1)) is None
