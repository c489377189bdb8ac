"""What tests of experiments share."""

from tests.experiment.fakerun import endings

__all__ = ["endings"]
