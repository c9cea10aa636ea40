"""The patient's folder, as in ``batch``."""

from pipeline.conftest import made

__all__ = ["made"]
