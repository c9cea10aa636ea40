"""Letterheads and senders that a site's reviews teach, as salted line hashes.

The lines at the top and bottom of a page show who sent it. A site's weights hold keyed hashes of such lines and the
types of the documents that carried them, never a line itself. Digits and months are left out, so that a dated line has
the same key on each page.
"""

import calendar
import hmac
import re
from collections.abc import Iterable, Iterator

from evalkit.classification.offline.model_weights import EmbeddedModelWeights
from evalkit.documents.bundle import Page

#: Number of lines at the top and at the bottom of a page that may name a sender.
_TOP_LINES, _BOTTOM_LINES = 10, 4
#: Fewest letters of a line that may name a sender.
_MIN_LETTERS = 5
#: Number of hexadecimal digits of a key.
_KEY_LENGTH = 16
_LETTERS_PATTERN = re.compile(r"[^\W\d_]+")
_MONTHS = frozenset(name.casefold() for names in (calendar.month_name, calendar.month_abbr) for name in names)


def iter_letterhead_keys(page: Page, salt: str) -> Iterator[str]:
    """Yield the key of each line at the page's top and bottom, each once."""
    lines = [line for line in page.text.split("\n") if line.strip()]
    words_by_line = (
        tuple(word for word in _LETTERS_PATTERN.findall(line.casefold()) if word not in _MONTHS)
        for line in (*lines[:_TOP_LINES], *lines[_TOP_LINES:][-_BOTTOM_LINES:])
    )
    for words in dict.fromkeys(words_by_line):
        if sum(map(len, words)) >= _MIN_LETTERS:
            yield hmac.digest(salt.encode(), " ".join(words).encode(), "sha256").hex()[:_KEY_LENGTH]


def find_letterhead_weights(page: Page, model_weights: EmbeddedModelWeights) -> tuple[float, ...]:
    """Return the types' log odds for the page's best-known letterhead, if any."""
    known = model_weights.weights_by_letterhead
    keys = iter_letterhead_keys(page, model_weights.letterhead_salt) if known else ()
    return choose_strongest_weights(known[key] for key in keys if key in known)


def choose_strongest_weights(candidates: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    """Return the log odds that differ most between types; empty if there are none."""
    return max(candidates, key=lambda weights: max(weights, default=0.0) - min(weights, default=0.0), default=())
