"""A request line is read as kube-apiserver reads it, and written as client-go writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.paths import PathError, RequestInfo, build_path, build_query, parse_path, parse_query

WATCH_LIST = (
    "/api/v1/namespaces/ns1/secrets?allowWatchBookmarks=true&fieldSelector=metadata.name%3Ds1"
    "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeout=7m12s&timeoutSeconds=432&watch=true"
)


def _of(info: RequestInfo) -> tuple[str, ...]:
    return (info.verb, info.group, info.version, info.namespace, info.resource, info.subresource, info.name)


# As requestinfo_test.go of kube-apiserver has them.
@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/namespaces", ("list", "", "v1", "", "namespaces", "", "")),
        ("GET", "/api/v1/namespaces/other", ("get", "", "v1", "other", "namespaces", "", "other")),
        ("GET", "/api/v1/namespaces/other/pods", ("list", "", "v1", "other", "pods", "", "")),
        ("GET", "/api/v1/namespaces/other/pods/foo", ("get", "", "v1", "other", "pods", "", "foo")),
        ("HEAD", "/api/v1/namespaces/other/pods/foo", ("get", "", "v1", "other", "pods", "", "foo")),
        ("HEAD", "/api/v1/namespaces/other/pods", ("list", "", "v1", "other", "pods", "", "")),
        ("GET", "/api/v1/pods", ("list", "", "v1", "", "pods", "", "")),
        (
            "GET",
            "/api/v1/namespaces/other/pods/foo/status",
            ("get", "", "v1", "other", "pods", "status", "foo"),
        ),
        (
            "PUT",
            "/api/v1/namespaces/other/finalize",
            ("update", "", "v1", "other", "namespaces", "finalize", "other"),
        ),
        (
            "PUT",
            "/api/v1/namespaces/other/status",
            ("update", "", "v1", "other", "namespaces", "status", "other"),
        ),
        ("GET", "/api/v1/watch/pods", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/watch/namespaces/other/pods", ("watch", "", "v1", "other", "pods", "", "")),
        ("GET", "/api/v1/watch/namespaces/other/pods/foo", ("watch", "", "v1", "other", "pods", "", "foo")),
        ("GET", "/api/v1/pods?watch=true", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?watch=1", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?watch=", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?watch=false", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?watch=FALSE", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?watch=0", ("list", "", "v1", "", "pods", "", "")),
        (
            "GET",
            "/api/v1/namespaces/other/pods/foo?watch=true",
            ("get", "", "v1", "other", "pods", "", "foo"),
        ),
        ("POST", "/api/v1/namespaces/other/pods", ("create", "", "v1", "other", "pods", "", "")),
        (
            "POST",
            "/api/v1/namespaces/other/pods/p/binding",
            ("create", "", "v1", "other", "pods", "binding", "p"),
        ),
        ("PATCH", "/api/v1/nodes/n1/status", ("patch", "", "v1", "", "nodes", "status", "n1")),
        ("DELETE", "/api/v1/namespaces/other/pods/foo", ("delete", "", "v1", "other", "pods", "", "foo")),
        ("DELETE", "/api/v1/namespaces/other/pods", ("deletecollection", "", "v1", "other", "pods", "", "")),
        (
            "GET",
            "/apis/apps/v1/namespaces/other/deployments",
            ("list", "apps", "v1", "other", "deployments", "", ""),
        ),
        (
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1?timeout=10s",
            ("update", "coordination.k8s.io", "v1", "kube-node-lease", "leases", "", "n1"),
        ),
        (
            "GET",
            "/api/v1/proxy/namespaces/other/pods/foo/bar",
            ("proxy", "", "v1", "other", "pods", "", "foo"),
        ),
        ("OPTIONS", "/api/v1/pods", ("", "", "v1", "", "pods", "", "")),
    ],
)
def test_a_resource_path_is_read_as_upstream_reads_it(
    method: str, path: str, expected: tuple[str, ...]
) -> None:
    info = parse_path(path, method)
    assert info.is_resource
    assert _of(info) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz",
        "/openapi/v2/x/y",
        "/metrics",
    ],
)
def test_anything_else_is_no_resource_and_its_verb_is_the_method(path: str) -> None:
    info = parse_path(path, "GET")
    assert not info.is_resource
    assert (info.verb, info.path) == ("get", path)
    assert info.parts == ()


def test_parts_start_at_the_resource_and_the_query_keeps_first_values() -> None:
    info = parse_path("/api/v1/namespaces/other/pods/foo/proxy/some/path?a=1&a=2&b=x%20y+z&c")
    assert info.parts == ("pods", "foo", "proxy", "some", "path")
    assert info.query == {"a": "1", "b": "x y z", "c": ""}
    assert info.api_prefix == "api"
    assert info.resource_and_subresource == "pods/proxy"


@pytest.mark.parametrize("path", ["/api/v1/watch", "/apis/apps/v1/watch/"])
def test_a_special_verb_without_a_resource_is_an_error(path: str) -> None:
    with pytest.raises(PathError, match="unable to determine kind and namespace from url"):
        parse_path(path)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("fieldSelector=metadata.name%3Ds1", "s1"),
        ("fieldSelector=metadata.name=s1&watch=true", "s1"),
        ("fieldSelector=metadata.name%3D%3Ds1", "s1"),
        ("fieldSelector=a%3Db,metadata.name%3Ds1", "s1"),
        ("fieldSelector=metadata.name%3Ds1,metadata.namespace%3Dx&watch=1&timeoutSeconds=3", "s1"),
        ("fieldSelector=metadata.name!%3Ds1", ""),
        ("fieldSelector=metadata.name%3D", ""),
        ("fieldSelector=metadata.name%3Da/b", ""),
        ("fieldSelector=metadata.name%3Da%25b", ""),
        ("fieldSelector=metadata.name%3D..", ""),
        ("fieldSelector=metadata.name%3Da%5C,b", "a,b"),
        ("fieldSelector=metadata.name%3Da%3Db", ""),
        ("fieldSelector=spec.nodeName%3Dn1", ""),
        ("fieldSelector=metadata.name%3Ds1&limit=abc", ""),
        ("fieldSelector=metadata.name%3Ds1&timeoutSeconds=1x", ""),
        ("fieldSelector=metadata.name%3Ds1&timeoutSeconds=-1", "s1"),
        ("fieldSelector=metadata.name%3Ds1&labelSelector=a+b+c", ""),
        ("fieldSelector=metadata.name%3Ds1&labelSelector=a%3Db", "s1"),
    ],
)
def test_the_name_comes_from_a_field_selector_that_requires_it(query: str, name: str) -> None:
    assert parse_path(f"/api/v1/namespaces/ns1/secrets?{query}").name == name


def test_a_watch_stays_a_watch_where_other_options_do_not_parse() -> None:
    assert parse_path("/api/v1/pods?watch=true&limit=abc&fieldSelector=metadata.name%3Dx").verb == "watch"


def test_a_deletecollection_takes_no_name_from_its_selector() -> None:
    info = parse_path("/api/v1/namespaces/ns1/secrets?fieldSelector=metadata.name%3Ds1", "DELETE")
    assert (info.verb, info.name) == ("deletecollection", "")


def test_escaped_paths_are_decoded_before_they_are_split() -> None:
    assert parse_path("/api/v1/nodes/a%20b").name == "a b"
    assert parse_path("/api/v1/nodes/a%2Fstatus").subresource == "status"


def test_a_by_name_watch_list_of_a_kubelet() -> None:
    info = parse_path(WATCH_LIST)
    assert _of(info) == ("watch", "", "v1", "ns1", "secrets", "", "s1")
    assert info.query["fieldSelector"] == "metadata.name=s1"
    assert info.query["timeout"] == "7m12s"


def test_a_query_with_a_semicolon_loses_that_pair_only() -> None:
    assert parse_query("a=1;b=2&c=3&&=4") == {"c": "3", "": "4"}


def test_paths_are_built_with_sorted_keys_and_go_s_escapes() -> None:
    query = {
        "watch": True,
        "timeoutSeconds": 432,
        "timeout": "7m12s",
        "sendInitialEvents": True,
        "resourceVersionMatch": "NotOlderThan",
        "resourceVersion": "",
        "limit": None,
        "fieldSelector": "metadata.name=s1",
        "allowWatchBookmarks": True,
    }
    assert build_path("", "v1", "secrets", "ns1", query=query) == WATCH_LIST
    assert build_path("apps", "v1", "deployments") == "/apis/apps/v1/deployments"
    assert build_path("", "v1", "pods", "a", "b", "status") == "/api/v1/namespaces/a/pods/b/status"
    assert build_path("", "v1", "nodes", name="system:node:n1") == "/api/v1/nodes/system:node:n1"
    assert build_path("", "v1", "nodes", name="a b?c/d") == "/api/v1/nodes/a%20b%3Fc/d"
    assert build_query({"a": "x y", "b": "*!'()~-._", "c": False}) == "a=x+y&b=%2A%21%27%28%29~-._&c=false"


_SEGMENT = st.from_regex(r"[a-z0-9]([-a-z0-9:.]{0,20}[a-z0-9])?", fullmatch=True)


@given(
    group=st.sampled_from(["", "apps", "coordination.k8s.io"]),
    namespace=st.none() | _SEGMENT,
    name=_SEGMENT.filter(lambda text: text not in ("status", "finalize")),
    subresource=st.sampled_from(["", "status", "scale"]),
    query=st.dictionaries(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=12), max_size=4),
)
def test_what_is_built_reads_back(
    group: str, namespace: str | None, name: str, subresource: str, query: dict[str, str]
) -> None:
    path = build_path(group, "v1", "things", namespace, name, subresource, query)
    info = parse_path(path, "GET")
    assert _of(info) == ("get", group, "v1", namespace or "", "things", subresource, name)
    assert info.query == query
