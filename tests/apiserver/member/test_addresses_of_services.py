"""Cluster IPs and node ports: unique over members, given back when nobody has them any more."""

import ipaddress
from typing import Any

import pytest
from fakemember import Server

SERVICES = "/api/v1/namespaces/ns/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
MERGE = {"content-type": "application/merge-patch+json"}
KUBERNETES = "10.0.0.1"


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def create(server: Server, name: str, member: int = 0, **spec: Any) -> Any:
    answer = server.ask("POST", SERVICES, service(name, **spec), member=member)
    assert answer.status == 201, answer.data
    return answer.json


def addresses(server: Server) -> set[str]:
    names = {item["metadata"]["name"] for item in server.ask("GET", ADDRESSES).json["items"]}
    return names - {KUBERNETES}


@pytest.fixture
def small() -> Any:
    """Two members that share a range of 14 addresses, one of which is the service kubernetes'."""
    server = Server(members=2, service_cidr="10.0.0.0/28")
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
    server.settle()
    yield server
    server.close()


def test_an_address_is_an_object_that_names_its_service(server: Server) -> None:
    address = create(server, "a")["spec"]["clusterIP"]
    recorded = server.ask("GET", f"{ADDRESSES}/{address}").json
    assert recorded["spec"] == {"parentRef": {"resource": "services", "namespace": "ns", "name": "a"}}
    assert recorded["metadata"]["labels"] == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    assert ipaddress.ip_address(address) > ipaddress.ip_address("10.0.1.0"), (
        "the lower part is for static ones"
    )
    server.ask("DELETE", f"{SERVICES}/a")
    assert server.ask("GET", f"{ADDRESSES}/{address}").status == 404


def test_the_range_is_an_object_too(server: Server) -> None:
    item = server.ask("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes").json
    assert item["spec"] == {"cidrs": ["10.0.0.0/16"]}
    condition = item["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    assert condition["message"] == "Kubernetes default Service CIDR is ready"


def test_members_that_choose_at_once_choose_different_addresses(small: Server) -> None:
    """All thirteen at the same moment, before either cache can have heard of any of them."""
    sent = [small.send("POST", SERVICES, service(f"s{index}"), member=index % 2) for index in range(13)]
    small.settle(2.0)
    assert [exchange.status for exchange in sent] == [201] * 13
    taken = {exchange.json["spec"]["clusterIP"] for exchange in sent}
    assert len(taken) == 13
    assert taken == addresses(small)
    full = small.ask("POST", SERVICES, service("more"), member=1)
    assert (full.status, full.json["message"]) == (
        500,
        "Internal error occurred: failed to allocate a serviceIP: range is full",
    )
    small.ask("DELETE", f"{SERVICES}/s3")
    small.settle()
    again = create(small, "more", member=1)["spec"]["clusterIP"]
    assert again == sent[3].json["spec"]["clusterIP"]


def test_an_address_that_is_asked_for_must_be_free_and_inside(small: Server) -> None:
    create(small, "a", clusterIP="10.0.0.9")
    refused = small.ask("POST", SERVICES, service("b", clusterIP="10.0.0.9"), member=1)
    assert (refused.status, refused.json["message"]) == (
        422,
        (
            'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.9"]: failed to allocate IP 10.0.0.9: '
            "provided IP is already allocated"
        ),
    )
    outside = small.ask("POST", SERVICES, service("b", clusterIP="10.9.0.1"))
    assert outside.json["message"].endswith(
        "the provided IP (10.9.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/28"
    )


def test_a_service_that_is_refused_gives_its_address_back(small: Server) -> None:
    create(small, "a")
    before = addresses(small)
    assert small.ask("POST", SERVICES, service("a")).status == 409
    assert addresses(small) == before


def test_a_dry_run_takes_nothing(small: Server) -> None:
    shown = small.ask("POST", f"{SERVICES}?dryRun=All", service("a", type="NodePort")).json
    assert shown["spec"]["clusterIP"] == "10.0.0.0"
    assert addresses(small) == set()
    assert small.ask("POST", SERVICES, service("b", type="NodePort")).status == 201


def test_headless_services_and_names_have_none(server: Server) -> None:
    headless = create(server, "a", clusterIP="None", selector={"a": "b"})["spec"]
    assert (headless["clusterIPs"], headless["ipFamilyPolicy"]) == (["None"], "SingleStack")
    bare = create(server, "b", clusterIP="None")["spec"]
    assert (bare["ipFamilies"], bare["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
    named = create(server, "c", type="ExternalName", externalName="e.io")["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "internalTrafficPolicy"} & named.keys()
    assert addresses(server) == set()


def test_a_change_of_type_takes_and_gives_back(server: Server) -> None:
    address = create(server, "a", type="NodePort")["spec"]["clusterIP"]
    to_name = {"spec": {"type": "ExternalName", "externalName": "e.io"}}
    named = server.ask("PATCH", f"{SERVICES}/a", to_name, headers=MERGE).json["spec"]
    assert "clusterIP" not in named
    assert "nodePort" not in named["ports"][0]
    assert addresses(server) == set()
    back = {"spec": {"type": "ClusterIP", "externalName": None}}
    again = server.ask("PATCH", f"{SERVICES}/a", back, headers=MERGE).json["spec"]
    assert addresses(server) == {again["clusterIP"]}
    assert again["clusterIP"] != address
    fixed = server.ask("PATCH", f"{SERVICES}/a", {"spec": {"clusterIP": "10.0.77.7"}}, headers=MERGE)
    assert "may not change once set" in fixed.json["message"]
    assert addresses(server) == {again["clusterIP"]}


def test_a_service_that_waited_for_a_finalizer_gives_back_when_it_goes(server: Server) -> None:
    body = service("a")
    body["metadata"]["finalizers"] = ["e.io/f"]
    server.ask("POST", SERVICES, body)
    server.ask("DELETE", f"{SERVICES}/a")
    assert len(addresses(server)) == 1
    server.ask("PATCH", f"{SERVICES}/a", {"metadata": {"finalizers": None}}, headers=MERGE)
    assert addresses(server) == set()


# ---- node ports ----------------------------------------------------------------------------------------------------
def ports(spec: dict[str, Any]) -> list[int]:
    return [port["nodePort"] for port in spec["ports"]]


def test_node_ports_are_unique_over_members(small: Server) -> None:
    two = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    sent = [
        small.send("POST", SERVICES, service(f"s{index}", type="NodePort", ports=two), member=index % 2)
        for index in range(10)
    ]
    small.settle(2.0)
    numbers = [number for exchange in sent for number in ports(exchange.json["spec"])]
    assert len(set(numbers)) == 20
    assert all(30000 <= number <= 32767 for number in numbers)
    asked = [{"port": 80, "nodePort": numbers[0]}]
    refused = small.ask("POST", SERVICES, service("t", type="NodePort", ports=asked), member=1)
    assert (refused.status, refused.json["message"]) == (
        422,
        (
            f'Service "t" is invalid: spec.ports[0].nodePort: Invalid value: {numbers[0]}: provided port is already '
            "allocated"
        ),
    )
    small.ask("DELETE", f"{SERVICES}/s0", member=0)
    assert small.ask("POST", SERVICES, service("t", type="NodePort", ports=asked), member=1).status == 201


def test_a_port_outside_the_range_is_refused_and_the_address_is_given_back(small: Server) -> None:
    asked = [{"port": 80, "nodePort": 80}]
    refused = small.ask("POST", SERVICES, service("t", type="NodePort", ports=asked))
    assert refused.json["message"].endswith(
        "provided port is not in the valid range. The range of valid ports is 30000-32767"
    )
    assert addresses(small) == set()


def test_a_load_balancer_has_node_ports_unless_it_says_no(server: Server) -> None:
    balanced = create(server, "a", type="LoadBalancer", externalTrafficPolicy="Local")["spec"]
    assert balanced["allocateLoadBalancerNodePorts"] is True
    assert 30000 <= ports(balanced)[0] <= 32767
    assert 30000 <= balanced["healthCheckNodePort"] <= 32767
    assert balanced["healthCheckNodePort"] != ports(balanced)[0]
    without = create(server, "b", type="LoadBalancer", allocateLoadBalancerNodePorts=False)["spec"]
    assert "nodePort" not in without["ports"][0]


def test_an_update_keeps_its_ports_and_gives_back_what_it_drops(server: Server) -> None:
    two = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    first, second = ports(create(server, "a", type="NodePort", ports=two)["spec"])
    one = {"spec": {"ports": [{"name": "a", "port": 80}]}}
    assert ports(server.ask("PATCH", f"{SERVICES}/a", one, headers=MERGE).json["spec"]) == [first]
    asked = [{"port": 80, "nodePort": second}]
    assert create(server, "b", type="NodePort", ports=asked)["spec"]["ports"][0]["nodePort"] == second
    plain = server.ask("PATCH", f"{SERVICES}/a", {"spec": {"type": "ClusterIP"}}, headers=MERGE).json["spec"]
    assert "nodePort" not in plain["ports"][0]
    assert "externalTrafficPolicy" not in plain
    create(server, "c", type="NodePort", ports=[{"port": 80, "nodePort": first}])


# ---- starting ------------------------------------------------------------------------------------------------------
def test_members_that_start_at_once_agree_on_the_service_kubernetes(small: Server) -> None:
    for member in (0, 1):
        spec = small.ask("GET", "/api/v1/namespaces/default/services/kubernetes", member=member).json["spec"]
        assert spec["clusterIP"] == KUBERNETES
    parent = small.ask("GET", f"{ADDRESSES}/{KUBERNETES}").json["spec"]["parentRef"]
    assert (parent["namespace"], parent["name"]) == ("default", "kubernetes")


def test_an_address_whose_service_was_never_written_is_freed(server: Server) -> None:
    """A member that was killed between the two writes of the service kubernetes."""
    server.ask("DELETE", "/api/v1/namespaces/default/services/kubernetes")
    orphan = {
        "metadata": {"name": KUBERNETES},
        "spec": {"parentRef": {"resource": "services", "name": "kubernetes"}},
    }
    assert server.ask("POST", ADDRESSES, orphan).status == 201
    late = server.join("late")
    server.settle(10.0)
    assert late.ready
    assert server.ask("GET", "/api/v1/namespaces/default/services/kubernetes").status == 200
