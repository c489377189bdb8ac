"""What nodes may read depends on a graph that each member fills by itself, a little later than the watches."""

from fakemember import Server

PODS = "/api/v1/namespaces/ns/pods"
SECRET = "/api/v1/namespaces/ns/secrets/s1"
NODE = "system:node:n1"


def bound_pod(server: Server) -> None:
    server.ask("POST", "/api/v1/namespaces/ns/secrets", {"metadata": {"name": "s1"}, "data": {"k": "dg=="}})
    volumes = [{"name": "s", "secret": {"secretName": "s1"}}]
    spec = {"containers": [{"name": "c", "image": "pause"}], "volumes": volumes}
    server.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert server.ask("POST", f"{PODS}/p/binding", body).status == 201


def test_a_secret_is_refused_until_the_graph_has_the_pod(server: Server) -> None:
    server.member.node_authorizer.stall(5.0)
    bound_pod(server)
    refused = server.ask("GET", SECRET, user=NODE)
    assert refused.status == 403
    assert "no relationship found between node 'n1' and this object" in refused.json["message"]
    assert refused.answer_headers["x-content-type-options"] == "nosniff"
    server.settle(5.0)
    assert server.ask("GET", SECRET, user=NODE).status == 200


def test_the_fault_is_injected_by_an_admin_only(server: Server) -> None:
    fault = {"fault": {"kind": "stall-informer"}, "for": 20}
    assert server.ask("POST", "/swarmlet/faults", fault, NODE).status == 403
    assert server.ask("POST", "/swarmlet/faults", {"fault": {"kind": "unknown"}}).status == 400
    assert server.ask("POST", "/swarmlet/faults", fault).status == 200
    bound_pod(server)
    server.settle(15)
    assert server.ask("GET", SECRET, user=NODE).status == 403
    server.settle(10)
    assert server.ask("GET", SECRET, user=NODE).status == 200


def test_each_member_has_a_graph_of_its_own() -> None:
    server = Server(members=3)
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
    server.ask("POST", "/api/v1/namespaces/ns/serviceaccounts", {"metadata": {"name": "default"}}, member=1)
    server.members[2].node_authorizer.stall(30.0)
    bound_pod(server)
    server.settle()
    statuses = [server.ask("GET", SECRET, user=NODE, member=member).status for member in range(3)]
    assert statuses == [200, 200, 403]
    server.close()


def test_a_kubelet_gets_a_token_for_its_pod(server: Server) -> None:
    bound_pod(server)
    server.settle()
    uid = server.ask("GET", f"{PODS}/p").json["metadata"]["uid"]
    path = "/api/v1/namespaces/ns/serviceaccounts/default/token"
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}
    spec = {"audiences": [], "expirationSeconds": 3607, "boundObjectRef": reference}
    answer = server.ask("POST", path, {"spec": spec}, NODE)
    assert answer.status == 201
    assert answer.json["spec"]["audiences"] == ["https://kubernetes.default.svc.cluster.local"]
    token = answer.json["status"]["token"]
    who = {"authorization": f"Bearer {token}"}
    denied = server.ask("GET", "/api/v1/namespaces/ns/secrets", headers=who)
    assert 'User "system:serviceaccount:ns:default" cannot list' in denied.json["message"]
    assert server.ask("GET", "/apis", headers=who).status == 200


def test_a_token_must_last_ten_minutes(server: Server) -> None:
    path = "/api/v1/namespaces/ns/serviceaccounts/default/token"
    refused = server.ask("POST", path, {"spec": {"expirationSeconds": 60}})
    assert refused.status == 422
    assert "may not specify a duration less than 10 minutes" in refused.json["message"]


def test_a_kubelet_registers_and_renews_its_lease(server: Server) -> None:
    node = {"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}}, "spec": {}}
    created = server.ask("POST", "/api/v1/nodes", node, NODE)
    assert created.status == 201
    assert created.json["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    lease = server.ask("POST", leases, {"metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1"}}, NODE)
    for second in range(3):
        lease.json["spec"]["renewTime"] = f"2026-01-01T00:00:0{second}.000000Z"
        lease = server.ask("PUT", f"{leases}/n1", lease.json, NODE)
        assert lease.status == 200
    csinode = {"metadata": {"name": "n1"}, "spec": {"drivers": []}}
    assert server.ask("POST", "/apis/storage.k8s.io/v1/csinodes", csinode, NODE).status == 201
