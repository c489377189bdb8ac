"""A pod's life as scheduler and kubelet drive it."""

from fakemember import Server

PODS = "/api/v1/namespaces/ns/pods"
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}
NODE = "system:node:n1"


def pod(name: str, **spec: object) -> dict:
    containers = [{"name": "c", "image": "registry.k8s.io/pause:3.9"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def bind(server: Server, name: str, node: str = "n1") -> None:
    target = {"kind": "Node", "name": node}
    answer = server.ask("POST", f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
    assert answer.status == 201
    server.settle()


def test_a_pod_gets_its_account_s_token_as_a_projected_volume(server: Server) -> None:
    created = server.ask("POST", PODS, pod("p")).json
    volume = created["spec"]["volumes"][0]
    assert volume["name"].startswith("kube-api-access-")
    assert len(volume["name"]) == len("kube-api-access-") + 5
    sources = volume["projected"]["sources"]
    assert sources[0] == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    assert sources[1]["configMap"]["name"] == "kube-root-ca.crt"
    mount = created["spec"]["containers"][0]["volumeMounts"][0]
    assert (mount["name"], mount["readOnly"]) == (volume["name"], True)
    assert created["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_a_pod_waits_for_the_account_that_a_controller_makes(server: Server) -> None:
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
    sent = server.send("POST", "/api/v1/namespaces/new/pods", pod("p"))
    server.settle(0.3)
    assert not sent.finished
    server.ask("POST", "/api/v1/namespaces/new/serviceaccounts", {"metadata": {"name": "default"}})
    server.settle(0.5)
    assert sent.status == 201


def test_quality_of_service_follows_requests_and_limits(server: Server) -> None:
    figures = {"cpu": "1", "memory": "1Gi"}
    for resources, expected in (
        ({}, "BestEffort"),
        ({"requests": {"cpu": "5m"}}, "Burstable"),
        ({"limits": figures}, "Guaranteed"),
        ({"limits": figures, "requests": {"cpu": "1m"}}, "Burstable"),
    ):
        body = pod(expected.lower() + str(len(resources)))
        body["spec"]["containers"][0]["resources"] = resources
        created = server.ask("POST", PODS, body).json
        assert created["status"]["qosClass"] == expected


def test_a_pod_lives_and_dies(server: Server) -> None:
    watch = server.send("GET", f"{PODS}?watch=true&resourceVersion=0")
    server.ask("POST", PODS, pod("p"))
    bind(server, "p")
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    running = server.ask("PATCH", f"{PODS}/p/status", status, NODE, headers=STRATEGIC)
    assert running.status == 200
    assert [item["type"] for item in running.json["status"]["conditions"]] == ["Ready", "PodScheduled"]
    assert running.json["metadata"]["generation"] == 1

    marked = server.ask("DELETE", f"{PODS}/p")
    assert marked.json["metadata"]["deletionGracePeriodSeconds"] == 30
    assert marked.json["metadata"]["generation"] == 2
    again = server.ask("DELETE", f"{PODS}/p")
    assert again.json["metadata"]["resourceVersion"] == marked.json["metadata"]["resourceVersion"]

    uid = marked.json["metadata"]["uid"]
    other = {"gracePeriodSeconds": 0, "preconditions": {"uid": "somebody-else"}}
    assert server.ask("DELETE", f"{PODS}/p", other, NODE).status == 409
    mine = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    assert server.ask("DELETE", f"{PODS}/p", mine, NODE).status == 200
    assert server.ask("GET", f"{PODS}/p").status == 404
    server.settle()
    # The end of the grace period is announced before the object goes, as upstream writes twice.
    kinds = [event["type"] for event in watch.events]
    assert kinds == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    assert watch.events[-2]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0


def test_a_pod_is_bound_once(server: Server) -> None:
    server.ask("POST", PODS, pod("p"))
    target = {"target": {"kind": "Node", "name": "n1"}}
    sent = [server.send("POST", f"{PODS}/p/binding", {**target, "metadata": {"name": "p"}}) for _ in range(3)]
    server.settle(1)
    assert sorted(exchange.status for exchange in sent) == [201, 409, 409]


def test_the_old_way_to_bind_still_binds(server: Server) -> None:
    server.ask("POST", PODS, pod("p"))
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert server.ask("POST", "/api/v1/namespaces/ns/bindings", body).status == 201
    assert server.ask("GET", f"{PODS}/p").json["spec"]["nodeName"] == "n1"
    assert server.ask("POST", "/api/v1/namespaces/ns/bindings", body).status == 409
    assert server.ask("GET", "/api/v1/namespaces/ns/bindings").status == 405


def test_an_eviction_deletes(server: Server) -> None:
    server.ask("POST", PODS, pod("p"))
    eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}}
    assert server.ask("POST", f"{PODS}/p/eviction", eviction).status == 201
    assert server.ask("GET", f"{PODS}/p").status == 404


def test_a_status_patch_cannot_change_the_spec(server: Server) -> None:
    server.ask("POST", PODS, pod("p"))
    patch = {"spec": {"nodeName": "elsewhere"}, "status": {"phase": "Failed"}}
    changed = server.ask("PATCH", f"{PODS}/p/status", patch, headers=STRATEGIC).json
    assert "nodeName" not in changed["spec"]
    assert changed["status"]["phase"] == "Failed"


def test_a_wrong_pod_is_refused_field_by_field(server: Server) -> None:
    body = pod("p")
    body["spec"]["containers"] = [{"name": "C", "volumeMounts": [{"name": "none", "mountPath": "/x"}]}]
    refused = server.ask("POST", PODS, body)
    assert refused.status == 422
    fields = [cause["field"] for cause in refused.json["details"]["causes"]]
    assert fields == [
        "spec.containers[0].name",
        "spec.containers[0].image",
        "spec.containers[0].volumeMounts[0].name",
    ]


def test_an_image_may_change_and_a_name_may_not(server: Server) -> None:
    created = server.ask("POST", PODS, pod("p")).json
    image = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
    assert server.ask("PATCH", f"{PODS}/p", image, headers=STRATEGIC).json["metadata"]["generation"] == 2
    created["metadata"].pop("resourceVersion")
    created["spec"]["hostNetwork"] = True
    refused = server.ask("PUT", f"{PODS}/p", created)
    assert refused.status == 422
    assert "pod updates may not change fields other than" in refused.json["message"]
