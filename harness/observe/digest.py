"""The few figures of a scrape that are shown while a run goes on; everything else waits in the record."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_WATCHES = "apiserver_longrunning_requests"
_REQUESTS = "apiserver_request_total"
_REJECTS = "apiserver_flowcontrol_rejected_requests_total"
_REVISION = "apiserver_watch_cache_resource_version"
_SERVES = "apiserver_"


class Digest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of one member at one scrape; counters since its start. None: not exposed. `revision` is the newest of its watch
    caches'."""

    watches: float | None = None
    requests: float | None = None
    rejects: float | None = None
    revision: float | None = None


class Scraped(msgspec.Struct, frozen=True, tag_field="kind", tag="scraped"):
    """A round over all members at `t`, in seconds since 1970; None is of one that did not answer."""

    t: float
    members: dict[str, Digest | None]


def digest_of(values: Mapping[str, float]) -> Digest:
    """`values` are a member's, by series. What nothing has happened to yet is missing from an apiserver that has the
    metric: it is 0 then."""
    watches = requests = rejects = 0.0
    revision: float | None = None
    exposed = False
    for series, value in values.items():
        if not series.startswith(_SERVES):
            continue
        name, _, labels = series.partition("{")
        if name == _REQUESTS:
            exposed = True
            requests += value
        elif name == _WATCHES:
            if 'verb="WATCH"' in labels:
                watches += value
        elif name == _REJECTS:
            rejects += value
        elif name == _REVISION:
            revision = value if revision is None else max(revision, value)
    if not exposed:
        return Digest(revision=revision)
    return Digest(watches, requests, rejects, revision)
