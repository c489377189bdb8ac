"""What an update of a workload or a network kind may change, what it counts as, and what is refused."""

from typing import Any

import pytest
from fakemember import Server

Object = dict[str, Any]
MERGE = {"content-type": "application/merge-patch+json"}
APPS = "/apis/apps/v1/namespaces/ns"
SELECTOR = {"matchLabels": {"a": "b"}}
TEMPLATE: Object = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "pause:3"}]},
}
SPEC: Object = {"selector": SELECTOR, "template": TEMPLATE}
JOB: Object = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}


def create(server: Server, path: str, **fields: Any) -> Object:
    answer = server.ask("POST", path, {"metadata": {"name": "x"}, **fields})
    assert answer.status == 201, answer.data
    created: Object = answer.json
    return created


def patch(server: Server, path: str, **fields: Any) -> Object:
    answer = server.ask("PATCH", path, fields, headers=MERGE)
    assert answer.status == 200, answer.data
    changed: Object = answer.json
    return changed


def refusal(server: Server, method: str, path: str, body: Object, **more: Any) -> str:
    answer = server.ask(method, path, body, **more)
    assert answer.status == 422, answer.data
    message: str = answer.json["message"]
    return message


@pytest.mark.parametrize("resource", ["deployments", "replicasets", "statefulsets", "daemonsets"])
def test_the_generation_counts_changes_of_the_spec_and_status_is_the_controller_s(
    server: Server, resource: str
) -> None:
    path = f"{APPS}/{resource}"
    create(server, path, spec=SPEC)
    changed = patch(server, f"{path}/x", spec={"minReadySeconds": 3}, status={"observedGeneration": 9})
    assert changed["metadata"]["generation"] == 2
    assert "observedGeneration" not in changed["status"]
    labelled = patch(server, f"{path}/x", metadata={"labels": {"l": "m"}})
    assert labelled["metadata"]["generation"] == 2
    told = patch(server, f"{path}/x/status", spec={"minReadySeconds": 4}, status={"observedGeneration": 2})
    assert told["spec"]["minReadySeconds"] == 3
    assert told["status"]["observedGeneration"] == 2
    assert told["metadata"]["generation"] == 2


def test_a_deployment_s_annotations_count_too(server: Server) -> None:
    create(server, f"{APPS}/deployments", spec=SPEC)
    changed = patch(server, f"{APPS}/deployments/x", metadata={"annotations": {"a": "1"}})
    assert changed["metadata"]["generation"] == 2


def test_a_daemon_set_counts_its_templates_in_an_annotation(server: Server) -> None:
    path = f"{APPS}/daemonsets/x"
    create(server, f"{APPS}/daemonsets", spec=SPEC)
    key = "deprecated.daemonset.template.generation"
    same = patch(server, path, spec={"minReadySeconds": 3})
    assert same["metadata"]["annotations"] == {key: "1"}
    other = patch(server, path, spec={"template": {"spec": {"priority": 0}}})
    assert other["metadata"]["annotations"] == {key: "2"}
    assert other["metadata"]["generation"] == 3


@pytest.mark.parametrize("resource", ["deployments", "replicasets", "daemonsets"])
def test_selectors_are_immutable(server: Server, resource: str) -> None:
    path = f"{APPS}/{resource}"
    create(server, path, spec=SPEC)
    body = {
        "spec": {
            "selector": {"matchLabels": {"z": "y"}},
            "template": {"metadata": {"labels": {"z": "y"}}},
        }
    }
    message = refusal(server, "PATCH", f"{path}/x", body, headers=MERGE)
    assert 'spec.selector: Invalid value: {"matchLabels":{"a":"b","z":"y"}}: field is immutable' in message


def test_a_stateful_set_says_what_may_change(server: Server) -> None:
    path = f"{APPS}/statefulsets"
    create(server, path, spec=SPEC)
    changed = patch(server, f"{path}/x", spec={"replicas": 4, "ordinals": {"start": 1}})
    assert changed["metadata"]["generation"] == 2
    message = refusal(server, "PATCH", f"{path}/x", {"spec": {"serviceName": "other"}}, headers=MERGE)
    assert message == (
        'StatefulSet.apps "x" is invalid: spec: Forbidden: updates to statefulset spec for fields other than '
        "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    )


def test_a_stateful_set_s_containers_mount_its_claims(server: Server) -> None:
    """Upstream's load test mounts "pv", which no volume of the template is called."""
    mounting = {"name": "c", "image": "pause:3", "volumeMounts": [{"name": "pv", "mountPath": "/pv"}]}
    template = {**TEMPLATE, "spec": {"containers": [mounting]}}
    path = f"{APPS}/statefulsets"
    body = {"metadata": {"name": "x"}, "spec": {"selector": SELECTOR, "template": template}}
    assert 'volumeMounts[0].name: Not found: "pv"' in refusal(server, "POST", path, body)
    claim = {"metadata": {"name": "pv"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    made = create(server, path, spec={**body["spec"], "volumeClaimTemplates": [claim]})
    assert "volumes" not in made["spec"]["template"]["spec"]


def test_a_job_s_template_is_fixed_and_its_parallelism_is_not(server: Server) -> None:
    path = "/apis/batch/v1/namespaces/ns/jobs"
    create(server, path, spec=JOB)
    assert patch(server, f"{path}/x", spec={"parallelism": 2, "suspend": True})["metadata"]["generation"] == 2
    message = refusal(server, "PATCH", f"{path}/x", {"spec": {"completions": 3}}, headers=MERGE)
    assert "spec.completions: Invalid value: 3: field is immutable" in message
    labels = {"spec": {"template": {"metadata": {"labels": {"more": "labels"}}}}}
    suspended = server.ask("PATCH", f"{path}/x", labels, headers=MERGE)
    assert suspended.status == 200, "a job that waits may be told where to run"
    patch(server, f"{path}/x", spec={"suspend": False})
    labels["spec"]["template"]["metadata"]["labels"] = {"even": "more"}
    assert "field is immutable" in refusal(server, "PATCH", f"{path}/x", labels, headers=MERGE)


def test_jobs_and_replication_controllers_leave_orphans_where_nothing_is_said(server: Server) -> None:
    for path, spec in (
        ("/apis/batch/v1/namespaces/ns/jobs", JOB),
        ("/api/v1/namespaces/ns/replicationcontrollers", {"template": TEMPLATE}),
    ):
        create(server, path, spec=spec)
        marked = server.ask("DELETE", f"{path}/x").json
        assert marked["metadata"]["finalizers"] == ["orphan"]
        assert (
            server.ask("DELETE", f"{path}/x", {"propagationPolicy": "Background"}).json["status"] == "Success"
        )
        assert server.ask("GET", f"{path}/x").status == 404


INVALID: list[tuple[str, str, Object, str]] = [
    (
        f"{APPS}/deployments",
        "no selector",
        {"spec": {"template": TEMPLATE}},
        'Deployment.apps "x" is invalid: spec.selector: Required value',
    ),
    (
        f"{APPS}/deployments",
        "a selector that selects nothing of its own",
        {"spec": {"selector": {"matchLabels": {"a": "c"}}, "template": TEMPLATE}},
        (
            'Deployment.apps "x" is invalid: spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` '
            "does not match template `labels`"
        ),
    ),
    (
        f"{APPS}/deployments",
        "a selector without terms",
        {"spec": {"selector": {}, "template": TEMPLATE}},
        'Deployment.apps "x" is invalid: spec.selector: Invalid value: {}: empty selector is invalid for deployment',
    ),
    (
        f"{APPS}/replicasets",
        "less than nothing",
        {"spec": {**SPEC, "replicas": -1}},
        'ReplicaSet.apps "x" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    ),
    (
        f"{APPS}/daemonsets",
        "pods that end",
        {
            "spec": {
                "selector": SELECTOR,
                "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}},
            }
        },
        (
            'DaemonSet.apps "x" is invalid: spec.template.spec.restartPolicy: Unsupported value: "Never": supported '
            'values: "Always"'
        ),
    ),
    (
        "/apis/batch/v1/namespaces/ns/jobs",
        "pods that never end",
        {"spec": {"template": TEMPLATE}},
        (
            'Job.batch "x" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", '
            '"Never"'
        ),
    ),
    (
        "/apis/batch/v1/namespaces/ns/cronjobs",
        "no schedule",
        {"spec": {"schedule": "now", "jobTemplate": {"spec": JOB}}},
        'CronJob.batch "x" is invalid: spec.schedule: Invalid value: "now": expected exactly 5 fields, found 1: [now]',
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices",
        "an address of another kind",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["here"]}]},
        (
            'EndpointSlice.discovery.k8s.io "x" is invalid: endpoints[0].addresses[0]: Invalid value: "here": must be '
            "a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        ),
    ),
    (
        "/apis/policy/v1/namespaces/ns/poddisruptionbudgets",
        "both bounds",
        {"spec": {"minAvailable": 1, "maxUnavailable": 1}},
        (
            'PodDisruptionBudget.policy "x" is invalid: spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: '
            "minAvailable and maxUnavailable cannot be both set"
        ),
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "a value of the system's",
        {"value": 1_000_000_001},
        (
            'PriorityClass.scheduling.k8s.io "x" is invalid: value: Forbidden: maximum allowed value of a user defined '
            "priority is 1000000000"
        ),
    ),
    (
        "/apis/networking.k8s.io/v1/servicecidrs",
        "no range",
        {"spec": {"cidrs": ["10.0.0.0/33"]}},
        (
            'ServiceCIDR.networking.k8s.io "x" is invalid: spec.cidrs[0]: Invalid value: "10.0.0.0/33": must be a '
            "valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        ),
    ),
]


@pytest.mark.parametrize(("path", "what", "body", "message"), INVALID, ids=[case[1] for case in INVALID])
def test_what_is_not_valid_is_refused_in_upstream_s_words(
    server: Server, path: str, what: str, body: Object, message: str
) -> None:
    assert refusal(server, "POST", path, {"metadata": {"name": "x"}, **body}) == message


def test_a_budget_must_be_updated_at_the_version_that_was_read(server: Server) -> None:
    path = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"
    created = create(server, path, spec={"minAvailable": 1})
    created["metadata"].pop("resourceVersion")
    assert "metadata.resourceVersion" in refusal(server, "PUT", f"{path}/x", created)


@pytest.mark.parametrize("resource", ["endpoints", "limitranges", "services"])
def test_a_put_creates_what_is_not_there(server: Server, resource: str) -> None:
    spec = {"ports": [{"port": 80}]} if resource == "services" else {}
    path = f"/api/v1/namespaces/ns/{resource}/x"
    assert server.ask("PUT", path, {"metadata": {"name": "x"}, "spec": spec}).status == 201


def test_slices_count_labels_and_content_but_not_annotations(server: Server) -> None:
    path = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"
    create(server, path, addressType="IPv4", endpoints=[])
    noted = patch(server, f"{path}/x", metadata={"annotations": {"a": "b"}})
    assert noted["metadata"]["generation"] == 1
    assert patch(server, f"{path}/x", metadata={"labels": {"a": "b"}})["metadata"]["generation"] == 2
    endpoints = [{"addresses": ["10.0.0.9"]}]
    assert patch(server, f"{path}/x", endpoints=endpoints)["metadata"]["generation"] == 3


def test_numbers_are_selected_by_their_text(server: Server) -> None:
    create(server, f"{APPS}/replicasets", spec=SPEC)
    path = f"{APPS}/replicasets?fieldSelector=status.replicas%3D"
    assert [item["metadata"]["name"] for item in server.ask("GET", path + "0").json["items"]] == ["x"]
    patch(server, f"{APPS}/replicasets/x/status", status={"replicas": 2})
    assert server.ask("GET", path + "0").json["items"] == []
    assert len(server.ask("GET", path + "2").json["items"]) == 1
    jobs = "/apis/batch/v1/namespaces/ns/jobs"
    create(server, jobs, spec=JOB)
    patch(server, f"{jobs}/x/status", status={"succeeded": 1})
    found = server.ask("GET", f"{jobs}?fieldSelector=status.successful%3D1").json["items"]
    assert [item["metadata"]["name"] for item in found] == ["x"]


def test_a_template_s_requests_are_its_owner_s_business(server: Server) -> None:
    """Only pods get requests from their limits."""
    limited = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    spec = {**SPEC, "template": {**TEMPLATE, "spec": {"containers": [limited]}}}
    created = create(server, f"{APPS}/deployments", spec=spec)
    assert created["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


def test_a_generated_name_is_what_a_job_s_labels_say(server: Server) -> None:
    body = {"metadata": {"generateName": "j-"}, "spec": JOB}
    job = server.ask("POST", "/apis/batch/v1/namespaces/ns/jobs", body).json
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels["job-name"] == job["metadata"]["name"]
    assert labels["controller-uid"] == job["metadata"]["uid"]
    assert job["metadata"]["labels"] == labels
