"""Search for labels on a page ("Patient name:", "DOB") and their values.

Labels are patterns in ``words.toml``; other patterns are in ``patterns.toml``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import zip_longest
from operator import itemgetter

from evalkit.documents.bundle import IdentifierKind, IdentifierSource, WordPosition
from evalkit.documents.identity.identifier_values import (
    can_be_person_name,
    load_given_names,
    lowercase_keeping_length,
    normalise_identifier,
)
from evalkit.documents.identity.person_name import (
    PATTERNS,
    fold_to_plain_capitals,
    get_word_list_for_names,
    load_identity_words,
    parse_person_name,
)
from evalkit.documents.identity.same_person import NUMBER_KINDS

#: A bare "Name:" is the patient's if it is among this many characters at the top of the page.
_HEAD_LENGTH = 400

#: Number of lines at the top and at the bottom of a page that may name the patient without a label.
EDGE_LINES = 5

#: Number of lines below a heading such as "Guarantor" that are about that person.
_MAX_SECTION_LINES = 8

#: Words that are further apart than this (ten-thousandths of the page's width) do not belong to one value.
_WIDE_GAP = 150

#: Largest distance of a value from the label above it: to the side, in ten-thousandths of the page's width; and down,
#: in heights of the label.
_COLUMN_TOLERANCE, _BELOW_HEIGHTS = 120, 3.2

_PAGE_WIDTH = 10_001

#: The rank of a name that is used only if the page has no other.
LAST_RANK = 4


_MIN_GROUPED_DIGITS = 7

_MIN_NUMBER_DIGITS = 3


#: Characters as which OCR reads specks and rules before a cell.
_SPECKS = " -—–•*·|:;.,'‘’`»«{}_~"

SEPARATING_CHARACTERS = " :;.,*|\t_/([—–-"


#: Kinds whose values have a form of their own, so that words below a label are not taken for a value by mistake.
_SAFE_BELOW_KINDS = frozenset({"date_of_birth", "report_date", *NUMBER_KINDS})

_SAFE_ABOVE_KINDS = _SAFE_BELOW_KINDS | {"family_name", "given_name"}

_PERSONAL_KINDS = frozenset({"date_of_birth", "mrn", "account", "sex", "age", "age_sex", "given_name", "family_name"})

_FACT_KINDS = _PERSONAL_KINDS - {"given_name", "family_name"}
ROLE_KINDS = frozenset({"relative", "provider"})


@dataclass(frozen=True)
class _LabelKind:
    """Kind and properties of a label, from a row of ``words.toml``."""

    kind: str
    is_about_patient: bool
    is_weak: bool
    is_only_at_line_start: bool
    issuer: str | None = None
    """Issuer of the label's numbers, if the label names it, as "NHS number" does."""


#: The label "Name" in "Name Doe" at the end of a line, which gives the family name if "Forename Jane" is below.
_BARE_NAME_LABEL = _LabelKind("family_name", is_about_patient=False, is_weak=True, is_only_at_line_start=False)


@dataclass(frozen=True)
class _LabelHit:
    label: _LabelKind
    start: int
    end: int
    """Index behind the label and its separator, where the value may begin."""
    has_separator: bool
    """True if a colon or another separating sign follows the label."""
    is_tentative: bool
    """True if this counts as a label only if it is joined to the next label, as in "Name/DOB:"."""
    is_at_cell_start: bool


@dataclass(frozen=True)
class _Section:
    """Part of a page, below a heading, that is about one person."""

    is_about_patient: bool
    start: int
    end: int
    left: int
    right: int
    """Right edge of the section; ``left`` and ``right`` are in ten-thousandths of the page's width."""


@dataclass(frozen=True)
class IdentifierCandidate:
    """A value that may be the patient's; for each kind, the lowest rank is used.

    ``start``, ``value_start`` and ``end`` are indices into the page's text: where the label begins, and the value.
    """

    kind: IdentifierKind
    value: str
    normal: str
    start: int
    value_start: int
    end: int
    source: IdentifierSource
    rank: int
    issuer: str | None = None


@cache
def _load_label_patterns() -> tuple[tuple[str, _LabelKind, frozenset[str]], ...]:
    """Return the labels of ``words.toml``, the surest first.

    Each is a pattern, the label that it stands for, and its possible beginnings, of up to three letters.
    """
    labels: list[tuple[str, _LabelKind, frozenset[str]]] = []
    for strength in ("strong", "weak", "line_start"):
        for row in load_identity_words()["labels"]:
            label = _LabelKind(
                row["kind"],
                row.get("owner") == "patient",
                strength == "weak",
                strength == "line_start",
                row.get("issuer"),
            )
            for pattern in row.get(strength, ()):
                # Every word may come first, because words before it may be optional; too many beginnings do no harm.
                letters = re.sub(r"\\[bw]|\[[^\]]*\]", " ", pattern.replace("\\.?", ""))
                beginnings = [word[:3] for word in re.findall(r"[a-z]+", letters)]
                labels.append((pattern, label, frozenset(beginnings + re.findall(r"[a-z]{1,2}(?=\[|\(|\\)", pattern))))
    return tuple(labels)


@cache
def _compile_label_pattern(letters: str, *, is_ocr_text: bool) -> re.Pattern[str] | None:
    """Compile a pattern of all labels that may begin with these one to three letters.

    On a page read by OCR, give the first letter only. The name of the group that matches is ``label`` and the index in
    ``_load_label_patterns``. None if no label begins so.
    """
    groups = [
        f"(?P<label{index}>{_tolerate_misreadings(pattern) if is_ocr_text else pattern})"
        for index, (pattern, _, beginnings) in enumerate(_load_label_patterns())
        if not beginnings.isdisjoint((letters, letters[:2], letters[:1]))
        or (is_ocr_text and any(beginning.startswith(letters) for beginning in beginnings))
    ]
    return re.compile(rf"(?:{'|'.join(groups)})(?:(?<=#)|(?![A-Za-z]))") if groups else None


@cache
def compile_relative_words() -> re.Pattern[str]:
    """Return a pattern that finds words for relatives ("mother", "husband") in a text."""
    words = load_identity_words()["relatives"]["words"].split()
    # A letter to a relative tells of "your son".
    return re.compile(rf"(?<!\byour )\b(?:{'|'.join(words)})\b(?! (?:boy|girl)\b)", re.IGNORECASE)


def _tolerate_misreadings(pattern: str) -> str:
    """Extend a label's pattern by OCR errors: confused letters, full stops."""
    if pattern.isascii() and not re.search(r"\(\?[=!]", pattern):
        pattern = re.sub(
            r"(?<![\\\[(?A-Za-z])[a-z]{3,}(?![^(\[]*[\])]\?)",
            lambda match: _CONFUSED_WORDS.get(match[0], match[0]),
            pattern,
        )
    return re.sub(r"\[[^\]]*\]|( )", lambda match: "[ .]" if match[1] else match[0], pattern)


_CONFUSED_WORDS = {
    "patient": "pat[il1!|](?:ent|cnt|erit)", "name": "(?:name|narne|nane|nam[ec])", "birth": "b[il1!|]rt[hb]", "date": "[do]a[tl][ec]",
    "mrn": "(?:mrn|mrm|mfin)", "medical": "med[il1!|]ca[il1!|]", "record": "rec[o0]r[do]",
}  # fmt: skip

#: The most characters of a line on a sticker or in a running head.
MAX_BLOCK_LINE = 110


_MAX_JOINT_LENGTH = 3


def find_spaces(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the index of each space in ``text[start:end]``."""
    while (start := text.find(" ", start, end)) >= 0:
        yield start
        start += 1


class LabelSearch:
    """Search for labelled values on one page.

    ``text`` is the page's text, ``words`` has the place of each word, and ``confidences`` OCR's confidence in each word
    (empty without OCR).
    """

    def __init__(self, text: str, words: Sequence[WordPosition], confidences: Sequence[int]) -> None:
        self._text, self._words, self._confidences = text, words, confidences
        self._is_recognised = bool(confidences)
        self._hits: list[_LabelHit] = []
        self._candidates: list[IdentifierCandidate] = []
        self._name_parts: dict[str, tuple[int, int]] = {}

    def _match_label(self, label_pattern: re.Pattern[str], small_text: str, start: int) -> re.Match[str] | None:
        match = label_pattern.match(small_text, start)
        gap = self._find_wide_gap(start, match.end()) if match else None
        # "Patient" and "Date of birth" head two columns
        return match if gap is None else label_pattern.match(small_text, start, gap)

    def _find_label_hits(self) -> list[_LabelHit]:
        text, position = self._text, 0
        hits: list[_LabelHit] = []
        small_text = lowercase_keeping_length(text)
        beginnings = PATTERNS["recognised_label_beginning"] if self._is_recognised else PATTERNS["label_beginning"]
        for beginning in beginnings.finditer(small_text):
            start = beginning.start()
            label_pattern = _compile_label_pattern(beginning.group(), is_ocr_text=self._is_recognised)
            if label_pattern is None or start < position:
                continue
            is_joined = (
                bool(hits)
                and start - hits[-1].end <= _MAX_JOINT_LENGTH
                and PATTERNS["joint"].fullmatch(text, hits[-1].end, start) is not None
            )
            if text[start - 1 : start] == "/" and not is_joined:
                continue
            match = self._match_label(label_pattern, small_text, start)
            if match is None:
                continue
            label = _load_label_patterns()[int((match.lastgroup or "").removeprefix("label"))][1]
            separator = PATTERNS["separator"].match(text, match.end())
            end = separator.end() if separator else match.end()
            between = text[match.end() : end]
            has_separator = any(sign in between for sign in (*":#=", "..", "__")) or match.group().endswith("#")
            is_at_start = self._is_at_cell_start(start)
            behind = text[match.end() : match.end() + 1]
            is_alone = behind in ("", "\n", "\t")
            if label.is_only_at_line_start and not (has_separator and self._is_at_line_start(start)):
                continue
            is_in_own_cell = is_at_start and (is_alone or "\t" in between or self._is_wide_gap(match.end()))
            is_before_name = is_at_start and label.kind == "patient" and self._is_before_bare_name(end)
            is_tentative = False
            if label.is_weak and not (has_separator or is_in_own_cell or is_before_name or is_joined):
                is_tentative = PATTERNS["joint_ahead"].match(text, end) is not None
                is_bare_name = text[start:end] == "Name " and PATTERNS["last_word_of_line"].match(text, end) is not None
                if not (is_tentative or is_bare_name):
                    continue
                label = label if is_tentative else _BARE_NAME_LABEL
            # "B" is a label only in a line with a sex or an age, and "Page, Helen" is a name.
            is_initial = match.group().strip(" .") == "b" and not PATTERNS["sex_or_age_label"].search(
                text, end, self._find_line_end(end)
            )
            is_label = label.kind != "other" or has_separator or (is_at_start and behind != ",")
            if is_label and not is_initial:
                hits.append(_LabelHit(label, start, end, has_separator, is_tentative, is_at_start))
                position = match.end()
        return [
            hit
            for hit, following in zip_longest(hits, hits[1:])
            if not hit.is_tentative or (following and self._are_joined(hit, following))
        ]

    def _are_joined(self, hit: _LabelHit, following: _LabelHit) -> bool:
        """Return True if two labels are joined, so that their values follow together."""
        return PATTERNS["joint"].fullmatch(self._text, hit.end, following.start) is not None

    def _is_before_bare_name(self, position: int) -> bool:
        """Return True if the rest of the cell is only a name, as in "Patient Helen Marsh"."""
        line_end = self._find_line_end(position)
        ends = self._text.find("\t", position, line_end), self._find_wide_gap(position, line_end)
        cell_end = min((end for end in ends if end is not None and end >= 0), default=line_end)
        span = self._match_name_at_start(position, cell_end)
        return self._is_whole_name(position, cell_end) or (span is not None and "," in self._text[slice(*span)])

    def _is_whole_name(self, start: int, end: int) -> bool:
        place = self._match_name_at_start(start, end)
        return place is not None and place[1] == end and len(self._text[slice(*place)].split()) > 1

    def _is_at_line_start(self, position: int) -> bool:
        return not self._text[self._text.rfind("\n", 0, position) + 1 : position].strip(" \t-•*·")

    def _is_at_cell_start(self, position: int) -> bool:
        before = self._text[max(0, position - 4) : position].rstrip(_SPECKS if self._is_recognised else " -•*·|")
        return not before or before[-1] in "\n\t;|" or self._is_wide_gap(position - 1)

    def _find_cell_start(self, position: int) -> int:
        start = max(
            self._text.rfind("\n", 0, position) + 1,
            position - MAX_BLOCK_LINE,
            *(self._text.rfind(sign, 0, position) + 1 for sign in "\t|;"),
        )
        return max(filter(self._is_wide_gap, find_spaces(self._text, start, position)), default=start)

    def _find_wide_gap(self, start: int, end: int) -> int | None:
        """Return the index of the first space in the span at which words are far apart."""
        spaces = find_spaces(self._text, start, end) if self._words else ()
        return next(filter(self._is_wide_gap, spaces), None)

    def _is_wide_gap(self, position: int) -> bool:
        words = self._words
        index = bisect_right(words, position, key=itemgetter(0))
        if not 0 < index < len(words):
            return False
        previous, following = words[index - 1], words[index]
        return following[2] - previous[4] > _WIDE_GAP or following[2] < previous[2]

    def _add_labelled_values(self) -> None:
        """Read the values of all labels, from the top down, except those of other persons."""
        relative_line_end, chain_end = -1, 0
        for index, hit in enumerate(self._hits):
            kind = hit.label.kind
            if index < chain_end or self._is_patient_heading(hit):
                continue
            if kind in ROLE_KINDS:
                if kind == "relative" and not self._is_heading(index):
                    relative_line_end = self._find_line_end(hit.start)
                continue
            is_anothers = (
                self._is_in_anothers_section(hit.start)
                or hit.start < relative_line_end
                or self._is_owned_by_role(index)
                or self._is_about_relative(index)
            )
            if is_anothers and not (hit.label.is_about_patient or self._names_patient(hit)):
                continue
            chain_end = index + 1
            while chain_end < len(self._hits) and self._are_joined(self._hits[chain_end - 1], self._hits[chain_end]):
                chain_end += 1
            if chain_end - index > 1:
                self._add_values_of_joined_labels(
                    self._hits[index:chain_end], self._get_start_of_next_label(chain_end - 1)
                )
            elif kind != "other":
                self._add_value_of_label(hit, self._get_start_of_next_label(index))

    def _is_about_relative(self, index: int) -> bool:
        """Return True if words around a label show that its value is a relative's.

        These are a word for a relative before the label in its cell, or "Relationship: mother" behind it.
        """
        hit = self._hits[index]
        start = self._find_cell_start(hit.start)
        earlier_hits = self._hits[bisect_left(self._hit_starts, start) : index]
        if any(earlier_hit.label.is_about_patient for earlier_hit in earlier_hits):
            return False
        line_end = min(self._find_line_end(hit.end), hit.end + MAX_BLOCK_LINE)
        return bool(
            compile_relative_words().search(self._text, start, hit.start)
            or PATTERNS["relationship_behind"].search(self._text, hit.end, line_end)
        )

    def _add_values_of_joined_labels(self, hits: Sequence[_LabelHit], next_start: int) -> None:
        """Read the values of joined labels: "Name/DOB: MARSH, HELEN / 03/22/1971"."""
        position = hits[-1].end
        value_end = min(next_start, self._find_line_end(position))
        if not self._text[position:value_end].strip(SEPARATING_CHARACTERS):
            below = self._find_words_below_or_above(hits[0].start, hits[0].end)
            if below is None:
                return
            position, value_end = below
        for hit in hits:
            position = self._skip_separators(position, value_end)
            candidate_count = len(self._candidates)
            if hit.label.kind in _VALUE_READERS:
                _VALUE_READERS[hit.label.kind](self, hit, position, value_end)
            added_ends = [candidate.end for candidate in self._candidates[candidate_count:]]
            joint = self._text.find("/", position, value_end)
            position = max(added_ends) if added_ends else joint + 1 if joint >= 0 else position

    @cached_property
    def _sections(self) -> list[_Section]:
        """Sections below headings such as "GUARANTOR" and "PATIENT", in rows or columns."""
        sections: list[_Section] = []
        for index, hit in enumerate(self._hits):
            is_beside = (
                hit.label.kind == "relative"
                and hit.has_separator
                and not self._is_at_line_start(hit.start)
                and self._is_wide_gap(hit.start - 1)
            )
            if not is_beside and (
                not (hit.label.kind in ROLE_KINDS or self._is_patient_heading(hit)) or not self._is_heading(index)
            ):
                continue
            line_start = self._text.rfind("\n", 0, hit.start) + 1
            line_end = self._find_line_end(hit.start)
            on_line = slice(bisect_left(self._hit_starts, line_start), bisect_left(self._hit_starts, line_end))
            neighbours = [other for other in self._hits[on_line] if other is not hit]
            left = max(
                (self._get_middle_of_gap(hit.start) for other in neighbours if other.start < hit.start), default=0
            )
            right = min(
                (self._get_middle_of_gap(other.start) for other in neighbours if other.start > hit.start),
                default=_PAGE_WIDTH,
            )
            end = line_end
            for _ in range(_MAX_SECTION_LINES):
                end = self._find_line_end(end) + 1
            sections.append(
                _Section(hit.label.kind not in ROLE_KINDS, hit.start, min(end, self._foot_start), left, right)
            )
        return sections

    def _is_in_anothers_section(self, position: int) -> bool:
        """Return True if a place is in a section about another person than the patient.

        Of several sections around the place, the last one counts.
        """
        first, _ = self._get_word_index_range(position, position + 1)
        left = self._words[first][2] if first < len(self._words) else 0
        return not next(
            (
                section.is_about_patient
                for section in reversed(self._sections)
                if section.start <= position < section.end and section.left <= left < section.right
            ),
            True,
        )

    def _get_middle_of_gap(self, position: int) -> int:
        first, _ = self._get_word_index_range(position, position + 1)
        return (self._words[first - 1][4] + self._words[first][2]) // 2 if 0 < first < len(self._words) else 0

    def _is_heading(self, index: int) -> bool:
        """Return True if a label is a heading such as "GUARANTOR INFORMATION".

        A heading is at the start of a cell and has no value behind it.
        """
        hit = self._hits[index]
        end = min(self._get_start_of_next_label(index), self._find_line_end(hit.start))
        rest = self._text[hit.end : end].strip(" :\t-/*")
        is_owner = index + 1 < len(self._hits) and self._is_owned_by_role(index + 1)
        return hit.is_at_cell_start and not is_owner and bool(PATTERNS["section_rest"].fullmatch(rest))

    def _names_patient(self, hit: _LabelHit) -> bool:
        return self._text[hit.start : hit.start + 7].casefold() == "patient"

    def _is_member(self, hit: _LabelHit) -> bool:
        """Return True if a label names a health plan's member, perhaps not the patient."""
        return self._text[hit.start : hit.start + 6].casefold() == "member"

    def _is_patient_heading(self, hit: _LabelHit) -> bool:
        """Return True if a label heads the patient's data, as "PATIENT DETAILS" does.

        Also "PATIENT" at the end of a line that begins with the heading of another person.
        """
        if not self._names_patient(hit):
            return False
        if hit.label.kind == "other":
            return True
        line_start = self._text.rfind("\n", 0, hit.start) + 1
        first_on_line = bisect_left(self._hit_starts, line_start)
        return (
            hit.label.kind == "patient"
            and hit.label.is_weak
            and not hit.has_separator
            and self._hits[first_on_line].label.kind in ROLE_KINDS
            and not self._text[line_start : self._hit_starts[first_on_line]].strip()
            and not self._text[hit.end : self._find_line_end(hit.start)].strip()
        )

    def _get_start_of_next_label(self, hit_index: int) -> int:
        return self._hits[hit_index + 1].start if hit_index + 1 < len(self._hits) else len(self._text)

    def _find_line_end(self, position: int) -> int:
        end = self._text.find("\n", position)
        return len(self._text) if end < 0 else end

    @cached_property
    def _foot_start(self) -> int:
        """Index of the last lines of the page, in which another person's section ends.

        On a page with few lines, the index is behind the lines of the head.
        """
        position, head_end = len(self._text), 0
        for _ in range(EDGE_LINES):
            position = max(self._text.rfind("\n", 0, position), 0)
        for _ in range(_MAX_SECTION_LINES):
            head_end = self._find_line_end(head_end) + 1
        return max(position, min(head_end, len(self._text)))

    def _is_owned_by_role(self, index: int) -> bool:
        """Return True if the word before a label names another owner: "Guarantor name:"."""
        if index == 0:
            return False
        previous, hit = self._hits[index - 1], self._hits[index]
        between = self._text[previous.end - 1 : hit.start]
        return (
            previous.label.kind in ROLE_KINDS
            and not (previous.has_separator or hit.is_at_cell_start)
            and len(between) <= 2
            and "\n" not in between
        )

    def _add_value_of_label(self, hit: _LabelHit, next_start: int) -> None:
        line_end = self._find_line_end(hit.end)
        cell_end = self._text.find("\t", hit.end, line_end)
        value_end = min(next_start, line_end, cell_end if cell_end >= 0 else line_end)
        reader = _VALUE_READERS[hit.label.kind]
        count_before = self._count_read_values()
        if self._text[hit.end : value_end].strip(" _.:-"):
            # Maybe a narrow column of labels with their values below; then other text is to the right of the label.
            is_far = (
                not hit.has_separator and "\t" not in self._text[hit.start : hit.end] and self._is_wide_gap(hit.end - 1)
            )
            if (
                is_far
                and (below := self._find_words_below_or_above(hit.start, hit.end))
                and (hit.label.kind != "patient" or self._is_whole_name(*below))  # not "Carer" below "Client"
            ):
                reader(self, hit, *below)
            if self._count_read_values() == count_before:
                reader(self, hit, hit.end, value_end)
            return
        if below := self._find_words_below_or_above(hit.start, hit.end):
            reader(self, hit, *below)
        if self._count_read_values() > count_before:
            return
        if value_end == cell_end >= 0 and next_start > cell_end:  # the value is in the next cell
            next_cell_end = self._text.find("\t", cell_end + 1, line_end)
            reader(self, hit, cell_end + 1, next_cell_end if next_cell_end >= 0 else line_end)
        elif value_end == line_end < next_start and (not self._words or hit.label.kind in _SAFE_BELOW_KINDS):
            reader(self, hit, line_end + 1, min(next_start, self._find_line_end(line_end + 1)))
        if (
            self._count_read_values() == count_before
            and not hit.has_separator
            and (above := self._find_words_below_or_above(hit.start, hit.end, look_above=True))
            and (hit.label.kind in _SAFE_ABOVE_KINDS or self._is_whole_name(*above))
        ):
            reader(self, hit, *above)  # the label is a caption below a form's field

    @cached_property
    def _hit_starts(self) -> list[int]:
        return [hit.start for hit in self._hits]

    def _is_in_label(self, position: int) -> bool:
        index = bisect_right(self._hit_starts, position) - 1
        return index >= 0 and position < self._hits[index].end

    def _find_next_label_start(self, start: int, end: int) -> int:
        index = bisect_left(self._hit_starts, start)
        return min(self._hit_starts[index], end) if index < len(self._hit_starts) else end

    @cached_property
    def _words_by_top(self) -> list[WordPosition]:
        return sorted(self._words, key=itemgetter(3))

    def _is_in_organisation(self, position: int, end: int) -> bool:
        """Return True if a label is in an organisation's name: "Lockyer Plains Hospital"."""
        word = re.compile(r"\w+").match(self._text, position, end)
        return (
            word is not None
            and self._text[position - 1] == " "
            and not self._is_wide_gap(position - 1)
            and word[0].upper() in get_word_list_for_names("organisations")
        )

    def _count_read_values(self) -> int:
        return len(self._candidates) + len(self._name_parts)

    def _find_words_below_or_above(self, start: int, end: int, *, look_above: bool = False) -> tuple[int, int] | None:
        words = self._words
        label_words = words[bisect_right(words, start, key=itemgetter(1)) : bisect_left(words, end, key=itemgetter(0))]
        if not label_words:
            return None
        left, bottom = label_words[0][2], max(word[5] for word in label_words)
        top = min(word[3] for word in label_words)
        height = bottom - top
        near = (
            (top - _BELOW_HEIGHTS * height, top - height // 3)
            if look_above
            else (bottom - height // 3, bottom + _BELOW_HEIGHTS * height)
        )
        by_top = self._words_by_top
        first = min(
            (
                word
                for word in by_top[
                    bisect_left(by_top, near[0], key=itemgetter(3)) : bisect_right(by_top, near[1], key=itemgetter(3))
                ]
                if abs(word[2] - left) <= _COLUMN_TOLERANCE
            ),
            key=lambda word: (abs(word[3] - bottom), word[0]),
            default=None,
        )
        if first is None or self._is_in_label(first[0]):
            return None
        end = first[1]
        for word in words[bisect_right(words, first[0], key=itemgetter(0)) :]:
            gap = self._text[end : word[0]]
            if "\n" in gap or "\t" in gap or self._is_wide_gap(end - 1) or self._is_in_label(word[0]):
                break
            end = word[1]
        return first[0], end

    def add_name(self, hit: _LabelHit, start: int, end: int) -> None:
        """Add the name in ``text[start:end]``, or note a family name.

        If a single word follows the label "Name", it is the family name; the given name has another label.
        """
        place = self._match_name_at_start(start, end)
        if place and not self._is_in_organisation(end, self._find_line_end(end)):
            value_start, value_end = place
            if not self._names_patient(hit) and self._is_in_organisation(
                value_end + 1, end
            ):  # "Client: Marsh Health Centre"
                return
            if not hit.label.is_about_patient:
                family = self._name_parts.get("family_name")
                if family and "\n" not in self._text[family[1] : value_start]:  # "Surname Doe", "Name Jane"
                    self._add_name_when_complete("given_name", place)
                    return
                if not {" ", ","}.intersection(self._text[value_start:value_end]):  # "Name Doe", "Forename Jane"
                    self._add_name_when_complete("family_name", place)
                    return
            # Not every name behind "RE:" or "Name:" is a patient's.
            if not (
                hit.label.is_about_patient
                or self._has_other_fact_near(hit.start)
                or (hit.start < _HEAD_LENGTH and self._has_known_given_name(*place))
            ):
                return
            is_proven = self._has_known_given_name(*place) or (
                hit.is_at_cell_start
                and ("," in self._text[slice(*place)] or hit.has_separator)
                and self._has_other_fact_near(hit.start)
            )
            # A bare "Patient:" or "Name:" far down is often part of a form's question or of a sentence: it ranks lower.
            self._add_candidate(
                "patient",
                hit.start,
                value_start,
                value_end,
                rank=self._is_member(hit) if hit.label.is_about_patient else 1 if is_proven else LAST_RANK,
            )

    def _has_known_given_name(self, start: int, end: int) -> bool:
        words = re.findall(r"[^\W\d_]{2,}", self._text[start:end].casefold())
        return len(words) > 1 and not load_given_names().isdisjoint(words)

    def _has_other_fact_near(self, position: int, kinds: frozenset[str] = _PERSONAL_KINDS) -> bool:
        start = end = position
        for _ in range(3):
            end = self._find_line_end(end) + 1
            start = max(self._text.rfind("\n", 0, max(start - 1, 0)), 0)
        near = slice(bisect_left(self._hit_starts, start), bisect_left(self._hit_starts, end))
        return any(hit.label.kind in kinds for hit in self._hits[near])

    def _match_name_at_start(self, start: int, end: int) -> tuple[int, int] | None:
        while start < end and self._text[start] in " :\t_-•*|":
            start += 1
        match = PATTERNS["name_value"].match(self._text, start, end)
        if match is None:
            return None
        value_end = self._find_name_end(match.start(), match.end())
        behind = fold_to_plain_capitals(self._text[value_end : min(end, value_end + 25)]).split()[:2]
        if not can_be_person_name(self._text[start:value_end]) or not get_word_list_for_names("corporate").isdisjoint(
            behind
        ):
            return None
        return start, value_end

    def _find_name_end(self, start: int, end: int, *, is_family: bool = False) -> int:
        """Return the index where a name ends: at a wide gap, or a word that is in no name."""
        no_names, family_names = get_word_list_for_names("no_names"), get_word_list_for_names("family_names_too")
        value_end = start
        for count, match in enumerate(re.finditer(r"[^\s,]+,?", self._text[start:end])):
            word = fold_to_plain_capitals(match.group().strip('.,()"“”')).rstrip(".")
            if word in no_names:
                is_name = (
                    word in family_names
                    and (count > 0 or match.group().endswith(",") or is_family)
                    and not PATTERNS["number_behind"].match(self._text, start + match.end())
                )
                if not is_name:
                    break
            before = start + match.start() - 1
            if count and self._text[before] == " " and self._is_wide_gap(before):
                break
            if count >= 2 and PATTERNS["misread_label"].fullmatch(word):
                break
            value_end = start + match.end()
        return start + len(self._text[start:value_end].rstrip(" ,"))

    def add_family_or_given_name(self, hit: _LabelHit, start: int, end: int) -> None:
        """Note a labelled family or given name; add the full name once both are known."""
        start = self._skip_separators(start, end)
        match = PATTERNS["name_value"].match(self._text, start, end)
        # "First:" and "Last:" may also be labels of doses or visits.
        is_doubtful = hit.label.is_weak and not self._has_other_fact_near(hit.start, _FACT_KINDS)
        if match is None or is_doubtful:
            return
        value_end = self._find_name_end(match.start(), match.end(), is_family=hit.label.kind == "family_name")
        if value_end <= start or any(map(str.isdigit, PATTERNS["misread_letter"].sub("", self._text[start:value_end]))):
            return
        self._add_name_when_complete(hit.label.kind, (start, value_end))

    def _add_name_when_complete(self, kind: str, span: tuple[int, int]) -> None:
        self._name_parts[kind] = span
        family_place, given_place = self._name_parts.get("family_name"), self._name_parts.get("given_name")
        if family_place and given_place:
            value = f"{self._text[slice(*family_place)]}, {self._text[slice(*given_place)]}"
            if (name := parse_person_name(value)) and name.family_names:
                start = min(family_place[0], given_place[0])
                self._candidates.append(
                    IdentifierCandidate(
                        "patient", value, name.normal, start, start, max(family_place[1], given_place[1]), "label", 0
                    )
                )

    def add_date_of_birth(self, hit: _LabelHit, start: int, end: int) -> None:
        """Add the birth date in ``text[start:end]``, and age and sex if they follow it."""
        dates = self._match_date(start, end)
        if dates is None:
            return
        value_start, value_end = dates
        self._add_candidate("date_of_birth", hit.start, value_start, value_end, rank=self._is_member(hit))
        if behind := PATTERNS["age_sex_behind_date"].match(self._text, value_end, self._find_line_end(value_end)):
            self._add_candidate("age", behind.start(1), behind.start(1), behind.end(1), rank=1)
            if behind[2]:
                self._add_candidate("sex", behind.start(2), behind.start(2), behind.end(2), rank=1)
        elif behind := PATTERNS["sex_behind_date"].match(self._text, value_end, self._find_line_end(value_end)):
            self._add_candidate("sex", behind.start(1), behind.start(1), behind.end(1), rank=1)

    def _match_date(self, start: int, end: int) -> tuple[int, int] | None:
        start = self._skip_separators(start, end)
        limit = min(self._find_line_end(start), max(end, start + 30))
        match = PATTERNS["date_value"].match(self._text, start, limit)
        if match:
            return match.span(1)
        if self._is_recognised and (recognised := PATTERNS["recognised_date_value"].match(self._text, start, limit)):
            return recognised.span()
        return None

    def add_report_date(self, hit: _LabelHit, start: int, end: int) -> None:
        """Add the date in ``text[start:end]`` as the date of the report.

        The date of a label "plain_date" is used only if the page has no better one.
        """
        if dates := self._match_date(start, end):
            self._add_candidate("report_date", hit.start, *dates, rank=5 if hit.label.kind == "plain_date" else 0)

    def add_sex(self, hit: _LabelHit, start: int, end: int) -> None:
        """Add the sex that is ticked or written; nothing if the choice is left open."""
        ticked_sex = (
            PATTERNS["sex_behind_tick"]
            if PATTERNS["box_at_start"].match(self._text, start, end)
            else PATTERNS["sex_before_tick"]
        )
        ticked = list(ticked_sex.finditer(self._text, start, end))
        match = ticked[0] if len(ticked) == 1 else None
        if not ticked:
            match = PATTERNS["sex_value"].match(self._text, self._skip_separators(start, end), end)
            if match and (  # an open choice: "M / F"
                PATTERNS["other_sex_behind"].match(self._text, match.end(), end)
                or PATTERNS["other_letter_behind"].match(self._text, match.end())
            ):
                return
        if match:
            self._add_candidate("sex", hit.start, match.start(1), match.end(1), rank=0)

    def add_age(self, hit: _LabelHit, start: int, end: int) -> None:
        """Add the age at this position of the text, and a sex that follows it."""
        if match := PATTERNS["age_value"].match(self._text, self._skip_separators(start, end), end):
            if not match[3]:
                self._add_candidate("age", hit.start, match.start(1), match.end(1), rank=0)
            tail = self._text[match.end() : match.end() + 10]
            if sex := re.match(r"[ /,]{1,3}(female|male|[fmFM])\b", tail):
                self._add_candidate(
                    "sex", match.end() + sex.start(1), match.end() + sex.start(1), match.end() + sex.end(1), rank=1
                )

    def add_age_and_sex(self, hit: _LabelHit, start: int, end: int) -> None:
        """Add age and sex, which may follow the label in either order."""
        value = self._text[start:end]
        if match := re.search(r"(?<!\w)(female|male|f|m)(?![a-z])", value, re.IGNORECASE) or re.search(
            r"\d(?:y|yo)?([fm])\b", value, re.IGNORECASE
        ):
            self._add_candidate("sex", hit.start, start + match.start(1), start + match.end(1), rank=0)
        if match := re.search(r"\d{1,3}", value):
            self._add_candidate("age", hit.start, start + match.start(), start + match.end(), rank=0)

    def _skip_separators(self, start: int, end: int) -> int:
        while start < end and self._text[start] in SEPARATING_CHARACTERS:
            start += 1
        return start

    def add_number(self, hit: _LabelHit, start: int, end: int) -> None:
        """Add the number in ``text[start:end]``, unless it is a telephone number.

        Its kind is the label's kind.
        """
        kind: IdentifierKind = hit.label.kind  # type: ignore[assignment]  # one of NUMBER_KINDS
        start = self._skip_separators(start, end)
        is_phone = hit.label.issuer is None and PATTERNS["phone_number"].match(self._text, start, end)
        if not is_phone and (place := self._match_number(start, end)):
            self._add_candidate(kind, hit.start, *place, rank=0, issuer=hit.label.issuer)

    def _match_number(self, start: int, end: int) -> tuple[int, int] | None:
        if boxed := PATTERNS["boxed_number"].match(self._text, start, self._find_line_end(start)):
            return boxed.span()
        match = PATTERNS["number_value"].match(self._text, start, end)
        if (
            match is None
            or sum(map(str.isdigit, match[1])) < _MIN_NUMBER_DIGITS
            or PATTERNS["area_code"].match(self._text, start - 1)
        ):
            return None
        value_start, value_end = match.span(1)
        if grouped := PATTERNS["grouped_number"].match(self._text, value_start, end):
            grouped_end = self._find_wide_gap(*grouped.span()) or grouped.end()
            if sum(map(str.isdigit, self._text[value_start:grouped_end])) >= _MIN_GROUPED_DIGITS:
                value_end = max(value_end, grouped_end)
        return value_start, value_end

    def _add_candidate(
        self,
        kind: IdentifierKind,
        label_start: int,
        value_start: int,
        end: int,
        *,
        rank: int,
        source: IdentifierSource = "label",
        issuer: str | None = None,
    ) -> None:
        value = " ".join(self._text[value_start:end].split())
        normal = normalise_identifier(kind, value, is_ocr_text=self._is_recognised)
        if normal:
            self._candidates.append(
                IdentifierCandidate(kind, value, normal, label_start, value_start, end, source, rank, issuer)
            )

    def _get_word_index_range(self, start: int, end: int) -> tuple[int, int]:
        words = self._words
        return bisect_right(words, start, key=itemgetter(1)), bisect_left(words, end, key=itemgetter(0))


_VALUE_READERS: dict[str, Callable[[LabelSearch, _LabelHit, int, int], None]] = {
    "patient": LabelSearch.add_name,
    "family_name": LabelSearch.add_family_or_given_name,
    "given_name": LabelSearch.add_family_or_given_name,
    "date_of_birth": LabelSearch.add_date_of_birth,
    "report_date": LabelSearch.add_report_date,
    "plain_date": LabelSearch.add_report_date,
    "sex": LabelSearch.add_sex,
    "age": LabelSearch.add_age,
    "age_sex": LabelSearch.add_age_and_sex,
    **dict.fromkeys(NUMBER_KINDS, LabelSearch.add_number),
}
