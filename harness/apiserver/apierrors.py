"""Refusals of the API as exceptions: the Statuses of `harness.wire.status`, made from the resources they are about.

Raised where the fault is found and written out by the member as the answer; nothing else that a handler raises reaches
a client but as an InternalError. Below, the faults of fields (am/util/validation/field/errors.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.apiserver.resources import Resource
from harness.wire import status
from harness.wire.gotext import quote
from harness.wire.status import Cause, StatusError

Object = dict[str, Any]
FieldError = Cause


def not_found(resource: Resource, name: str) -> StatusError:
    return StatusError(status.not_found(resource.group, resource.resource, name))


def already_exists(resource: Resource, name: str, generated: bool = False) -> StatusError:
    return StatusError(status.already_exists(resource.group, resource.resource, name, generated))


def conflict(group: str, what: str, name: str, why: str = status.MODIFIED) -> StatusError:
    """`what` is the resource (``pods/binding``) or, for failed preconditions of a deletion, the kind."""
    return StatusError(status.conflict(group, what, name, why))


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    return StatusError(status.forbidden(resource.group, resource.resource, name, why, causes))


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    return StatusError(status.invalid(group, kind, name, errors))


def bad_request(message: str) -> StatusError:
    return StatusError(status.bad_request(message))


def unclassified(message: str) -> StatusError:
    """An error that upstream does not wrap: code 500 and no reason."""
    return StatusError(status.unclassified(message))


# ---- faults of fields ----------------------------------------------------------------------------------------------
def _shown(value: object) -> str:
    if isinstance(value, str):
        return quote(value)
    return msgspec.json.encode(value).decode()


def required(field: str, detail: str = "") -> FieldError:
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def invalid_value(field: str, value: object, detail: str) -> FieldError:
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}", field)


def duplicate(field: str, value: object) -> FieldError:
    return Cause("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", field)


def not_found_value(field: str, value: object) -> FieldError:
    return Cause("FieldValueNotFound", f"Not found: {_shown(value)}", field)


def forbidden_value(field: str, detail: str) -> FieldError:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def too_long(field: str, limit_bytes: int) -> FieldError:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit_bytes} bytes", field)


def not_supported(field: str, value: object, allowed: Sequence[str]) -> FieldError:
    values = ", ".join(quote(item) for item in allowed)
    return Cause(
        "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {values}", field
    )
