"""Discovery and OpenAPI as clients read them: aggregated documents, hashes, what is known already."""

from typing import Any

import pytest
from fakemember import Server

from harness.apiserver.openapi.definitions import Definitions
from harness.apiserver.schema import schema_for


def aggregated(version: str) -> dict[str, str]:
    return {"accept": f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"}


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_documents_come_in_the_version_that_is_asked_for(server: Server, version: str) -> None:
    answer = server.ask("GET", "/apis", headers=aggregated(version))
    assert answer.answer_headers["content-type"] == (
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    )
    assert answer.json["apiVersion"] == f"apidiscovery.k8s.io/{version}"


def test_what_a_client_has_is_not_sent_again(server: Server) -> None:
    first = server.ask("GET", "/apis", headers=aggregated("v2"))
    tag = first.answer_headers["etag"]
    again = server.ask("GET", "/apis", headers={**aggregated("v2"), "if-none-match": tag})
    assert (again.status, again.data) == (304, b"")
    other = server.ask("GET", "/api", headers={**aggregated("v2"), "if-none-match": tag})
    assert other.status == 200


def groups(document: Any) -> dict[str, Any]:
    return {item["metadata"].get("name", ""): item for item in document["items"]}


def test_a_group_has_its_versions_and_subresources_their_kinds(server: Server) -> None:
    found = groups(server.ask("GET", "/apis", headers=aggregated("v2")).json)
    assert [item["version"] for item in found["autoscaling"]["versions"]] == ["v2", "v1"]
    apps = {item["resource"]: item for item in found["apps"]["versions"][0]["resources"]}
    kinds = {
        item["subresource"]: item["responseKind"]["kind"] for item in apps["deployments"]["subresources"]
    }
    assert kinds == {"scale": "Scale", "status": "Deployment"}
    requests = found["certificates.k8s.io"]["versions"][0]["resources"][0]
    assert [item["subresource"] for item in requests["subresources"]] == ["approval", "status"]


def test_reviews_are_only_created(server: Server) -> None:
    resources = server.ask("GET", "/apis/authorization.k8s.io/v1").json["resources"]
    assert {tuple(item["verbs"]) for item in resources} == {("create",)}
    assert not any("storageVersionHash" in item for item in resources)


# ---- OpenAPI ---------------------------------------------------------------------------------------------------------
def test_an_address_with_the_present_hash_may_be_kept(server: Server) -> None:
    paths = server.ask("GET", "/openapi/v3").json["paths"]
    url = paths["apis/apps/v1"]["serverRelativeURL"]
    answer = server.ask("GET", url)
    assert answer.answer_headers["cache-control"] == "public, immutable"
    tag = answer.answer_headers["etag"]
    assert tag.strip('"') == url.partition("hash=")[2]
    assert server.ask("GET", url, headers={"if-none-match": tag}).status == 304
    old = server.ask("GET", "/openapi/v3/apis/apps/v1?hash=OLD")
    assert (old.status, old.answer_headers["location"]) == (301, url)
    assert server.ask("GET", "/openapi/v3/apis/nosuch.io/v1").status == 404


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = {value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set()
        return found.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/batch/v1"])
def test_documents_define_what_they_refer_to(server: Server, path: str) -> None:
    document = server.ask("GET", path).json
    defined = document.get("definitions") or document["components"]["schemas"]
    assert not references(defined) - defined.keys()


def test_a_kind_is_found_by_its_paths_and_has_its_fields(server: Server) -> None:
    document = server.ask("GET", "/openapi/v3/api/v1").json
    paths, schemas = document["paths"], document["components"]["schemas"]
    item = paths["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert item["get"]["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert "application/strategic-merge-patch+json" in item["patch"]["requestBody"]["content"]
    assert "fieldValidation" in [parameter["name"] for parameter in item["patch"]["parameters"]]
    assert "/api/v1/pods" in paths
    spec = schemas["io.k8s.api.core.v1.PodSpec"]
    assert spec["required"] == ["containers"]
    containers = spec["properties"]["containers"]
    assert containers["description"].startswith("List of containers belonging to the pod.")
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]["x-kubernetes-map-type"] == "atomic"


def test_references_stand_alone_in_version_2() -> None:
    schema = schema_for("v1", "Secret")
    assert schema is not None
    for prefix in ("#/definitions/", "#/components/schemas/"):
        definitions = Definitions(prefix)
        name = definitions.root(schema, [])
        metadata = definitions.made[name]["properties"]["metadata"]
        assert metadata == {"$ref": f"{prefix}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}


def test_protobuf_alone_is_not_to_be_had(server: Server) -> None:
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    assert server.ask("GET", "/openapi/v2", headers={"accept": accept}).status == 406
    assert server.ask("GET", "/openapi/v2", headers={"accept": f"{accept},application/json"}).status == 200
