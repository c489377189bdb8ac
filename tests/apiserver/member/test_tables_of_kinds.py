"""What `kubectl get` shows of workloads and network kinds: columns and cells as printers.go of v1.36 makes them."""

from typing import Any

import pytest

from harness.apiserver.resources import RESOURCES
from harness.apiserver.views.columns import printer_for
from harness.wire.rfc3339 import parse

CREATED = "2026-01-01T00:00:00Z"
NOW = parse(CREATED) + 90.0
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "z", "operator": "Exists"}]}
TEMPLATE = {
    "metadata": {"labels": {"b": "2", "a": "1"}},
    "spec": {
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}],
        "nodeSelector": {"disk": "fast"},
    },
}
CONTAINERS = ["c,d", "i,j"]
WORKLOAD = {"selector": SELECTOR, "template": TEMPLATE, "replicas": 3}
ADDRESSES = [{"ip": f"10.0.0.{number}"} for number in range(1, 5)]
CASES: list[tuple[str, str, dict[str, Any], list[Any]]] = [
    (
        "deployments.apps",
        "Name Ready Up-to-date Available Age Containers Images Selector",
        {"spec": WORKLOAD, "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}},
        ["2/3", 3, 1, "90s", *CONTAINERS, "a=b,z"],
    ),
    (
        "replicasets.apps",
        "Name Desired Current Ready Age Containers Images Selector",
        {"spec": WORKLOAD, "status": {"replicas": 2, "readyReplicas": 1}},
        [3, 2, 1, "90s", *CONTAINERS, "a=b,z"],
    ),
    (
        "replicationcontrollers",
        "Name Desired Current Ready Age Containers Images Selector",
        {"spec": {**WORKLOAD, "selector": {"y": "2", "x": "1"}}, "status": {"replicas": 0}},
        [3, 0, 0, "90s", *CONTAINERS, "x=1,y=2"],
    ),
    (
        "statefulsets.apps",
        "Name Ready Age Containers Images",
        {"spec": WORKLOAD, "status": {"replicas": 2}},
        ["0/3", "90s", *CONTAINERS],
    ),
    (
        "daemonsets.apps",
        "Name Desired Current Ready Up-to-date Available Node-Selector Age Containers Images Selector",
        {
            "spec": WORKLOAD,
            "status": {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3},
        },
        [5, 4, 3, 0, 0, "disk=fast", "90s", *CONTAINERS, "a=b,z"],
    ),
    (
        "controllerrevisions.apps",
        "Name Controller Revision Age",
        {
            "revision": 4,
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}
                ]
            },
        },
        ["daemonset.apps/d", 4, "90s"],
    ),
    (
        "jobs.batch",
        "Name Status Completions Duration Age Containers Images Selector",
        {"spec": {**WORKLOAD, "completions": 4}, "status": {"succeeded": 1, "startTime": CREATED}},
        ["Running", "1/4", "90s", "90s", *CONTAINERS, "a=b,z"],
    ),
    (
        "jobs.batch",
        "Name Status Completions Duration Age Containers Images Selector",
        {
            "spec": {**WORKLOAD, "parallelism": 2},
            "status": {
                "startTime": CREATED,
                "completionTime": "2026-01-01T00:00:30Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        },
        ["Complete", "0/1 of 2", "30s", "90s", *CONTAINERS, "a=b,z"],
    ),
    (
        "cronjobs.batch",
        "Name Schedule Timezone Suspend Active Last-Schedule Age Containers Images Selector",
        {
            "spec": {"schedule": "@daily", "suspend": False, "jobTemplate": {"spec": {"template": TEMPLATE}}},
            "status": {"active": [{}], "lastScheduleTime": "2026-01-01T00:01:00Z"},
        },
        ["@daily", "<none>", "False", 1, "30s", "90s", *CONTAINERS, "<none>"],
    ),
    ("podtemplates", "Name Containers Images Pod-Labels", {"template": TEMPLATE}, [*CONTAINERS, "a=1,b=2"]),
    (
        "poddisruptionbudgets.policy",
        "Name Min-Available Max-Unavailable Allowed-Disruptions Age",
        {"spec": {"maxUnavailable": "25%"}, "status": {"disruptionsAllowed": 2}},
        ["N/A", "25%", 2, "90s"],
    ),
    (
        "resourcequotas",
        "Name Request Limit Age",
        {"status": {"hard": {"pods": "4", "limits.cpu": "2"}, "used": {"pods": "1"}}},
        ["pods: 1/4", "limits.cpu: 0/2", "90s"],
    ),
    (
        "priorityclasses.scheduling.k8s.io",
        "Name Value Global-Default Age PreemptionPolicy",
        {"value": 5, "preemptionPolicy": "Never"},
        [5, False, "90s", "Never"],
    ),
    (
        "endpoints",
        "Name Endpoints Age",
        {"subsets": [{"addresses": ADDRESSES, "ports": [{"port": 80}]}]},
        ["10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 1 more...", "90s"],
    ),
    ("endpoints", "Name Endpoints Age", {}, ["<none>", "90s"]),
    (
        "endpointslices.discovery.k8s.io",
        "Name AddressType Ports Endpoints Age",
        {
            "addressType": "IPv4",
            "ports": [{"port": 80}, {"name": "x"}],
            "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}],
        },
        ["IPv4", "80,x", "10.0.0.1,10.0.0.2", "90s"],
    ),
    (
        "endpointslices.discovery.k8s.io",
        "Name AddressType Ports Endpoints Age",
        {"addressType": "IPv6", "ports": None, "endpoints": None},
        ["IPv6", "<unset>", "<unset>", "90s"],
    ),
    (
        "networkpolicies.networking.k8s.io",
        "Name Pod-Selector Age",
        {"spec": {"podSelector": {}}},
        ["<none>", "90s"],
    ),
    (
        "ingresses.networking.k8s.io",
        "Name Class Hosts Address Ports Age",
        {
            "spec": {"ingressClassName": "k", "tls": [{}], "rules": [{"host": str(n)} for n in range(5)]},
            "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.2"}, {"hostname": "a.io"}]}},
        },
        ["k", "0,1,2 + 2 more...", "10.0.0.2,a.io", "80, 443", "90s"],
    ),
    (
        "ingresses.networking.k8s.io",
        "Name Class Hosts Address Ports Age",
        {"spec": {"defaultBackend": {}}},
        ["<none>", "*", "", "80", "90s"],
    ),
    (
        "ingressclasses.networking.k8s.io",
        "Name Controller Parameters Age",
        {"spec": {"controller": "e.io/c", "parameters": {"apiGroup": "e.io", "kind": "P", "name": "p"}}},
        ["e.io/c", "P.e.io/p", "90s"],
    ),
    (
        "ipaddresses.networking.k8s.io",
        "Name ParentRef",
        {"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}},
        ["services/n/s"],
    ),
    ("servicecidrs.networking.k8s.io", "Name CIDRs Age", {"spec": {"cidrs": ["a", "b"]}}, ["a,b", "90s"]),
    ("resourceclaims.resource.k8s.io", "Name State Age", {"status": {}}, ["pending", "90s"]),
    (
        "resourceclaims.resource.k8s.io",
        "Name State Age",
        {"status": {"allocation": {}, "reservedFor": [{}]}},
        ["allocated,reserved", "90s"],
    ),
    (
        "resourceslices.resource.k8s.io",
        "Name Node Driver Pool Age",
        {"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}},
        ["n", "d", "p", "90s"],
    ),
    ("deviceclasses.resource.k8s.io", "Name Age", {"spec": {}}, ["90s"]),
    (
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "Name PolicyName ParamRef Age",
        {"spec": {"policyName": "p", "paramRef": {"name": "r"}}},
        ["p", "*/r", "90s"],
    ),
    (
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "Name Validations ParamKind Age",
        {"spec": {"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}},
        [1, "v1/ConfigMap", "90s"],
    ),
]
ROWS = {resource.group_resource: resource for resource in RESOURCES if resource.hub is None}


@pytest.mark.parametrize(("name", "columns", "fields", "cells"), CASES)
def test_a_row_shows_what_kubectl_shows(
    name: str, columns: str, fields: dict[str, Any], cells: list[Any]
) -> None:
    resource = ROWS[name]
    printer = printer_for(resource)
    shown = [column["name"].replace(" ", "-") for column in printer.columns]
    assert shown == columns.split()
    metadata = {"name": "x", "creationTimestamp": CREATED, **fields.get("metadata", {})}
    obj = {"kind": resource.kind, **fields, "metadata": metadata}
    assert printer.cells(obj, NOW) == ["x", *cells]
