"""Status bodies are those that kube-apiserver v1.36.2 sent; clients read what matters out of them."""

from __future__ import annotations

import pytest

from harness.wire import status
from harness.wire.status import Cause, Details, Status, StatusView, parse_status

HEAD = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":'
FORBIDDEN_FIELD = "FieldValueForbidden"
NEEDS_MATCH = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"


@pytest.mark.parametrize(
    ("value", "rest"),
    [
        (
            status.unauthorized_action(
                "system:node:n1",
                "watch",
                "",
                "secrets",
                namespace="ns1",
                name="s1",
                reason="no relationship found between node 'n1' and this object",
            ),
            (
                r'"secrets \"s1\" is forbidden: User \"system:node:n1\" cannot watch resource \"secrets\" in API group '
                r"\"\" in the namespace \"ns1\": no relationship found between node "
                r"'n1' and this object"
                r'","reason":"Forbidden","details":{"name":"s1","kind":"secrets"},"code":403}'
            ),
        ),
        (
            status.unauthorized_action("someone", "list", "apps", "deployments"),
            (
                r'"deployments.apps is forbidden: User \"someone\" cannot list resource \"deployments\" in API group '
                r'\"apps\" at the cluster scope","reason":"Forbidden","details":{"group":"apps","kind":"deployments"},'
                r'"code":403}'
            ),
        ),
        (
            status.unauthorized_action(
                "u", "create", "", "serviceaccounts", subresource="token", namespace="na", name="default"
            ),
            (
                r'"serviceaccounts \"default\" is forbidden: User \"u\" cannot create resource \"ser'
                r"viceaccounts/token\""
                r' in API group \"\" in the namespace \"na\"","reason":"Forbidden","details":{"name":"default",'
                r'"kind":"serviceaccounts"},"code":403}'
            ),
        ),
        (
            status.forbidden_path("someone", "get", "/metrics"),
            r'"forbidden: User \"someone\" cannot get path \"/metrics\"","reason":"Forbidden","details":{},"code":403}',
        ),
        (
            status.forbidden("", "nodes", "n2", 'node "n1" is not allowed to modify node "n2"'),
            (
                r'"nodes \"n2\" is forbidden: node \"n1\" is not allowed to modify node \"n2\"","reason":"Forbidden",'
                r'"details":{"name":"n2","kind":"nodes"},"code":403}'
            ),
        ),
        (
            status.forbidden(
                "",
                "configmaps",
                "b",
                "unable to create new content in namespace life because it is being terminated",
                [Cause("NamespaceTerminating", "namespace life is being terminated", "metadata.namespace")],
            ),
            (
                r'"configmaps \"b\" is forbidden: unable to create new content in namespace life because it is being '
                r'terminated","reason":"Forbidden","details":{"name":"b","kind":"configmaps","causes":[{"reason":'
                r'"NamespaceTerminating","message":"namespace life is being terminated","field":"metadata.namespace"}]}'
                r',"code":403}'
            ),
        ),
        (status.unauthorized(), '"Unauthorized","reason":"Unauthorized","code":401}'),
        (status.bad_request("no"), '"no","reason":"BadRequest","code":400}'),
        (
            status.bad_request("json parse error: unexpected end of JSON input (<empty>)"),
            r'"json parse error: unexpected end of JSON input (\u003cempty\u003e)","reason":"BadRequest","code":400}',
        ),
        (
            status.not_found("coordination.k8s.io", "leases", "n1"),
            (
                r'"leases.coordination.k8s.io \"n1\" not found","reason":"NotFound","details":{"name":"n1",'
                r'"group":"coordination.k8s.io","kind":"leases"},"code":404}'
            ),
        ),
        (
            status.no_such_resource(),
            '"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}',
        ),
        (
            status.method_not_allowed(),
            (
                '"the server does not allow this method on the requested resource","reason":"MethodNotAllowed",'
                '"details":{},"code":405}'
            ),
        ),
        (
            status.not_acceptable(["application/json", "application/yaml"]),
            (
                r'"406: Not Acceptable\n\nAvailable representations: application/json, application/yaml",'
                '"reason":"NotAcceptable","details":{},"code":406}'
            ),
        ),
        (
            status.already_exists("", "configmaps", "a"),
            (
                r'"configmaps \"a\" already exists","reason":"AlreadyExists","details":{"name":"a","kind":"configmaps"}'
                r',"code":409}'
            ),
        ),
        (
            status.conflict("", "configmaps", "a"),
            (
                r'"Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your '
                r'changes to the latest version and try again","reason":"Conflict","details":{"name":"a",'
                r'"kind":"configmaps"},"code":409}'
            ),
        ),
        (
            status.conflict("", "pods/binding", "p1", 'pod p1 is already assigned to node "n1"'),
            (
                r'"Operation cannot be fulfilled on pods/binding \"p1\": pod p1 is already assigned to node \"n1\"",'
                r'"reason":"Conflict","details":{"name":"p1","kind":"pods/binding"},"code":409}'
            ),
        ),
        (status.too_old(3, 10), '"too old resource version: 3 (9)","reason":"Expired","code":410}'),
        (
            status.unsupported_media_type(),
            '"415: Unsupported Media Type","reason":"UnsupportedMediaType","details":{},"code":415}',
        ),
        (
            status.unsupported_media_type(["application/json", "application/yaml"]),
            (
                '"the body of the request was in an unknown format - accepted media types include: application/json, '
                'application/yaml","reason":"UnsupportedMediaType","code":415}'
            ),
        ),
        (
            status.invalid(
                "meta.k8s.io",
                "ListOptions",
                "",
                [Cause(FORBIDDEN_FIELD, f"Forbidden: {NEEDS_MATCH}", "resourceVersionMatch")],
            ),
            r'"ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: '
            + NEEDS_MATCH
            + r'","reason":"Invalid","details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":'
            r'"FieldValueForbidden","message":"Forbidden: '
            + NEEDS_MATCH
            + '","field":"resourceVersionMatch"}]},'
            '"code":422}',
        ),
        (
            status.invalid("", "Pod", "p", [Cause("A", "m1", "f1"), Cause("B", "m2", "f2")]),
            (
                r'"Pod \"p\" is invalid: [f1: m1, f2: m2]","reason":"Invalid","details":{"name":"p","kind":"Pod",'
                '"causes":[{"reason":"A","message":"m1","field":"f1"},{"reason":"B","message":"m2","field":"f2"}]},'
                '"code":422}'
            ),
        ),
        (
            status.rejected_patch(),
            (
                '"the server rejected our request due to an error in our request","reason":"Invalid","details":{},'
                '"code":422}'
            ),
        ),
        (
            status.storage_initializing(4),
            '"storage is (re)initializing","reason":"TooManyRequests","details":{"retryAfterSeconds":4},"code":429}',
        ),
        (
            status.internal_error("boom"),
            (
                '"Internal error occurred: boom","reason":"InternalError","details":{"causes":[{"message":"boom"}]},'
                '"code":500}'
            ),
        ),
        (
            status.unclassified("resourceVersion should not be set on objects to be created"),
            '"resourceVersion should not be set on objects to be created","code":500}',
        ),
        (
            status.shutting_down(),
            '"apiserver is shutting down","reason":"ServiceUnavailable","details":{"retryAfterSeconds":1},"code":503}',
        ),
        (status.unavailable("x"), '"x","reason":"ServiceUnavailable","code":503}'),
        (
            status.too_large_resource_version(9, 5),
            (
                '"Timeout: Too large resource version: 9, current: 5","reason":"Timeout","details":{"causes":[{'
                '"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryA'
                'fterSeconds":1},"code":504}'
            ),
        ),
        (
            status.too_large_resource_version(9, 5, from_cache=False),
            (
                '"Timeout: Too large resource version: 9, current: 5","reason":"Timeout","details":{"causes":[{'
                '"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]},"code":504}'
            ),
        ),
        (
            status.request_timeout(),
            (
                '"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},'
                '"code":504}'
            ),
        ),
    ],
)
def test_a_failure_is_byte_for_byte_what_a_real_server_sends(value: Status, rest: str) -> None:
    assert value.body().decode() == HEAD + rest + "\n"
    view = parse_status(value.body(), value.http_status)
    assert (view.reason, view.code, view.message) == (value.reason, value.code, value.message)


def test_successes_and_an_expired_page() -> None:
    deleted = status.success(Details(name="a", kind="configmaps", uid="u"))
    assert deleted.http_status == 200
    assert deleted.body() == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success",'
        b'"details":{"name":"a","kind":"configmaps","uid":"u"}}\n'
    )
    assert status.success(code=201).body() == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}\n'
    )
    assert status.continue_expired("abc").as_dict()["metadata"] == {"continue": "abc"}


def test_retry_after_goes_with_details_that_name_it() -> None:
    assert status.too_large_resource_version(2, 1).retry_after_header == "1"
    assert status.storage_initializing(30).retry_after_header == "30"
    assert status.bad_request("x").retry_after_header is None
    assert str(status.StatusError(status.bad_request("x"))) == "400 BadRequest: x"


@pytest.mark.parametrize(
    ("value", "expired", "too_large", "busy"),
    [
        (status.too_old(1, 5), True, False, False),
        (Status(410, "Gone", "x"), True, False, False),
        (status.too_large_resource_version(2, 1), False, True, False),
        (status.storage_initializing(1), False, False, True),
        (status.request_timeout(), False, False, False),
        (status.unauthorized(), False, False, False),
    ],
)
def test_a_client_tells_the_cases_apart(value: Status, expired: bool, too_large: bool, busy: bool) -> None:
    view = parse_status(value.body())
    assert (view.expired, view.too_large, view.too_many_requests) == (expired, too_large, busy)


def test_a_body_that_is_no_status_leaves_the_http_status() -> None:
    view = parse_status(status.APF_REJECTED, 429)
    assert view == StatusView(code=429, message="Too many requests, please try again later.")
    assert view.too_many_requests
    assert parse_status(b'{"kind":"Pod"}', 502).code == 502
    assert parse_status(b"\xff", 500) == StatusView(code=500, message="�")
    assert parse_status(b"", 410).expired


def test_details_and_causes_are_read() -> None:
    view = parse_status(status.too_large_resource_version(2, 1).body())
    assert view.retry_after_s == 1
    assert view.causes == (("ResourceVersionTooLarge", "Too large resource version"),)
