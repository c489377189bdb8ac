"""The charts of a report: which there are, their points, their Vega-Lite.

Belongs here: turning series and histograms into lines that several samples of several arms share. Does not belong here:
how a figure is taken (`harness.compare`), where a chart stands on a page (`harness.report.view`).
"""

from __future__ import annotations

from harness.compare.comparison import Comparison
from harness.report.charts.chart import Chart
from harness.report.charts.distributions import distribution_charts
from harness.report.charts.dots import dot_charts
from harness.report.charts.members import member_charts
from harness.report.charts.timeseries import time_charts

__all__ = ["Chart", "charts"]


def charts(comparison: Comparison) -> list[Chart]:
    """All charts of a comparison that say something, those of one group in this order."""
    return [
        *dot_charts(comparison),
        *time_charts(comparison),
        *member_charts(comparison),
        *distribution_charts(comparison),
    ]
