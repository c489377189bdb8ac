"""What `swarmlet run` keeps for itself, what it hands on to Locust, and what it refuses."""

from __future__ import annotations

import pytest

from harness.load.commandline import check, split
from harness.wire.errors import ConfigError

OWN = {"--nodes": True, "-u": True, "--help": False}


@pytest.mark.parametrize(
    ("line", "kept", "passed"),
    [
        ("density", "density", ""),
        ("--members 3 density", "density", "--members 3"),
        ("density --members=3 -u 5", "density -u 5", "--members=3"),
        ("--help density", "--help density", ""),
        ("-u -1 density", "-u -1 density", ""),
        ("density --fault a --fault b", "density", "--fault a --fault b"),
        ("--no-discover-members density", "density", "--no-discover-members"),  # no value follows
        ("density -H https://h --processes 2", "density", "-H https://h --processes 2"),
        ("density --kubeconfig", "density", "--kubeconfig"),  # the parser says what is missing
        ("density --nodes", "density --nodes", ""),
    ],
)
def test_each_word_goes_where_it_belongs(line: str, kept: str, passed: str) -> None:
    assert split(line.split(), OWN) == (kept.split(), passed.split())


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--nods", "there is no such option; did you mean --nodes?"),
        ("--kubeconfg", "there is no such option; did you mean --kubeconfig?"),
        ("--zzz", "there is no such option; see swarmlet options"),
        ("--worker", "not with swarmlet run: a worker is started by locust"),
        ("--scenario=x", "not with swarmlet run: it is the command's argument"),
        ("--web-port", "not with swarmlet run: a run has no web page"),
    ],
)
def test_what_nobody_takes_is_said_in_a_line(flag: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        split(["density", flag, "1"], OWN)
    assert str(raised.value) == f"run {flag.partition('=')[0]}: {said}"


def test_what_locust_will_be_given_is_read_by_its_own_parser() -> None:
    options = check(["--scenario", "none", "-u", "7", "-t", "2m", "--members", "2", "--fleet", "qps=5"])
    assert (options.kubelets, options.run_time_s, options.pool.members) == (7, 120.0, 2)
    assert options.fleet == {"qps": 5.0}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--members x", "run: argument --members: invalid int value: 'x'"),
        ("-t never", "run: argument -t/--run-time: Invalid time span"),
        ("--http h9", "run: argument --http: invalid choice: 'h9'"),
        ("--members 0", "members: 0 is not within 1 to 9"),
    ],
)
def test_what_it_cannot_read_is_one_line(line: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check(["--scenario", "none", *line.split()])
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)
