"""ControllerRevisions: the templates that a StatefulSet or a DaemonSet had. kk/pkg/controller/history."""

from __future__ import annotations

from harness.fleet.controllers.api import REVISIONS, ApiError, Steps, SyncError, call, call_all
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.podcontrol import owner_reference, template_hash
from harness.fleet.controllers.views import Object, whole

HASH_LABEL = "controller-revision-hash"  # appsv1.ControllerRevisionHashLabelKey


def template_of(revision: Object) -> Object:
    """The pod template that a revision holds."""
    found = (revision.get("data") or {}).get("spec", {}).get("template", {})
    return {name: value for name, value in found.items() if name != "$patch"}


def newest_number(revisions: list[Object]) -> int:
    return max((each["revision"] for each in revisions), default=0)


def equal_to(revisions: list[Object], template: Object) -> Object | None:
    """The newest revision with that template."""
    found = [each for each in revisions if template_of(each) == template]
    return max(found, key=lambda each: int(each["revision"]), default=None)


def new_revision(owner: Object, number: int, collisions: int) -> Object:
    """NewControllerRevision, with the label by which pods are told apart."""
    template = owner["spec"]["template"]
    digest = template_hash(template, collisions)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: digest}
    return {
        "kind": "ControllerRevision",
        "apiVersion": "apps/v1",
        "metadata": {
            "name": f"{owner['metadata']['name']}-{digest}",
            "namespace": owner["metadata"]["namespace"],
            "labels": labels,
            "annotations": owner["metadata"].get("annotations") or {},
            "ownerReferences": [owner_reference(owner)],
        },
        "data": {"spec": {"template": {"$patch": "replace", **template}}},
        "revision": number,
    }


def create_revision(controller: Controller, owner: Object, number: int, collisions: int) -> Steps[Object]:
    """The new revision, or the one that is there already with the same template. Raises SyncError where its name is
    taken by another."""
    made = new_revision(owner, number, collisions)
    metadata = made["metadata"]
    try:
        response = yield from call(controller.create(REVISIONS, metadata["namespace"], made))
    except ApiError as error:
        if not error.exists:
            raise
        response = yield from call(controller.get(REVISIONS, metadata["namespace"], metadata["name"]))
        found = whole(response.body)
        if template_of(found) != owner["spec"]["template"]:
            raise SyncError(f"{metadata['name']} is another template's") from None
        return found
    return whole(response.body)


def truncate(controller: Controller, owner: Object, old: list[Object], live: set[str]) -> Steps[None]:
    """Delete the oldest of `old` beyond revisionHistoryLimit; those whose hash is in `live` are kept."""
    limit = owner["spec"].get("revisionHistoryLimit", 10)
    spare = sorted(
        (each for each in old if each["metadata"]["labels"].get(HASH_LABEL) not in live),
        key=lambda each: int(each["revision"]),
    )
    for each in spare[: max(0, len(spare) - limit)]:
        metadata = each["metadata"]
        errors = yield from call_all([controller.delete(REVISIONS, metadata["namespace"], metadata["name"])])
        if errors[0] is not None and not errors[0].not_found:
            raise errors[0]
