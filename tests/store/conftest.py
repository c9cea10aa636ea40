"""The output folder of the tests of reviews."""

from review.conftest import build, workspace

__all__ = ["build", "workspace"]
