"""The patient's folder, as in ``batch``."""

from batch.conftest import made

__all__ = ["made"]
