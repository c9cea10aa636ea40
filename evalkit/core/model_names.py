"""Names of language models that are written without their provider.

The patterns of names are those of ``model_families.toml``.
"""

import logging
import re
from difflib import get_close_matches
from functools import cache
from typing import Any

from evalkit.core.package_tables import load_package_table

log = logging.getLogger(__name__)


@cache  # so that the note appears once
def complete_model_name(model_name: str) -> str:
    """Add the provider to a model's name, if only one provider has such models.

    Other names are returned unchanged. A note in the log says what was added.

    >>> complete_model_name("embedded"), complete_model_name("vllm:gemma-3-27b-it"), complete_model_name("llama3.2")
    ('embedded', 'vllm:gemma-3-27b-it', 'llama3.2')
    """
    if model_name.partition(":")[0] in _load_table()["providers"]:
        return model_name
    match _find_providers(model_name):
        case [provider]:
            log.warning("the model %s is taken for %s:%s", model_name, provider, model_name)
            return f"{provider}:{model_name}"
    return model_name


def describe_similar_names(model_name: str) -> str:
    """Return similar names, each with a comma after it; empty if there are none.

    >>> describe_similar_names("llama3.2")
    'llamacpp:llama3.2, lmstudio:llama3.2, ollama:llama3.2, vllm:llama3.2, '
    >>> describe_similar_names("gemnii-2.5-flash")
    'gemini:gemini-2.5-flash, '
    """
    provider_by_example = {row["example"]: row["providers"][0] for row in _load_table()["families"] if "example" in row}
    similar_names = [f"{provider}:{model_name}" for provider in _find_providers(model_name)] or [
        f"{provider_by_example[example]}:{example}"
        for example in get_close_matches(model_name.rpartition(":")[2], provider_by_example, n=1)
    ]
    return "".join(f"{name}, " for name in similar_names)


def _load_table() -> dict[str, Any]:
    return load_package_table("evalkit.llm", "model_families.toml")


def _find_providers(model_name: str) -> list[str]:
    return sorted(
        {
            provider
            for row in _load_table()["families"]
            if "example" in row and re.match(row["models"], model_name.removeprefix("models/"), re.IGNORECASE)
            for provider in row["providers"]
        }
    )
