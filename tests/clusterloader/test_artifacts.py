"""The files that ClusterLoader2's users' tools read."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import yaml

from harness.clusterloader.artifacts import Artifacts
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import FakeCluster
from tests.clusterloader.test_measurements import HEAD, call, pods, sleep


def artifacts(write: Write, text: str) -> dict[str, bytes]:
    config = write(HEAD + text)
    cluster = FakeCluster()
    assert cluster.run(loader(config)) is not None
    found = Artifacts(config)
    for note in cluster.notes:
        found.take(note.kind, note.fields)
    return dict(found.files())


def cases(junit: bytes) -> dict[str, tuple[float, str]]:
    """Name to seconds and failure of each test case."""
    suite = ElementTree.fromstring(junit)  # our own
    assert suite.tag == "testsuite"
    assert suite.get("name") == "ClusterLoaderV2"
    assert suite.get("tests") == str(len(suite))
    return {
        str(case.get("name")): (float(case.get("time", "")), str(case.findtext("failure", "")))
        for case in suite
        if case.get("classname") == "ClusterLoaderV2"
    }


def test_junit_has_the_test_its_steps_and_the_measurements_of_each(write: Write) -> None:
    two = (
        "- {name: both, measurements: [{method: Sleep, identifier: a, params: {duration: 2s}}, "
        "{method: Sleep, identifier: b, params: {duration: 5s}}]}\n"
    )
    files = artifacts(write, pods(2) + two + sleep("1s"))
    found = cases(files["junit.xml"])
    (overall, *_) = found
    assert overall.startswith("measured overall (")
    assert list(found)[1:] == [
        "measured: [step: 01] pods 2",
        "measured: [step: 02] both [00] - a",
        "measured: [step: 02] both [01] - b",
        "measured: [step: 03] m [00] - id",
    ]
    assert [round(seconds) for seconds, _ in list(found.values())[2:]] == [2, 5, 1]
    assert {failure for _, failure in found.values()} == {""}
    assert ElementTree.fromstring(files["junit.xml"]).get("failures") == "0"


def test_failures_and_missed_thresholds_stand_at_their_case_and_at_the_test(write: Write) -> None:
    late = call("PodStartupLatency", "action: start, threshold: 1ms")
    text = (
        late
        + pods(1)
        + sleep("2s")
        + call("PodStartupLatency", "action: gather")
        + call("WaitForRunningPods", "desiredPodCount: 9, timeout: 1s")
    )
    junit = artifacts(write, text)["junit.xml"]
    found = cases(junit)
    failures = {name: failure for name, (_, failure) in found.items() if failure}
    assert len(failures) == 3
    overall, missed, failed = failures.values()
    assert "too high latency" in missed
    assert "timed out after 1s while waiting for 9 pods" in failed
    assert missed in overall
    assert failed in overall
    assert ElementTree.fromstring(junit).get("failures") == "3"


def skips(junit: bytes) -> dict[str, str]:
    """Name to reason of each case that was skipped."""
    suite = ElementTree.fromstring(junit)
    found = {
        str(case.get("name")): str(item.get("message")) for case in suite for item in case.findall("skipped")
    }
    assert suite.get("skipped") == str(len(found))
    assert suite.get("failures") == "0"
    return found


def test_what_is_not_measured_is_a_skipped_case_at_each_of_its_calls(write: Write) -> None:
    text = call("KubeStateMetricsLatency", "action: start") + call(
        "KubeStateMetricsLatency", "action: gather"
    )
    reason = "needs kube-state-metrics"
    assert skips(artifacts(write, text)["junit.xml"]) == {
        "measured: [step: 01] m [00] - id": reason,
        "measured: [step: 02] m [00] - id": reason,
    }


def test_a_part_that_is_not_measured_is_a_skipped_case_of_its_own(write: Write) -> None:
    text = call("TestMetrics", "action: start") + call("TestMetrics", "action: gather")
    found = skips(artifacts(write, text)["junit.xml"])
    assert found["measured: TestMetrics CPUProfile - id"] == "needs a component's profiling endpoint"
    assert not any("[step" in name for name in found)


def test_what_xml_does_not_allow_is_left_out(write: Write) -> None:
    found = Artifacts(write(HEAD + sleep("1s")))
    found.problem("a\x00b <&> \x1b[1m\n\tc")
    ((_, failure),) = cases(dict(found.files())["junit.xml"]).values()
    assert failure == "ab <&> [1m\n\tc"


def test_summaries_are_named_as_upstreams_and_hold_perf_data(write: Write) -> None:
    text = (
        call("PodStartupLatency", "action: start")
        + pods(2)
        + sleep("2s")
        + call("PodStartupLatency", "action: gather")
    )
    files = artifacts(write, text)
    name = next(name for name in files if name.startswith("PodStartupLatency_id_measured_"))
    assert name == "PodStartupLatency_id_measured_2027-01-15T08:00:02Z.json"
    data = json.loads(files[name])
    assert data["version"] == "1.0"
    assert {item["labels"]["Metric"] for item in data["dataItems"]} >= {"pod_startup"}


def test_the_generated_config_is_beside_them(write: Write) -> None:
    files = artifacts(write, sleep("1s"))
    assert yaml.safe_load(files["generatedConfig_measured.yaml"])["steps"][0]["name"] == "m"


def test_a_name_with_a_slash_is_no_folder(write: Write) -> None:
    config = write(HEAD.replace("name: measured", "name: a/b") + sleep("1s"))
    assert set(dict(Artifacts(config).files())) == {"junit.xml", "generatedConfig_a_b.yaml"}
