"""Members found by the EndpointSlices of the service kubernetes: used where all can be reached."""

from __future__ import annotations

import socket

import pytest

from harness.load.cluster import members
from harness.load.cluster.errands import Errands
from harness.load.cluster.members import discover
from tests.load.cluster.conftest import Api

PATH = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def slices(
    *addresses: str, port: int, ready: bool | None = None, name: str | None = "https"
) -> dict[str, object]:
    endpoints = [{"addresses": [address], "conditions": {"ready": ready}} for address in addresses]
    return {"items": [{"endpoints": endpoints, "ports": [{"name": name, "port": port}]}]}


def served(api: Api, answer: dict[str, object], code: int = 200) -> None:
    api.answer = lambda method, path, query, body: (code, answer) if path == PATH else None


def test_members_that_can_be_reached_take_the_place_of_the_one_address(api: Api, errands: Errands) -> None:
    with socket.create_server(("127.0.0.2", api.port)):
        served(api, slices("127.0.0.2", "127.0.0.1", port=api.port))
        found = discover(errands)
    assert [(m.name, m.host, m.port) for m in found.target.members] == [
        ("member-0", "127.0.0.1", api.port),
        ("member-1", "127.0.0.2", api.port),
    ]
    assert found.target.server_name == "127.0.0.1", "the name that the certificate was good for"
    assert found.text == f"2 members, all reachable: 127.0.0.1:{api.port}, 127.0.0.2:{api.port}"
    assert "labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes" in api.asked[0][2]


def test_one_that_cannot_be_reached_leaves_all_as_it_was(api: Api, errands: Errands) -> None:
    served(api, slices("127.0.0.1", "127.0.0.3", port=api.port))
    found = discover(errands)
    assert found.target is errands.target
    assert (
        f"members reachable from here: 127.0.0.1:{api.port}; unreachable: 127.0.0.3:{api.port} (cannot"
        in found.text
    )
    assert "are not told apart by member" in found.text


def test_a_single_member_is_said_so(api: Api, errands: Errands) -> None:
    served(api, slices("127.0.0.1", port=api.port))
    assert discover(errands) == (errands.target, f"1 member: 127.0.0.1:{api.port}")


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        ({"items": None}, 200, "there are no EndpointSlices"),
        (slices("127.0.0.9", port=1, ready=False), 200, "there are no EndpointSlices"),
        (slices("127.0.0.9", port=1, name="metrics"), 200, "there are no EndpointSlices"),
        ({"items": 5}, 200, "are no list"),
        (
            {"message": "endpointslices is forbidden"},
            403,
            "cannot be listed: HTTP 403: endpointslices is forbidden",
        ),
    ],
)
def test_what_is_not_known_is_said(
    api: Api, errands: Errands, answer: dict[str, object], code: int, text: str
) -> None:
    served(api, answer, code)
    found = discover(errands)
    assert found.target is errands.target
    assert text in found.text


def test_a_silent_member_is_given_up_soon(errands: Errands, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        member = members.TargetMember("m", "127.0.0.1", listener.getsockname()[1])
        tls = members.msgspec.structs.replace(errands.target, tls=True, insecure=True)
        for within_s in (0.05, 5.0, 40.0):
            said = members.unreachable(tls, member, "name", within_s=within_s)
            if "no TLS handshake" in said:
                break  # else this machine stood still for that long as it connected
    assert "no TLS handshake" in said
