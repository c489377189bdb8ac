"""What clients that LIST ask for: kinds of requests with weights, as a small YAML file says (docs/informers.md)."""

from __future__ import annotations

from random import Random
from typing import Literal

import msgspec

from harness.fleet.informers.options import resource_of
from harness.wire.errors import ConfigError

NAMES_ALLOWED = "lower case letters, digits and hyphens"


class ListKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One kind of request. `name` is what its figures are kept under. `resource_version`: "" unset, a consistent read;
    "0" whatever the cache has; "exact" the state at a revision that was the latest `age_s` ago. `limit` 0 asks for all
    at once; `pages` 0 goes on until the list is complete. `get` reads one object instead, drawn from those seen."""

    name: str
    weight: float = 1.0
    get: bool = False
    resource: str = "configmaps"
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    resource_version: Literal["", "0", "exact"] = ""
    age_s: float = 5.0
    limit: int = 0
    pages: int = 0


class ListMix(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`clients` have a connection each; every one draws a kind `rate` times a second at Poisson times, whether or not
    earlier ones are answered; 0: one after another, without a pause. `content_type` is what is asked for."""

    kinds: list[ListKind]
    clients: int = 4
    rate: float = 1.0
    content_type: Literal["json", "protobuf"] = "json"

    def draw(self, rng: Random) -> ListKind:
        (kind,) = rng.choices(self.kinds, [kind.weight for kind in self.kinds])
        return kind


def broken_rule(mix: ListMix) -> tuple[str, object, str] | None:
    """(key, value, rule) of the first thing that is not as it must be."""
    if not mix.kinds:
        return "kinds", mix.kinds, "an empty mix asks for nothing; at least one kind is needed"
    if not 1 <= mix.clients <= 10_000:
        return "clients", mix.clients, "must be 1 to 10000"
    if not 0 <= mix.rate < float("inf"):
        return "rate", mix.rate, "must be 0 or more"
    names: set[str] = set()
    for index, kind in enumerate(mix.kinds):
        broken = _broken_kind(kind)
        if broken is not None:
            field, value, rule = broken
            return f"kinds[{index}].{field}", value, rule
        if kind.name in names:
            return f"kinds[{index}].name", kind.name, "is the name of two kinds"
        names.add(kind.name)
    if not sum(kind.weight for kind in mix.kinds):
        return "kinds", [kind.weight for kind in mix.kinds], "all weights are 0; one must be above it"
    return None


def _broken_kind(kind: ListKind) -> tuple[str, object, str] | None:
    bare = kind.name.replace("-", "")
    if not (bare.isascii() and bare.isalnum() and bare == bare.lower()):
        return "name", kind.name, f"a name is made of {NAMES_ALLOWED}"
    for field, value in (("weight", kind.weight), ("ageS", kind.age_s)):
        if not 0 <= value < float("inf"):
            return field, value, "must be 0 or more"
    for field, count in (("limit", kind.limit), ("pages", kind.pages)):
        if count < 0:
            return field, count, "must be 0 or more"
    if kind.pages and not kind.limit:
        return "pages", kind.pages, "pages come of a limit; give one"
    if kind.get and (kind.limit or kind.label_selector or kind.field_selector):
        return "get", kind.get, "a get has no limit and no selector"
    if kind.get and kind.resource_version == "exact":
        return "resourceVersion", "exact", "a get is of the latest state, or of the cache's with 0"
    try:
        resource_of(kind.resource, "resource")
    except ConfigError as error:
        return "resource", kind.resource, str(error).partition(": ")[2]
    return None
