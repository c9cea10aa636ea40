"""Is this quote on that page, and where exactly?"""

from evalkit.grounding.difference import grounding_version
from evalkit.grounding.locate import Located, Locator

__all__ = ["Located", "Locator", "grounding_version"]
