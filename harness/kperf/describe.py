"""A profile in a few lines for a person."""

from __future__ import annotations

from harness.kperf.profile import GetPodLog, LoadProfile, Spec, WeightedRequest


def describe(profile: LoadProfile, path: str) -> list[str]:
    """What it comes to: its specs, the requests of each with their part of all, and what is passed over."""
    runners = f", {profile.runners} runners" if profile.runners > 1 else ""
    lines = [f"kperf: {profile.description or 'no description'}{runners} ({path})"]
    for number, spec in enumerate(profile.specs, 1):
        lines.append(f"  {number:2} {in_words(spec)}")
        whole = sum(request.shares for request in spec.requests)
        lines += [f"       {_request(item)}: {item.shares / whole:.1%}" for item in spec.requests]
    return [*lines, *(f"  ignored: {text}" for text in profile.ignored)]


def in_words(spec: Spec) -> str:
    """When a spec ends, how fast it goes, over what."""
    ends = [f"{spec.total} requests"] if spec.total > 0 else []
    ends += [f"{spec.duration} s"] if spec.duration > 0 else []
    rate = f"{spec.rate:g} requests/s" if spec.rate else "no limit of requests/s"
    return f"{' or '.join(ends)}, {rate}, {spec.conns} connection(s), {spec.client} client(s)"


def _request(item: WeightedRequest) -> str:
    ((key, kind),) = item.kinds().items()
    if isinstance(kind, GetPodLog):
        return f"{key} {kind.namespace}/{kind.name}"
    where = f" in {kind.namespace}" if kind.namespace else ""
    return f"{key} {kind.resource}{'.' + kind.group if kind.group else ''}{where}"
