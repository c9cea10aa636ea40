"""The long runs use the demo's documents too."""

from demo.conftest import finished, samples

__all__ = ["finished", "samples"]
