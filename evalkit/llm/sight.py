"""Which language models can be shown pages of a statement: do they see pictures, and how much do they read at once?

Specification 004, "Model Requirements". Names change every month: what is not in the table is not known, and ``evalkit
doctor --live`` shows the model a picture.
"""

from __future__ import annotations

import io
import re
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

#: Tokens that a reviewer's model must read at once.
LEAST_CONTEXT = 32_000
#: What stands on the picture that a model is shown.
SHOWN = "5290"


class Known(NamedTuple):
    """What the providers say of a family of models."""

    names: str
    """Provider and model as ``--model`` has them: a pattern of how they begin."""
    sees: bool
    context: int | None
    """Tokens; None where the server decides."""


#: The first row that fits counts.
MODELS = (
    Known(r"gemini:(models/)?gemma-3-1b",                             sees=False, context=32_768),
    Known(r"gemini:(models/)?gemma-3",                                sees=True,  context=131_072),
    Known(r"gemini:(models/)?gemini-",                                sees=True,  context=1_000_000),
    Known(r"openai:(gpt-3\.5|davinci|babbage)",                       sees=False, context=16_385),
    Known(r"openai:gpt-4(-0|-32k|$)",                                 sees=False, context=8_192),
    Known(r"openai:(o1-mini|o1-preview|o3-mini)",                     sees=False, context=128_000),
    Known(r"openai:(gpt-4o|gpt-4-turbo|gpt-4-vision|chatgpt-4o)",     sees=True,  context=128_000),
    Known(r"openai:(gpt-4\.1|gpt-5|o1|o3|o4)",                        sees=True,  context=200_000),
    Known(r"anthropic:claude-(instant|1|2)",                          sees=False, context=100_000),
    Known(r"anthropic:claude-",                                       sees=True,  context=200_000),
    Known(r"ollama:(llava|bakllava|llama3\.2-vision|gemma3:(4|12|27)b|qwen2\.?5?vl|minicpm-v|mistral-small3)", sees=True, context=None),
    Known(r"ollama:(llama2|llama3(\.1|\.3)?(:|$)|mistral(:|$)|phi3|codellama|deepseek|qwen2(\.5)?(:|$))", sees=False, context=None),
)  # fmt: skip


def known_of(name: str) -> Known | None:
    """What is known of a model; None: nothing.

    >>> known_of("openai:gpt-3.5-turbo").sees, known_of("gemini:gemini-2.5-flash").sees, known_of("openai:house-model")
    (False, True, None)
    """
    return next((row for row in MODELS if re.match(row.names, name)), None)


def picture() -> bytes:
    """A small PNG with ``SHOWN`` on it."""
    image = Image.new("RGB", (320, 120), "white")
    ImageDraw.Draw(image).text((60, 20), SHOWN, fill="black", font=ImageFont.load_default(size=72))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
