"""What a run comes to: what failed, which thresholds were missed, its status, its exit code."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from harness.observe.record import RunRecord, Status
from harness.wire.errors import RunInvalid

logger = logging.getLogger("swarmlet")


class Outcome:
    """Kept in the record as it grows; `status` is what the record will end with."""

    def __init__(self, record: RunRecord) -> None:
        self.status = Status.INTERRUPTED
        self._record = record
        self._failures: list[str] = []
        self._violations: list[str] = []

    def fail(self, text: str, *, invalid: bool = True) -> None:
        """Something went wrong; `invalid`: so that no figure of the run is to be compared."""
        self._failures.append(text)
        self._record.mark(text, invalid=invalid)

    def fail_unmarked(self, texts: Sequence[str], of: str) -> None:
        """Parts of the run failed: its figures are what they are."""
        self._failures.extend(texts)
        for text in texts:
            logger.error("%s: %s", of, text)

    def miss(self, texts: Sequence[str]) -> None:
        """Thresholds that were missed."""
        self._violations.extend(texts)
        for text in texts:
            logger.warning("threshold missed: %s", text)

    @property
    def exit_code(self) -> int:
        """0 success, 1 something failed, 4 the figures must not be used, 3 a threshold was missed."""
        if self._failures:
            return 1
        if any(mark.invalid for mark in self._record.manifest.marks):
            return RunInvalid.exit_code
        return 3 if self._violations else 0
