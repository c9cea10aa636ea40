"""A text as words, numbers and signs that say something, folded to compare them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from evalkit.grounding.normalise import plain


class Token(NamedTuple):
    """One word, number or sign."""

    key: str
    """Folded, to compare by."""
    text: str
    """As written."""
    between: str
    """What stands between it and the token before; all of it that is in the text, for the first."""

    @property
    def is_loose(self) -> bool:
        """After a line break, a hyphen or between cells, where a division may be the page's and not the writer's."""
        return not self.between or any(sign in self.between for sign in "\n\t-")

    @property
    def is_joined(self) -> bool:
        """Whether nothing but signs stands between it and the token before."""
        return not any(map(str.isspace, self.between))


# A chunk of letters and digits with the signs that hang inside it (c.5266dupC, 17q21.31, 3-5, 10^-3), an amount without
# its unit, or a sign that says something. What else is punctuation says nothing here.
_UNITS = r"(?:mm|cm|m|km|mg|mcg|ug|µg|μg|g|gm|kg|ng|pg|lbs?|oz|ml|l|dl|cc|iu|u|meq|mmol|hrs?|h|min|bp|kb|mb|gy|x|yo|y)"
_TOKEN = re.compile(
    r"[A-Za-z]++(?![\w'.,:>*^-])"  # nearly all chunks: a word alone, which is none of what follows
    r"|\[[ xX✓]?\]|\([ xX✓]\)|[☐☑☒✓✔✗✘□■◻◼]"  # box
    r"|(?<!\w)[cgmnpr]\.\(?(?=[\w*>+=?-]*\d)[\w*>+=?-]*[\w*=?]"  # variant
    r"|\d{1,4}\^[-+]?\^?\d{1,4}"  # power
    rf"|\d+(?:[.,]\d+)*(?={_UNITS}(?!\w))"  # amount
    r"|(?<![\w.])\.\d+"  # point
    r"|[^\W_]+(?:'[^\W_]+|[.,:>*^_-](?=\d)[^\W_]+|(?<=\d)[-:>/.,][^\W_]+)*"  # chunk
    r"|(?<![\w.)])-(?=\.?\d)|(?<=[A-Z0-9])-(?!\w)"  # minus
    r"|[<>]=?|[=≈~±%‰?°^+↑↓→←⇧⇩♀♂≠≮≯≪≫∼≲Ø]"  # sign
)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W_])|(?<=\d)-(?=[^\W\d_])|\s")


@lru_cache(maxsize=1024)
def tokens(text: str) -> tuple[Token, ...]:
    """The text's tokens, in order."""
    whole = plain(text)
    found: list[Token] = []
    last = 0
    for match in _TOKEN.finditer(whole):
        start, end = match.span()
        found.append(Token(key(word := match.group()), word, whole[last:start]))
        last = end
    return tuple(found)


def count(text: str) -> int:
    """``len(tokens(text))`` of a text that is seen once."""
    return len(_TOKEN.findall(plain(text)))


@lru_cache(maxsize=4096)
def key(text: str) -> str:
    """The folded form: no case, no hyphen beside a letter, one letter for micro.

    >>> key("HER-2"), key("3-5"), key("Follow-up"), key("µg")
    ('her2', '3-5', 'followup', 'ug')
    """
    folded = text if text.isascii() else plain(text)
    return _HYPHEN.sub("", folded.casefold().replace("μ", "u").replace("µ", "u"))
