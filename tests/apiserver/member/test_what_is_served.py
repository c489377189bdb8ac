"""That all is served which real components ask for, and that who deletes namespaces hears of it."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from fakemember import Server

from harness.apiserver.resources import RESOURCES
from harness.client.discovery import GROUPS, PATHS, discover_, namespaced
from harness.client.machine import Answered, Send
from harness.client.requests import PODS
from harness.fleet.controllers.namespaces import NamespaceController, NamespaceOptions
from harness.wire.paths import parse_path
from harness.wire.request import Response

TRACE = Path(__file__).parents[2] / "data" / "traces" / "control-plane.jsonl"
# Informers of kube-scheduler and kube-controller-manager v1.36 with default feature gates
# (kk/pkg/scheduler/eventhandlers.go and framework/plugins, kk/cmd/kube-controller-manager/app).
INFORMERS = (
    *(
        "pods",
        "nodes",
        "namespaces",
        "services",
        "endpoints",
        "secrets",
        "configmaps",
        "serviceaccounts",
        "events",
    ),
    *(
        "replicationcontrollers",
        "podtemplates",
        "limitranges",
        "resourcequotas",
        "persistentvolumes",
    ),
    *(
        "persistentvolumeclaims",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
    ),
    *(
        "controllerrevisions.apps",
        "jobs.batch",
        "cronjobs.batch",
        "poddisruptionbudgets.policy",
    ),
    *(
        "horizontalpodautoscalers.autoscaling",
        "priorityclasses.scheduling.k8s.io",
    ),
    *(
        "endpointslices.discovery.k8s.io",
        "networkpolicies.networking.k8s.io",
        "ingresses.networking.k8s.io",
    ),
    *(
        "ingressclasses.networking.k8s.io",
        "ipaddresses.networking.k8s.io",
        "servicecidrs.networking.k8s.io",
    ),
    *(
        "storageclasses.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csidrivers.storage.k8s.io",
    ),
    *(
        "csistoragecapacities.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    ),
    *(
        "volumeattributesclasses.storage.k8s.io",
        "resourceclaims.resource.k8s.io",
    ),
    *(
        "resourceclaimtemplates.resource.k8s.io",
        "resourceslices.resource.k8s.io",
    ),
    *(
        "deviceclasses.resource.k8s.io",
        "leases.coordination.k8s.io",
        "runtimeclasses.node.k8s.io",
    ),
    *(
        "certificatesigningrequests.certificates.k8s.io",
        "roles.rbac.authorization.k8s.io",
    ),
    *(
        "rolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
    ),
    *(
        "clusterrolebindings.rbac.authorization.k8s.io",
        "events.events.k8s.io",
    ),
    *("validatingadmissionpolicies.admissionregistration.k8s.io",),
    *("validatingwebhookconfigurations.admissionregistration.k8s.io",),
    *("mutatingwebhookconfigurations.admissionregistration.k8s.io",),
)


def recorded_of_the_real_controller() -> set[str]:
    """What a real kube-controller-manager v1.36 listed in a namespace that it deleted."""
    rows = [msgspec.json.decode(line) for line in TRACE.read_bytes().splitlines()]
    listed = [row["uri"] for row in rows if row["who"] == "namespace-controller" and row["verb"] == "list"]
    found = [parse_path(uri, "GET") for uri in listed if "/pods" not in uri]
    return {f"{info.group}/{info.version}/{info.resource}" for info in found}


@pytest.mark.parametrize("name", INFORMERS)
def test_what_real_components_watch_can_be_listed(name: str) -> None:
    assert name in {resource.group_resource for resource in RESOURCES if "watch" in resource.verbs}


def test_discovery_names_what_a_real_namespace_controller_deleted(server: Server) -> None:
    documents = [server.ask("GET", path, headers={"accept": discover_(path).accept}) for path in PATHS]
    found = [ref for ref in namespaced(GROUPS.decode(each.data) for each in documents) if ref != PODS]
    assert {f"{ref.group}/{ref.version}/{ref.resource}" for ref in found} == recorded_of_the_real_controller()


def test_the_fleet_s_namespace_controller_deletes_what_discovery_names(server: Server) -> None:
    """Whatever rows there are: nothing of a namespace is left behind."""
    server.ask("POST", "/api/v1/namespaces/ns/configmaps", {"metadata": {"name": "c"}})
    slices = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"
    server.ask("POST", slices, {"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": []})
    server.ask("DELETE", "/api/v1/namespaces/ns")
    asked = run(server, NamespaceController(NamespaceOptions(), Random(1), 0.0))
    assert server.ask("GET", "/api/v1/namespaces/ns").status == 404
    deleted = {(info.group, info.resource) for verb, info in asked if verb == "deletecollection"}
    wanted = {
        (resource.group, resource.resource)
        for resource in RESOURCES
        if resource.namespaced and "deletecollection" in resource.verbs
    }
    assert len(wanted) > 30
    assert deleted == wanted


def run(server: Server, controller: NamespaceController) -> list[tuple[str, object]]:
    """Hand the controller's one deletion of ``ns`` to the server; (verb, request) in order."""
    asked = []
    out: list[object] = []
    controller._ready.append("ns")
    controller._work(0.0, out)  # type: ignore[arg-type]
    while out:
        action = out.pop(0)
        if not isinstance(action, Send):
            continue
        request = action.request
        asked.append((request.verb, parse_path(request.path, request.method)))
        headers = {"accept": request.accept, "content-type": request.content_type or "application/json"}
        body = request.body.decode() if request.body else None
        answer = server.ask(request.method, request.path, body, headers=headers)
        response = Response(answer.status, answer.answer_headers, answer.data)
        out += controller.handle(Answered(action.key, response), 0.0)
    return asked
