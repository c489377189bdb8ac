"""Removing what runs made in a cluster: exactly the objects that carry their label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from harness.client.discovery import GROUPS, PATHS, discover_
from harness.client.requests import NAMESPACES, ResourceRef, delete_, list_, patch_
from harness.fleet.provisioners.rules import FINALIZER
from harness.load.cluster.errands import Errands, problem_of
from harness.load.labels import RUN_LABEL
from harness.wire.errors import ConfigError, SwarmletError
from harness.wire.request import MERGE_PATCH, Request, Response

PAGE = 500
_UNLISTED = frozenset(("events", "componentstatuses"))
"""Nobody labels these; a cluster has tens of thousands of events."""


class Made(NamedTuple):
    """An object that a run made."""

    ref: ResourceRef
    namespace: str
    name: str
    uid: str
    run: str
    finalizers: tuple[str, ...] = ()


class Findings(NamedTuple):
    """`passed_over`: resources that may not be listed, with the reason."""

    objects: list[Made]
    passed_over: dict[str, str]

    def counts(self) -> dict[tuple[str, str], int]:
        """By run and resource."""
        return dict(sorted(Counter((made.run, str(made.ref)) for made in self.objects).items()))


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()


class _Item(msgspec.Struct):
    metadata: _Metadata


class _ListMetadata(msgspec.Struct, frozen=True):
    token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    items: list[_Item] | None = None
    metadata: _ListMetadata = _ListMetadata()


def find(errands: Errands, run: str = "") -> Findings:
    """All objects of the run `run`, or of any run. Raises ConfigError where the cluster cannot be asked at all."""
    selector = f"{RUN_LABEL}={run}" if run else RUN_LABEL
    objects: list[Made] = []
    passed_over: dict[str, str] = {}
    waiting = [(ref, "") for ref in _resources(errands)]
    while waiting:
        answers = errands.ask_all([_page(ref, selector, token) for ref, token in waiting])
        asked, waiting = waiting, []
        for (ref, _), answer in zip(asked, answers, strict=True):
            problem = problem_of(answer)
            if problem:
                passed_over[str(ref)] = problem
                continue
            assert isinstance(answer, Response)
            page = msgspec.json.decode(answer.body, type=_List)
            objects += [_made(ref, item.metadata) for item in page.items or ()]
            if page.metadata.token:
                waiting.append((ref, page.metadata.token))
    return Findings(objects, passed_over)


def _page(ref: ResourceRef, selector: str, token: str) -> Request:
    return list_(ref, label_selector=selector, limit=PAGE, continue_token=token)


def _made(ref: ResourceRef, metadata: _Metadata) -> Made:
    run = metadata.labels.get(RUN_LABEL, "")
    return Made(ref, metadata.namespace, metadata.name, metadata.uid, run, metadata.finalizers)


def _resources(errands: Errands) -> list[ResourceRef]:
    """Whatever the server can both list and delete, each in the version that it prefers."""
    found: dict[tuple[str, str], ResourceRef] = {}
    for path in PATHS:
        answer = errands.ask(discover_(path))
        problem = problem_of(answer)
        if problem:
            raise ConfigError(
                f"{errands.target.context}: its resources cannot be listed: GET {path}: {problem}"
            )
        assert isinstance(answer, Response)
        for group in GROUPS.decode(answer.body).items:
            for version in group.versions:
                for each in version.resources:
                    if {"list", "delete"} <= set(each.verbs) and each.resource not in _UNLISTED:
                        ref = ResourceRef(group.metadata.name, version.version, each.resource)
                        found.setdefault((ref.group, ref.resource), ref)
    return list(found.values())


def order(objects: Iterable[Made]) -> list[list[Made]]:
    """Waves of deletion: what lies in no namespace of these (first, so that a controller that is gone cannot make new
    pods of it), then the namespaces, which take along all that lies in them."""
    objects = list(objects)
    going = {made.name for made in objects if made.ref == NAMESPACES}
    alone = [made for made in objects if made.ref != NAMESPACES and made.namespace not in going]
    return [wave for wave in (alone, [made for made in objects if made.ref == NAMESPACES]) if wave]


class CleanupFailed(SwarmletError):
    """Something that a run made is still there."""


def remove(errands: Errands, objects: Sequence[Made]) -> int:
    """Delete each object, if it is still the one that was found. The number of deletions that were accepted; raises
    CleanupFailed with the first that was not, when all have been tried."""
    errands.ask_all([_release(made) for made in objects if FINALIZER in made.finalizers])
    refused: list[str] = []
    accepted = 0
    for wave in order(objects):
        answers = errands.ask_all([_deletion(made) for made in wave])
        for made, answer in zip(wave, answers, strict=True):
            gone = isinstance(answer, Response) and answer.status in (404, 409)  # or another one of that name
            problem = "" if gone else problem_of(answer)
            accepted += not problem
            if problem:
                refused.append(f"{made.ref} {made.name}: {problem}")
    if refused:
        raise CleanupFailed(f"{len(refused)} of {len(refused) + accepted} objects not deleted: {refused[0]}")
    return accepted


def _release(made: Made) -> Request:
    """A provisioner of ours, which would take its finalizer off the volume, has ended with its run."""
    left = [finalizer for finalizer in made.finalizers if finalizer != FINALIZER]
    body = msgspec.json.encode({"metadata": {"uid": made.uid, "finalizers": left or None}})
    return patch_(made.ref, made.namespace or None, made.name, body, content_type=MERGE_PATCH)


def _deletion(made: Made) -> Request:
    request = delete_(made.ref, made.namespace or None, made.name, uid=made.uid)
    options = {**msgspec.json.decode(request.body), "propagationPolicy": "Background"}
    return msgspec.structs.replace(request, body=msgspec.json.encode(options))
