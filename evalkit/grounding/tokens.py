"""Tokens of a text, for comparison: words, numbers and meaningful signs."""

import re
from typing import NamedTuple

from evalkit.core.document_cache import cache_document_text
from evalkit.grounding.normalise import is_plain_ascii, normalise_characters


class Token(NamedTuple):
    """A word, number or meaningful sign of a text."""

    folded: str
    """The token in the form for comparison; see ``fold_word``."""
    text: str
    """The token as written, with characters normalised."""
    gap_before: str
    """Text between the previous token and this one; for the first token, all text before it."""

    @property
    def has_loose_gap(self) -> bool:
        """True if a copy of the text may omit the space before the token.

        So it is without any gap, and at a line break, hyphen or cell border.
        """
        return not self.gap_before or any(character in self.gap_before for character in "\n\t-")


# A token is a chunk of letters and digits with the signs inside of it (c.5266dupC, 17q21.31, 3-5, 10^-3), an amount
# without its unit, or a meaningful sign. All other punctuation is ignored.
_UNIT_PATTERN = (
    r"(?:mm|cm|m|km|mg|mcg|ug|µg|μg|g|gm|kg|ng|pg|lbs?|oz|ml|l|dl|cc|iu|u|meq|mmol|hrs?|h|min|bp|kb|mb|gy|x|yo|y)"
)
_TOKEN = re.compile(
    r"[A-Za-z]++(?![\w'.,:>*^-])"  # nearly all chunks: a plain word
    r"|\[[ xX✓]?\]|\([ xX✓]\)|[☐☑☒✓✔✗✘□■◻◼]"  # box
    r"|(?<!\w)[cgmnpr]\.\(?(?=[\w*>+=?-]*\d)[\w*>+=?-]*[\w*=?]"  # variant
    r"|\d{1,4}\^[-+]?\^?\d{1,4}"  # power
    rf"|\d+(?:[.,]\d+)*(?={_UNIT_PATTERN}(?!\w))"  # amount
    r"|(?<![\w.])\.\d+"  # point
    r"|[^\W_]+(?:'[^\W_]+|[.,:>*^_-](?=\d)[^\W_]+|(?<=\d)[-:>/.,][^\W_]+)*"  # chunk
    r"|(?<![\w.)])-(?=\.?\d)|(?<=[A-Z0-9])-(?!\w)"  # minus
    r"|[<>]=?|[=≈~±%‰?°^+↑↓→←⇧⇩♀♂≠≮≯≪≫∼≲Ø]"  # sign
)
_REMOVED_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W_])|(?<=\d)-(?=[^\W\d_])|\s")


@cache_document_text(1024)
def tokenise(text: str) -> tuple[Token, ...]:
    """Split a text into its words, numbers and meaningful signs, in order."""
    normalised_text = normalise_characters(text)
    tokens: list[Token] = []
    previous_end = 0
    for match in _TOKEN.finditer(normalised_text):
        start, end = match.span()
        tokens.append(Token(fold_word(word := match.group()), word, normalised_text[previous_end:start]))
        previous_end = end
    return tuple(tokens)


@cache_document_text(4096)
def fold_word(text: str) -> str:
    """Normalise a word for comparison: lower case, no hyphens, "u" for micro.

    >>> fold_word("HER-2"), fold_word("3-5"), fold_word("Follow-up"), fold_word("µg")
    ('her2', '3-5', 'followup', 'ug')
    """
    folded_text = text if is_plain_ascii(text) else normalise_characters(text)
    return _REMOVED_HYPHEN.sub("", folded_text.casefold().replace("μ", "u").replace("µ", "u"))
