"""A session with the `kubernetes` Python client, in a process of its own, over a pool of three."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.pool.emulated import EmulatedPool
from tests.apiserver.certificates import request

pytestmark = pytest.mark.slow

SCRIPT = r"""
import json, sys, time
from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

contexts = [context["name"] for context in config.list_kube_config_contexts(sys.argv[1])[0]]
apis = [config.new_client_from_config(sys.argv[1], context=name) for name in contexts]
turn = iter(range(10**9))
def of(kind): return lambda: kind(apis[next(turn) % len(apis)])
core, apps, batch = of(client.CoreV1Api), of(client.AppsV1Api), of(client.BatchV1Api)
rbac, storage, networking = of(client.RbacAuthorizationV1Api), of(client.StorageV1Api), of(client.NetworkingV1Api)
flows, extensions = of(client.FlowcontrolApiserverV1Api), of(client.ApiextensionsV1Api)
custom = of(client.CustomObjectsApi)

NS = "python"
core().create_namespace({"metadata": {"name": NS}})
core().create_namespaced_service_account(NS, {"metadata": {"name": "default"}})
container = {"name": "c", "image": "i"}
template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container]}}
workload = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
volume = {
    "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
    "hostPath": {"path": "/x"}, "persistentVolumeReclaimPolicy": "Retain",
}
once = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
subjects = [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]
def role(kind): return {"kind": kind, "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
def definition(plural, kind):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"name": f"{plural}.example.com", "spec": spec}
signing = {"request": sys.argv[2], "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
attachment = {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
flow = {
    "priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 500,
    "rules": [{
        "subjects": [{"kind": "User", "user": {"name": "jane"}}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
    }],
}
level = {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}
KINDS = [  # api, suffix of its methods, namespaced, body
    (core, "config_map", True, {"data": {"a": "b"}}),
    (core, "secret", True, {"stringData": {"a": "b"}}),
    (core, "service_account", True, {}),
    (core, "service", True, {"spec": {"ports": [{"port": 80}]}}),
    (core, "endpoints", True, {}),
    (core, "event", True, {"involvedObject": {"kind": "Pod", "name": "p", "namespace": NS}, "reason": "R"}),
    (core, "pod", True, {"spec": {"containers": [container]}}),
    (core, "persistent_volume_claim", True, {"spec": claim}),
    (core, "replication_controller", True, {"spec": {"selector": {"app": "x"}, "template": template}}),
    (core, "resource_quota", True, {"spec": {"hard": {"pods": "1000"}}}),
    (core, "limit_range", True, {"spec": {"limits": [{"type": "Container", "max": {"cpu": "64"}}]}}),
    (core, "node", False, {}),
    (core, "namespace", False, {}),
    (core, "persistent_volume", False, {"spec": volume}),
    (apps, "deployment", True, {"spec": workload}),
    (apps, "replica_set", True, {"spec": workload}),
    (apps, "stateful_set", True, {"spec": {**workload, "serviceName": "s"}}),
    (apps, "daemon_set", True, {"spec": workload}),
    (apps, "controller_revision", True, {"revision": 1, "data": {"a": "b"}}),
    (batch, "job", True, {"spec": once}),
    (batch, "cron_job", True, {"spec": {"schedule": "@daily", "jobTemplate": {"spec": once}}}),
    (of(client.DiscoveryV1Api), "endpoint_slice", True, {"addressType": "IPv4", "endpoints": []}),
    (of(client.CoordinationV1Api), "lease", True, {"spec": {"holderIdentity": "h"}}),
    (of(client.SchedulingV1Api), "priority_class", False, {"value": 5}),
    (storage, "storage_class", False, {"provisioner": "csi.example.com"}),
    (storage, "volume_attachment", False, {"spec": attachment}),
    (networking, "network_policy", True, {"spec": {"podSelector": {}}}),
    (networking, "ingress", True, {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
    (rbac, "role", True, {"rules": rules}),
    (rbac, "role_binding", True, {"roleRef": role("Role"), "subjects": subjects}),
    (rbac, "cluster_role", False, {"rules": rules}),
    (rbac, "cluster_role_binding", False, {"roleRef": role("ClusterRole"), "subjects": subjects}),
    (of(client.PolicyV1Api), "pod_disruption_budget", True, {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
    (of(client.CertificatesV1Api), "certificate_signing_request", False, {"spec": signing}),
    (flows, "flow_schema", False, {"spec": flow}),
    (flows, "priority_level_configuration", False, {"spec": level}),
    (extensions, "custom_resource_definition", False, definition("gears", "Gear")),
]

# Their deletion waits for a controller, which a bare pool does not have.
FINALIZED = {"job", "namespace", "persistent_volume", "persistent_volume_claim", "replication_controller"}

def session(api, kind, namespaced, body):
    where = (NS,) if namespaced else ()
    scope = f"namespaced_{kind}" if namespaced else kind
    def call(verb, *arguments, **more): return getattr(api(), f"{verb}_{scope}")(*arguments, **more)
    body = dict(body)
    name = body.pop("name", f"a-{kind.replace('_', '-')}")
    made = call("create", *where, {"metadata": {"name": name, "labels": {"x": "y"}}, **body})
    listed = call("list", *where, label_selector="x=y")
    assert [item.metadata.name for item in listed.items] == [name], listed.items
    assert call("read", name, *where).metadata.uid == made.metadata.uid
    patched = call("patch", name, *where, {"metadata": {"labels": {"p": "q"}}})
    assert {"x": "y", "p": "q"}.items() <= patched.metadata.labels.items(), patched.metadata.labels
    patched.metadata.annotations = {"r": "s"}
    replaced = call("replace", name, *where, patched)
    assert replaced.metadata.annotations["r"] == "s"
    try:
        call("replace", name, *where, patched)
        if made.kind != "Event": raise SystemExit("a stale replace was taken")
    except ApiException as error:
        assert error.status == 409, error
    seen = []
    stream = watch.Watch()
    listing = getattr(api(), f"list_{scope}")
    call("delete", name, *where, grace_period_seconds=0)
    since = made.metadata.resource_version
    for event in stream.stream(
        listing, *where, label_selector="x=y", resource_version=since, timeout_seconds=60
    ):
        seen.append(event["type"])
        marked = kind in FINALIZED and event["object"].metadata.deletion_timestamp is not None
        if event["type"] == "DELETED" or marked:
            stream.stop()
    assert seen[0] == "MODIFIED" and (seen[-1] == "DELETED" or marked), seen

def custom_objects():
    made = definition("widgets", "Widget")
    extensions().create_custom_resource_definition({"metadata": {"name": made.pop("name")}, **made})
    where = ("example.com", "v1", NS, "widgets")
    new = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    deadline = time.monotonic() + 60
    for index in range(len(apis)):  # each member learns by itself that it is served
        while True:
            try:
                client.CustomObjectsApi(apis[index]).list_namespaced_custom_object(*where)
                break
            except ApiException as error:
                if error.status != 404 or time.monotonic() > deadline: raise
                time.sleep(0.05)
    first = custom().create_namespaced_custom_object(*where, new)
    patched = custom().patch_namespaced_custom_object(*where, "w", {"spec": {"size": 2}})
    assert patched["spec"] == {"size": 2}, patched
    patched["spec"]["size"] = 3
    assert custom().replace_namespaced_custom_object(*where, "w", patched)["spec"] == {"size": 3}
    try:
        custom().replace_namespaced_custom_object(*where, "w", patched)
        raise SystemExit("a stale replace was taken")
    except ApiException as error:
        assert error.status == 409, error
    read = custom().get_namespaced_custom_object(*where, "w")
    assert read["metadata"]["uid"] == first["metadata"]["uid"]
    assert custom().delete_namespaced_custom_object(*where, "w")["status"] == "Success"
    seen, stream = [], watch.Watch()
    listing, since = custom().list_namespaced_custom_object, first["metadata"]["resourceVersion"]
    for event in stream.stream(listing, *where, resource_version=since, timeout_seconds=60):
        seen.append(event["type"])
        if event["type"] == "DELETED":
            stream.stop()
    assert seen == ["MODIFIED", "MODIFIED", "DELETED"], seen

def collection():
    for index in range(3):
        labels = {"many": "no" if index == 2 else "yes"}
        core().create_namespaced_config_map(NS, {"metadata": {"name": f"many-{index}", "labels": labels}})
    done = core().delete_collection_namespaced_config_map(NS, label_selector="many=yes")
    assert done.status == "Success" or done.kind.endswith("List"), done
    left = core().list_namespaced_config_map(NS, label_selector="many")
    assert [item.metadata.name for item in left.items] == ["many-2"], left.items

out = {}
for what in (custom_objects, collection):
    try:
        what()
        out[what.__name__] = "ok"
    except Exception as error:
        out[what.__name__] = f"{type(error).__name__}: {error}"[:600]
for api, kind, namespaced, body in KINDS:
    try:
        session(api, kind, namespaced, body)
        out[kind] = "ok"
    except Exception as error:
        out[kind] = f"{type(error).__name__}: {error}"[:600]
print(json.dumps(out))
"""


def test_every_kind_goes_through_its_life(pool: EmulatedPool) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(pool.kubeconfig), request("jane", ("team",))],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert {kind: said for kind, said in outcome.items() if said != "ok"} == {}
    assert len(outcome) == 39
