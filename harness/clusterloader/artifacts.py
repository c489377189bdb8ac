"""The files that ClusterLoader2's users' tools read: junit.xml, summaries for perf-dash, the generated config.

In junit.xml a measurement that is skipped is a skipped case, and so is each skipped part of one that is not.

Mirrors clusterloader2/pkg/test/simple_reporter.go over ginkgo's JUnit reporter, pkg/test/simple_test_executor.go
(summaries) and cmd/clusterloader.go (dumpTestConfig). Built from the notes of a test, so that whoever keeps them can
write the files, wherever the test ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from xml.etree import ElementTree

from harness.clusterloader.config import Config
from harness.clusterloader.perfdata import encode, file_name
from harness.clusterloader.resolved import resolved_text
from harness.wire import rfc3339

_SUITE = "ClusterLoaderV2"


class _Case(NamedTuple):
    """`skipped` is why it was not done, "" where it was."""

    name: str
    seconds: float
    problems: tuple[str, ...]
    skipped: str = ""


class Artifacts:
    """`take` is given each note of a test, `files` gives what came of them; both may go on in turn."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._steps: list[_Case] = []
        self._started_s = self._ended_s = 0.0
        self._problems: list[str] = []
        self._parts: dict[str, _Case] = {}
        self._summaries: list[tuple[str, float, object]] = []

    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        if kind == "scenario-started":
            self._started_s = fields["at_s"]
        elif kind == "step-finished":
            self._steps += _cases(self._config.name, fields)
        elif kind == "skipped-measurement" and fields.get("part"):
            self.skipped(f"{fields['method']} - {fields['identifier']}", fields["reason"])
        elif kind == "scenario-finished":
            self._ended_s = fields["at_s"]
            self._problems += [*fields["failures"], *fields["violations"]]
        elif kind == "measurement":
            self.summary(fields["name"], rfc3339.parse(fields["at"]), fields["summary"])

    def summary(self, name: str, epoch_s: float, content: object) -> None:
        """A summary that is known only later."""
        self._summaries.append((name, epoch_s, content))

    def problem(self, text: str) -> None:
        """A threshold that is found missed only later."""
        self._problems.append(text)

    def skipped(self, what: str, reason: str) -> None:
        """Something that was not measured, though its measurement's case passed."""
        name = f"{self._config.name}: {what}"
        self._parts[name] = _Case(name, 0.0, (), reason)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Each file's name and content."""
        yield "junit.xml", self._junit()
        yield f"generatedConfig_{_safe(self._config.name)}.yaml", resolved_text(self._config).encode()
        for name, epoch_s, content in self._summaries:
            yield _safe(file_name(name, self._config.name, epoch_s)), encode(content)

    def _junit(self) -> bytes:
        seconds = max(0.0, self._ended_s - self._started_s)
        name = f"{self._config.name} overall ({self._config.path})"
        cases = [_Case(name, seconds, tuple(self._problems)), *self._steps, *self._parts.values()]
        failed = sum(bool(case.problems) for case in cases)
        suite = ElementTree.Element(
            "testsuite",
            name=_SUITE,
            tests=str(len(cases)),
            failures=str(failed),
            errors="0",
            skipped=str(sum(bool(case.skipped) for case in cases)),
            time=f"{seconds:.3f}",
        )
        for case in cases:
            element = ElementTree.SubElement(
                suite, "testcase", name=case.name, classname=_SUITE, time=f"{case.seconds:.3f}"
            )
            if case.problems:
                failure = ElementTree.SubElement(element, "failure", type="Failure")
                failure.text = _xml_text("\n".join(case.problems))
            elif case.skipped:
                ElementTree.SubElement(element, "skipped", message=_xml_text(case.skipped))
        ElementTree.indent(suite)
        text = ElementTree.tostring(suite, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _cases(test: str, fields: Mapping[str, Any]) -> Iterator[_Case]:
    """One for each measurement of a step, one for all its phases (step_summary.go: getAllResults)."""
    name = f"{test}: [step: {fields['number']:02}] {fields['name']}"
    measured = [part for part in fields["parts"] if part["name"]]
    if not measured:
        yield _Case(name, fields["seconds"], tuple(fields["failures"]))
    for part in measured:
        problems = (*part["failures"], *part["violations"])
        yield _Case(f"{name} {part['name']}", part["seconds"], problems, part["skipped"])


def _safe(name: str) -> str:
    """A test may be called anything; a file may not."""
    return name.replace("/", "_")


def _xml_text(text: str) -> str:
    """Without the control characters that XML does not allow."""
    return "".join(char for char in text if char >= " " or char in "\n\t")
