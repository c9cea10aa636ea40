"""Families of language models for ``--model``: one file for each family.

The file's name is the part before the colon: ``gemini:MODEL``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from evalkit.errors import UsageError
from evalkit.llm.model import Provider
from evalkit.llm.provider_family import ModelCapabilities, ProviderFamily

#: All families by name, such as ``gemini``; one for each file in this folder.
FAMILIES: Mapping[str, ProviderFamily] = {
    module.name: import_module(f"{__name__}.{module.name}").FAMILY for module in iter_modules(__path__)
}


def find_family(provider_and_model: str) -> ProviderFamily | None:
    """Return the family of ``gemini:MODEL`` or the like; None if it is unknown."""
    return FAMILIES.get(provider_and_model.partition(":")[0])


def build_provider(provider_and_model: str, *, environment: Mapping[str, str], base_url: str | None = None) -> Provider:
    """Build the provider of a model, named as for ``--model``: ``gemini:MODEL``.

    ``environment``: environment variables, which hold the keys. ``base_url``: None: the provider's own address.
    UsageError MODEL-NAME if there is no such family; MODEL-KEY if a key is missing; MODEL-ADDRESS if the URL is not
    valid, or documents would cross a network unencrypted; MODEL-EXTRA if a library is missing.
    """
    family, model_name = find_family(provider_and_model), provider_and_model.partition(":")[2]
    if family is None or not model_name:
        raise UsageError(
            f"there is no model {provider_and_model!r}",
            code="MODEL-NAME",
            remedy=f"Use embedded, or one of {', '.join(f'{name}:MODEL' for name in FAMILIES)}.",
        )
    return family.create_provider(model_name, base_url, environment)


def find_model_capabilities(provider_and_model: str) -> ModelCapabilities | None:
    """Return what a model can do, such as reading pictures; None if unknown.

    >>> find_model_capabilities("anthropic:claude-2.1")
    ModelCapabilities(name_pattern='claude-(instant|1|2)', has_vision=False, context_tokens=100000)
    >>> find_model_capabilities("openai:house-model")
    """
    family, model_name = find_family(provider_and_model), provider_and_model.partition(":")[2]
    rows = family.capabilities if family else ()
    return next((row for row in rows if re.match(row.name_pattern, model_name)), None)
