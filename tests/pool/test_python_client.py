"""A session with the `kubernetes` Python client, in a process of its own, over a pool of three."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.pool.emulated import EmulatedPool

pytestmark = pytest.mark.slow

SCRIPT = r"""
import json, sys
from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

contexts = [context["name"] for context in config.list_kube_config_contexts(sys.argv[1])[0]]
apis = [config.new_client_from_config(sys.argv[1], context=name) for name in contexts]
turn = iter(range(10**9))
def core(): return client.CoreV1Api(apis[next(turn) % len(apis)])
def apps(): return client.AppsV1Api(apis[next(turn) % len(apis)])

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
]

# Their deletion waits for a controller, which a bare pool does not have.
FINALIZED = {"namespace", "persistent_volume", "persistent_volume_claim", "replication_controller"}

def session(api, kind, namespaced, body):
    where = (NS,) if namespaced else ()
    scope = f"namespaced_{kind}" if namespaced else kind
    def call(verb, *arguments, **more): return getattr(api(), f"{verb}_{scope}")(*arguments, **more)
    name = f"a-{kind.replace('_', '-')}"
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
    since, within_s = made.metadata.resource_version, 1 if kind in FINALIZED else 5
    for event in stream.stream(
        listing, *where, label_selector="x=y", resource_version=since, timeout_seconds=within_s
    ):
        seen.append(event["type"])
        if event["type"] == "DELETED":
            stream.stop()
    assert seen[0] == "MODIFIED" and (seen[-1] == "DELETED" or kind in FINALIZED), seen

out = {}
for api, kind, namespaced, body in KINDS:
    try:
        session(api, kind, namespaced, body)
        out[kind] = "ok"
    except Exception as error:
        out[kind] = f"{type(error).__name__}: {error}"[:600]
print(json.dumps(out))
"""


def test_every_kind_of_core_and_apps_goes_through_its_life(pool: EmulatedPool) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(pool.kubeconfig)],
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert {kind: said for kind, said in outcome.items() if said != "ok"} == {}
    assert len(outcome) == 19
