"""Page furniture (fax stamps, headers, footers, patient strips): recognition.

The patterns are in ``furniture.toml``, the only such list for readers, classifier and verifiers. Furniture is ignored
only for titles, traps and quotes; identities, dates and fields are read from furniture as well.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import takewhile
from typing import Annotated, Any

from pydantic import BeforeValidator

from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import split_into_runs
from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord
from evalkit.documents.bundle import Page

#: Lines at a page's top and bottom that are searched for stamps; each at most half of the page.
_HEAD_LINES, _FOOT_LINES = 6, 10
#: If fewer words than this would remain, nothing on the page counts as a stamp: such lines are its content.
_MIN_BODY_WORDS = 15
#: A next line that begins with a capital continues a notice only if the line before has this many characters, and the
#: next line this many words.
_WRAPPED_LINE_LENGTH, _WRAPPED_LINE_WORDS = 55, 5
_ADDRESS_PATTERN = re.compile(
    r"(?i)\b(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,8}+|(?<![\w.-])(?:[a-z\d-]{1,63}\.){1,8}(?:com|org|net|gov|edu|info|health|example)\b(?:/\S*)?"
)
_ADDRESS_SIGN_PATTERN = re.compile(r"(?i)@|://|\.(?:com|org|net|gov|edu|info|health|example)\b|www\.")


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("\n", ""), re.IGNORECASE | re.MULTILINE)


class _Pattern(StrictRecord):
    pattern: Annotated[re.Pattern[str], BeforeValidator(_compile)]


class _Stamp(StrictRecord):
    id: str
    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    at_least: int = 0
    words: int


class FurnitureTable(StrictRecord):
    """Content of ``furniture.toml``, validated: stamps, headers, footers."""

    page_furniture: tuple[dict[str, Any], ...]
    """Rows of V3's trap 3 (text that is no evidence); validated where the traps are loaded."""
    stamp_part: tuple[dict[str, str], ...]
    stamp: tuple[_Stamp, ...]
    outer_stamp: tuple[_Stamp, ...]
    notice_opening: _Pattern
    notice: _Pattern
    sentence: _Pattern
    consent: _Pattern
    cover: _Pattern

    @cached_property
    def stamp_part_patterns_by_id(self) -> dict[str, re.Pattern[str]]:
        """Compiled pattern of each part that stamps consist of, by the part's id."""
        return {row["id"]: _compile(row["pattern"]) for row in (*self.page_furniture, *self.stamp_part)}


@cache
def load_furniture() -> FurnitureTable:
    """Return the content of ``furniture.toml``, loaded once."""
    return FurnitureTable.model_validate(load_package_table("evalkit.documents", "furniture.toml"))


def has_page_furniture(text: str) -> bool:
    """Return True if the text contains a page, fax or record number, or a birth date.

    >>> has_page_furniture("Pg 3/8"), has_page_furniture("3 of 8 nodes")
    (True, False)
    """
    furniture = load_furniture()
    return any(furniture.stamp_part_patterns_by_id[row["id"]].search(text) for row in furniture.page_furniture)


@cache_document_text(64)  # a line in a page's margin is asked for twice, a running head on every page
def is_stamp_line(line: str) -> bool:
    """Return True if a line at a page's top or bottom is a stamp, such as a fax's.

    >>> is_stamp_line("03/05/2025 14:01 FROM: CLINIC TO: 555-0106 P.1/3"), is_stamp_line("Seen on 03/05/2025 at 14:01")
    (True, False)
    """
    return _is_any_of(line, load_furniture().stamp)


def _is_any_of(line: str, stamps: Iterable[_Stamp]) -> bool:
    parts, word_count = load_furniture().stamp_part_patterns_by_id, len(line.split())

    @cache
    def has(part: str) -> bool:
        return parts[part].search(line) is not None

    return any(
        word_count <= stamp.words and all(map(has, stamp.all)) and sum(map(has, stamp.any)) >= stamp.at_least
        for stamp in stamps
    ) and not load_furniture().sentence.pattern.search(line)


def find_stamp_line_indices(lines: Sequence[str]) -> set[int]:
    """Find the stamps at the top and bottom of a page, as indices into ``lines``.

    ``lines`` are all lines of the page, from the top down. Empty for a cover sheet, and if hardly any other text would
    remain.
    """
    head_end, foot_start = min(_HEAD_LINES, len(lines) // 2), max(len(lines) - _FOOT_LINES, len(lines) // 2)
    head, foot = range(head_end), range(foot_start, len(lines))
    stamps = {
        index
        for zone in (head, foot)
        for index in (*_find_notice_lines(lines, zone), *(index for index in zone if is_stamp_line(lines[index])))
    }
    for zone in (head, foot[::-1]):
        stamps.update(
            takewhile(lambda index: index in stamps or _is_any_of(lines[index], load_furniture().outer_stamp), zone)
        )
    body_word_count = sum(len(line.split()) for index, line in enumerate(lines) if index not in stamps)
    is_cover = stamps and load_furniture().cover.pattern.search("\n".join(lines))
    return set() if is_cover or body_word_count < _MIN_BODY_WORDS else stamps


def _find_notice_lines(lines: Sequence[str], zone: range) -> Iterator[int]:
    table = load_furniture()
    for passage in split_into_runs(zone, lambda _, index: _is_wrapped(lines[index - 1], lines[index])):
        text = "\n".join(lines[number] for number in passage)
        if table.notice.pattern.search(text) and not table.consent.pattern.search(text):
            yield from passage


def _is_wrapped(line: str, following: str) -> bool:
    if line.endswith((".", "!", "?", ":", "*", "]")) or load_furniture().notice_opening.pattern.search(following):
        return False
    is_full = len(line) >= _WRAPPED_LINE_LENGTH and len(following.split()) >= _WRAPPED_LINE_WORDS
    return following[:1].islower() or (is_full and ":" not in following)


def get_body_text(page: Page) -> str:
    """Return a page's text without stamps, headers and footers.

    The whole text if the page has nothing else.
    """
    return "\n".join(block.text for block in page.visible_blocks if not block.furniture) or page.text


def strip_stamp_lines(page: Page) -> str:
    """Return a page's text without stamps; a letterhead that repeats on pages stays."""
    return _join_without_stamps(tuple((block.text, block.furniture) for block in page.visible_blocks))


@cache_document_text(64)  # several checks ask for the same page
def _join_without_stamps(lines: tuple[tuple[str, bool], ...]) -> str:
    has_furniture = any(is_furniture for _, is_furniture in lines)
    stamps = find_stamp_line_indices([text for text, _ in lines]) if has_furniture else set()
    return "\n".join(text for index, (text, is_furniture) in enumerate(lines) if not (is_furniture and index in stamps))


@cache_document_text(64)  # the search for each laboratory asks for the same page
def blank_web_and_mail_addresses(text: str) -> str:
    """Replace web and e-mail addresses by spaces, keeping the text's length.

    >>> blank_web_and_mail_addresses("See www.lab.example/req now")
    'See                     now'
    """
    if not _ADDRESS_SIGN_PATTERN.search(text):
        return text
    return _ADDRESS_PATTERN.sub(lambda match: " " * len(match.group()), text)
