"""A kperf profile's run as the master sees it: users that are there, what they have seen, the report.

Every latency comes here, as percentiles are those of the values themselves: 16 bytes a request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import gevent
import msgspec

from harness.documents.files import Files
from harness.kperf import LoadProfile, Share, Spec, is_profile, load_profile
from harness.kperf.describe import describe, in_words
from harness.kperf.observations import Observations
from harness.kperf.report import Percentiles, Report, RunnerReport, Span, build_report
from harness.kperf.runner import OBSERVED
from harness.load.scenarioresults import FOLDER, SLOs
from harness.transport.options import HttpMode
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace

READY, SHARE_ENDED = "kperf-ready", "kperf-share-ended"
"""Of a user: that it is there; that everything of its share has ended."""

GO = "swarmlet-kperf"
"""Locust's message from the master: begin, with your place among ``users``."""

UNRECORDED = (OBSERVED,)
"""What users tell that is no event of the run."""

REPORT = "kperf.json"

SETTLES_S = 2.0
"""From the last user's being there to the first request: a run's own controllers have their lists by then."""


class Tell(Protocol):
    """Keeps an event of the run; `t` is when it was, in seconds since 1970."""

    def __call__(self, kind: str, fields: dict[str, Any], t: float | None = None) -> None: ...


class KperfResults:
    """`take` is given what the users tell, `finish` writes the report of a run that is over. `expected` is how many
    users there will be, once somebody knows. `broadcast` reaches every user. Times are at `pace`."""

    def __init__(
        self,
        path: str,
        profile: LoadProfile,
        tell: Tell,
        broadcast: Callable[[str, dict[str, Any]], None],
        *,
        raw: bool = False,
        pace: Pace = REAL,
    ) -> None:
        self.profile = profile
        self.expected = 0
        self._path = path
        self._tell = tell
        self._broadcast = broadcast
        self._raw = raw
        self._pace = pace
        self._wall = pace.stamps(time.time)
        self._ready: list[str] = []
        self._ended: set[str] = set()
        self._seen = Observations()
        self._spans: list[list[Mapping[str, float]]] = [[] for _ in profile.specs]
        self._began = 0.0

    def http(self, asked: HttpMode) -> HttpMode:
        """The protocol of the connections: the profile's, unless another was asked for."""
        return "http/1.1" if self.profile.http1 and asked == "auto" else asked

    def describe(self) -> list[str]:
        return describe(self.profile, self._path)

    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        if kind == READY:
            self._ready.append(fields["name"])
            if len(self._ready) == self.expected:
                gevent.spawn_later(self._pace.real_s(SETTLES_S), self._begin)
        elif kind == OBSERVED:
            self._seen.put(fields["columns"])
            for span in fields["spans"]:
                self._spec_ended(span)
        elif kind == SHARE_ENDED:
            self._ended.add(fields["name"])
            if len(self._ended) == self.expected:
                self._tell("scenario-finished", {"name": self.profile.description})
                self._tell("scenario-ended", {"failures": [], "violations": []})

    def _begin(self) -> None:
        users = sorted(self._ready)
        self._began = self._wall()
        self._tell(
            "scenario-started", {"name": self.profile.description, "config": self._path, "users": users}
        )
        self._tell("phase-started", {"step": _name(0)})
        self._broadcast(GO, {"users": users})

    def _spec_ended(self, span: Mapping[str, float]) -> None:
        number = int(span["spec"])
        spans, wanted = self._spans[number], self._wanted(self.profile.specs[number])
        spans.append(span)
        if len(spans) == wanted:
            self._tell(
                "step-finished",
                {
                    "number": number + 1,
                    "name": f"{_name(number)}: {in_words(self.profile.specs[number])}",
                    "seconds": _seconds(spans),
                    "failures": [],
                },
                max(span["until_s"] for span in spans),
            )

    def _wanted(self, spec: Spec) -> int:
        """How many shares of it there are, of all runners."""
        shares = (
            Share(position, len(self._ready)).of_runner(runner, spec)
            for runner in range(self.profile.runners)
            for position in range(len(self._ready))
        )
        return sum(share is not None for share in shares)

    def finish(self, record: Path) -> SLOs:
        """Write the report into `record`; what the screen shows of it. Raises OSError."""
        spans = [self._span(number) for number in range(len(self.profile.specs))]
        report = build_report(self._seen, spans, raw=self._raw)
        folder = record / FOLDER
        folder.mkdir(exist_ok=True)
        (folder / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
        return SLOs(list(_measurements(self.profile, report)), [], [])

    def _span(self, number: int) -> Span:
        """When a spec ran; of one whose users went without a word, from the end of the one before it until now."""
        spans = self._spans[number]
        if spans or not self._seen.of_spec(number):
            return Span(_seconds(spans), int(sum(span["unfinished"] for span in spans)))
        before = [span["until_s"] for ended in self._spans[:number] for span in ended]
        return Span(self._wall() - max([self._began, *before]))


def kperf_results(
    environment: Any, path: str, files: Files, tell: Tell, *, raw: bool, pace: Pace = REAL
) -> KperfResults | None:
    """Of the profile at `path`, None where it is none. Raises ConfigError for a file that the locustfile's users do not
    run."""
    runs_profiles = any(getattr(user, "runs_profiles", False) for user in environment.user_classes)
    if not runs_profiles:
        if path and is_profile(path, files):
            raise ConfigError(f"{path}: a kperf profile; `swarmlet run` or locustfiles/kperf.py runs it")
        return None
    if not path or not is_profile(path, files):
        raise ConfigError(
            f"--scenario {path or 'none'}: no kperf profile, which has specs, nor a runner group with a loadProfile"
        )
    profile = load_profile(path, files)
    runner = environment.runner
    return KperfResults(
        path, profile, tell, lambda kind, data: runner.send_message(kind, data), raw=raw, pace=pace
    )


def _name(number: int) -> str:
    return f"specs[{number}]"


def _seconds(spans: list[Mapping[str, float]]) -> float:
    if not spans:
        return 0.0
    return max(span["until_s"] for span in spans) - min(span["from_s"] for span in spans)


def _measurements(profile: LoadProfile, report: Report) -> list[dict[str, Any]]:
    """The whole run, then each spec where there are several, as `results.measurements` of a manifest."""
    parts = [("kperf", report.aggregated)]
    if len(report.per_spec_results) > 1:
        parts += [(f"kperf {_name(index)}", part) for index, part in enumerate(report.per_spec_results)]
    return [
        {"name": name, "method": "kperf", "identifier": profile.description, "values": _values(part)}
        for name, part in parts
    ]


def _values(part: RunnerReport) -> dict[str, object]:
    values: dict[str, object] = {"requests": part.total, "failed": part.failed, "duration": part.duration}
    values.update({f"failed with {failure}": count for failure, count in part.error_stats.items()})
    if part.unfinished:
        values["due, and not ended when the run was"] = part.unfinished
    values.update(_milliseconds("latency", part.percentile_latencies))
    values.update(_milliseconds("lateness", part.percentile_lateness))
    for member, own in part.members.items() if len(part.members) > 1 else ():
        values[f"{member}: requests"] = own.total
        values.update(_milliseconds(f"{member}: latency", own.percentile_latencies, (0.99,)))
    return values


def _milliseconds(
    what: str, found: Percentiles | None, shown: tuple[float, ...] = (0.5, 0.99, 1.0)
) -> dict[str, float]:
    return {f"{what} perc{p * 100:g}, ms": seconds * 1e3 for p, seconds in found or () if p in shown}
