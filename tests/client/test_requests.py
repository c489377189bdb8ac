"""Requests are those of client-go's generated clients."""

from __future__ import annotations

import pytest

from harness.client.requests import (
    CONFIGMAPS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    SECRETS,
    SERVICEACCOUNTS,
    create_,
    delete_,
    delete_collection_,
    get_,
    list_,
    patch_,
    update_,
    watch_,
)
from harness.wire.request import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Request


@pytest.mark.parametrize(
    ("request_", "verb", "method", "path", "name"),
    [
        (get_(PODS, "a", "p"), "get", "GET", "/api/v1/namespaces/a/pods/p", "pods"),
        (
            get_(NODES, None, "n1", resource_version="0"),
            "get",
            "GET",
            "/api/v1/nodes/n1?resourceVersion=0",
            "nodes",
        ),
        (
            list_(SECRETS, "a", field_selector="metadata.name=s", resource_version="0", limit=500),
            "list",
            "GET",
            "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Ds&limit=500&resourceVersion=0",
            "secrets",
        ),
        (
            list_(CONFIGMAPS, continue_token="abc", limit=5),
            "list",
            "GET",
            "/api/v1/configmaps?continue=abc&limit=5",
            "configmaps",
        ),
        (
            watch_(PODS, field_selector="spec.nodeName=n1", timeout_seconds=3260, generated_client=False),
            "watch",
            "GET",
            "/api/v1/pods?allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dn1&timeoutSeconds=3260&watch=true",
            "pods",
        ),
        (
            watch_(EVENTS, "a", bookmarks=False),
            "watch",
            "GET",
            "/api/v1/namespaces/a/events?watch=true",
            "events",
        ),
        (create_(NODES, None, b"{}"), "create", "POST", "/api/v1/nodes", "nodes"),
        (
            create_(SERVICEACCOUNTS, "a", b"{}", name="default", subresource="token"),
            "create",
            "POST",
            "/api/v1/namespaces/a/serviceaccounts/default/token",
            "serviceaccounts/token",
        ),
        (
            update_(LEASES, "kube-node-lease", "n1", b"{}", timeout_s=10),
            "update",
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1?timeout=10s",
            "leases",
        ),
        (
            patch_(NODES, None, "n1", b"{}", subresource="status", timeout_s=10),
            "patch",
            "PATCH",
            "/api/v1/nodes/n1/status?timeout=10s",
            "nodes/status",
        ),
        (delete_(PODS, "a", "p"), "delete", "DELETE", "/api/v1/namespaces/a/pods/p", "pods"),
        (
            delete_collection_(PODS, "a", label_selector="x=y"),
            "deletecollection",
            "DELETE",
            "/api/v1/namespaces/a/pods?labelSelector=x%3Dy",
            "pods",
        ),
    ],
)
def test_a_request_has_the_path_of_client_go_and_a_bounded_name(
    request_: Request, verb: str, method: str, path: str, name: str
) -> None:
    assert (request_.verb, request_.method, request_.path, request_.name) == (verb, method, path, name)
    assert request_.is_stream == (verb == "watch")


def test_bodies_have_their_content_type_and_reads_have_none() -> None:
    assert get_(PODS, "a", "p").content_type == ""
    assert create_(PODS, "a", b"{}").content_type == JSON
    assert patch_(PODS, "a", "p", b"{}").content_type == STRATEGIC_MERGE_PATCH
    assert patch_(PODS, "a", "p", b"{}", content_type=MERGE_PATCH).content_type == MERGE_PATCH
    assert update_(LEASES, "a", "b", b"{}", timeout_s=10, client="heartbeat").timeout_s == 10
    assert update_(LEASES, "a", "b", b"{}", client="heartbeat").client == "heartbeat"


def test_deletions_carry_their_options() -> None:
    assert delete_(PODS, "a", "p").body == b'{"kind":"DeleteOptions","apiVersion":"v1"}'
    assert delete_(PODS, "a", "p", grace_period_s=0, uid="u", resource_version="5").body == (
        b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,'
        b'"preconditions":{"uid":"u","resourceVersion":"5"}}'
    )
