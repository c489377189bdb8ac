"""Strategic merge patch (am/util/strategicpatch/patch.go): apply one to an object.

Maps merge, null deletes, lists are replaced unless the field merges by a key (patchschema.py). Directives:
``$patch: replace|delete`` in a map or list element, ``$retainKeys``, ``$setElementOrder/<list>``,
``$deleteFromPrimitiveList/<list>``. Neither the object nor the patch is changed; the result shares what did not
change with the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from harness.wire.errors import SwarmletError
from harness.wire.patchschema import Field, Fields, ListField, fields_of, fields_of_kind

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ORDER = "$setElementOrder/"
DELETE_SCALARS = "$deleteFromPrimitiveList/"


_first = itemgetter(0)
_GONE = object()
_NESTED = frozenset((dict, list))
_STRINGS = {str}


class MergeError(SwarmletError):
    """A patch that does not fit. `bad_request`: a real server answers 400, else 500."""

    def __init__(self, message: str, *, bad_request: bool = False) -> None:
        super().__init__(message)
        self.bad_request = bad_request


def apply_strategic(original: dict[str, Any], patch: dict[str, Any], kind: str) -> dict[str, Any]:
    """`original` with `patch`, by the rules of `kind` (``Pod``). Raises MergeError."""
    return _merge_map(original, patch, fields_of_kind(kind))


def _merge_map(original: dict[str, Any], patch: dict[str, Any], fields: Fields) -> dict[str, Any]:
    if "$" in [key[:1] for key in patch]:
        return _merge_directed(original, patch, fields)
    merged = dict(original)
    for key, value in patch.items():
        _merge_key(merged, key, value, fields)
    return merged


def _merge_key(merged: dict[str, Any], key: str, value: Any, fields: Fields) -> None:
    if value is None:
        merged.pop(key, None)
    elif type(value) in _NESTED:
        _merge_field(merged, key, value, fields.get(key))
    else:
        merged[key] = value


def _merge_directed(original: dict[str, Any], patch: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """As `_merge_map`, where directives stand among the keys."""
    if DIRECTIVE in patch:
        return _replaced_map(patch)
    if RETAIN_KEYS in patch:
        original = _retained(original, patch)
    merged = dict(original)
    ordered = _merge_ordered(merged, patch, fields)
    for key, value in patch.items():
        if key in ordered:
            continue
        if key[:1] == "$":
            if key == RETAIN_KEYS or key.startswith(SET_ORDER):
                continue
            if key.startswith(DELETE_SCALARS):
                _delete_scalars(merged, key[len(DELETE_SCALARS) :], value)
                continue
        _merge_key(merged, key, value, fields)
    return merged


def _replaced_map(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise MergeError(f"unknown patch type: {directive} in map: {patch}")


def _retained(original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    keys = patch[RETAIN_KEYS]
    if not isinstance(keys, list) or any(
        value is not None and not key.startswith((RETAIN_KEYS, SET_ORDER, DELETE_SCALARS)) and key not in keys
        for key, value in patch.items()
    ):
        raise MergeError("invalid patch format of retainKeys", bad_request=True)
    return {key: value for key, value in original.items() if key in keys}


def _merge_field(merged: dict[str, Any], key: str, value: Any, field: Field | None) -> None:
    present = merged.get(key)
    if isinstance(present, dict) and isinstance(value, dict):
        merged[key] = _merge_map(present, value, fields_of(field))
    elif isinstance(present, list) and isinstance(value, list) and isinstance(field, ListField):
        merged[key] = _merge_list(present, value, field)
    else:
        cleaned = _cleaned(value)
        if cleaned is _GONE:
            merged.pop(key, None)
        else:
            merged[key] = cleaned


def _cleaned(value: Any) -> Any:
    """A value that is new to the object: without nulls in maps and without what carries a directive; `_GONE` where it
    carries one itself."""
    if type(value) is dict:
        if DIRECTIVE in value:
            return _GONE
        kept = {}
        for key, item in value.items():
            if item is None:
                continue
            if type(item) in _NESTED:
                item = _cleaned(item)
                if item is _GONE:
                    continue
            kept[key] = item
        return kept
    if type(value) is list:
        return [cleaned for item in value if (cleaned := _cleaned(item)) is not _GONE]
    return value


# ---- lists ---------------------------------------------------------------------------------------------------------
def _merge_list(original: list[Any], patch: list[Any], field: ListField) -> list[Any]:
    if not original and not patch:
        return original
    first = (original or patch)[0]
    if not isinstance(first, dict):
        merged = list(dict.fromkeys(_scalar(item) for item in [*original, *patch]))
        return _arrange(merged, patch, original, "")
    if not field.key:
        raise MergeError("cannot merge lists without merge key")
    kept, additions = _apply_element_directives(original, patch, field.key)
    if len(kept) == len(additions):
        identities = _identities(kept, field.key)
        if identities == _identities(additions, field.key) and len(set(identities)) == len(identities):
            fields = fields_of(field)  # the same elements in the same order
            return [_merge_map(old, new, fields) for old, new in zip(kept, additions, strict=True)]
    merged = _merge_elements(kept, additions, field)
    return _arrange(merged, additions, kept, field.key)


def _apply_element_directives(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """(what stays of the original, the patch's ordinary elements)."""
    additions, deleted, replace = [], set(), False
    for element in patch:
        if type(element) is dict and DIRECTIVE not in element:
            additions.append(element)
            continue
        directive = _element(element).get(DIRECTIVE)
        if directive is None:
            additions.append(element)
        elif directive == "delete":
            deleted.add(_key_of(element, key))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise MergeError("merging lists cannot yet be specified in the patch")
        else:
            raise MergeError(f"unknown patch type: {directive} in map: {element}")
    if replace:
        return additions, []
    if deleted:
        original = [element for element in original if _key_of(element, key) not in deleted]
    return original, additions


def _merge_elements(original: list[Any], additions: list[Any], field: ListField) -> list[Any]:
    merged = list(original)
    places = _ranks(merged, field.key)
    for value, element in zip(_identities(additions, field.key), additions, strict=True):
        at = places.get(value)
        if at is not None:
            merged[at] = _merge_map(merged[at], element, fields_of(field))
        else:
            places[value] = len(merged)
            merged.append(_cleaned(element))
    return merged


def _arrange(merged: list[Any], order: list[Any], server_order: list[Any], key: str) -> list[Any]:
    """The patch's elements in the patch's order, the others in the server's, interleaved by the server's."""
    rank = _ranks(order, key)
    at_server, identities = _identities(server_order, key), _identities(merged, key)
    if rank.keys() >= set(identities):  # no others
        ranked = zip(map(rank.__getitem__, identities), merged, strict=True)
        return [element for _, element in sorted(ranked, key=_first)]
    server = _places(at_server)
    last = len(server)
    mine: list[tuple[int, Any, int | None]] = []  # place in the patch's order, element, place in the server's
    others: list[tuple[int, Any]] = []  # place in the server's order, element
    for identity, element in zip(identities, merged, strict=True):
        if identity in rank:
            mine.append((rank[identity], element, server.get(identity)))
        else:
            others.append((server.get(identity, last), element))
    mine.sort(key=_first)
    others.sort(key=_first)
    result: list[Any] = []
    at = 0
    for _, element, place in mine:
        while at < len(others) and place is not None and others[at][0] <= place:
            result.append(others[at][1])
            at += 1
        result.append(element)
    return result + [element for _, element in others[at:]]


def _merge_ordered(merged: dict[str, Any], patch: dict[str, Any], fields: Fields) -> set[str]:
    """Carry out each $setElementOrder together with its list; the names of the lists that are done."""
    done: set[str] = set()
    for directive, order in patch.items():
        if directive[:1] != "$" or not directive.startswith(SET_ORDER):
            continue
        name = directive[len(SET_ORDER) :]
        original, additions = merged.get(name), patch.get(name)
        if not (
            isinstance(order, list)
            and (original is None or isinstance(original, list))
            and (additions is None or isinstance(additions, list))
        ):
            raise MergeError("expected a []interface {}, but received another type")
        field = fields.get(name)
        key = field.key if isinstance(field, ListField) else ""
        _check_order(additions or [], order, key)
        if original is None and additions is None:
            continue
        done.add(name)
        if additions is None:
            result = original
        elif original is None:
            result = _cleaned(additions)
        elif isinstance(field, ListField):
            result = _merge_list(original, additions, field)
        else:
            result = additions
        merged[name] = _arrange(result or [], order, original or [], key)
    return done


def _check_order(additions: list[Any], order: list[Any], key: str) -> None:
    """The patch's elements must come in the order that it sets."""
    if not additions or not order:
        return
    remaining = (_key_of(each, key) for each in order) if key else iter(order)
    for element in additions:
        if isinstance(element, dict) and DIRECTIVE in element:
            continue
        if (_key_of(element, key) if key else element) not in remaining:  # takes off what comes before it
            raise MergeError(
                f"The order in patch list:\n{additions}\n doesn't match $setElementOrder list:\n{order}\n"
            )


def _delete_scalars(merged: dict[str, Any], name: str, values: Any) -> None:
    present = merged.get(name)
    if not isinstance(values, list):
        raise MergeError("invalid patch format of primitive list", bad_request=True)
    if isinstance(present, list):
        merged[name] = [item for item in present if item not in values]


def _element(element: Any) -> dict[str, Any]:
    if not isinstance(element, dict):
        raise MergeError("expected a map[string]interface {}, but received another type")
    return element


def _key_of(element: Any, key: str) -> Any:
    if type(element) is dict and type(value := element.get(key)) is str:  # what nearly all keys are
        return value
    try:
        return _scalar(_element(element)[key])
    except KeyError:
        raise MergeError(f"map: {element} does not contain declared merge key: {key}") from None


def _scalar(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise MergeError(f"expected a scalar, but received {value}")
    return value


def _identities(elements: Sequence[Any], key: str) -> list[Any]:
    """What tells the elements of a list apart: the values of a merge key, or the elements. Raises MergeError."""
    if not key:
        return [_scalar(element) for element in elements]
    try:
        values = [element[key] for element in elements]
    except (KeyError, TypeError, IndexError):
        values = []
    if len(values) == len(elements) and _STRINGS.issuperset(map(type, values)):  # as nearly all keys are
        return values
    return [_key_of(element, key) for element in elements]


def _ranks(elements: Sequence[Any], key: str) -> dict[Any, int]:
    return _places(_identities(elements, key))


def _places(identities: Sequence[Any]) -> dict[Any, int]:
    """The place of each, of the first where it stands twice."""
    ranks = dict(zip(identities, range(len(identities)), strict=True))
    if len(ranks) < len(identities):
        for at in range(len(identities) - 1, -1, -1):
            ranks[identities[at]] = at
    return ranks
