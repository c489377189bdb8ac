"""Objects that a pool is given before anybody else comes: FlowSchemas, PriorityLevelConfigurations, namespaces, RBAC.

They are applied on the server's side, each where discovery says that its kind is, by the administrator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from harness.pool.process import ProcessFailed
from harness.wire.errors import ConfigError
from harness.wire.request import APPLY_PATCH

Call = Callable[[str, str, bytes, str], tuple[int, bytes]]
"""(method, path, body, its content type) to (status, body). Raises OSError."""

MADE_WITHIN_S = 20.0
"""A real apiserver makes its own namespaces only once it is ready."""
_FIELD_MANAGER = "swarmlet"
_LOOK_EVERY_S = 0.2
_LATER = (404, 429, 503)
"""Not found yet; or a server that has only begun, and says so."""


class _Resource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = False


class _Resources(msgspec.Struct, frozen=True):
    resources: list[_Resource] = []


def read_objects(path: str) -> tuple[dict[str, Any], ...]:
    """The objects of a YAML file, which may be several documents, or Lists. Raises ConfigError."""
    try:
        documents = [document for document in yaml.safe_load_all(Path(path).read_bytes()) if document]
    except OSError as error:
        raise ConfigError(f"objects {path}: cannot be read: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"objects {path}: is not YAML: {' '.join(str(error).split())[:200]}") from None
    found: list[dict[str, Any]] = []
    for document in documents:
        items = document.get("items") if isinstance(document, dict) else None
        found += items if isinstance(items, list) else [document]
    for number, each in enumerate(found, 1):
        if not _has_a_name(each):
            raise ConfigError(f"objects {path}: object {number} has no apiVersion, kind or metadata.name")
        if each["kind"] == "Secret":
            raise ConfigError(f"objects {path}: object {number} is a Secret, which a run's record would show")
    return tuple(found)


def _has_a_name(each: Any) -> bool:
    return (
        isinstance(each, dict)
        and isinstance(each.get("apiVersion"), str)
        and isinstance(each.get("kind"), str)
        and isinstance(each.get("metadata"), dict)
        and isinstance(each["metadata"].get("name"), str)
    )


def apply_objects(objects: Sequence[dict[str, Any]], call: Call, within_s: float = MADE_WITHIN_S) -> None:
    """Apply each in turn; what is not found yet, its namespace or its kind, or is refused for now, is tried again for
    `within_s`. Raises ConfigError for what is refused, ProcessFailed for a member that does not answer."""
    deadline = time.monotonic() + within_s
    for each in objects:
        body = msgspec.json.encode(each)
        what = f"{each['kind']} {each['metadata']['name']}"
        while True:
            try:
                status, answer = _apply(each, body, call)
            except OSError as error:
                raise ProcessFailed(f"objects: {what}: no answer: {error}") from None
            if status in (200, 201):
                break
            if status not in _LATER or time.monotonic() >= deadline:
                said = answer.decode("utf-8", "replace").strip()[:300]
                raise ConfigError(f"objects: {what}: HTTP {status}: {said}")
            time.sleep(_LOOK_EVERY_S)


def _apply(each: dict[str, Any], body: bytes, call: Call) -> tuple[int, bytes]:
    version, kind = each["apiVersion"], each["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    status, answer = call("GET", root, b"", "")
    if status != 200:
        return status, answer
    known = msgspec.json.decode(answer, type=_Resources).resources
    resource = next((one for one in known if one.kind == kind and "/" not in one.name), None)
    if resource is None:
        return 404, f"{version} has no kind {kind}".encode()
    namespace = each["metadata"].get("namespace", "default")
    place = f"/namespaces/{namespace}" if resource.namespaced else ""
    path = f"{root}{place}/{resource.name}/{each['metadata']['name']}"
    return call("PATCH", f"{path}?fieldManager={_FIELD_MANAGER}&force=true", body, APPLY_PATCH)
