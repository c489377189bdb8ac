"""What a definition is called by its parts: paths into its JSON that several modules read."""

from __future__ import annotations

from typing import Any, Final

Object = dict[str, Any]
GROUP: Final = "apiextensions.k8s.io"
PLURAL: Final = "customresourcedefinitions"
FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
ESTABLISHED, NAMES_ACCEPTED, TERMINATING = "Established", "NamesAccepted", "Terminating"


def condition(definition: Object, type: str) -> Object | None:
    for item in (definition.get("status") or {}).get("conditions") or ():
        if item.get("type") == type:
            found: Object = item
            return found
    return None


def is_true(definition: Object, type: str) -> bool:
    found = condition(definition, type)
    return found is not None and found.get("status") == "True"


def set_condition(definition: Object, now: str, type: str, status: str, reason: str, message: str) -> None:
    """ae/pkg/apihelpers/helpers.go SetCRDCondition: the time is that of the last change of status."""
    conditions = definition.setdefault("status", {}).setdefault("conditions", [])
    before = condition(definition, type)
    wanted = {"type": type, "status": status, "reason": reason, "message": message}
    if before is None:
        conditions.append(
            {"type": type, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
        )
        return
    if before.get("status") != status:
        before["lastTransitionTime"] = now
    before |= wanted


def storage_version(definition: Object) -> str:
    """ "" where there is none, which validation refuses."""
    for version in definition["spec"].get("versions") or ():
        if version.get("storage"):
            return str(version.get("name", ""))
    return ""
