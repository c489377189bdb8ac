"""A profile with each of many mistakes: one message, which names file, line and value, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.kperf import load_profile
from harness.wire.errors import ConfigError

BASE = """\
version: 1
specs:
  - rate: 100
    total: 10
    conns: 2
    client: 4
    contentType: json
    requests:
      - shares: 10
        staleList:
          version: v1
          resource: pods
      - shares: 1
        quorumGet:
          version: v1
          resource: pods
          name: x
      - shares: 1
        put: {version: v1, resource: configmaps, namespace: a, name: c, keySpaceSize: 9, payloadSize: 9}
      - shares: 1
        patch: {version: v1, resource: pods, name: p, keySpaceSize: 9, patchType: merge, body: '{}'}
      - shares: 1
        getPodLog: {namespace: default, name: x}
      - shares: 1
        postDel: {version: v1, resource: pods, namespace: a, deleteRatio: 0.5}
"""
FIRST = "specs[0].requests[0]"
MISTAKES = {
    "another version": ("version: 1\n", "version: 2\n", ":1: version: 2: should be 1"),
    "no specs": ("specs:\n", "specs: []\nelse:\n", ":2: specs: 0: must be provided"),
    "no connections": ("conns: 2", "conns: -2", ":5: specs[0].conns: -2: requires > 0"),
    "no clients": ("client: 4", "client: -1", ":6: specs[0].client: -1: requires > 0"),
    "a negative rate": ("rate: 100", "rate: -1", ":3: specs[0].rate: -1.0: requires >= 0"),
    "a rate that is no number": (
        "rate: 100",
        "rate: fast",
        ":3: specs[0].rate: expected `float`, got `str` ('fast')",
    ),
    "an endless rate": ("rate: 100", "rate: .inf", ":3: specs[0].rate: inf: requires a finite number"),
    "a half request": ("total: 10", "total: 10.5", ":4: specs[0].total: expected `int`, got `float` (10.5)"),
    "a negative total": (
        "total: 10",
        "total: -1",
        ":4: specs[0].total: -1: requires total > 0 or duration > 0",
    ),
    "an unknown encoding": (
        "contentType: json",
        "contentType: xml",
        ":7: specs[0].contentType: 'xml': unsupported content type; allowed are json, protobuf",
    ),
    "a slip of a key": ("conns: 2", "conn: 2", ":5: specs[0].conn: no such key; did you mean conns?"),
    "a key in another case": ("rate: 100", "Rate: 100", ":3: specs[0].Rate: no such key; did you mean rate?"),
    "negative shares": ("shares: 10", "shares: -1", f":9: {FIRST}.shares: -1: requires >= 0"),
    "no kind": (
        "        quorumGet:\n          version: v1\n          resource: pods\n          name: x\n",
        "",
        (
            ":13: specs[0].requests[1]: 'no kind of request': needs one of staleList, quorumList, watchList, staleGet, "
            "quorumGet, put, patch, getPodLog, postDel"
        ),
    ),
    "two kinds": (
        "        quorumGet:",
        "        staleGet: {version: v1, resource: a, name: b}\n        quorumGet:",
        ":13: specs[0].requests[1]: ['staleGet', 'quorumGet']: needs exactly one kind of request",
    ),
    "a kind that there is not": (
        "        staleList:",
        "        staleLists:",
        f":10: {FIRST}.staleLists: no such key; did you mean staleList?",
    ),
    "no version": (
        "        staleList:\n          version: v1\n",
        "        staleList:\n",
        f":10: {FIRST}.staleList.version: '': is required",
    ),
    "no resource": (
        "          resource: pods\n      - shares: 1\n",
        "      - shares: 1\n",
        f":10: {FIRST}.staleList.resource: '': is required",
    ),
    "pages of a stale list": (
        "          resource: pods\n      - shares: 1\n",
        "          resource: pods\n          limit: 5\n      - shares: 1\n",
        f":13: {FIRST}.staleList.limit: 5: a stale list has no pages (kubernetes/kubernetes#108003)",
    ),
    "no name": ("          name: x\n", "", ":14: specs[0].requests[1].quorumGet.name: '': is required"),
    "a put of a pod": (
        "put: {version: v1, resource: configmaps",
        "put: {version: v1, resource: pods",
        ":19: specs[0].requests[2].put: '/v1/pods': only configmaps of core/v1 can be put",
    ),
    "no key space": (
        "name: p, keySpaceSize: 9",
        "name: p",
        ":21: specs[0].requests[3].patch.keySpaceSize: 0: must be > 0",
    ),
    "an unknown patch": (
        "patchType: merge",
        "patchType: apply",
        (
            ":21: specs[0].requests[3].patch.patchType: 'apply': unknown patch type; allowed are json, merge, "
            "strategic-merge"
        ),
    ),
    "a body that is no JSON": (
        "body: '{}'",
        "body: '{'",
        ":21: specs[0].requests[3].patch.body: '{': is no JSON",
    ),
    "a log of no namespace": (
        "getPodLog: {namespace: default, ",
        "getPodLog: {",
        ":23: specs[0].requests[4].getPodLog.namespace: '': is required",
    ),
    "more deleted than created": (
        "deleteRatio: 0.5",
        "deleteRatio: 0.51",
        ":25: specs[0].requests[5].postDel.deleteRatio: 0.51: must be between 0 and 0.5: more is created than deleted",
    ),
    "a post without a template": (
        "postDel: {version: v1, resource: pods",
        "postDel: {version: v1, resource: secrets",
        ":25: specs[0].requests[5].postDel: '/v1/secrets': kperf has a template for pods of core/v1 alone",
    ),
    "a list for a mapping": ("specs:\n", "specs:\n  - 5\n", ":3: specs[0]: expected `object`, got `int` (5)"),
    "what is no YAML": (
        "conns: 2",
        "conns: [2",
        ":6: not YAML: did not find expected ',' or ']'",
    ),
    "both forms": (
        "version: 1\n",
        "version: 1\nspec: {total: 1}\n",
        ":2: spec: 'both': needs either specs or, as kperf once had it, spec",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line(mistake: tuple[str, str, str], tmp_path: Path) -> None:
    old, new, message = mistake
    assert old in BASE
    path = tmp_path / "profile.yaml"
    path.write_text(BASE.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_profile(path)
    assert str(caught.value) == f"{path}{message}"


def test_without_the_mistake_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(BASE)
    assert len(load_profile(path).specs[0].requests) == 6


def test_nothing_is_picked_where_nothing_has_shares(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(BASE.replace("shares: 10", "shares: 0").replace("shares: 1\n", "shares: 0\n"))
    with pytest.raises(ConfigError, match=r":8: specs\[0\].requests: 0: needs a request with shares > 0"):
        load_profile(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count: 0\nloadProfile: {version: 1}\n", ":1: count: 0: requires > 0 runners"),
        ("count: 1\nloadProfile:\n", ":2: loadProfile: None: must be provided"),
        ("count: 1\nloadProfile: {version: 1}\n", ":2: loadProfile.specs: 0: must be provided"),
        ("just words\n", ": a kperf profile is a mapping with specs, this is 'just words'"),
        (
            "version: 1\nspecs:\n  - requests:\n      - {shares: 1, getPodLog: {namespace: a, name: b}}\n  - {}\n",
            ":5: specs[1].conns: 0: requires > 0",
        ),
    ],
)
def test_other_mistakes(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_profile(path)
    assert str(caught.value) == f"{path}{message}"


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_profile(tmp_path / "nosuch.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load_profile(tmp_path / "binary")
