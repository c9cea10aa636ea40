"""The output folder of the tests of reviews."""

from review.conftest import build, desk

__all__ = ["build", "desk"]
