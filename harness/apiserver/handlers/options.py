"""Query options of lists, watches and writes, and what is wrong with them (am/apis/meta/internalversion/validation).

Parsing failures are 400 with strconv's text, contradictions 422 about ``ListOptions.meta.k8s.io``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.apiserver.apierrors import (
    FieldError,
    bad_request,
    forbidden_value,
    invalid,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from harness.apiserver.conversion import hub_fields
from harness.apiserver.handlers.call import MAX_MANAGER_BYTES
from harness.apiserver.resources import Resource
from harness.wire.gotext import parse_int, quote
from harness.wire.paths import is_true
from harness.wire.selectors import FieldSelector, LabelSelector, SelectorError, parse_fields, parse_labels

NOT_OLDER_THAN = "NotOlderThan"
EXACT = "Exact"


class ListOptions(msgspec.Struct, gc=False):
    """`revision` None where resourceVersion is unset; `limit` 0 is no limit; `timeout_s` None is unset."""

    labels: LabelSelector
    fields: FieldSelector
    watch: bool = False
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_: str = ""
    timeout_s: int | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None

    @property
    def revision(self) -> int | None:
        return int(self.resource_version) if self.resource_version else None


def list_options(query: Mapping[str, str], resource: Resource, watch: bool) -> ListOptions:
    """Parsed and validated options. Raises StatusError."""
    initial = query.get("sendInitialEvents")
    options = ListOptions(
        labels=_labels(query.get("labelSelector", "")),
        fields=_fields(query.get("fieldSelector", ""), resource),
        watch=watch,
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        limit=_integer(query.get("limit", "")) or 0,
        continue_=query.get("continue", ""),
        timeout_s=_integer(query.get("timeoutSeconds", "")),
        bookmarks="allowWatchBookmarks" in query and is_true(query["allowWatchBookmarks"]),
        send_initial_events=None if initial is None else is_true(initial),
    )
    errors = _errors(options)
    if errors:
        raise invalid("meta.k8s.io", "ListOptions", "", errors)
    return options


def _integer(text: str) -> int | None:
    if not text:
        return None
    value = parse_int(text)
    if value is None:
        raise bad_request(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    return value


def _labels(text: str) -> LabelSelector:
    try:
        return parse_labels(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None


def _fields(text: str, resource: Resource) -> FieldSelector:
    """Raises StatusError 400 for a field that the resource cannot be selected by."""
    try:
        selector = parse_fields(text)
        selector.check(resource.selectable)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return hub_fields(resource, selector)


def _errors(options: ListOptions) -> list[FieldError]:
    match, version = options.match, options.resource_version
    if options.watch:
        return _watch_errors(options)
    errors = []
    if match:
        if not version:
            errors.append(
                _forbidden_match("resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if options.continue_:
            errors.append(_forbidden_match("resourceVersionMatch is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            errors.append(not_supported("resourceVersionMatch", match, (EXACT, NOT_OLDER_THAN, "")))
        if match == EXACT and version == "0":
            errors.append(
                _forbidden_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if options.send_initial_events is not None:
        errors.append(forbidden_value("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    if options.send_initial_events is not None:
        if options.match != NOT_OLDER_THAN:
            errors.append(
                _forbidden_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
            )
    elif options.match:
        errors.append(
            _forbidden_match(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        )
    if options.match and options.match != NOT_OLDER_THAN and options.send_initial_events is not None:
        errors.append(not_supported("resourceVersionMatch", options.match, (NOT_OLDER_THAN,)))
    if options.continue_:
        errors.append(forbidden_value("continue", "continue is forbidden for watch"))
    return errors


def _forbidden_match(detail: str) -> FieldError:
    return forbidden_value("resourceVersionMatch", detail)


class WriteOptions(msgspec.Struct, frozen=True, gc=False):
    """Options of create, update and patch. `validation` is Ignore, Warn or Strict; `force` is apply's."""

    dry_run: bool = False
    validation: str = "Warn"
    manager: str = ""
    force: bool = False


_NO_OPTIONS = WriteOptions()


def write_options(query: Mapping[str, str], kind: str, apply: bool = False) -> WriteOptions:
    """`kind` is CreateOptions, UpdateOptions or PatchOptions; `apply`: of an apply patch. Raises StatusError."""
    if not query and not apply:
        return _NO_OPTIONS
    dry_run, validation = query.get("dryRun", ""), query.get("fieldValidation", "") or "Warn"
    manager = query.get("fieldManager", "")
    errors = []
    if apply and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    if not apply and kind == "PatchOptions" and "force" in query:
        errors.append(forbidden_value("force", "may not be specified for non-apply patch"))
    if manager:
        errors += _manager_errors(manager)
    if dry_run not in ("", "All"):
        errors.append(not_supported("dryRun", [dry_run], ("All",)))
    if validation not in ("Ignore", "Warn", "Strict"):
        errors.append(not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if errors:
        raise invalid("meta.k8s.io", kind, "", errors)
    return WriteOptions(dry_run == "All", validation, manager, "force" in query and is_true(query["force"]))


def _manager_errors(manager: str) -> list[FieldError]:
    """ValidateFieldManager (am/apis/meta/v1/validation/validation.go:215)."""
    errors = []
    if len(manager.encode()) > MAX_MANAGER_BYTES:
        errors.append(too_long("fieldManager", MAX_MANAGER_BYTES))
    at = 0
    for character in manager:
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {at})"
            errors.append(invalid_value("fieldManager", manager, why))
        at += len(character.encode())
    return errors


class DeleteOptions(msgspec.Struct, gc=False):
    """Body or query of a deletion; None and "" are unset."""

    grace_s: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: str = ""
    orphan: bool | None = None
    dry_run: bool = False


_POLICIES = ("Background", "Foreground", "Orphan")


def delete_options(body: Mapping[str, object] | None, query: Mapping[str, str]) -> DeleteOptions:
    """From the body where there is one, else from the query, as upstream. Raises StatusError."""
    options = DeleteOptions()
    errors = []
    if body:
        grace = body.get("gracePeriodSeconds")
        options.grace_s = grace if isinstance(grace, int) else None
        conditions = body.get("preconditions")
        if isinstance(conditions, dict):
            options.uid = conditions.get("uid")
            options.resource_version = conditions.get("resourceVersion")
        options.propagation = str(body.get("propagationPolicy") or "")
        orphan = body.get("orphanDependents")
        options.orphan = orphan if isinstance(orphan, bool) else None
        dry_run = body.get("dryRun") or []
    else:
        options.grace_s = _integer(query.get("gracePeriodSeconds", ""))
        options.propagation = query.get("propagationPolicy", "")
        orphan_text = query.get("orphanDependents")
        options.orphan = None if orphan_text is None else is_true(orphan_text)
        dry_run = [query["dryRun"]] if query.get("dryRun") else []
    if options.propagation and options.propagation not in _POLICIES:
        errors.append(
            not_supported(
                "propagationPolicy", options.propagation, ("Foreground", "Background", "Orphan", "nil")
            )
        )
    if options.propagation and options.orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_value("propagationPolicy", options.propagation, why))
    if dry_run not in ([], ["All"]):
        errors.append(not_supported("dryRun", dry_run, ("All",)))
    if errors:
        raise invalid("meta.k8s.io", "DeleteOptions", "", errors)
    options.dry_run = dry_run == ["All"]
    return options
