"""Claude models by Anthropic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.core.remote_services import create_no_redirect_http_client
from evalkit.llm.pydantic_ai_provider import create_pydantic_ai_family

if TYPE_CHECKING:
    from pydantic_ai.models.anthropic import AnthropicModel


def _create_model(model_name: str, base_url: str, api_key: str) -> AnthropicModel:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.profiles.anthropic import AnthropicModelProfile
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=api_key,
        base_url=base_url,
        http_client=create_no_redirect_http_client(base_url),
        max_retries=0,
        open_telemetry=False,
    )
    return AnthropicModel(
        model_name,
        provider=AnthropicProvider(anthropic_client=client),
        # The facts decide how the schema is sent; pydantic-ai knows only models older than itself.
        profile=AnthropicModelProfile(supports_json_schema_output=True),
        # Models without a known limit would get pydantic-ai's: an answer could stream for hours, and would be paid in full.
        settings={"max_tokens": 16_384},
    )


FAMILIES = {
    "anthropic": create_pydantic_ai_family(
        "anthropic",
        _create_model,
        default_base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        client_library="anthropic",
    )
}
