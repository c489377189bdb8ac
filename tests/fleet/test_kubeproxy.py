"""kube-proxy's requests, and what it keeps of thousands of objects."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from harness.fleet import sharing
from harness.fleet.kubeproxy import KubeProxy, kube_proxy_limiters
from harness.fleet.options import KubeletOptions
from tests.fleet.builders import add_kubelet
from tests.fleet.fakeapi import EPOCH_S, World

NODE = {"metadata": {"name": "n1"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}


def add_proxy(world: World, **options: Any) -> KubeProxy:
    proxy = KubeProxy("n1", KubeletOptions(**options), Random(1), EPOCH_S)
    world.add(proxy)
    return proxy


def test_it_watches_its_node_then_cidrs_slices_and_services_with_its_selectors() -> None:
    world = World()
    world.create("nodes", "", dict(NODE))
    proxy = add_proxy(world)
    world.run(1.0)
    watches = [each.info for each in world.log if each.info.verb == "watch"]
    assert [(w.resource, w.query.get("fieldSelector"), w.query.get("labelSelector")) for w in watches] == [
        ("nodes", "metadata.name=n1", None),
        ("servicecidrs", None, None),
        (
            "endpointslices",
            None,
            "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name",
        ),
        ("services", "spec.clusterIP!=None", "!service.kubernetes.io/service-proxy-name"),
    ]
    assert {w.query["sendInitialEvents"] for w in watches} == {"true"}
    assert all(300 <= int(w.query["timeoutSeconds"]) < 600 for w in watches)
    assert proxy.synced
    assert [each.kind for each in world.notes] == ["kube-proxy-synced"]


def test_it_waits_for_its_node_to_exist_and_have_an_address() -> None:
    world = World()
    add_proxy(world)
    world.run(2.5)
    assert world.lines() == ["watch nodes"]
    world.create("nodes", "", {"metadata": {"name": "n1"}, "status": {}})
    world.run(4.5)
    assert world.lines() == ["watch nodes"]
    world.change("nodes", "", "n1", NODE)
    world.run(5.5)
    assert world.requests("watch services")[0].at == pytest.approx(5.0, abs=0.01)  # it looks each second


def test_it_comes_up_beside_the_kubelet_of_its_node() -> None:
    world = World()
    add_proxy(world)
    add_kubelet(world, events=False)
    world.run(3.0)
    assert {each.info.resource for each in world.watches if each.who == 0} == {
        "nodes",
        "services",
        "endpointslices",
        "servicecidrs",
    }


def test_its_birth_cry_is_an_event_of_the_new_api() -> None:
    world = World()
    world.create("nodes", "", dict(NODE))
    add_proxy(world)
    world.run(1.0)
    (event,) = world.requests("create events")
    assert event.request.path == "/apis/events.k8s.io/v1/namespaces/default/events"
    body = msgspec.json.decode(event.request.body)
    assert (body["reason"], body["action"], body["type"]) == ("Starting", "StartKubeProxy", "Normal")
    assert body["reportingInstance"] == "kube-proxy-n1"
    assert body["eventTime"].endswith("Z")


def test_a_silent_node_has_a_silent_proxy() -> None:
    world = World()
    world.create("nodes", "", dict(NODE))
    add_proxy(world, events=False)
    world.run(1.0)
    assert world.requests("create events") == []


def test_an_old_client_lists() -> None:
    world = World()
    world.create("nodes", "", dict(NODE))
    add_proxy(world, watch_list=False)
    world.run(1.0)
    assert {line for line in world.lines() if line.startswith("list")} == {
        "list nodes",
        "list services",
        "list endpointslices",
        "list servicecidrs",
    }


def test_nothing_is_kept_of_what_every_node_hears() -> None:
    world = World()
    world.create("nodes", "", dict(NODE))
    proxy = add_proxy(world)
    for index in range(20):
        world.create("endpointslices", "t", {"metadata": {"name": f"s-{index}"}})
    world.run(1.0)
    world.change("endpointslices", "t", "s-3", {"endpoints": []})
    world.delete("endpointslices", "t", "s-4")
    world.run(2.0)
    assert proxy.synced
    assert [len(each.store) for each in proxy._informers.values()] == [0, 0, 0]
    assert proxy._informers["endpointslices"].last_resource_version == str(world.version)


def test_it_stops_with_all_its_watches() -> None:
    world = World()
    world.create("nodes", "", dict(NODE))
    add_proxy(world)
    world.run(1.0)
    world.stop(0)
    assert world.watches == []


def test_its_client_passes_five_requests_a_second() -> None:
    bucket = kube_proxy_limiters()["main"]
    assert bucket is not None
    assert (bucket.qps, bucket.burst) == (5.0, 10)


# ---- sharing ---------------------------------------------------------------------------------------------------------
def large(name: str, version: int, filler: int = 5000) -> bytes:
    """As an API server writes it: metadata first."""
    return msgspec.json.encode(
        {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": {"name": name, "namespace": "t", "uid": f"u-{name}", "resourceVersion": str(version)},
            "endpoints": ["x" * filler],
        }
    )


def test_a_large_object_is_decoded_once_for_all_who_hear_of_it() -> None:
    from harness.client.store import ObjectView

    decode = sharing.shared_decode(ObjectView)
    first = decode(large("a", 17))
    assert decode(large("a", 17)) is first
    assert decode(large("a", 18)).metadata.resource_version == "18"
    assert decode(large("b", 17)).metadata.name == "b"


def test_large_objects_whose_head_does_not_name_their_revision_are_decoded_each_time() -> None:
    from harness.client.store import ObjectView

    decode = sharing.shared_decode(ObjectView)
    name = "n" * 600
    assert decode(large(name, 17)) is not decode(large(name, 17))
    assert decode(large(name, 18)).metadata.resource_version == "18"


@pytest.mark.parametrize("length", range(380, 400))
def test_a_revision_that_is_cut_off_by_the_end_of_the_head_is_no_key(length: int) -> None:
    from harness.client.store import ObjectView

    decode = sharing.shared_decode(ObjectView)
    name = "n" * (length // 2)
    for version in (1234567, 1234568):
        assert decode(large(name + "x" * (length % 2), version)).metadata.resource_version == str(version)


def test_only_so_many_large_objects_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.client.store import ObjectView

    monkeypatch.setattr(sharing, "_HEADS", 2)
    decode = sharing.shared_decode(ObjectView)
    first = decode(large("a", 1))
    decode(large("b", 2))
    decode(large("c", 3))
    assert decode(large("a", 1)) is not first
