"""What is shown of a profile before it runs."""

from __future__ import annotations

from pathlib import Path

from harness.kperf.describe import describe
from tests.kperf.play import profile, spec

MIXED = """\
      - {shares: 3, staleList: {group: apps, version: v1, resource: daemonsets, namespace: a}}
      - {shares: 1, getPodLog: {namespace: b, name: x}}
"""


def test_specs_and_requests_are_listed(tmp_path: Path) -> None:
    loaded = profile(tmp_path, spec(MIXED), spec(rate=0, total=9, duration=5, owner="me"))
    assert describe(loaded, "p.yaml") == [
        "kperf: a test (p.yaml)",
        "   1 20 requests, 10 requests/s, 2 connection(s), 4 client(s)",
        "       staleList daemonsets.apps in a: 75.0%",
        "       getPodLog b/x: 25.0%",
        "   2 9 requests or 5 s, no limit of requests/s, 2 connection(s), 4 client(s)",
        "       quorumGet namespaces: 100.0%",
        f"  ignored: {tmp_path / 'profile.yaml'}:18: specs[1].owner",
    ]
