"""The tabs of ours in Locust's web UI: the members, and what the scenario does.

The UI is Locust's own, which draws a table for each tab that `template_args` names and fills it with what stands beside
its statistics in each answer of /stats/requests (examples/extend_web_ui.py of Locust); nothing of it is patched.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from flask import Response, request  # Locust's
from prometheus_client import CollectorRegistry

from harness.load.live.exposition import CONTENT_TYPE, render
from harness.load.live.members import MemberFigures
from harness.load.live.steps import Piece
from harness.load.live.view import View

MEMBERS, SCENARIO = "control-plane", "scenario"
_STATISTICS = "/stats/requests"
_UNKNOWN = "–"

_TABLES = {
    MEMBERS: (
        "Control plane",
        {
            "name": "Member",
            "state": "Answers",
            "watches": "Watches",
            "requests": "Requests/s",
            "sent": "Answered to the fleet",
            "denials": "403s by the node authorizer",
            "fallback": "Fallback rate",
            "rejects": "Rejects",
            "revisions": "Cache behind, revisions",
            "seconds": "Cache behind, s",
        },
    ),
    SCENARIO: (
        "Scenario",
        {
            "name": "Step",
            "what": "Objects",
            "state": "State",
            "done": "Done",
            "left": "Left",
            "total": "Of",
            "seconds": "Seconds",
        },
    ),
}


def add_tabs(
    web_ui: Any, view: View, registry: CollectorRegistry, now: Callable[[], float] = time.time
) -> None:
    """Add ours to Locust's web UI, before it answers anyone; and /metrics, behind its login if it has one."""
    web_ui.template_args["extended_tabs"] = [
        {"key": key, "title": title} for key, (title, _) in _TABLES.items()
    ]
    web_ui.template_args["extended_tables"] = [
        {"key": key, "structure": [{"key": name, "title": text} for name, text in columns.items()]}
        for key, (_, columns) in _TABLES.items()
    ]

    def with_ours(response: Response) -> Response:
        if request.path.endswith(_STATISTICS) and response.status_code == 200 and response.is_json:
            answer = response.get_json()
            answer["extended_stats"] = tables(view, now())
            response.set_data(json.dumps(answer))
        return response

    def metrics() -> Response:
        return Response(render(registry), content_type=CONTENT_TYPE)

    web_ui.app.after_request(with_ours)
    web_ui.app.add_url_rule("/metrics", "swarmlet_metrics", web_ui.auth_required_if_enabled(metrics))


def tables(view: View, now: float) -> list[dict[str, Any]]:
    """What fills them, at `now` in seconds since 1970: for each tab its `key` and `data`, rows by column."""
    members = view.members.figures()
    shown = [*members, view.members.whole()] if len(members) > 1 else members
    return [
        {"key": MEMBERS, "data": list(map(_member, shown))},
        {"key": SCENARIO, "data": [_piece(piece, view, now) for piece in view.steps.pieces()]},
    ]


def _member(figures: MemberFigures) -> dict[str, str]:
    return {
        "name": figures.member,
        "state": _UNKNOWN if figures.up is None else "yes" if figures.up else "no",
        "watches": _number(figures.watches),
        "requests": _number(figures.requests_per_s, 1),
        "sent": _number(figures.sent),
        "denials": _number(figures.denials),
        "fallback": _UNKNOWN if figures.fallback is None else f"{figures.fallback:.1%}",
        "rejects": _number(figures.rejects),
        "revisions": _number(figures.behind_revisions),
        "seconds": _number(figures.behind_s, 1),
    }


def _piece(piece: Piece, view: View, now: float) -> dict[str, str]:
    steps = view.steps
    number = steps.names.index(piece.step) + 1 if piece.step in steps.names else 0
    of = str(len(steps.names))
    return {  # Locust's page sorts by the text of `name`
        "name": f"{number:>{len(of)}} of {of}: {piece.step}" if number else piece.step,
        "what": piece.what,
        "state": "goes on" if piece.ended_t is None else "ended",
        "done": _number(piece.done),
        "left": _number(piece.left),
        "total": _number(piece.total),
        "seconds": _number(piece.seconds(now), 1),
    }


def _number(value: float | None, digits: int = 0) -> str:
    return _UNKNOWN if value is None else f"{value:,.{digits}f}"
