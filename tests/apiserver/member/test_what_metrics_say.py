"""Which series a request leaves, as kube-apiserver labels it; and which series are there from the start."""

from __future__ import annotations

import pytest
from fakemember import Server

from harness.apiserver.featuregates import FeatureGates
from harness.apiserver.flowcontrol.bootstrap import FLOW_SCHEMAS
from harness.apiserver.metrics.requestmetrics import info_labels, route_labels
from harness.apiserver.resources import RESOURCES
from harness.wire.paths import parse_path

NAMED = "fieldSelector=metadata.name%3Dx"


@pytest.mark.parametrize(
    ("method", "path", "route", "info"),
    [
        ("GET", "/api/v1/namespaces/ns/pods/x", "GET resource", "GET resource"),
        ("HEAD", "/api/v1/namespaces/ns/pods/x", "GET resource", "GET resource"),
        ("GET", "/api/v1/namespaces/ns/pods", "LIST namespace", "LIST namespace"),
        ("GET", "/api/v1/pods", "LIST cluster", "LIST cluster"),
        ("GET", "/api/v1/nodes", "LIST cluster", "LIST cluster"),
        ("GET", f"/api/v1/namespaces/ns/pods?{NAMED}", "LIST namespace", "GET resource"),
        ("GET", f"/api/v1/nodes?{NAMED}", "LIST cluster", "GET resource"),
        ("GET", f"/api/v1/nodes?watch=true&{NAMED}", "WATCH cluster", "WATCH resource"),
        ("GET", f"/api/v1/namespaces/ns/secrets?watch=1&{NAMED}", "WATCH namespace", "WATCH resource"),
        ("GET", "/api/v1/pods?watch=true&sendInitialEvents=true", "WATCH cluster", "WATCH cluster"),
        ("POST", "/api/v1/namespaces/ns/pods", "POST resource", "POST resource"),
        ("POST", "/api/v1/namespaces/ns/pods/x/binding", "POST resource", "POST resource"),
        ("PUT", "/api/v1/namespaces/ns/pods/x", "PUT resource", "PUT resource"),
        ("PATCH", "/api/v1/nodes/x/status", "PATCH resource", "PATCH resource"),
        ("DELETE", "/api/v1/nodes/x", "DELETE resource", "DELETE resource"),
        ("DELETE", "/api/v1/namespaces/ns/pods", "DELETE namespace", "DELETE namespace"),
        ("GET", "/api/v1/namespaces/ns", "GET resource", "GET resource"),
        ("GET", "/healthz", "GET ", "GET "),
    ],
)
def test_verbs_and_scopes_are_upstream_s(method: str, path: str, route: str, info: str) -> None:
    request = parse_path(path, method)
    for labels, expected in ((route_labels(request), route), (info_labels(request), info)):
        assert f"{labels[0]} {labels[5]}" == expected


def test_the_version_and_the_gates_are_told() -> None:
    server = Server(feature_gates=FeatureGates(list_from_cache_snapshot=False))
    said = text(server)
    assert 'version_info{binary="1.36.2",component="kube",emulation="1.36",min_compat="1.35"} 1\n' in said
    assert 'kubernetes_feature_enabled{name="ListFromCacheSnapshot",stage="BETA"} 0\n' in said
    assert 'kubernetes_feature_enabled{name="DetectCacheInconsistency",stage="BETA"} 1\n' in said
    assert 'kubernetes_feature_enabled{name="ConsistentListFromCache",stage=""} 1\n' in said
    server.close()


def text(server: Server) -> str:
    return server.member.metrics_text().decode()


def test_a_watch_by_name_is_open_under_its_name_and_counted_under_its_route(server: Server) -> None:
    path = f"/api/v1/namespaces/ns/secrets?watch=true&{NAMED}&sendInitialEvents=true"
    watch = server.send("GET", f"{path}&resourceVersionMatch=NotOlderThan&timeoutSeconds=5")
    server.settle(1.0)
    target = 'group="",version="v1",resource="secrets",subresource="",'
    open_now = (
        f'apiserver_longrunning_requests{{verb="WATCH",{target}scope="resource",component="apiserver"}} '
    )
    assert open_now + "1" in text(server)
    listed = 'apiserver_watch_list_duration_seconds_count{group="",version="v1",resource="secrets",scope="resource"} 1'
    assert listed in text(server)
    server.settle(6.0)
    assert watch.finished
    assert open_now + "0" in text(server)
    counted = f'apiserver_request_total{{verb="WATCH",dry_run="",{target}scope="namespace",component="apiserver",code='
    assert counted + '"200"} 1' in text(server)


def test_what_no_route_serves_is_not_counted(server: Server) -> None:
    before = text(server).count("apiserver_request_total{")
    for path in ("/nowhere", "/api/v1/things", "/apis/other.io/v1/things", "/api/v1/nodes/x/nothing"):
        assert server.ask("GET", path).status == 404
    assert text(server).count("apiserver_request_total{") == before


def test_gauges_and_counters_that_reports_read_begin_at_0() -> None:
    server = Server()
    metrics = server.member.metrics
    pairs = {(schema.level, schema.name) for schema in FLOW_SCHEMAS}
    assert set(metrics.apiserver_flowcontrol_current_inqueue_requests.children) == pairs
    assert all(
        child.value == 0 for child in metrics.apiserver_flowcontrol_current_inqueue_requests.children.values()
    )
    stored = [resource for resource in RESOURCES if resource.hub is None]
    assert set(metrics.apiserver_terminated_watchers_total.children) == {
        (resource.group, resource.resource) for resource in stored
    }
    assert set(metrics.apiserver_watch_events_total.children) == {
        (resource.group, resource.version, resource.resource) for resource in stored
    }
    assert "apiserver_tls_handshake_errors_total 0\n" in text(server)
    server.close()


def test_the_listener_s_figures_are_published() -> None:
    server = Server()
    server.member.serve_from(lambda: (7, 3))
    assert "apiserver_tls_handshake_errors_total 3\n" in text(server)
    assert "process_open_fds 27\n" in text(server)
    server.close()
