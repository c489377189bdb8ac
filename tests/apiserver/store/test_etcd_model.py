"""How long the modelled etcd takes, who leads it, and what it does without a majority."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from harness.apiserver.store.etcd import EtcdModel, EtcdOptions
from harness.wire.errors import ConfigError

EXACT = {"fsync_sigma": 0.0, "rtt_sigma": 0.0, "fsync_s": 0.002, "rtt_s": 0.001}


def model(members: int, **options: float) -> EtcdModel:
    return EtcdModel([f"m{n}" for n in range(members)], Random(1), EtcdOptions.parse({**EXACT, **options}))


def test_one_member_commits_when_its_own_disk_has_the_write() -> None:
    etcd = model(1)
    commit = etcd.write("m0", 10.0)
    assert commit.at == pytest.approx(10.002)
    assert commit.visible == {"m0": pytest.approx(10.002)}


def test_three_members_commit_when_a_follower_has_answered_and_the_followers_hear_of_it_later() -> None:
    commit = model(3).write("m0", 10.0)
    assert commit.at == pytest.approx(10.0 + 0.0005 + 0.002 + 0.0005)
    assert commit.visible == pytest.approx({"m0": 10.003, "m1": 10.0035, "m2": 10.0035})


def test_a_followers_write_travels_to_the_leader_first() -> None:
    assert model(3).write("m1", 10.0).at == pytest.approx(10.0035)


def test_the_slower_of_two_followers_does_not_matter_and_the_faster_does() -> None:
    etcd = model(3)
    etcd.report("m1", 0.5)
    assert etcd.write("m0", 10.0).at == pytest.approx(10.003)
    etcd.report("m2", 0.2)
    assert etcd.write("m0", 20.0).at == pytest.approx(20.203)


def test_the_leaders_backlog_delays_everything() -> None:
    etcd = model(3)
    etcd.report("m0", 0.1)
    assert etcd.write("m0", 10.0).at == pytest.approx(10.103)
    assert etcd.read("m1", 20.0) == pytest.approx(20.0 + 0.1 + 0.001 + 0.001)


def test_writes_during_one_sync_share_the_next() -> None:
    etcd = model(1)
    ends = [etcd.write("m0", at).at for at in (10.0, 10.0005, 10.001, 10.0019, 10.0021)]
    assert ends == pytest.approx([10.002, 10.004, 10.004, 10.004, 10.006])


def test_commits_never_overtake_one_another() -> None:
    etcd = EtcdModel(["a", "b", "c"], Random(5))
    rng = Random(3)
    now, ends = 0.0, []
    seen: dict[str, list[float]] = {"a": [], "b": [], "c": []}
    for _ in range(2000):
        now += rng.expovariate(500)
        commit = etcd.write(rng.choice("abc"), now)
        assert commit.at >= now
        ends.append(commit.at)
        for name, at in commit.visible.items():
            assert at >= commit.at
            seen[name].append(at)
    assert ends == sorted(ends)
    assert all(times == sorted(times) for times in seen.values())


def test_the_defaults_are_those_of_a_healthy_cluster() -> None:
    etcd = EtcdModel(["a", "b", "c"], Random(5))
    latencies = sorted(etcd.write("a", float(n)).at - n for n in range(2000))
    assert 0.001 < median(latencies) < 0.004
    assert latencies[1979] < 0.010, "p99 within etcd's guidance"
    reads = [etcd.read("b", 10000.0 + n) - 10000.0 - n for n in range(2000)]
    assert 0.0005 < median(reads) < 0.002


def test_a_read_by_the_only_member_asks_nobody() -> None:
    assert model(1).read("m0", 10.0) == 10.0


def test_losing_the_leader_pauses_for_an_election_and_the_next_leads() -> None:
    etcd = model(3)
    pause = etcd.lose("m0")
    assert pause is not None
    assert 1.0 <= pause <= 2.0
    assert etcd.leader is None
    assert etcd.elect() == "m1"
    assert "m0" not in etcd.write("m2", 10.0).visible


def test_losing_a_follower_changes_nothing_but_the_majority() -> None:
    etcd = model(3)
    assert etcd.lose("m1") is None
    assert etcd.leader == "m0"
    etcd.report("m2", 0.3)
    assert etcd.write("m0", 10.0).at == pytest.approx(10.303)


def test_without_a_majority_there_is_no_leader_until_one_is_back() -> None:
    etcd = model(3)
    etcd.lose("m1")
    assert etcd.lose("m2") is None
    assert etcd.leader is None
    assert etcd.elect() is None
    pause = etcd.restore("m1")
    assert pause is not None
    assert etcd.elect() == "m0"


@pytest.mark.parametrize("members", [[], ["a", "a"]])
def test_members_must_have_different_names(members: list[str]) -> None:
    with pytest.raises(ConfigError, match="members must be different names"):
        EtcdModel(members, Random(1))


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'fsync_ms'; did you mean 'fsync_s'"):
        EtcdOptions.parse({"fsync_ms": 1.0})
    with pytest.raises(ConfigError, match="rtt_s is -1"):
        EtcdOptions.parse({"rtt_s": -1})
