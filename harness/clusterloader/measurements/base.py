"""What every measurement has in common: how it is called and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from harness.clusterloader.durations import parse_duration
from harness.clusterloader.runtime import Runtime


class MeasurementError(Exception):
    """A call that failed. `fatal` ends the test after this step (errors.ErrCritical upstream)."""

    def __init__(self, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.fatal = fatal


class Unsupported(Exception):
    """A call that asks for what is not simulated here; it is skipped, and the run says so."""


class Result(msgspec.Struct, frozen=True):
    """One summary. `values` are (name, number or text) for people and tables, `content` is the summary file's."""

    name: str
    values: dict[str, object]
    content: object


class Outcome(NamedTuple):
    """What a call gives. `failure` is "" where it passed: a threshold that is exceeded still has its results.
    `skipped` is why the results say nothing, "" where they do."""

    results: tuple[Result, ...] = ()
    failure: str = ""
    skipped: str = ""


class Params:
    """Parameters of a call, read by type. Raises MeasurementError naming the key, the value and what is allowed."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    @property
    def given(self) -> Mapping[str, Any]:
        """All of them, as they stand in the config."""
        return self._given

    def with_(self, **values: object) -> Params:
        """These, and `values` instead of those of their names."""
        return Params({**self._given, **values})

    def has(self, key: str) -> bool:
        return self._given.get(key) is not None

    def texts(self, key: str, default: Sequence[str] | None = None) -> list[str]:
        value = self._get(key, default)
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            raise _refused(key, value, "a list of texts")
        return list(value)

    def mapping(self, key: str) -> Params | None:
        """Parameters within parameters; None where there are none."""
        value = self._given.get(key)
        if value is not None and not isinstance(value, dict):
            raise _refused(key, value, "a mapping")
        return None if value is None else Params(value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise _refused(key, value, "text")
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _refused(key, value, "a whole number")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _refused(key, value, "a number")
        return float(value)

    def boolean(self, key: str, default: bool | None = None) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise _refused(key, value, "true or false")
        return value

    def duration(self, key: str, default_s: float | None = None) -> float:
        """Seconds."""
        value = self._given.get(key)
        if value is None and default_s is not None:
            return default_s
        text = self.text(key)
        try:
            return float(parse_duration(text))  # a plain one: notes are encoded
        except ValueError as error:
            raise MeasurementError(f"params.{key}: {error}") from error

    def _get(self, key: str, default: object) -> Any:
        value = self._given.get(key)
        if value is not None:
            return value
        if default is None:
            raise MeasurementError(f"params.{key}: missing; it is required")
        return default


def _refused(key: str, value: object, allowed: str) -> MeasurementError:
    return MeasurementError(f"params.{key}: {value!r} is not allowed; expected {allowed}")


class Selector(NamedTuple):
    """Which objects a measurement looks at; an empty namespace means all (pkg/util/selector.go)."""

    namespace: str
    labels: str
    fields: str

    @classmethod
    def of(cls, params: Params) -> Selector:
        return cls(
            params.text("namespace", ""), params.text("labelSelector", ""), params.text("fieldSelector", "")
        )

    def __str__(self) -> str:
        parts = [f"{word}({value})" for word, value in zip(self._words(), self, strict=True) if value]
        return ", ".join(parts) or "everything"

    @staticmethod
    def _words() -> tuple[str, str, str]:
        return ("namespace", "labelSelector", "fieldSelector")


class Call(NamedTuple):
    """One execution of a measurement within a step."""

    identifier: str
    params: Params
    runtime: Runtime
    step: str
    prefix: str = ""
    """Of the automanaged namespaces."""

    def skip(self, method: str, reason: str) -> None:
        """Say that a part of a measurement is skipped; the rest of it is not."""
        self.runtime.note(
            "skipped-measurement",
            method=method,
            identifier=self.identifier,
            step=self.step,
            reason=reason,
            part=True,
        )


class Measurement(Protocol):
    """One instance for each (method, identifier) of a test, called by several steps (start, gather)."""

    async def execute(self, call: Call) -> Outcome:
        """Raises MeasurementError or Unsupported."""
        ...

    def dispose(self) -> None:
        """The test has ended: stop what still runs. Called once, also where `execute` never was."""
        ...


def unknown_action(action: str, *allowed: str) -> MeasurementError:
    return MeasurementError(f"params.action: {action!r} is not allowed; expected one of {', '.join(allowed)}")
