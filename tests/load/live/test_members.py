"""Figures of members, from rounds of the scraper and reports of workers."""

from __future__ import annotations

from typing import Any

import pytest

from harness.load.live.members import REMEMBERED, MemberFigures, Members
from harness.observe.digest import Digest


def row(
    code: int, member: str, *, user: str = "kubelet", verb: str = "get", name: str = "secrets", count: int = 1
) -> Any:
    return (1.0, user, verb, name, code, member, 100, count)


def by_name(members: Members) -> dict[str, MemberFigures]:
    return {figures.member: figures for figures in members.figures()}


def test_before_anything_is_heard_nothing_is_known() -> None:
    members = Members()
    members.expect(["member-0", "member-1"])
    assert members.figures() == [MemberFigures("member-0"), MemberFigures("member-1")]
    assert members.whole() == MemberFigures("all")


def test_a_rate_is_between_two_rounds_and_unknown_across_a_restart_or_a_gap() -> None:
    members = Members()
    rates = []
    for t, requests in ((10.0, 100.0), (15.0, 150.0), (20.0, 30.0), (25.0, 80.0)):
        members.scraped(t, {"a": Digest(requests=requests)})
        rates.append(by_name(members)["a"].requests_per_s)
    members.scraped(30.0, {"a": None})
    assert by_name(members)["a"].up is False
    rates.append(by_name(members)["a"].requests_per_s)
    members.scraped(40.0, {"a": Digest(requests=110.0)})
    rates.append(by_name(members)["a"].requests_per_s)
    assert rates == [None, 10.0, None, 10.0, None, 2.0]


def test_how_far_each_is_behind_in_revisions_and_in_time() -> None:
    members = Members()
    members.scraped(10.0, {"a": Digest(revision=100), "b": Digest(revision=100)})
    members.scraped(20.0, {"a": Digest(revision=200), "b": Digest(revision=100)})
    found = by_name(members)
    assert (found["a"].behind_revisions, found["a"].behind_s) == (0, 0.0)
    assert (found["b"].behind_revisions, found["b"].behind_s) == (100, 10.0)
    members.scraped(30.0, {"a": Digest(revision=300), "b": Digest(revision=150)})
    assert by_name(members)["b"].behind_s == 15.0  # the foremost was there half way between 10 and 20
    assert members.whole().behind_s == 15.0
    members.scraped(40.0, {"a": Digest(revision=300), "b": Digest(revision=300)})
    assert by_name(members)["b"].behind_s == 0.0


def test_one_member_alone_is_behind_nobody() -> None:
    members = Members()
    members.scraped(10.0, {"a": Digest(revision=100)})
    assert by_name(members)["a"].behind_revisions is None
    members.scraped(15.0, {"a": Digest(revision=100), "b": None})
    assert by_name(members)["a"].behind_revisions is None


def test_one_that_has_never_been_where_anyone_remembers_is_at_least_as_old_as_that() -> None:
    members = Members()
    members.scraped(0.0, {"a": Digest(revision=50), "b": Digest(revision=1)})
    for k in range(REMEMBERED):
        members.scraped(5.0 * (k + 1), {"a": Digest(revision=100 + k), "b": Digest(revision=1)})
    assert by_name(members)["b"].behind_s == 5.0 * (REMEMBERED - 1)


def test_no_cache_yet_is_no_revision() -> None:
    members = Members()
    members.scraped(10.0, {"a": Digest(revision=0), "b": Digest(revision=7)})
    assert by_name(members)["a"].behind_revisions is None


def test_denials_are_kubelets_403s_but_for_events() -> None:
    members = Members()
    members.counted(
        [
            row(403, "a", count=3),
            row(403, "a", name="events", verb="create"),
            row(403, "a", user="clusterloader"),
            row(200, "a"),
            row(0, ""),  # nobody answered
        ]
    )
    assert (by_name(members)["a"].denials, by_name(members)["a"].sent) == (3, 6)
    assert members.whole().denials == 3


def test_the_fallback_rate_of_each_and_of_all() -> None:
    members = Members()
    members.counted(
        [
            row(200, "a", verb="watchlist", count=9),
            row(200, "a", verb="list"),
            row(200, "b", verb="watchlist", name="configmaps", count=10),
            row(200, "b", verb="list", name="pods", count=50),
            row(200, "b", verb="watchlist", user="informer", count=50),
        ]
    )
    assert by_name(members)["a"].fallback == 0.1
    assert by_name(members)["b"].fallback == 0.0
    assert members.whole().fallback == pytest.approx(0.05)


def test_all_together() -> None:
    members = Members()
    members.scraped(0.0, {"a": Digest(5, 100, 1, 10), "b": Digest(6, 200, 2, 10)})
    members.scraped(10.0, {"a": Digest(5, 200, 1, 20), "b": Digest(6, 250, 2, 10)})
    whole = members.whole()
    assert (whole.up, whole.watches, whole.requests_per_s, whole.rejects) == (True, 11, 15.0, 3)
    assert whole.behind_revisions == 10
    members.scraped(20.0, {"b": None})
    assert members.whole().up is False
