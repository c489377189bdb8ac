"""docs/report.md lists the rows that there are."""

from __future__ import annotations

from harness.compare.rows.row import GROUPS
from harness.compare.rows.table import BEGIN, DOCUMENT, END, written


def test_the_document_is_in_step_with_the_code() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert written(document) == document, "run: python -m harness.compare.rows.table"


def test_every_group_that_all_comparisons_have_is_in_it() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert [group for group in GROUPS if BEGIN.format(group) in document] == list(GROUPS[:7])


def test_a_table_is_put_between_its_marks_and_nothing_else_is_touched() -> None:
    begin = BEGIN.format("etcd")
    document = written(f"before\n{begin}\nstale\n{END}\nafter\n")
    head, _, rest = document.partition(begin)
    table, _, tail = rest.partition(END)
    assert (head, tail) == ("before\n", "\nafter\n")
    assert "stale" not in table
    assert "| Failed requests to etcd |  | sum | whole run | increase of etcd_request_errors_total |" in table
