"""Services and servers with OpenAI's protocol.

They are the rows of ``model_families.toml`` that have an address.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evalkit.core.remote_services import create_no_redirect_http_client
from evalkit.llm.model_families import load_model_family_table
from evalkit.llm.pydantic_ai_provider import create_pydantic_ai_family

if TYPE_CHECKING:
    from pydantic_ai.models.openai import OpenAIChatModel


def _create_model(model_name: str, base_url: str, api_key: str, *, has_older_output_limit: bool) -> OpenAIChatModel:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = AsyncOpenAI(
        api_key=api_key, base_url=base_url, http_client=create_no_redirect_http_client(base_url), max_retries=0
    )
    if _is_openai_host(base_url):
        # By default, OpenAI stores the requests of newer accounts.
        model_settings = OpenAIChatModelSettings(openai_store=False)
        return OpenAIChatModel(model_name, provider=OpenAIProvider(openai_client=client), settings=model_settings)
    profile = OpenAIModelProfile(
        # The facts decide how the schema is sent; pydantic-ai would decide it by the model's name.
        supports_json_schema_output=True,
        openai_chat_supports_max_completion_tokens=not has_older_output_limit,
    )
    server_provider = OpenAICompatibleProvider("openai-compatible", openai_client=client, profile=profile)
    return OpenAIChatModel(model_name, provider=server_provider)


def _is_openai_host(base_url: str) -> bool:
    return urlsplit(base_url).hostname == "api.openai.com"


FAMILIES = {
    name: create_pydantic_ai_family(
        name,
        # Only OpenAI's models, also behind a gateway, want the newer name of the output limit.
        partial(_create_model, has_older_output_limit=name != "openai"),
        default_base_url=provider.address.value,
        key_variable=provider.key,
    )
    for name, provider in load_model_family_table().providers.items()
    if provider.address is not None
}
