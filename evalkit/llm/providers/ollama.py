"""Models that a site runs itself with Ollama."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.llm.provider_family import ModelCapabilities
from evalkit.llm.pydantic_ai_provider import create_openai_client, create_pydantic_ai_family

if TYPE_CHECKING:
    from pydantic_ai.models.ollama import OllamaModel


def _create_model(model_name: str, base_url: str, api_key: str) -> OllamaModel:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    return OllamaModel(model_name, provider=OllamaProvider(openai_client=create_openai_client(base_url, api_key)))


FAMILY = create_pydantic_ai_family(
    "ollama",
    _create_model,
    default_base_url="http://127.0.0.1:11434/v1",
    key_variable="OLLAMA_API_KEY",
    is_key_required=lambda _: False,
    is_free=True,
    is_self_hostable=True,
    capabilities=(
        ModelCapabilities(r"(llava|bakllava|llama3\.2-vision|gemma3:(4|12|27)b|qwen2\.?5?vl|minicpm-v|mistral-small3)",  has_vision=True,  context_tokens=None),
        ModelCapabilities(r"(llama2|llama3(\.1|\.3)?(:|$)|mistral(:|$)|phi3|codellama|deepseek|qwen2(\.5)?(:|$))",       has_vision=False, context_tokens=None),
    ),
)  # fmt: skip
