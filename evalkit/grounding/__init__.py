"""Verification of quotes: find a quote on a page and describe differences."""

from evalkit.grounding.difference import get_grounding_version
from evalkit.grounding.locate import QuoteLocation, QuoteLocator

__all__ = ["QuoteLocation", "QuoteLocator", "get_grounding_version"]
