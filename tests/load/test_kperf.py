"""A kperf profile between the master and its workers: who begins when, what is kept, what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from typer.testing import CliRunner

from harness.documents.files import Files
from harness.kperf import Share, load_profile
from harness.kperf.observations import Observations
from harness.kperf.runner import OBSERVED
from harness.load import kperfresults
from harness.load.discarding import Discarded
from harness.load.kperf import connections
from harness.load.kperfresults import GO, READY, SHARE_ENDED, KperfResults, kperf_results
from harness.load.scenariocommands import app as scenario_app
from harness.load.scenarios import locustfile_of
from harness.wire.errors import ConfigError

PROFILE = """\
version: 1
description: a test
specs:
  - {rate: 10, total: 5, conns: 3, client: 4, contentType: json, requests: &r [{shares: 1, staleList: {version: v1,
     resource: pods}}]}
  - {rate: 0, duration: 9, conns: 1, client: 4, contentType: json, disableHTTP2: true, requests: *r}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "profile.yaml"
    file.write_text(PROFILE)
    return file


class Master:
    """Results with what they told and sent."""

    def __init__(self, path: Path, users: int) -> None:
        self.events: list[tuple[str, dict[str, Any], float | None]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.results = KperfResults(str(path), load_profile(path), self._tell, self._send)
        self.results.expected = users

    def _tell(self, kind: str, fields: dict[str, Any], t: float | None = None) -> None:
        self.events.append((kind, fields, t))

    def _send(self, kind: str, data: dict[str, Any]) -> None:
        self.sent.append((kind, data))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _, _ in self.events]


def observed(spec: int, latency_s: float, until_s: float) -> dict[str, Any]:
    seen = Observations()
    seen.add(spec, "LIST", "/api/v1/pods", "member-0", None, latency_s, 0.0, 1.0, 7)
    return {
        "columns": seen.take(),
        "spans": [{"spec": spec, "from_s": 100.0, "until_s": until_s, "unfinished": 1}],
    }


@pytest.fixture
def master(path: Path, monkeypatch: pytest.MonkeyPatch) -> Master:
    """Two users that are there."""
    monkeypatch.setattr(kperfresults, "SETTLES_S", 0.0)
    master = Master(path, 2)
    master.results.take(READY, {"name": "b"})
    gevent.sleep(0)
    assert master.sent == []
    master.results.take(READY, {"name": "a"})
    gevent.sleep(0.01)
    return master


def test_all_begin_together_once_all_are_there(master: Master) -> None:
    assert master.sent == [(GO, {"users": ["a", "b"]})]
    assert master.kinds == ["scenario-started", "phase-started"]


def test_a_spec_has_ended_when_all_its_shares_have(master: Master) -> None:
    master.results.take(OBSERVED, observed(0, 0.1, 103.0))
    assert "step-finished" not in master.kinds
    master.results.take(OBSERVED, observed(0, 0.2, 104.5))
    kind, fields, t = master.events[-1]
    assert (kind, fields["number"], fields["seconds"], t) == ("step-finished", 1, 4.5, 104.5)
    assert fields["name"] == "specs[0]: 5 requests, 10 requests/s, 3 connection(s), 4 client(s)"


def test_a_spec_with_one_connection_has_one_share(master: Master) -> None:
    master.results.take(OBSERVED, observed(1, 0.1, 103.0))
    assert master.kinds[-1] == "step-finished"


def test_the_run_ends_with_the_last_share(master: Master) -> None:
    master.results.take(SHARE_ENDED, {"name": "a"})
    assert "scenario-ended" not in master.kinds
    master.results.take(SHARE_ENDED, {"name": "b"})
    assert master.kinds[-2:] == ["scenario-finished", "scenario-ended"]
    assert master.events[-1][1] == {"failures": [], "violations": []}


def test_the_report_and_what_the_screen_shows(master: Master, tmp_path: Path) -> None:
    master.results.take(OBSERVED, observed(0, 0.1, 103.0))
    master.results.take(OBSERVED, observed(0, 0.2, 104.0))
    slos = master.results.finish(tmp_path)
    report = json.loads((tmp_path / "artifacts" / "kperf.json").read_text())
    assert report["aggregated"]["total"] == 2
    assert report["aggregated"]["duration"] == "4s"
    assert report["aggregated"]["unfinished"] == 2
    assert [item["name"] for item in slos.measurements] == ["kperf", "kperf specs[0]", "kperf specs[1]"]
    values = slos.measurements[0]["values"]
    assert values["latency perc100, ms"] == pytest.approx(200)
    assert values["due, and not ended when the run was"] == 2
    assert (slos.violations, slos.skipped) == ([], [])


@pytest.mark.parametrize(
    ("first", "asked", "http"),
    [("false", "auto", "auto"), ("true", "auto", "http/1.1"), ("true", "h2", "h2")],
)
def test_the_protocol_is_the_profiles_unless_another_is_asked_for(
    path: Path, first: str, asked: Any, http: str
) -> None:
    path.write_text(PROFILE.replace("{rate: 10,", f"{{rate: 10, disableHTTP2: {first},"))
    assert Master(path, 1).results.http(asked) == http


def environment(*, runs_profiles: bool) -> Any:
    return SimpleNamespace(runner=None, user_classes=[SimpleNamespace(runs_profiles=runs_profiles)])


def test_each_locustfile_refuses_what_the_other_runs(path: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("name: x\nsteps: []\n")
    kubelets, kperf = environment(runs_profiles=False), environment(runs_profiles=True)

    def read(where: Any, file: str) -> KperfResults | None:
        return kperf_results(where, file, Files(), lambda kind, fields, t=None: None, raw=False)

    assert read(kubelets, str(config)) is None
    assert read(kubelets, "") is None
    assert read(kperf, str(path)) is not None
    with pytest.raises(ConfigError, match=r"a kperf profile; `swarmlet run` or locustfiles/kperf.py runs it"):
        read(kubelets, str(path))
    for file in (str(config), ""):
        with pytest.raises(ConfigError, match="no kperf profile, which has specs"):
            read(kperf, file)


def test_the_command_knows_what_a_file_is(path: Path, tmp_path: Path) -> None:
    assert locustfile_of(str(path)) == "kperf"
    assert locustfile_of("") == "kubelets"
    file = tmp_path / "file.yaml"
    for text in ("name: x\nSteps: []\n", "{{$x := 1}}\nsteps:\n{{if $x}}\n", "", "a: [\n"):
        file.write_text(text)
        assert locustfile_of(str(file)) == "kubelets"
    for text in ("kind: Pod\napiVersion: v1\nspec: {}\n", "words\n", "5\n"):
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"neither a ClusterLoader2 config .* nor a kperf profile"):
            locustfile_of(str(file))


def test_a_share_has_the_connections_of_its_largest_spec(path: Path) -> None:
    profile = load_profile(path)
    assert [connections(profile, 0, Share(position, 2)) for position in range(2)] == [2, 1]
    assert [connections(profile, 0, Share(position, 5)) for position in range(5)] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("size", [0, 3, 70_000])
def test_a_body_that_is_not_kept_is_counted_as_it_is_once_unpacked(size: int) -> None:
    body = bytes(size)
    packed = gzip.compress(body)
    for piece in (1, 3, 1000, 100_000):
        discarded = Discarded({"content-encoding": "gzip"})
        for at in range(0, len(packed), piece):
            discarded.append(packed[at : at + piece])
        assert discarded.size_bytes == size
    plain = Discarded({})
    plain.append(body)
    plain.append(b"x")
    assert plain.size_bytes == size + 1


def test_users_that_went_without_a_word_leave_what_they_had_told(master: Master, tmp_path: Path) -> None:
    master.results.take(OBSERVED, {**observed(0, 0.1, 103.0), "spans": []})
    master.results.finish(tmp_path)
    first, second = json.loads((tmp_path / "artifacts" / "kperf.json").read_text())["perSpecResults"]
    assert (first["total"], second["total"], second["duration"]) == (1, 0, "0s")
    assert first["duration"] != "0s"


def test_scenario_plan_shows_a_profile_and_render_has_nothing_to_render(path: Path) -> None:
    done = CliRunner().invoke(scenario_app, ["plan", str(path)], catch_exceptions=False)
    assert done.output.startswith(f"kperf: a test ({path})\n")
    with pytest.raises(ConfigError, match="a kperf profile, which is no template"):
        CliRunner().invoke(scenario_app, ["render", str(path)], catch_exceptions=False)
