"""The rows of a comparison, a module a group.

Belongs here: `row` (what a row is), `builders` (rows of one metric), `families` (rows that exist for what runs
contain), a module for each group of a report, `every` (all of them in their order). Does not belong here: reading a
record (`harness.compare.run`, `harness.compare.series`), medians and tests over samples (`harness.compare.comparison`,
`harness.compare.inference`).
"""

from harness.compare.rows.row import GROUPS, Row, Taken, busiest, peak, total

__all__ = ["GROUPS", "Row", "Taken", "busiest", "peak", "total"]
