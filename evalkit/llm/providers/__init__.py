"""Families of language models for ``--model``.

Each module has those of one protocol in its ``FAMILIES``.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from evalkit.core.model_names import describe_similar_names
from evalkit.errors import UsageError
from evalkit.llm.model import Provider
from evalkit.llm.model_families import find_model_facts
from evalkit.llm.provider_family import ProviderFamily

#: All families by name, such as ``gemini``, sorted.
FAMILIES: Mapping[str, ProviderFamily] = dict(
    sorted(
        family
        for module in iter_modules(__path__)
        for family in import_module(f"{__name__}.{module.name}").FAMILIES.items()
    )
)


def find_family(provider_and_model: str) -> ProviderFamily | None:
    """Return the family of ``gemini:MODEL`` or the like; None if it is unknown."""
    return FAMILIES.get(provider_and_model.partition(":")[0])


def build_provider(
    provider_and_model: str,
    *,
    environment: Mapping[str, str],
    base_url: str | None = None,
    context_tokens: int | None = None,
) -> Provider:
    """Build the provider of a model, named as for ``--model``: ``gemini:MODEL``.

    ``environment``: environment variables, which hold the keys. ``base_url``: None: the provider's own address.
    ``context_tokens``: the context of a site's own server; None: what is known about the model.
    UsageError MODEL-NAME if there is no such family; MODEL-KEY if a key is missing; MODEL-ADDRESS if the URL is not
    valid, or documents would cross a network unencrypted; MODEL-EXTRA if a library is missing.
    """
    family, model_name = find_family(provider_and_model), provider_and_model.partition(":")[2]
    if family is None or not model_name:
        raise UsageError(
            f"there is no model {provider_and_model!r}",
            code="MODEL-NAME",
            remedy=f"Use {describe_similar_names(provider_and_model)}embedded, or one of "
            f"{', '.join(f'{name}:MODEL' for name in FAMILIES)}.",
        )
    facts = find_model_facts(provider_and_model, context_tokens)
    return family.create_provider(model_name, base_url, environment, facts)
