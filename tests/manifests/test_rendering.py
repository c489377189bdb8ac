"""What is in the manifests: names, labels, rights, limits, and what goes where."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from harness.load.cluster.permissions import needed, policy_rules
from harness.manifests.files import File, RunFiles
from harness.manifests.flow import flow_rules
from harness.manifests.options import Asked
from harness.manifests.render import resources
from tests.manifests.filled import ASKED, ELSEWHERE, OURS, PLAIN, container, objects_of, option, text_of, the

replace = msgspec.structs.replace
KINDS = [
    *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "PriorityLevelConfiguration"),
    *("FlowSchema", "ConfigMap", "PersistentVolumeClaim", "Service", "NetworkPolicy", "Job", "Deployment"),
]


def test_everything_is_there_in_an_order_that_can_be_applied() -> None:
    assert [each["kind"] for each in objects_of()] == KINDS


def test_names_begin_with_the_name_and_lie_in_the_namespace() -> None:
    for each in objects_of()[1:]:
        assert each["metadata"]["name"].startswith("lab"), each
        cluster_wide = each["kind"].startswith("Cluster") or "flowcontrol" in each["apiVersion"]
        assert each["metadata"].get("namespace") == (None if cluster_wide else "load")
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "lab"


def test_the_rights_are_those_of_a_run_and_of_its_account() -> None:
    objects = objects_of()
    assert the("ClusterRole", objects)["rules"] == policy_rules(needed("impersonate", config=OURS.config))
    binding = the("ClusterRoleBinding", objects)
    assert binding["roleRef"]["name"] == "lab-run"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "load", "name": "lab"}]


def test_the_master_waits_for_its_workers_and_drives_the_cluster_that_it_is_in() -> None:
    job = the("Job", objects_of())
    args = container(job)["args"]
    told = {flag: option(args, flag) for flag in ("-u", "-r", "-t", "--scenario", "--expect-workers")}
    assert told == {"-u": "5000", "-r": "50", "-t": "20m", "--scenario": "density", "--expect-workers": "20"}
    assert option(args, "--kubeconfig") == option(args, "--i-know") == "in-cluster"
    assert "--master" in args
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["template"]["spec"]["automountServiceAccountToken"] is True


def test_workers_find_the_master_by_its_service() -> None:
    objects = objects_of()
    service, workers = the("Service", objects), the("Deployment", objects)
    args = container(workers)["args"]
    assert workers["spec"]["replicas"] == 20
    assert option(args, "--master-host") == service["metadata"]["name"]
    assert option(args, "--master-port") == str(service["spec"]["ports"][0]["port"])
    labels = the("Job", objects)["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert workers["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_only_workers_may_come_to_the_masters_port() -> None:
    objects = objects_of()
    policy = the("NetworkPolicy", objects)["spec"]
    (rule,) = policy["ingress"]
    allowed = rule["from"][0]["podSelector"]["matchLabels"]
    labels = the("Deployment", objects)["spec"]["template"]["metadata"]["labels"]
    assert allowed.items() <= labels.items()
    assert rule["ports"] == [{"port": "workers", "protocol": "TCP"}]


@pytest.mark.parametrize("kind", ["Job", "Deployment"])
def test_pods_are_confined_and_keep_off_nodes_that_runs_made(kind: str) -> None:
    workload = the(kind, objects_of())
    spec = workload["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container(workload)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = terms["nodeSelectorTerms"][0]["matchExpressions"]
    assert expression == {"key": "swarmlet.io/run", "operator": "DoesNotExist"}


def test_every_mount_has_its_volume_and_every_volume_its_object() -> None:
    files = replace(OURS, override_files=(File("0-a.yaml", "0-a.yaml", "A: 1\n"),))
    for asked in (ASKED, ELSEWHERE, replace(ASKED, claim="mine"), replace(ASKED, storage="none")):
        objects = objects_of(asked, files)
        made = {each["metadata"]["name"] for each in objects} | {"other", "mine"}
        for kind in ("Job", "Deployment"):
            workload = the(kind, objects)
            volumes = {each["name"]: each for each in workload["spec"]["template"]["spec"]["volumes"]}
            assert volumes.keys() == {each["name"] for each in container(workload)["volumeMounts"]}
            named = [
                *(each["configMap"]["name"] for each in volumes.values() if "configMap" in each),
                *(each["secret"]["secretName"] for each in volumes.values() if "secret" in each),
                *(
                    v["persistentVolumeClaim"]["claimName"]
                    for v in volumes.values()
                    if "persistentVolumeClaim" in v
                ),
            ]
            assert set(named) <= made


def test_requests_are_the_need_and_limits_have_room() -> None:
    assert resources(0.31, 500 << 20) == {
        "requests": {"cpu": "350m", "memory": "512Mi"},
        "limits": {"cpu": "1", "memory": "752Mi"},
    }
    assert resources(0.0001, 1)["requests"] == {"cpu": "100m", "memory": "16Mi"}
    assert resources(7.0, 1)["requests"]["cpu"] == "1000m"
    assert resources(0.1, 16 << 20, 160 << 20)["limits"]["memory"] == "192Mi"
    worker = container(the("Deployment", objects_of()))["resources"]
    # 250 kubelets of 80 kB beside a process of 170 MB: 181.2 MiB.
    assert worker["requests"]["memory"] == "192Mi"


def test_another_clusters_rights_are_not_given_here() -> None:
    kinds = [each["kind"] for each in objects_of(ELSEWHERE)]
    assert not {"ClusterRole", "ClusterRoleBinding", "FlowSchema", "PriorityLevelConfiguration"} & set(kinds)
    job = the("Job", objects_of(ELSEWHERE))
    args = container(job)["args"]
    assert option(args, "--kubeconfig") == "/etc/swarmlet/kubeconfig/config"
    assert option(args, "--context") == "prod"
    assert job["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    assert "create secret generic other --from-file=config=FILE" in text_of(ELSEWHERE)


@pytest.mark.parametrize(
    ("subject", "kind"), [("jane", "User"), ("a:b:c", "User"), ("tools:runner", "ServiceAccount")]
)
def test_what_the_other_cluster_needs_is_for_its_user(subject: str, kind: str) -> None:
    objects = objects_of(replace(ELSEWHERE, subject=subject))
    assert [each["kind"] for each in objects] == [*KINDS[2:6]]
    (rule,) = the("FlowSchema", objects)["spec"]["rules"]
    (mine,) = rule["subjects"]
    assert mine["kind"] == kind == the("ClusterRoleBinding", objects)["subjects"][0]["kind"]
    assert subject in (mine.get("user", {}).get("name"), ":".join(mine.get("serviceAccount", {}).values()))


def test_a_web_page_is_a_deployment_that_waits_for_somebody() -> None:
    objects = objects_of(replace(ASKED, web=True))
    master = the("Deployment", objects, "lab-master")
    args = container(master)["args"]
    assert "--headless" not in args
    assert "--expect-workers" not in args
    ports = {each["name"]: each["port"] for each in the("Service", objects)["spec"]["ports"]}
    assert ports == {"workers": 5557, "web": 8089}
    assert {"ports": [{"port": "web", "protocol": "TCP"}]} in the("NetworkPolicy", objects)["spec"]["ingress"]


def test_the_runs_own_metrics_have_a_port() -> None:
    objects = objects_of(replace(ASKED, metrics_port=9100, extra=("--metrics-bind-address", ":9100")))
    job = the("Job", objects)
    assert {"name": "metrics", "containerPort": 9100} in container(job)["ports"]
    assert container(job)["args"][-2:] == ["--metrics-bind-address", ":9100"]
    assert {"ports": [{"port": "metrics", "protocol": "TCP"}]} in the("NetworkPolicy", objects)["spec"][
        "ingress"
    ]


def test_more_connections_than_ports_widen_the_range() -> None:
    spec = the("Deployment", objects_of(replace(ASKED, nodes=60_000, workers=1), PLAIN))["spec"]["template"][
        "spec"
    ]
    (sysctl,) = spec["securityContext"]["sysctls"]
    assert sysctl["name"] == "net.ipv4.ip_local_port_range"
    assert "sysctls" not in text_of()


def test_too_few_workers_are_said_on_top() -> None:
    assert "give more --workers" in text_of(replace(ASKED, nodes=60_000, workers=1), PLAIN).split("---")[0]
    assert "give more --workers" not in text_of()


# ---- flow control ----------------------------------------------------------------------------------------------------
def test_the_runs_own_requests_have_a_level_before_that_of_service_accounts() -> None:
    objects = objects_of()
    schema, level = the("FlowSchema", objects)["spec"], the("PriorityLevelConfiguration", objects)
    assert schema["priorityLevelConfiguration"]["name"] == level["metadata"]["name"]
    assert 1000 < schema["matchingPrecedence"] < 9000
    assert level["spec"]["limited"]["lendablePercent"] == 0


def test_what_is_load_has_no_part_in_it() -> None:
    """Impersonating is no request; what a scenario makes is not among the rights that a run needs anyway."""
    rules = flow_rules(needed("impersonate"))
    resources_ = {resource for rule in rules for resource in rule.resources}
    assert resources_ == {"nodes", "leases", "endpointslices", "selfsubjectaccessreviews"}
    assert not any(verb in ("impersonate", "approve") for rule in rules for verb in rule.verbs)
    assert [rule.paths for rule in rules if rule.paths] == [("/metrics", "/readyz", "/version")]


def test_signing_requests_of_nodes_are_the_runs_own() -> None:
    rules = flow_rules(needed("certificate"))
    assert any("certificatesigningrequests" in rule.resources for rule in rules)


# ---- Locust's operator -----------------------------------------------------------------------------------------------
OPERATED = replace(ASKED, operator=True)


def test_the_operator_gets_one_object_and_one_config_map() -> None:
    objects = objects_of(OPERATED)
    assert [each["kind"] for each in objects] == [
        *("Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityLevelConfiguration", "FlowSchema"),
        *("ConfigMap", "LocustTest"),
    ]
    test = the("LocustTest", objects)
    assert test["apiVersion"] == "locust.io/v1"
    assert test["spec"]["workers"] == 20
    assert test["spec"]["locustfile"]["configMap"]["name"] == the("ConfigMap", objects)["metadata"]["name"]
    assert the("ClusterRoleBinding", objects)["subjects"][0]["name"] == "default"


def test_the_operators_arguments_are_a_line_for_a_shell() -> None:
    asked = replace(OPERATED, variables=(("CL2_A", "1"),), extra=("--fleet", "a b=$(c)'"))
    spec = the("LocustTest", objects_of(asked))["spec"]
    args = shlex.split(spec["args"])
    assert args[:2] == ["-f", "/home/locust/kubelets.py"]
    assert "--master" not in args  # which the operator adds
    assert args[-2:] == ["--fleet", "a b=$$(c)'"]
    assert spec["env"] == [{"name": "CL2_A", "value": "1"}]


def test_the_operators_files_lie_in_one_folder() -> None:
    files = RunFiles(
        File("kubelets.py", "kubelets.py", "pass\n"),
        "/etc/swarmlet/scenario/test.yaml",
        scenario_files=(File("test.yaml", "test.yaml", "steps: []\n"),),
        overrides=("/etc/swarmlet/overrides/0-o.yaml",),
        override_files=(File("0-o.yaml", "0-o.yaml", "A: 1\n"),),
    )
    objects = objects_of(OPERATED, files)
    assert the("ConfigMap", objects)["data"].keys() == {"kubelets.py", "test.yaml", "0-o.yaml"}
    args = shlex.split(the("LocustTest", objects)["spec"]["args"])
    assert option(args, "--scenario") == "/home/locust/test.yaml"
    assert option(args, "--overrides") == "/home/locust/0-o.yaml"


# ---- whatever values hold --------------------------------------------------------------------------------------------
HOSTILE = [
    "",
    "yes",
    "1e3",
    "a: b",
    "- x",
    "{{ 7 * 7 }}",
    "'\"\\",
    "line\nbreak",
    "# no comment",
    "ä🐝",
    "\x07\x85",
    "null",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_value_holds_it_comes_back(text: str) -> None:
    asked: Asked = replace(ASKED, variables=(("CL2_X", text),), extra=("--arm", text))
    files = replace(PLAIN, locustfile=File("kubelets.py", "kubelets.py", text))
    objects = objects_of(asked, files)
    job = the("Job", objects)
    assert container(job)["env"] == [{"name": "CL2_X", "value": text}]
    assert container(job)["args"][-2:] == ["--arm", text]
    assert the("ConfigMap", objects)["data"] == {"kubelets.py": text}
    args = shlex.split(the("LocustTest", objects_of(replace(asked, operator=True), files))["spec"]["args"])
    assert args[-2:] == ["--arm", text]


def test_a_dollar_is_not_expanded_by_kubernetes() -> None:
    asked = replace(ASKED, variables=(("CL2_X", "$(HOME)$$"),), extra=("--arm", "$(CL2_X)"))
    job = the("Job", objects_of(asked))
    assert container(job)["env"][0]["value"] == "$$(HOME)$$$$"
    assert container(job)["args"][-1] == "$$(CL2_X)"
