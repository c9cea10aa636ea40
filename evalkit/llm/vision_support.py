"""Check a language model's sight by a picture with a number on it.

``evalkit doctor --live`` shows it. Specification 004, "Model Requirements". What the providers say of their models is
in ``providers/``.
"""

from __future__ import annotations

from PIL import Image, ImageDraw, ImageFont

from evalkit.documents.render import encode_png

#: Tokens that a template reviewer's model must read at once.
MIN_CONTEXT_TOKENS = 32_000
#: The number on the picture.
TEST_IMAGE_TEXT = "5290"


def render_vision_test_png() -> bytes:
    """Draw a small PNG with ``TEST_IMAGE_TEXT`` on it."""
    image = Image.new("RGB", (320, 120), "white")
    ImageDraw.Draw(image).text((60, 20), TEST_IMAGE_TEXT, fill="black", font=ImageFont.load_default(size=72))
    return encode_png(image)
