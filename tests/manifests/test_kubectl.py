"""The manifests as an apiserver takes them: every field known, every rule of the API kept, by kubectl on our pool.

Starts a pool of one member, as nothing else checks manifests as the API does.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from harness.manifests.files import File, RunFiles
from harness.manifests.options import Asked
from harness.pool.emulated import EmulatedPool, PoolOptions
from tests.manifests.filled import ASKED, ELSEWHERE, OURS, objects_of, text_of, the

KUBECTL = shutil.which("kubectl") or ""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed"),
]

replace = msgspec.structs.replace
MOUNTED = RunFiles(
    File("kubelets.py", "kubelets.py", "pass\n"),
    "/etc/swarmlet/scenario/a/test.yaml",
    scenario_files=(File("a__test.yaml", "a/test.yaml", "steps: []\n"),),
    overrides=("/etc/swarmlet/overrides/0-o.yaml",),
    override_files=(File("0-o.yaml", "0-o.yaml", "A: 1\n"),),
)
_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
_AMOUNTS = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}
_POD = {
    "type": "object",
    "properties": {
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "resources": {"type": "object", "properties": {"requests": _AMOUNTS, "limits": _AMOUNTS}},
    },
}
# The fields of locust.io/v1 in locustio/k8s-operator 0.1.6 that a LocustTest of ours may use.
LOCUST_TESTS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "locusttests.locust.io"},
    "spec": {
        "group": "locust.io",
        "scope": "Namespaced",
        "names": {"plural": "locusttests", "singular": "locusttest", "kind": "LocustTest"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["workers"],
                                "properties": {
                                    "image": {"type": "string"},
                                    "workers": {"type": "integer", "minimum": 1},
                                    "args": {"type": "string"},
                                    "env": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "name": {"type": "string"},
                                                "value": {"type": "string"},
                                            },
                                            "required": ["name"],
                                        },
                                    },
                                    "master": _POD,
                                    "worker": _POD,
                                    "locustfile": {
                                        "type": "object",
                                        "properties": {
                                            "content": {"type": "string"},
                                            "configMap": {
                                                "type": "object",
                                                "properties": {"name": {"type": "string"}},
                                                "required": ["name"],
                                            },
                                        },
                                        "oneOf": [{"required": ["content"]}, {"required": ["configMap"]}],
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


class Kubectl:
    def __init__(self, kubeconfig: Path, cache: Path) -> None:
        self._line = [KUBECTL, "--kubeconfig", str(kubeconfig), "--cache-dir", str(cache)]

    def __call__(self, *arguments: str, given: str | None = None, fails: bool = False) -> str:
        """What it says, on both outputs."""
        done = subprocess.run(
            [*self._line, *arguments], capture_output=True, text=True, timeout=60, check=False, input=given
        )
        assert (done.returncode != 0) == fails, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def apply(self, text: str, *flags: str) -> list[str]:
        """Every field must be known to the server. A line for each object."""
        return self("apply", "--validate=strict", *flags, "-f", "-", given=text).splitlines()

    def read(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    folder = Path(tempfile.mkdtemp(prefix="swt-"))
    options = PoolOptions(
        members=1, cores="host", kubeconfig=str(folder / "kubeconfig"), logs=str(folder / "logs")
    )
    pool = EmulatedPool(options, lambda event: None)
    pool.start()
    try:
        yield Kubectl(pool.kubeconfig, folder / "cache")
    finally:
        pool.stop()
        shutil.rmtree(folder)


VARIANTS = {
    "here": (ASKED, OURS),
    "elsewhere": (ELSEWHERE, MOUNTED),
    "for the other cluster": (replace(ELSEWHERE, subject="jane"), OURS),
    "with a page": (replace(ASKED, web=True, metrics_port=9100), MOUNTED),
    "with a claim": (replace(ASKED, claim="mine", variables=(("CL2_A", "$(X) 'a'"),)), MOUNTED),
    "without a claim, with ports": (
        replace(ASKED, storage="none", identity="certificate", nodes=60_000, workers=1),
        OURS,
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_server_would_take_everything(kubectl: Kubectl, variant: str) -> None:
    asked, files = VARIANTS[variant]
    text = text_of(asked, files)
    kubectl.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "load"}}))
    said = kubectl.apply(text, "--dry-run=server")
    lines = [line for line in said if "(server dry run)" in line]
    assert len(lines) == len(objects_of(asked, files)), said


def test_locusts_operator_would_be_told(kubectl: Kubectl) -> None:
    kubectl.apply(yaml.safe_dump(LOCUST_TESTS))
    kubectl("wait", "crd/locusttests.locust.io", "--for", "condition=Established", "--timeout", "20s")
    asked: Asked = replace(ASKED, name="op", namespace="op", operator=True, variables=(("CL2_A", "1"),))
    assert any("locusttest.locust.io/op created" in line for line in kubectl.apply(text_of(asked)))
    assert kubectl.read("locusttest", "op", "-n", "op")["spec"]["workers"] == 20


def test_what_was_applied_is_there_and_stays_as_it_is(kubectl: Kubectl) -> None:
    asked: Asked = replace(ASKED, name="real", namespace="real")
    text, objects = text_of(asked, MOUNTED), objects_of(asked, MOUNTED)
    assert len(kubectl.apply(text)) == len(objects)
    again = kubectl.apply(text)
    assert [line for line in again if not line.endswith(" unchanged")] == []
    made = kubectl.read("job", "real-master", "-n", "real")
    wanted = the("Job", objects)["spec"]["template"]["spec"]["containers"][0]
    assert made["spec"]["template"]["spec"]["containers"][0]["args"] == wanted["args"]
    config_map = kubectl.read("configmap", "real-scenario", "-n", "real")
    assert config_map["data"] == {"a__test.yaml": "steps: []\n"}
    kubectl("delete", "--wait=false", "-f", "-", given=text)


def test_the_account_may_what_a_run_does_and_has_its_own_level_for_it(kubectl: Kubectl) -> None:
    """Its bookkeeping is not in the queue where its load is; a node's requests go where those of nodes go."""
    asked: Asked = replace(ASKED, name="flow", namespace="flow")
    kubectl.apply(text_of(asked))
    uid = kubectl.read("flowschema", "flow-own")["metadata"]["uid"]
    account = ("--as", "system:serviceaccount:flow:flow", "--as-group", "system:serviceaccounts")
    node = ("--as", "system:node:n", "--as-group", "system:nodes")

    def flow_of(*arguments: str) -> str:
        said = kubectl("get", *arguments, "-v", "8")
        found = re.findall(r"(?i)flowschema-uid: (\S+)", said)
        assert found, said[-2000:]
        return str(found[-1])

    assert flow_of("nodes", *account) == uid
    assert flow_of("--raw", "/metrics", *account) == uid
    assert flow_of("pods", "-A", *account) != uid  # the scenario's
    assert flow_of("--raw", "/api/v1/services?limit=1", *node) != uid
    assert kubectl("auth", "can-i", "impersonate", "groups/system:nodes", *account).strip() == "yes"
    assert kubectl("auth", "can-i", "delete", "deployments", *account, fails=True).strip() == "no"
