"""Pages of one list: what makes them one snapshot."""

from __future__ import annotations

from harness.fleet.informers.pages import Pages

FIRST = [("ns/a", 3), ("ns/b", 5)]
SECOND = [("ns/c", 2), ("ns/d", 10)]


def pages(*given: tuple[int, list[tuple[str, int]]]) -> Pages:
    made = Pages()
    for page in given:
        made.add(*page)
    return made


def test_pages_of_one_snapshot_fit() -> None:
    made = pages((10, FIRST), (10, SECOND), (10, []))
    assert made.problems == []
    assert (made.revision, made.pages, made.objects) == (10, 3, dict(FIRST + SECOND))


def test_a_page_that_names_another_revision_is_found() -> None:
    assert pages((10, FIRST), (12, SECOND)).problems == [("", "page 2 is of revision 12, the first of 10")]


def test_an_object_that_is_newer_than_the_list_is_found() -> None:
    made = pages((10, FIRST), (10, [("ns/c", 11)]))
    assert made.problems == [("ns/c", "page 2 has it at 11, the list is of 10")]


def test_an_object_that_comes_twice_is_found() -> None:
    assert pages((10, FIRST), (10, [("ns/b", 5)])).problems == [("ns/b", "page 2 has it a second time")]


def test_objects_out_of_order_are_found() -> None:
    assert pages((10, FIRST), (10, [("ns/aa", 1)])).problems == [("ns/aa", "page 2 has it behind ns/b")]
