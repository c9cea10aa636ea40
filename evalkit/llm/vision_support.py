"""Which language models can be shown pages of a statement: do they see pictures, and how much do they read at once?

Specification 004, "Model Requirements". Names change every month: what is not in the table is not known, and ``evalkit
doctor --live`` shows the model a picture.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from evalkit.documents.render import encode_png

#: Tokens that a reviewer's model must read at once.
MIN_CONTEXT_TOKENS = 32_000
#: What stands on the picture that a model is shown.
TEST_IMAGE_TEXT = "5290"


class ModelFamilyCapabilities(NamedTuple):
    """What the providers say of a family of models."""

    name_pattern: str
    """Provider and model as ``--model`` has them: a pattern of how they begin."""
    has_vision: bool
    context_tokens: int | None
    """Tokens; None where the server decides."""


#: The first row that fits counts.
MODEL_CAPABILITIES = (
    ModelFamilyCapabilities(r"gemini:(models/)?gemma-3-1b",                             has_vision=False, context_tokens=32_768),
    ModelFamilyCapabilities(r"gemini:(models/)?gemma-3",                                has_vision=True,  context_tokens=131_072),
    ModelFamilyCapabilities(r"gemini:(models/)?gemini-",                                has_vision=True,  context_tokens=1_000_000),
    ModelFamilyCapabilities(r"openai:(gpt-3\.5|davinci|babbage)",                       has_vision=False, context_tokens=16_385),
    ModelFamilyCapabilities(r"openai:gpt-4(-0|-32k|$)",                                 has_vision=False, context_tokens=8_192),
    ModelFamilyCapabilities(r"openai:(o1-mini|o1-preview|o3-mini)",                     has_vision=False, context_tokens=128_000),
    ModelFamilyCapabilities(r"openai:(gpt-4o|gpt-4-turbo|gpt-4-vision|chatgpt-4o)",     has_vision=True,  context_tokens=128_000),
    ModelFamilyCapabilities(r"openai:(gpt-4\.1|gpt-5|o1|o3|o4)",                        has_vision=True,  context_tokens=200_000),
    ModelFamilyCapabilities(r"anthropic:claude-(instant|1|2)",                          has_vision=False, context_tokens=100_000),
    ModelFamilyCapabilities(r"anthropic:claude-",                                       has_vision=True,  context_tokens=200_000),
    ModelFamilyCapabilities(r"ollama:(llava|bakllava|llama3\.2-vision|gemma3:(4|12|27)b|qwen2\.?5?vl|minicpm-v|mistral-small3)", has_vision=True, context_tokens=None),
    ModelFamilyCapabilities(r"ollama:(llama2|llama3(\.1|\.3)?(:|$)|mistral(:|$)|phi3|codellama|deepseek|qwen2(\.5)?(:|$))", has_vision=False, context_tokens=None),
)  # fmt: skip


def find_model_capabilities(provider_and_model: str) -> ModelFamilyCapabilities | None:
    """What is known of a model; None: nothing.

    >>> find_model_capabilities("openai:gpt-3.5-turbo").has_vision, find_model_capabilities("gemini:gemini-2.5-flash").has_vision, find_model_capabilities("openai:house-model")
    (False, True, None)
    """
    return next((row for row in MODEL_CAPABILITIES if re.match(row.name_pattern, provider_and_model)), None)


def render_vision_test_png() -> bytes:
    """A small PNG with ``TEST_IMAGE_TEXT`` on it."""
    image = Image.new("RGB", (320, 120), "white")
    ImageDraw.Draw(image).text((60, 20), TEST_IMAGE_TEXT, fill="black", font=ImageFont.load_default(size=72))
    return encode_png(image)
