"""Profiles in every form that kperf's repository has, and what they come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.kperf import is_profile
from harness.kperf.profile import Get, GetPodLog, List, Patch, PostDel, Put, WatchList
from tests.kperf.play import profile, spec, write

EVERY_KIND = """\
version: 1
description: every kind
specs:
  - rate: 100
    total: 10000
    conns: 2
    client: 1
    contentType: json
    requests:
      - staleGet: {group: core, version: v1, resource: pods, namespace: default, name: x1}
        shares: 100
      - quorumGet: {group: "", version: v1, resource: configmaps, namespace: default, name: x2}
        shares: 150
      - staleList: {version: v1, resource: pods, selector: app=x2, fieldSelector: spec.nodeName=x}
        shares: 200
      - quorumList: {version: v1, resource: configmaps, limit: 10000, selector: app=x3}
        shares: 400
      - put: {version: v1, resource: configmaps, namespace: kperf, name: kperf-, keySpaceSize: 1000, payloadSize: 1024}
        shares: 1000
      - getPodLog: {namespace: default, name: hello, container: main, tailLines: 1000, limitBytes: 1024}
        shares: 10
      - watchList: {version: v1, resource: pods, selector: app=x2, fieldSelector: spec.nodeName=x}
        shares: 250
      - patch:
          group: apps
          version: v1
          resource: deployments
          namespace: default
          name: d
          keySpaceSize: 100
          patchType: strategic-merge
          body: |
            {"metadata": {"labels": {"a": "b"}}}
        shares: 50
      - postDel: {version: v1, resource: pods, namespace: default, deleteRatio: 0.4, payloadSize: 10}
        shares: 1
"""
GROUP = """\
count: 10
loadProfile:
  version: 1
  description: list config maps
  specs:
    - rate: 10
      conns: 10
      client: 10
      contentType: json
      disableHTTP2: true
      maxRetries: 3
      requests:
        - staleList:
            version: v1
            resource: configmaps
          shares: 100 # chance 100 / 100
nodeAffinity:
  node.kubernetes.io/instance-type: [n1-standard-16]
serviceAccount: runner
"""
ONCE = """\
version: 1
description: as kperf up to v0.3.4 had it
spec:
  rate: 100
  total: 10
  conns: 100
  client: 1000
  contentType: protobuf
  requests:
    - shares: 1000
      staleList: {version: v1, resource: pods}
"""


def test_every_kind_is_read(tmp_path: Path) -> None:
    loaded = write(tmp_path, EVERY_KIND)
    (only,) = loaded.specs
    kinds = [next(iter(request.kinds().items())) for request in only.requests]
    assert [(key, type(kind)) for key, kind in kinds] == [
        ("staleGet", Get),
        ("quorumGet", Get),
        ("staleList", List),
        ("quorumList", List),
        ("put", Put),
        ("getPodLog", GetPodLog),
        ("watchList", WatchList),
        ("patch", Patch),
        ("postDel", PostDel),
    ]
    assert [request.shares for request in only.requests] == [100, 150, 200, 400, 1000, 10, 250, 50, 1]
    assert (only.rate, only.total, only.conns, only.client) == (100.0, 10000, 2, 1)
    assert loaded.ignored == ()


def test_a_runner_group_says_how_many_runners_there_are(tmp_path: Path) -> None:
    loaded = write(tmp_path, GROUP)
    assert loaded.runners == 10
    assert loaded.specs[0].max_retries == 3
    assert loaded.http1
    path = tmp_path / "profile.yaml"
    assert loaded.ignored == (
        f"{path}:17: nodeAffinity: all runners are processes of this run",
        f"{path}:19: serviceAccount: all runners are processes of this run",
    )


def test_the_form_with_one_spec_is_read(tmp_path: Path) -> None:
    loaded = write(tmp_path, ONCE)
    assert len(loaded.specs) == 1
    assert loaded.specs[0].content_type == "protobuf"


def test_the_first_spec_has_the_defaults_of_kperf_runner_run(tmp_path: Path) -> None:
    loaded = profile(tmp_path, spec(rate=None, total=None, conns=None, client=None, contentType=None))
    first = loaded.specs[0]
    assert (first.rate, first.total, first.conns, first.client, first.content_type) == (
        0.0,
        1000,
        1,
        1,
        "json",
    )


def test_a_total_goes_before_a_duration_in_the_first_spec_alone(tmp_path: Path) -> None:
    loaded = profile(tmp_path, spec(total=5, duration=9), spec(total=5, duration=9))
    assert [(item.total, item.duration) for item in loaded.specs] == [(5, 0), (5, 9)]
    assert loaded.ignored == (f"{tmp_path / 'profile.yaml'}:9: specs[0].duration: total is set, and counts",)


def test_the_protocol_is_the_first_specs(tmp_path: Path) -> None:
    loaded = profile(tmp_path, spec(), spec(disableHTTP2="true"))
    assert not loaded.http1
    assert [text.partition(": ")[2] for text in loaded.ignored] == [
        "specs[1].disableHTTP2: the first spec's holds for the connections of all, as in kperf"
    ]


def test_keys_that_mean_nothing_are_passed_over_and_named(tmp_path: Path) -> None:
    loaded = profile(tmp_path, spec(owner="me"))
    assert [text.rpartition("/")[2] for text in loaded.ignored] == ["profile.yaml:9: specs[0].owner"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EVERY_KIND, True),
        (GROUP, True),
        (ONCE, True),
        ("specs:\n  - rate: [\n", True),
        ("name: x\nsteps: []\n", False),
        ("{{$x := 1}}\nname: x\nsteps: []\n", False),
        ("apiVersion: v1\nkind: Pod\nspec: {}\n", False),
        ("- identifier: x\n", False),
        ("", False),
    ],
)
def test_a_profile_is_known_by_its_keys(tmp_path: Path, text: str, expected: bool) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert is_profile(path) is expected


def test_no_file_is_no_profile(tmp_path: Path) -> None:
    assert not is_profile(tmp_path / "nosuch.yaml")
