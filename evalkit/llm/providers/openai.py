"""OpenAI models, and servers with OpenAI's protocol: vLLM, llama.cpp, LM Studio."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evalkit.llm.provider_family import ModelCapabilities
from evalkit.llm.pydantic_ai_provider import create_openai_client, create_pydantic_ai_family

if TYPE_CHECKING:
    from pydantic_ai.models.openai import OpenAIChatModel


def _create_model(model_name: str, base_url: str, api_key: str) -> OpenAIChatModel:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = create_openai_client(base_url, api_key)
    if _is_openai_host(base_url):
        # By default, OpenAI stores the requests of newer accounts.
        model_settings = OpenAIChatModelSettings(openai_store=False)
        return OpenAIChatModel(model_name, provider=OpenAIProvider(openai_client=client), settings=model_settings)
    # Always send the schema: pydantic-ai would decide that by the model's name, but here the server matters.
    server_provider = OpenAICompatibleProvider(
        "openai-compatible", openai_client=client, profile={"supports_json_schema_output": True}
    )
    return OpenAIChatModel(model_name, provider=server_provider)


def _is_openai_host(base_url: str) -> bool:
    return urlsplit(base_url).hostname == "api.openai.com"


FAMILY = create_pydantic_ai_family(
    "openai",
    _create_model,
    default_base_url="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    is_key_required=_is_openai_host,
    price_list="openai",
    is_self_hostable=True,
    capabilities=(
        ModelCapabilities(r"(gpt-3\.5|davinci|babbage)",                   has_vision=False, context_tokens=16_385),
        ModelCapabilities(r"gpt-4(-0|-32k|$)",                             has_vision=False, context_tokens=8_192),
        ModelCapabilities(r"(o1-mini|o1-preview|o3-mini)",                 has_vision=False, context_tokens=128_000),
        ModelCapabilities(r"(gpt-4o|gpt-4-turbo|gpt-4-vision|chatgpt-4o)", has_vision=True,  context_tokens=128_000),
        ModelCapabilities(r"(gpt-4\.1|gpt-5|o1|o3|o4)",                    has_vision=True,  context_tokens=200_000),
    ),
)  # fmt: skip
