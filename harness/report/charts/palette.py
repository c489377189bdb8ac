"""Colours, dashes and marks of arms, and the two schemes of a page.

The colours are Okabe and Ito's (Color Universal Design, 2008), which people with any common colour blindness tell
apart; on dark ground the lighter of them. Beside its colour each arm has dashes and a mark of its own, for print.
"""

from __future__ import annotations

from typing import Any

LIGHT_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a37200", "#56b4e9", "#5b5b5b")
DARK_COLOURS = ("#56b4e9", "#e69f00", "#2fc79b", "#cc79a7", "#f0e442", "#e3743c", "#c8c8c8")
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [12, 4], [1, 3])
MARKS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
FONT = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif'


def scheme(*, dark: bool, background: str | None = None) -> dict[str, Any]:
    """Vega-Lite's config. `background` None lets the page's own show."""
    ink, soft, line = ("#e6e9ec", "#a7b0b9", "#39424b") if dark else ("#1d2329", "#56616c", "#dde2e7")
    text = {"labelColor": soft, "titleColor": soft, "labelFontSize": 11, "titleFontSize": 11}
    return {
        "background": background,
        "font": FONT,
        "range": {"category": list(DARK_COLOURS if dark else LIGHT_COLOURS)},
        "axis": {
            **text,
            "titleFontWeight": "normal",
            "gridColor": line,
            "domainColor": line,
            "tickColor": line,
            "labelOverlap": True,
        },
        "axisY": {"minExtent": 34, "titlePadding": 8},
        "header": {"labelColor": ink, "labelFontSize": 11, "labelPadding": 4},
        "legend": {**text, "orient": "top", "symbolSize": 500, "symbolStrokeWidth": 2.5, "labelLimit": 260},
        "title": {"color": ink, "fontSize": 13, "anchor": "start"},
        "rule": {"color": soft},
        "text": {"color": ink, "fontSize": 11},
        "view": {"stroke": None},
    }
