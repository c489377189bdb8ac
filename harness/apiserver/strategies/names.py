"""Which names, labels and annotations an object may have, with apimachinery's texts (am/util/validation)."""

from __future__ import annotations

import re
from collections.abc import Callable, Set

NameCheck = Callable[[str], list[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

_label = re.compile(_LABEL).fullmatch
_subdomain = re.compile(_SUBDOMAIN).fullmatch
_dns1035 = re.compile(_DNS1035).fullmatch
_qualified = re.compile(_QUALIFIED).fullmatch
_value = re.compile(_VALUE).fullmatch

# Names that passed once pass again without the regular expression: load tests repeat namespaces and label keys.
_KNOWN: dict[NameCheck, set[str]] = {}
_KNOWN_LIMIT = 10_000


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def dns_subdomain(name: str) -> list[str]:
    faults = [] if len(name) <= 253 else [_too_long(253)]
    if not _subdomain(name):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            rf"'{_SUBDOMAIN}')"
        )
    return faults


def dns_label(name: str) -> list[str]:
    faults = [] if len(name) <= 63 else [_too_long(63)]
    if not _label(name):
        faults.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            f"'{_LABEL}')"
        )
    return faults


def dns1035_label(name: str) -> list[str]:
    faults = [] if len(name) <= 63 else [_too_long(63)]
    if not _dns1035(name):
        faults.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
            f"validation is '{_DNS1035}')"
        )
    return faults


def _qualified_part(name: str) -> list[str]:
    faults = []
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part " + _too_long(63))
    if not _qualified(name):
        faults.append(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED}')"
        )
    return faults


def qualified_name(name: str) -> list[str]:
    """A label or annotation key: an optional DNS subdomain, a slash, a name of up to 63 bytes."""
    parts = name.split("/")
    if len(parts) == 1:
        return _qualified_part(name)
    if len(parts) > 2:
        text = (
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
        return [text]
    prefix, name = parts
    faults = ["prefix part " + fault for fault in dns_subdomain(prefix)] if prefix else []
    if not prefix:
        faults.append("prefix part must be non-empty")
    return faults + _qualified_part(name)


def label_value(value: str) -> list[str]:
    faults = [] if len(value) <= 63 else [_too_long(63)]
    if not _value(value):
        faults.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            f"validation is '{_VALUE}')"
        )
    return faults


def passed(check: NameCheck) -> Set[str]:
    """Of what `faults_of` was asked, some that passed."""
    return _KNOWN.setdefault(check, set())


def faults_of(check: NameCheck, text: str) -> list[str]:
    """`check(text)`, remembering what passed."""
    known = _KNOWN.setdefault(check, set())
    if text in known:
        return []
    faults = check(text)
    if not faults and len(known) < _KNOWN_LIMIT:
        known.add(text)
    return faults
