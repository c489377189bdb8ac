"""Rules for names and labels, with upstream's words for what is wrong (am/api/validate/content).

Each check returns "" for what is allowed, else the problem as a real apiserver words it; several are joined by "; ".
"""

from __future__ import annotations

import re

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_EXAMPLES = "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" + _NAME + "')"
_name = re.compile(rf"(?:{_NAME})\Z")
_label = re.compile(rf"(?:{_LABEL})\Z")
_subdomain = re.compile(rf"(?:{_SUBDOMAIN})\Z")


def check_key(key: str) -> str:
    """A label or annotation key: an optional DNS subdomain and "/", then a name of up to 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key {_NAME_RULE} {_EXAMPLES} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        )
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash and (problem := check_subdomain(prefix)):
        problems.extend(f"prefix part {part}" for part in problem.split("; "))
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _name.match(name):
        problems.append(f"name part {_NAME_RULE} {_EXAMPLES}")
    return "; ".join(problems)


def check_value(value: str) -> str:
    """A label value: empty, or as the name of a key."""
    problems = []
    if len(value.encode()) > 63:
        problems.append("must be no more than 63 bytes")
    if value and not _name.match(value):
        problems.append(
            f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            f"start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
            f"for validation is '({_NAME})?')"
        )
    return "; ".join(problems)


def check_subdomain(name: str) -> str:
    """The name of most objects: an RFC 1123 subdomain of up to 253 characters."""
    problems = []
    if len(name.encode()) > 253:
        problems.append("must be no more than 253 bytes")
    if not _subdomain.match(name):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{_SUBDOMAIN}')"
        )
    return "; ".join(problems)


def check_label(name: str) -> str:
    """The name of a namespace or a container: an RFC 1123 label of up to 63 characters."""
    problems = []
    if len(name.encode()) > 63:
        problems.append("must be no more than 63 bytes")
    if not _label.match(name):
        problems.append(
            "must not contain dots"
            if _subdomain.match(name)
            else "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
            "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation "
            f"is '{_LABEL}')"
        )
    return "; ".join(problems)
