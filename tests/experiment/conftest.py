"""What tests of experiments share; and vl-convert's runtime, started before any test's leak check (tests/report)."""

import tests.report.conftest  # noqa: F401
from tests.experiment.fakerun import endings

__all__ = ["endings"]
