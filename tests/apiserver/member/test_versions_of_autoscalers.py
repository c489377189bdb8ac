"""HorizontalPodAutoscalers are stored as autoscaling/v2; v1 shows what it has no field for in annotations."""

import json
from typing import Any

from fakemember import Server

V1 = "/apis/autoscaling/v1/namespaces/ns/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers"
MERGE = {"content-type": "application/merge-patch+json"}
TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS: list[dict[str, Any]] = [
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 50},
        },
    },
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
    },
    {
        "type": "Pods",
        "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "Value", "value": "7"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "queue", "selector": {"matchLabels": {"q": "1"}}},
            "target": {"type": "AverageValue", "averageValue": "3"},
        },
    },
]
OTHERS = [  # all but the utilization of CPU, in v1's names
    {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
    {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "c", "targetAverageUtilization": 50},
    },
    {"type": "Pods", "pods": {"metricName": "rps", "targetAverageValue": "10"}},
    {
        "type": "Object",
        "object": {
            "target": {"kind": "Service", "name": "s"},
            "metricName": "hits",
            "selector": {"matchLabels": {"a": "b"}},
            "targetValue": "7",
        },
    },
    {
        "type": "External",
        "external": {
            "metricName": "queue",
            "metricSelector": {"matchLabels": {"q": "1"}},
            "targetAverageValue": "3",
        },
    },
]


def create(server: Server, path: str, **spec: Any) -> dict[str, Any]:
    body = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 4, **spec}}
    answer = server.ask("POST", path, body)
    assert answer.status == 201, answer.data
    created: dict[str, Any] = answer.json
    return created


def test_v1_s_one_figure_is_a_metric_of_v2(server: Server) -> None:
    created = create(server, V1, targetCPUUtilizationPercentage=70)
    assert created["apiVersion"] == "autoscaling/v1"
    assert created["spec"] == {
        "scaleTargetRef": TARGET,
        "minReplicas": 1,
        "maxReplicas": 4,
        "targetCPUUtilizationPercentage": 70,
    }
    assert created["status"] == {"currentReplicas": 0, "desiredReplicas": 0}
    metric = server.ask("GET", f"{V2}/h").json["spec"]["metrics"]
    assert [item["resource"]["target"]["averageUtilization"] for item in metric] == [70]


def test_without_a_figure_it_is_80(server: Server) -> None:
    assert create(server, V1)["spec"]["targetCPUUtilizationPercentage"] == 80


def test_what_v1_has_no_field_for_travels_in_annotations_and_comes_back(server: Server) -> None:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    create(server, V2, metrics=METRICS, behavior=behavior)
    conditions = [{"type": "AbleToScale", "status": "True"}]
    current = [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageUtilization": 33, "averageValue": "1"}},
        }
    ]
    status = {"currentReplicas": 2, "desiredReplicas": 3, "conditions": conditions, "currentMetrics": current}
    server.ask("PATCH", f"{V2}/h/status", {"status": status}, headers=MERGE)
    before = server.ask("GET", f"{V2}/h").json

    old = server.ask("GET", f"{V1}/h").json
    notes = {
        key.removeprefix(PREFIX): json.loads(text) for key, text in old["metadata"]["annotations"].items()
    }
    assert notes["metrics"] == OTHERS
    assert notes["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 60
    assert notes["conditions"][0]["type"] == "AbleToScale"
    assert old["spec"]["targetCPUUtilizationPercentage"] == 60
    assert old["status"] == {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentCPUUtilizationPercentage": 33,
    }

    old["spec"]["maxReplicas"] = 9
    assert server.ask("PUT", f"{V1}/h", old).status == 200
    after = server.ask("GET", f"{V2}/h").json
    assert "annotations" not in after["metadata"]
    assert after["spec"]["maxReplicas"] == 9
    assert after["spec"]["behavior"] == before["spec"]["behavior"]
    by_type = {json.dumps(metric, sort_keys=True) for metric in METRICS}
    assert {json.dumps(metric, sort_keys=True) for metric in after["spec"]["metrics"]} == by_type


def test_uids_of_the_two_versions_never_meet(server: Server) -> None:
    first = create(server, V1)["metadata"]["uid"]
    server.ask("DELETE", f"{V1}/h")
    assert create(server, V2)["metadata"]["uid"] != first


def test_somebody_else_s_annotation_is_no_reason_to_fail(server: Server) -> None:
    notes = {PREFIX + "metrics": "nonsense", "mine": "kept"}
    body = {
        "metadata": {"name": "h", "annotations": notes},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 4},
    }
    assert server.ask("POST", V1, body).status == 201
    assert server.ask("GET", f"{V2}/h").json["metadata"]["annotations"] == {"mine": "kept"}


def test_a_table_shows_targets_and_what_they_are_now(server: Server) -> None:
    create(server, V2, metrics=METRICS[:3])
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    for path in (V1, V2):
        cells = server.ask("GET", f"{path}/h", headers=accept).json["rows"][0]["cells"]
        assert cells[1:6] == [
            "Deployment/d",
            "memory: <unknown>/1Gi, cpu: <unknown>/50% + 1 more...",
            "1",
            4,
            0,
        ]
