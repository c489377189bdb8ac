"""Label selectors as objects carry them: their text, what they match, and whether they are well formed.

Mirrors am/apis/meta/v1/helpers.go LabelSelectorAsSelector and am/apis/meta/v1/validation ValidateLabelSelector.
"""

from __future__ import annotations

from harness.apiserver.apierrors import FieldError, forbidden_value, invalid_value, required
from harness.apiserver.strategies.base import Object
from harness.apiserver.strategies.names import faults_of, label_value, qualified_name
from harness.wire.selectors import LabelSelector, Operator, Requirement

_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.NOT_EXISTS,
}
_SETS = ("In", "NotIn")


def parsed(selector: Object) -> LabelSelector:
    """A well-formed selector; an empty one matches everything."""
    requirements = [
        Requirement(key, Operator.EQUALS, (value,))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for term in selector.get("matchExpressions") or ():
        values = tuple(sorted(set(term.get("values") or ())))
        requirements.append(Requirement(term.get("key", ""), _OPERATORS[term["operator"]], values))
    return LabelSelector(tuple(sorted(requirements, key=lambda item: item.key)))


def selector_text(selector: Object | None) -> str:
    """As a list request takes it; "" without one, and for one that selects everything."""
    return "" if selector is None else str(parsed(selector))


def is_empty(selector: Object) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def selector_errors(selector: Object, path: str) -> list[FieldError]:
    errors = []
    at = f"{path}.matchLabels"
    for key, value in (selector.get("matchLabels") or {}).items():
        errors += [invalid_value(at, key, text) for text in faults_of(qualified_name, key)]
        errors += [invalid_value(at, value, text) for text in faults_of(label_value, value)]
    for index, term in enumerate(selector.get("matchExpressions") or ()):
        errors += _term_errors(term, f"{path}.matchExpressions[{index}]")
    return errors


def _term_errors(term: Object, at: str) -> list[FieldError]:
    operator, values = term.get("operator", ""), term.get("values")
    errors = []
    if operator not in _OPERATORS:
        errors.append(invalid_value(f"{at}.operator", operator, "not a valid selector operator"))
    elif operator in _SETS and not values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        errors.append(required(f"{at}.values", detail))
    elif operator not in _SETS and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(forbidden_value(f"{at}.values", detail))
    key = term.get("key", "")
    return errors + [invalid_value(f"{at}.key", key, text) for text in faults_of(qualified_name, key)]
