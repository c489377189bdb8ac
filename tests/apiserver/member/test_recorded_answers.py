"""Answers of a real kube-apiserver v1.36.2, replayed. Steps on resources that are not served, and server-side apply,
are left out."""

import pytest
from fakemember import Server
from recorded import differences

LEFT_OUT = {"patch": {16, 17, 18}, "services": {2, 3}}
CASES = (
    "auth",
    "bad-input",
    "crud-configmap",
    "discovery",
    "finalizers",
    "health",
    "leases",
    "list-semantics",
    "list-views",
    "namespaces",
    "node-authorizer",
    "patch",
    "pods",
    "services",
    "watch-basic",
    "watch-list",
)


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_case_is_answered_as_the_real_server_did(case: str) -> None:
    server = Server(server_address="127.0.0.1:16443")
    try:
        found = differences(server, case, LEFT_OUT.get(case, set()))
    finally:
        server.close()
    assert not found, "\n".join(found)
