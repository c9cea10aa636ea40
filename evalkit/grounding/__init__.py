"""Verification of quotes: where a quote is on a page, and how the two differ."""

from evalkit.grounding.difference import get_grounding_version
from evalkit.grounding.locate import QuoteLocation, QuoteLocator

__all__ = ["QuoteLocation", "QuoteLocator", "get_grounding_version"]
