"""Our tabs in Locust's web UI, asked as a browser asks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from locust.env import Environment

from harness.load.live.exposition import registry_of
from harness.load.live.tab import add_tabs, tables
from harness.load.live.view import View
from harness.observe.histogram import bucket_of


@pytest.fixture
def view() -> View:
    view = View({"name": "r1"})
    view.members.expect(["member-0", "member-1"])
    for t, requests in ((10.0, 100.0), (15.0, 6100.0)):
        members = {"member-0": {"watches": 1234, "requests": requests, "rejects": 0, "revision": requests}}
        view.scraped({"kind": "scraped", "t": t, "members": members | {"member-1": None}})
    rows = [
        (1.0, "kubelet", verb, "secrets", 200, "member-0", bucket_of(1e4), n)
        for verb, n in (("list", 1), ("watchlist", 7))
    ]
    view.counted({"requests": rows, "samples": [], "counts": {}})
    view.steps.happened("scenario-started", {"steps": ["create", "wait"]}, 10.0)
    view.steps.happened("progress", {"step": "wait", "what": "pods", "done": 3, "total": 9}, 12.0)
    return view


def data(view: View, key: str) -> list[dict[str, Any]]:
    return next(table["data"] for table in tables(view, 14.5) if table["key"] == key)


def test_a_row_for_each_member_and_one_for_all(view: View) -> None:
    rows = data(view, "control-plane")
    assert [row["name"] for row in rows] == ["member-0", "member-1", "all"]
    assert rows[0] == {
        "name": "member-0",
        "state": "yes",
        "watches": "1,234",
        "requests": "1,200.0",
        "sent": "8",
        "denials": "0",
        "fallback": "12.5%",
        "rejects": "0",
        "revisions": "–",
        "seconds": "–",
    }
    assert (rows[1]["state"], rows[1]["watches"]) == ("no", "–")


def test_what_goes_on_and_what_is_left_of_it(view: View) -> None:
    assert data(view, "scenario") == [
        {
            "name": "2 of 2: wait",
            "what": "pods",
            "state": "goes on",
            "done": "3",
            "left": "6",
            "total": "9",
            "seconds": "2.5",
        }
    ]


def test_locusts_ui_shows_them_and_serves_metrics(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["locust"])  # which its page is made from
    environment = Environment(user_classes=[])
    environment.create_local_runner()
    environment.parsed_options = SimpleNamespace(  # what Locust's page asks of its command line
        num_users=1, spawn_rate=1, run_time=None, stats_history_enabled=False
    )
    web_ui = environment.create_web_ui("127.0.0.1", 0, delayed_start=True)
    add_tabs(web_ui, view, registry_of(view, lambda: 1, lambda: 0), lambda: 14.5)
    browser = web_ui.app.test_client()
    page = browser.get("/").get_data(as_text=True)
    assert "Control plane" in page
    assert "extended_tables" in page
    answer = browser.get("/stats/requests").get_json()
    assert {table["key"] for table in answer["extended_stats"]} == {"control-plane", "scenario"}
    assert answer["stats"]  # Locust's own are still there
    assert b"swarmlet_scenario_objects_done" in browser.get("/metrics").data
    assert "extended_stats" not in browser.get("/stats/failures/csv").get_data(as_text=True)
    environment.runner.quit()
