"""A test picture with a number, to check that a language model can read pictures.

``evalkit doctor --live`` sends it. Source: specification 004, "Model Requirements". The providers' own statements about
their models are in ``providers/``.
"""

from PIL import Image, ImageDraw, ImageFont

from evalkit.documents.render import encode_png

#: Smallest context, in tokens, of a model that reviews statement templates.
MIN_CONTEXT_TOKENS = 32_000
#: The number on the test picture, which the model must read.
TEST_IMAGE_TEXT = "5290"


def render_vision_test_png() -> bytes:
    """Draw a small PNG with ``TEST_IMAGE_TEXT`` on it."""
    image = Image.new("RGB", (320, 120), "white")
    ImageDraw.Draw(image).text((60, 20), TEST_IMAGE_TEXT, fill="black", font=ImageFont.load_default(size=72))
    return encode_png(image)
