"""A session with kubectl, over a pool of three: each member is asked in turn."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.pool.emulated import EmulatedPool

KUBECTL = shutil.which("kubectl") or ""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed"),
]

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "pause"}]},
        },
    },
}


class Kubectl:
    def __init__(self, pool: EmulatedPool, folder: Path) -> None:
        self._line = [KUBECTL, "--kubeconfig", str(pool.kubeconfig), "--cache-dir", str(folder / "cache")]
        self._members = itertools.cycle(member.name for member in pool.members)
        self.folder = folder

    def line(self, *arguments: str) -> list[str]:
        return [*self._line, "--context", next(self._members), *arguments]

    def __call__(self, *arguments: str, fails: bool = False, given: str | None = None) -> str:
        """What it says, on both outputs."""
        done = subprocess.run(
            self.line(*arguments), capture_output=True, text=True, timeout=60, check=False, input=given
        )
        assert (done.returncode != 0) == fails, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def read(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))


@pytest.fixture(scope="module")
def kubectl(pool: EmulatedPool, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(pool, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("test_", "").replace("_", "-")[:40].strip("-")
    kubectl("create", "namespace", name)
    return name


def test_apply_on_the_client_side(kubectl: Kubectl, namespace: str) -> None:
    text = yaml.safe_dump(DEPLOYMENT)
    assert "created" in kubectl("apply", "-n", namespace, "-f", "-", given=text)
    assert "unchanged" in kubectl("apply", "-n", namespace, "-f", "-", given=text)
    changed = yaml.safe_dump(
        {**DEPLOYMENT, "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}}}
    )
    assert "configured" in kubectl("apply", "-n", namespace, "-f", "-", given=changed)
    assert kubectl.read("-n", namespace, "deployment", "web")["metadata"]["labels"]["tier"] == "front"
    assert "tier" in kubectl("diff", "-n", namespace, "-f", "-", given=text, fails=True)


def test_apply_on_the_server_side(kubectl: Kubectl, namespace: str) -> None:
    text = yaml.safe_dump(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    )
    apply = ("apply", "--server-side", "-n", namespace, "-f", "-")
    assert "serverside-applied" in kubectl(*apply, given=text)
    other = text.replace("'1'", "'2'")
    assert "conflict" in kubectl(*apply, "--field-manager", "other", given=other, fails=True)
    kubectl(*apply, "--field-manager", "other", "--force-conflicts", given=other)
    assert kubectl.read("-n", namespace, "configmap", "c")["data"] == {"a": "2"}


def test_get_patch_label_annotate_and_delete(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "configmap", "c", "-n", namespace, "--from-literal", "a=b")
    kubectl("patch", "configmap", "c", "-n", namespace, "--type", "merge", "-p", '{"data":{"x":"y"}}')
    kubectl(
        "patch",
        "configmap",
        "c",
        "-n",
        namespace,
        "--type",
        "json",
        "-p",
        '[{"op":"remove","path":"/data/a"}]',
    )
    kubectl("label", "configmap", "c", "-n", namespace, "k=v")
    kubectl("annotate", "configmap", "c", "-n", namespace, "k=v")
    found = kubectl.read("-n", namespace, "configmap", "c")
    assert (found["data"], found["metadata"]["labels"]) == ({"x": "y"}, {"k": "v"})
    assert kubectl("get", "configmap", "-n", namespace, "-l", "k=v", "-o", "name") == "configmap/c\n"
    table = kubectl("get", "configmaps", "-n", namespace)
    assert table.splitlines()[0].split() == ["NAME", "DATA", "AGE"]
    assert 'configmap "c" deleted' in kubectl("delete", "configmap", "c", "-n", namespace, "--wait")
    assert "NotFound" in kubectl("get", "configmap", "c", "-n", namespace, fails=True)


def test_watching(kubectl: Kubectl, namespace: str) -> None:
    line = kubectl.line("get", "configmaps", "-n", namespace, "-w", "-o", "name")
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout is not None
            for name in ("a", "b"):
                kubectl("create", "configmap", name, "-n", namespace)
                assert watching.stdout.readline() == f"configmap/{name}\n"
        finally:
            watching.terminate()


def test_scaling_and_waiting(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-n", namespace, "-f", "-", given=json.dumps(DEPLOYMENT))
    assert "scaled" in kubectl("scale", "deployment", "web", "-n", namespace, "--replicas", "5")
    assert kubectl.read("-n", namespace, "deployment", "web")["spec"]["replicas"] == 5
    path = "jsonpath={.spec.replicas}=5"
    assert "condition met" in kubectl(
        "wait", "deployment/web", "-n", namespace, "--for", path, "--timeout", "5s"
    )
    kubectl("create", "serviceaccount", "default", "-n", namespace)  # no controller here makes it
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    kubectl(
        "create", "-n", namespace, "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "Pod", **pod})
    )
    assert "p " in kubectl("get", "pods", "-n", namespace)
    kubectl("delete", "pod", "p", "-n", namespace, "--wait", "--timeout", "5s")
    assert "No resources found" in kubectl("get", "pods", "-n", namespace)


def test_tokens_and_rights(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "serviceaccount", "robot", "-n", namespace)
    token = kubectl("create", "token", "robot", "-n", namespace).strip()
    assert token.count(".") == 2
    assert kubectl("auth", "can-i", "create", "pods", "-n", namespace) == "yes\n"
    user = f"system:serviceaccount:{namespace}:robot"
    asked = ("auth", "can-i", "list", "secrets", "-n", namespace, "--as", user)
    assert kubectl(*asked, fails=True).startswith("no")
    kubectl("create", "role", "reader", "-n", namespace, "--verb", "list", "--resource", "secrets")
    kubectl(
        "create",
        "rolebinding",
        "r",
        "-n",
        namespace,
        "--role",
        "reader",
        "--serviceaccount",
        f"{namespace}:robot",
    )
    kubectl(
        "wait",
        "rolebinding/r",
        "-n",
        namespace,
        "--for",
        "jsonpath={.roleRef.name}=reader",
        "--timeout",
        "5s",
    )
    assert kubectl(*asked) == "yes\n"
    assert "robot" in kubectl("auth", "whoami", "--token", token)


def test_discovery_and_documentation(kubectl: Kubectl) -> None:
    resources = kubectl("api-resources")
    for line in ("configmaps", "deployments", "leases", "clusterroles", "storageclasses"):
        assert f"\n{line} " in f"\n{resources}"
    assert "apps/v1\n" in kubectl("api-versions")
    assert "v1.36" in kubectl("version")
    assert "FIELDS" in kubectl("explain", "pod.spec.containers")
    assert "is running at" in kubectl("cluster-info")
    assert kubectl("get", "--raw", "/readyz") == "ok"
