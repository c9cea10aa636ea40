"""Facts that a page states about its patient: name, birth date, sex, numbers.

Labels are patterns in ``words.toml``; other patterns are in ``patterns.toml``. Labels of other people (guarantor, mother, provider) are there, too, so that none
of these is taken for the patient. A page that lists several persons has no patient.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from operator import itemgetter

from evalkit.documents.bundle import Box, Identifier, IdentifierKind, WordPosition, enclose_boxes
from evalkit.documents.identity.identifier_values import can_be_person_name
from evalkit.documents.identity.label_search import (
    EDGE_LINES,
    LAST_RANK,
    MAX_BLOCK_LINE,
    ROLE_KINDS,
    SEPARATING_CHARACTERS,
    IdentifierCandidate,
    LabelSearch,
    compile_relative_words,
    find_spaces,
)
from evalkit.documents.identity.person_name import (
    PATTERNS,
    fold_to_plain_capitals,
    get_word_list_for_names,
    load_identity_words,
)
from evalkit.documents.identity.same_person import NUMBER_KINDS
from evalkit.documents.identity.written_dates import parse_written_date

#: A page on which one label names more persons than this is a list of persons.
_MAX_LISTED_PERSONS = 2

_MIN_CONFIDENCE = 0.01

#: The most characters before a name in the line above a birth date, such as "RE:", even if OCR misread it.
_MAX_PREFIX_LENGTH = 6


#: Number of characters and of lines at a page's top that are searched for an institution's name.
_LETTERHEAD_LENGTH, _LETTERHEAD_LINES = 600, 6

_MAX_ISSUER_WORDS = 8


_MAX_LABEL_WORDS = 3

_PERSON_KINDS = ("patient", "date_of_birth")

#: Number of lines above and below a name or birth date that are searched for the person's number.
_ZONE_LINES = 6


@cache
def _compile_signing_words() -> re.Pattern[str]:
    words = load_identity_words()["relatives"]["signing"].split()
    return re.compile(rf"\b(?:{'|'.join(words)})s?\b", re.IGNORECASE)


@cache
def _compile_number_label_ends() -> tuple[re.Pattern[str], frozenset[str], frozenset[str]]:
    """Return the word lists by which unknown labels of record numbers are recognised.

    They are a pattern of the words with which such labels end ("No.", "ID"), those of these words that are weak signs,
    and the words in labels of other numbers.
    """
    words = load_identity_words()["record_numbers"]
    ends, weak_ends = (words[name].casefold().split() for name in ("ends", "weak_ends"))
    pattern = (
        rf"(?P<end>(?<!\w)(?:{'|'.join((*ends, *weak_ends))})\b\.?|#|\b(?-i:[A-Z]{{2,4}}N|[A-Z]{{1,3}}ID)\b)"
        r"[ \t]?[:.#=_]*[ \t]{0,3}(?=#?[A-Z]{0,5}[-./]?\d|[\n\t ])"
    )
    return re.compile(pattern, re.IGNORECASE), frozenset(weak_ends), frozenset(words["others"].split())


#: A fact in this many lines at the page's top may belong to a name with which the page begins.
_HEAD_FACT_LINES = 5

#: Facts next to which a name without a label is searched, in this order: the most certain first.
_FACT_RANKS: dict[str, int] = {"date_of_birth": 0, "mrn": 1, "account": 2, "visit": 3, "sex": 4, "age": 5}

_MAX_FACTS = 4

#: Number of characters before a name that are searched for a word such as "mother".
_MAX_WORDS_BEFORE_NAME = 40

#: The most characters of a name, together with words before it.
_MAX_NAME_LENGTH = 80


#: Characters behind which a new column begins.
_COLUMN_SIGNS = frozenset(">|:")

#: A date without label is a birth date if it is at least this many years before every other date of the page.
_MIN_YEARS_BEFORE = 12

#: Least and largest number of digits of a record number without any label, and the largest with an unknown label;
#: numbers of samples, accounts and cards have more.
_MIN_BARE_DIGITS, _MAX_BARE_DIGITS, _MAX_LABELLED_DIGITS = 5, 9, 10

#: Number of characters before a date that are searched for an age.
_MAX_AGE_BEFORE = 14


#: A date between name and number that is before this year is not the date of a visit.
_FIRST_YEAR_OF_VISITS = 2000


def find_patient_identifiers(
    text: str, words: Sequence[WordPosition], word_confidences: Sequence[int] = ()
) -> tuple[Identifier, ...]:
    """Find the facts that a page states about its patient, and the page's date.

    The best value of each kind and issuer is returned, ordered from the page's top down. In ``text``, line breaks
    separate rows and tabs separate cells. ``words`` has the position of each word of ``text`` and may be empty.
    ``word_confidences`` has OCR's confidence in each word, 0..100; empty without OCR.
    """
    return _IdentifierSearch(text, words, word_confidences).find_all_identifiers()


def _rank_issuer(name: str) -> int | None:
    """Rank a text of the letterhead as the name of an institution; None if it is none.

    0 for a hospital or the like, 2 for a named service; the lowest rank is used.
    """
    if not 2 <= len(name.split()) <= _MAX_ISSUER_WORDS:
        return None
    words = set(fold_to_plain_capitals(re.sub(r"[^\w\s'’-]", " ", name)).split())
    organisations, services = get_word_list_for_names("organisations"), get_word_list_for_names("services")
    kinds = words & organisations
    if (
        not kinds
        or not words.isdisjoint(get_word_list_for_names("documents") | get_word_list_for_names("payers"))
        or any(sign.isdigit() or sign == "?" for sign in name)
        or words <= organisations | get_word_list_for_names("no_names")
    ):
        return None
    return 0 if kinds - services else None if PATTERNS["small_word"].search(name) else 2


class _IdentifierSearch(LabelSearch):
    def find_all_identifiers(self) -> tuple[Identifier, ...]:
        self._hits = self._find_label_hits()
        self._add_labelled_values()
        self._is_list = self._is_list_of_several_persons()
        if self._is_list:
            self._candidates = [candidate for candidate in self._candidates if candidate.kind == "report_date"]
        else:
            is_person_known = any(candidate.kind in _PERSON_KINDS for candidate in self._candidates)
            if is_person_known:
                self._add_numbers_by_end_of_label()
            if not any(candidate.kind == "patient" and candidate.rank < LAST_RANK for candidate in self._candidates):
                self._add_unlabelled_name()
            if not is_person_known:
                self._add_numbers_by_end_of_label()
            self._add_unlabelled_block_facts()
        # A page may have two numbers of one kind: one of the hospital, and a national one.
        best_by_kind: dict[tuple[IdentifierKind, str | None], IdentifierCandidate] = {}
        for candidate in self._candidates:
            best = best_by_kind.get((candidate.kind, candidate.issuer))
            if best is None or candidate.rank < best.rank:
                best_by_kind[candidate.kind, candidate.issuer] = candidate
        identifiers = [
            Identifier(
                kind=candidate.kind,
                value=candidate.value,
                normal=candidate.normal,
                box=self._enclose_words(candidate.start, candidate.end),
                issuer=(candidate.issuer or self._issuer) if candidate.kind in NUMBER_KINDS else None,
                source=candidate.source,
                confidence=self._get_lowest_confidence(candidate.value_start, candidate.end),
            )
            for candidate in best_by_kind.values()
        ]
        return tuple(sorted(identifiers, key=lambda identifier: (identifier.box[1], identifier.box[0])))

    def _add_unlabelled_name(self) -> None:
        """Add the patient's unlabelled name, and facts around a name in a sentence.

        Such places are running heads, stickers, and the address or first sentences of a letter.
        """
        for find_names, is_in_sentence in (
            (self._find_names_beside_facts, False),
            (self._find_names_of_running_head, False),
            (self._find_names_in_narrative, True),
            (self._find_titled_names, False),
            (self._find_introduced_names, True),
        ):
            spans = (
                span
                for span in find_names()
                if not self._is_in_anothers_section(span[0])
                and (is_in_sentence or not self._is_signed_elsewhere(*span))
            )
            if span := next(spans, None):
                self._add_candidate(
                    "patient",
                    span[0],
                    *span,
                    rank=3 if is_in_sentence else 2,
                    source="running_text" if is_in_sentence else "running_head",
                )
                if is_in_sentence:
                    self._add_narrative_facts(*span)
                return

    def _find_names_beside_facts(self) -> Iterator[tuple[int, int]]:
        """Find names next to another fact, as in "MARSH, HELEN A   DOB 03/22/1971".

        The name may also be in the line above or below the fact, or behind the fact.
        """
        facts = [candidate for candidate in self._candidates if candidate.kind in _FACT_RANKS]
        facts.sort(key=lambda fact: _FACT_RANKS[fact.kind])
        # Names before a fact are tried first: a name behind a fact is often a clinician's.
        for list_zones in (self._list_zones_before_fact, self._list_zones_behind_fact):
            for fact in facts[:_MAX_FACTS]:
                for start, end, needs_proof in list_zones(fact):
                    # The search ends at the next label, because text behind a label is the label's value.
                    next_label = self._find_next_label_start(start, end)
                    if next_label > start and not self._is_in_organisation(next_label, end):
                        yield from self._find_bare_names(start, next_label, require_comma_or_given_name=needs_proof)

    def _list_zones_before_fact(self, fact: IdentifierCandidate) -> Iterator[tuple[int, int, bool]]:
        """Yield parts of the text before a fact that may be a name.

        Each is start, end, and True if the part must have a comma or a common given name to count as a name.
        """
        line_start = self._text.rfind("\n", 0, fact.start) + 1
        previous_start = self._text.rfind("\n", 0, max(line_start - 1, 0)) + 1
        if above := self._find_words_below_or_above(fact.start, fact.end, look_above=True):
            yield (
                *above,
                not (len(words := self._text[slice(*above)].split()) > 1 and words[-1].isupper() and len(words[-1]) > 2)
                and not self._text[slice(*above)].isupper(),
            )
        yield max(line_start, *(self._text.rfind(sign, 0, fact.start) + 1 for sign in "\t|")), fact.start, False
        yield line_start, fact.start, False
        yield previous_start, line_start - 1, not self._is_line_of_name(previous_start, fact)

    def _list_zones_behind_fact(self, fact: IdentifierCandidate) -> Iterator[tuple[int, int, bool]]:
        line_end = self._find_line_end(fact.end)
        line_start = self._text.rfind("\n", 0, fact.start) + 1
        yield fact.end, line_end, True
        yield line_end + 1, self._find_line_end(line_end + 1), True
        yield self._find_end_of_label_before(line_start, fact.start), fact.start, True
        if self._text.count("\n", 0, fact.start) < _HEAD_FACT_LINES:
            yield self._first_cell_zone

    def _find_end_of_label_before(self, start: int, end: int) -> int:
        """Return the end of the last label in ``text[start:end]``.

        ``start`` without a label; ``end`` if the label is another person's.
        """
        index = bisect_left(self._hit_starts, end) - 1
        if index < 0 or self._hit_starts[index] < start:
            return start
        return end if self._hits[index].label.kind in ROLE_KINDS else self._hits[index].end

    def _is_line_of_name(self, start: int, fact: IdentifierCandidate) -> bool:
        """Return True if a line is only a name, and the next begins with a birth date."""
        end = self._find_line_end(start)
        is_below = self._is_at_line_start(fact.start) and end + 1 <= fact.start <= end + 4
        return fact.kind == "date_of_birth" and is_below and self._is_whole_name(start, end)

    @cached_property
    def _first_cell_zone(self) -> tuple[int, int, bool]:
        """First cell of the page, maybe the patient's name: start, end, needs proof.

        A last word in capitals ("Helen MARSH") shows that the cell is a name, so no other proof is needed.
        """
        line_end = self._find_line_end(0)
        end = self._find_wide_gap(0, line_end) or line_end
        return 0, end, not re.match(r"[A-Z][a-z'’-]+ (?:.* )?[A-Z]{3,}(?:-[A-Z]+)?$", self._text[:end])

    def _find_bare_names(self, start: int, end: int, *, require_comma_or_given_name: bool) -> Iterator[tuple[int, int]]:
        """Yield the name that ``text[start:end]`` is, or with which it ends; or nothing.

        With ``require_comma_or_given_name``, the name must have a comma or a common given name.
        """
        start = self._skip_separators(start, end)
        place = self._match_name_at_start(start, end)
        rest = self._text[place[1] : end].strip(SEPARATING_CHARACTERS) if place else "?"
        if rest and not PATTERNS["fact_behind_name"].match(rest):
            at_end = PATTERNS["name_at_end"].search(self._text, max(start, end - _MAX_NAME_LENGTH), end)
            if at_end is None or (
                require_comma_or_given_name
                and at_end.start() - start > _MAX_PREFIX_LENGTH
                and not ("," in at_end[1] and self._is_in_label(end))
                and not self._is_wide_gap(at_end.start(1) - 1)
                and self._text[start : at_end.start(1)].rstrip()[-1:] not in _COLUMN_SIGNS
            ):
                return
            place = self._match_name_at_end(*at_end.span(1))
            if place and PATTERNS["address_before"].search(self._text[start : place[0]]):
                return
        if (
            not place
            or PATTERNS["clinician_name"].match(self._text, place[0])
            or PATTERNS["clinician_behind_name"].match(self._text, place[1])
            or self._is_relatives_name(*place)
        ):
            return
        value = self._text[slice(*place)]
        if (
            len(re.findall(r"[^\W\d_]{2,}" if require_comma_or_given_name else r"[^\W\d_]+", value)) > 1
            and "(" not in value
            and (not require_comma_or_given_name or "," in value or self._has_known_given_name(*place))
        ):
            yield place

    def _is_relatives_name(self, start: int, end: int) -> bool:
        """Return True if a word such as "mother" shows that a name is a relative's.

        The word may be right before or behind the name, its first word, or in a short line above.
        """
        line_start = self._text.rfind("\n", 0, start) + 1
        line_above = self._text[self._text.rfind("\n", 0, max(line_start - 1, 0)) + 1 : max(line_start - 1, 0)]
        words = compile_relative_words()
        return bool(
            words.search(self._text[max(line_start, start - _MAX_WORDS_BEFORE_NAME) : start])
            or words.match(self._text, start, end)
            or (len(line_above) < _MAX_WORDS_BEFORE_NAME and words.search(line_above))
            or PATTERNS["relative_behind_name"].match(self._text, end)
        )

    def _match_name_at_end(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the span of a name at the end of a text: "Medical Report Jane Doe"."""
        for match in re.finditer(r"\S+", self._text[start:end]):
            place = self._match_name_at_start(start + match.start(), end)
            if place and place[1] == end:
                return place
        return None

    def _find_names_of_running_head(self) -> Iterator[tuple[int, int]]:
        """Find names such as "Marsh, Helen" that begin a line at the top or bottom.

        Without a comma, a fact must follow: "HELEN MARSH / 03/22/1971".
        """
        for start, end in self._list_edge_lines():
            span = self._match_name_of_running_head(start, end)
            is_followed = span is not None and PATTERNS["fact_behind_comma_name"].match(self._text, span[1]) is not None
            if span and not self._is_signature(*span, needs_degree=is_followed):
                yield span

    def _match_name_of_running_head(self, start: int, end: int) -> tuple[int, int] | None:
        if caret_name := PATTERNS["caret_name"].search(self._text, start, end):
            return caret_name.span()
        match = PATTERNS["running_head_name"].match(self._text, start, end)
        span = self._match_name_at_start(*match.span(1)) if match else None
        if span and "," in self._text[slice(*span)]:
            # Two words with a comma may also be a place or drugs, so a proof is needed.
            is_proven = (
                self._has_known_given_name(*span)
                or PATTERNS["fact_behind_comma_name"].match(self._text, span[1])
                or PATTERNS["machine_written_name"].fullmatch(self._text, *span)
            )
            return span if is_proven else None
        span = self._match_name_at_start(start, end)
        is_followed = span and (
            (" " in self._text[slice(*span)] and PATTERNS["fact_after_name"].match(self._text, span[1], end))
            or (
                PATTERNS["titled_name"].match(self._text, start, end)
                and PATTERNS["date_value"].match(self._text, span[1] + 1, end)
            )
        )
        return span if is_followed and not PATTERNS["clinician_name"].match(self._text, start) else None

    def _find_titled_names(self) -> Iterator[tuple[int, int]]:
        """Find names with a title ("Mrs. Helen Marsh") in a line at the top or bottom."""
        for start, end in self._list_edge_lines():
            match = PATTERNS["titled_name"].search(self._text, start, end)
            place = self._match_name_at_start(*match.span()) if match else None
            if place and not self._is_relatives_name(*place) and not self._is_signature(*place):
                yield place

    def _is_signature(self, start: int, end: int, *, needs_degree: bool = False) -> bool:
        """Return True if a name is a clinician's: with a degree, or in a signature."""
        last_word = fold_to_plain_capitals(self._text[start:end].split()[-1]).replace(".", "")
        if last_word in get_word_list_for_names("degrees") or PATTERNS["clinician_behind_name"].match(self._text, end):
            return True
        if needs_degree:
            return False
        line_end = self._find_line_end(end)
        around = f"{self._text[max(0, start - 60) : start]} {self._text[end : self._find_line_end(line_end + 1)]}"
        return _compile_signing_words().search(around[:200]) is not None

    def _is_signed_elsewhere(self, start: int, end: int) -> bool:
        """Return True if the page is signed with a name that is also at another place."""
        return any(
            match.start() != start and self._is_signature(*match.span())
            for match in re.finditer(re.escape(self._text[start:end]), self._text)
        )

    def _list_edge_lines(self) -> list[tuple[int, int]]:
        """List spans of the page's first and last lines, and of cells inside these lines."""
        lines = [line.span() for line in re.finditer(r"[^\n]+", self._text)]
        edge_lines = [*lines[:EDGE_LINES], *lines[max(EDGE_LINES, len(lines) - EDGE_LINES) :]]
        cells = [
            (gap + 1, end)
            for start, end in edge_lines
            if (gap := self._find_wide_gap(start, min(end, start + MAX_BLOCK_LINE)))
        ]
        return edge_lines + cells

    def _find_introduced_names(self) -> Iterator[tuple[int, int]]:
        """Find names that a sentence introduces: "I reviewed your patient Helen Marsh"."""
        for introduction in PATTERNS["introduction"].finditer(self._text):
            place = self._match_name_at_start(introduction.end(), self._find_line_end(introduction.end()))
            if (
                place
                and len(re.findall(r"[^\W\d_]{2,}", self._text[slice(*place)])) > 1
                and (
                    introduction["age"]
                    or PATTERNS["titled_name"].match(self._text, place[0])
                    or self._has_known_given_name(*place)
                )
                and not PATTERNS["clinician_name"].match(self._text, place[0])
                and not PATTERNS["clinician_behind_name"].match(self._text, place[1])
                and not self._is_relatives_name(*place)
            ):
                yield place

    def _find_names_in_narrative(self) -> Iterator[tuple[int, int]]:
        """Find names in a story: "Helen Marsh, a 54-year-old woman born 22 March 1971"."""
        for anchor in PATTERNS["story_anchor"].finditer(self._text):
            window_start = max(0, anchor.start() - 170)
            for match in PATTERNS["name_in_story"].finditer(self._text, window_start, anchor.start()):
                story = PATTERNS["story"].match(self._text, match.end())
                if (
                    story
                    and story.end() >= anchor.start()
                    and not PATTERNS["clinician_name"].match(match.group())
                    and not self._is_relatives_name(*match.span())
                    and not PATTERNS["house_number_before"].search(self._text, window_start, match.start())
                    and (place := self._match_name_at_end(*match.span()))
                    and len(self._text[slice(*place)].split()) > 1
                ):
                    yield place

    def _add_narrative_facts(self, name_start: int, name_end: int) -> None:
        sentence_end = min(len(self._text), name_end + 160)
        sex_word = PATTERNS["title_of_sex"].match(self._text, name_start, name_end) or PATTERNS["sex_word"].search(
            self._text, name_end, min(sentence_end, name_end + 60)
        )
        known_kinds = {candidate.kind for candidate in self._candidates}
        if "sex" not in known_kinds and sex_word:
            self._add_candidate("sex", name_start, *sex_word.span(1), rank=3, source="running_text")
        born = PATTERNS["born"].search(self._text, name_end, sentence_end)
        if "date_of_birth" not in known_kinds and born:
            self._add_candidate("date_of_birth", born.start(), *born.span(1), rank=3, source="running_text")

    def _add_numbers_by_end_of_label(self) -> None:
        """Add a record number behind an unknown label with a typical end: "Board No.".

        Only labels near the patient's name or birth date count.
        """
        if any(candidate.kind == "mrn" and not candidate.issuer for candidate in self._candidates):
            return
        pattern, weak_ends, others = _compile_number_label_ends()
        for start, end in self._list_zones_around_person():
            for match in pattern.finditer(self._text, start, end):
                span = self._match_number_of_label(match)
                cell_start = self._find_cell_start(match.start())
                label_start = self._find_label_start(cell_start, match.start())
                words = re.findall(
                    r"\w+", fold_to_plain_capitals(self._text[label_start : match.end()]).replace(".", "")
                )
                is_weak = match["end"].casefold().rstrip(".") in weak_ends
                if (
                    span
                    and _MIN_BARE_DIGITS <= sum(map(str.isdigit, self._text[slice(*span)])) <= _MAX_LABELLED_DIGITS
                    and others.isdisjoint(words)
                    and not (is_weak and PATTERNS["case_number"].fullmatch(self._text, *span))
                    and not self._is_anothers_number(label_start, match.start(), span[0])
                ):
                    self._add_candidate("mrn", label_start, *span, rank=LAST_RANK + is_weak)

    def _match_number_of_label(self, label: re.Match[str]) -> tuple[int, int] | None:
        line_end = self._find_line_end(label.end())
        if span := self._match_number(label.end(), self._find_next_label_start(label.end(), line_end)):
            return span
        is_last_of_cell = self._text[label.end() : label.end() + 1] in ("", "\n", "\t") or self._is_wide_gap(
            label.end()
        )
        below = self._find_words_below_or_above(*label.span("end")) if is_last_of_cell else None
        return self._match_number(*below) if below else None

    def _is_anothers_number(self, label_start: int, end_of_label: int, number_start: int) -> bool:
        """Return True if a number is not the patient's record number.

        For example, a clinician or relative is named before it, it has a known label of another kind, or it is a date or
        a telephone number.
        """
        cell_start = self._find_cell_start(label_start)
        index = bisect_left(self._hit_starts, end_of_label + 1) - 1
        hit = self._hits[index] if index >= 0 and self._hits[index].start >= cell_start else None
        before = self._text[cell_start:end_of_label]
        date = PATTERNS["date_value"].match(self._text, number_start)
        # "ID:" alone names no kind of number, but "Cigna ID:" is a known label; "Hospital No" does not name a hospital.
        is_known = hit is not None and (
            hit.start < label_start
            if hit.label.kind in ROLE_KINDS
            else hit.end > end_of_label
            and hit.label.kind != "mrn"
            and (hit.label.kind != "other" or hit.start < end_of_label)
        )
        return (
            is_known
            or any(candidate.value_start <= number_start < candidate.end for candidate in self._candidates)
            or compile_relative_words().search(before) is not None
            or PATTERNS["clinician_before_number"].search(before) is not None
            or (date is not None and parse_written_date(date[1]) is not None)
            or PATTERNS["phone_number"].match(self._text, number_start) is not None
            or self._is_in_anothers_section(end_of_label)
        )

    def _find_label_start(self, cell_start: int, end: int) -> int:
        """Return the index where the label that ends at ``end`` begins.

        The label has at most three words and begins behind the last value, or behind an opening parenthesis.
        """
        start = max(
            (candidate.end for candidate in self._candidates if cell_start <= candidate.end <= end), default=cell_start
        )
        start = max(start, self._text.rfind("(", start, end) + 1)
        words = [match.start() for match in re.finditer(r"\S+", self._text[start:end])][-_MAX_LABEL_WORDS + 1 :]
        return start + words[0] if words else end

    def _list_zones_around_person(self) -> list[tuple[int, int]]:
        zones: list[tuple[int, int]] = []
        places = (candidate.value_start for candidate in self._candidates if candidate.kind in _PERSON_KINDS)
        for place in sorted(places):
            start = end = place
            for _ in range(_ZONE_LINES + 1):
                start = max(self._text.rfind("\n", 0, start), 0)
                end = min(self._find_line_end(end) + 1, len(self._text))
            start = max(start, zones[-1][1]) if zones else start
            if start < end:
                zones.append((start, end))
        return zones

    def _add_unlabelled_block_facts(self) -> None:
        """Add birth date and record number without labels, from lines near the name.

        Such lines are on stickers and in running heads.
        """
        name = next((candidate for candidate in self._candidates if candidate.kind == "patient"), None)
        if name is None:
            return
        known_kinds = {candidate.kind for candidate in self._candidates}
        block_lines = self._list_block_lines(name)
        if "date_of_birth" not in known_kinds:
            any(self._add_bare_birth_date(*zone) for zone in block_lines)
        strips = self._list_strips(name)
        zones = [*strips, *(zone for zone in block_lines if name.source != "label" and zone not in strips)]
        if "mrn" not in known_kinds:
            any(self._add_bare_number(name, *zone, is_strip=zone in strips) for zone in zones)

    def _list_strips(self, name: IdentifierCandidate) -> list[tuple[int, int]]:
        """List spans of lines with both name and birth date: table rows, running heads."""
        birth = next((candidate for candidate in self._candidates if candidate.kind == "date_of_birth"), None)
        words = set(re.findall(r"[^\W\d_]{2,}", name.value.casefold()))
        strips: list[tuple[int, int]] = []
        for place in re.finditer(re.escape(birth.value), self._text) if birth else ():
            start = max(self._text.rfind("\n", 0, place.start()) + 1, place.start() - MAX_BLOCK_LINE)
            end = min(self._find_line_end(place.end()), place.end() + MAX_BLOCK_LINE)
            if words.issubset(re.findall(r"[^\W\d_]+", self._text[start:end].casefold())):
                strips.append((start, end))
        return strips

    def _list_block_lines(self, name: IdentifierCandidate) -> list[tuple[int, int]]:
        """List spans of the name's line, the two lines below and the line above.

        Of the other lines, only short ones that are not empty.
        """
        lines = [(self._text.rfind("\n", 0, name.start) + 1, self._find_line_end(name.start))]
        for _ in range(2):
            start = lines[-1][1] + 1
            lines.append((start, self._find_line_end(start)))
        if lines[0][0]:
            lines.append((self._text.rfind("\n", 0, lines[0][0] - 1) + 1, lines[0][0] - 1))
        name_line = max(lines[0][0], name.start - MAX_BLOCK_LINE), min(lines[0][1], name.end + MAX_BLOCK_LINE)
        return [name_line, *((start, end) for start, end in lines[1:] if 0 < end - start < MAX_BLOCK_LINE)]

    def _add_bare_birth_date(self, start: int, end: int) -> bool:
        """Add a date without label as birth date, if something shows that it is one.

        For example, an age on the page fits, or the date is many years before all others. Returns True if a date was
        added.
        """
        for match in PATTERNS["date_value"].finditer(self._text, start, end):
            written = parse_written_date(match[1])
            if written is None or any(hit.end - 1 <= match.start() <= hit.end + 1 for hit in self._hits):
                continue
            year = int(written.iso[:4])
            other_years = [
                int(other.iso[:4])
                for text in PATTERNS["date_value"].findall(self._text)
                if (other := parse_written_date(text)) and other.iso != written.iso
            ]
            ages = {candidate.normal for candidate in self._candidates if candidate.kind == "age"} | {
                age
                for age, _ in PATTERNS["age_sex_behind_date"].findall(
                    f"{self._text[max(start, match.start() - _MAX_AGE_BEFORE) : match.start()]} {self._text[match.end() : end]}"
                )
            }
            # If the page has no other date, any age on the page is enough.
            is_fitting = (
                self._text[match.start() - 1 : match.start()] == "*"
                or PATTERNS["sex_beside_date"].match(self._text, match.end(), end) is not None
                or (
                    min(other_years) - year >= _MIN_YEARS_BEFORE
                    or any(0 <= other_year - year - int(age) <= 1 for other_year in other_years for age in ages)
                    if other_years
                    else bool(ages)
                    or (
                        year < _FIRST_YEAR_OF_VISITS
                        and PATTERNS["number_behind_date"].match(self._text, match.end(), end)
                    )
                )
            )
            if is_fitting:
                self._add_candidate("date_of_birth", match.start(1), *match.span(1), rank=2, source="running_head")
                return True
        return False

    def _add_bare_number(self, name: IdentifierCandidate, start: int, end: int, *, is_strip: bool) -> bool:
        """Add a number without label as record number; return True if one was added.

        The number must be in the name's line, or alone at the start of another line.
        """
        is_name_line = is_strip or start <= name.start < end
        for beginning in PATTERNS["bare_number_beginning"].finditer(self._text, start, end):
            span = self._match_number(beginning.start(), end)
            if (
                span
                and not name.start <= span[0] < name.end
                and not PATTERNS["date_value"].match(self._text, beginning.start(), end)
                and not PATTERNS["case_number"].fullmatch(self._text, *span)
                and _MIN_BARE_DIGITS <= sum(map(str.isdigit, self._text[slice(*span)])) <= _MAX_BARE_DIGITS
                and not any(hit.end == beginning.start() for hit in self._hits)
                and not PATTERNS["contact_before_number"].search(
                    self._text, max(start, beginning.start() - 12), beginning.start()
                )
                and not PATTERNS["phone_number"].match(self._text, beginning.start(), end)
                and not any(candidate.value_start <= span[0] < candidate.end for candidate in self._candidates)
                and (is_name_line or self._is_alone_at_line_start(start, span, end))
            ):
                self._add_candidate("mrn", span[0], *span, rank=3, source="running_head")
                return True
        return False

    def _is_alone_at_line_start(self, line_start: int, span: tuple[int, int], line_end: int) -> bool:
        rest = self._text[span[1] : self._find_wide_gap(span[1], line_end) or line_end].strip(SEPARATING_CHARACTERS)
        start = max(line_start, self._find_cell_start(span[0]))
        is_first = not self._text[start : span[0]].strip(SEPARATING_CHARACTERS)
        return is_first and (not rest or PATTERNS["bare_number_rest"].match(rest) is not None)

    def _is_list_of_several_persons(self) -> bool:
        """Return True if the page lists several persons: a schedule, a census, claims."""
        for kind in ("patient", "date_of_birth"):
            forms = {
                candidate.normal for candidate in self._candidates if candidate.kind == kind and candidate.rank == 0
            }
            if len(forms) > _MAX_LISTED_PERSONS:
                return True
        rows = {match[1] for match in PATTERNS["row_of_person"].finditer(self._text) if can_be_person_name(match[1])}
        return len(rows) > _MAX_LISTED_PERSONS

    @cached_property
    def _issuer(self) -> str | None:
        signs = list(self._text[:_LETTERHEAD_LENGTH])
        for gap in filter(self._is_wide_gap, find_spaces(self._text, 0, len(signs))):
            signs[gap] = "\t"
        head = "".join(signs)
        ranked_names = [
            (rank, name)
            for line in head.split("\n")[:_LETTERHEAD_LINES]
            for cell in PATTERNS["cell_end"].split(line)
            if (rank := _rank_issuer(name := PATTERNS["address_behind_name"].split(cell.strip(" ,.-–—"))[0]))
            is not None
        ]
        if letterhead := PATTERNS["name_above_address"].match(head):
            ranked_names.append((1, letterhead[1]))
        return min(ranked_names, key=itemgetter(0), default=(0, None))[1]

    def _get_lowest_confidence(self, start: int, end: int) -> float:
        first, last = self._get_word_index_range(start, end)
        confidences = self._confidences[first:last]
        return round(max(min(confidences) / 100, _MIN_CONFIDENCE), 2) if confidences else 1.0

    def _enclose_words(self, start: int, end: int) -> Box:
        first, last = self._get_word_index_range(start, end)
        covered_words = self._words[first:last]
        if not covered_words:
            return 0.0, 0.0, 0.0, 0.0
        x0, y0, x1, y1 = enclose_boxes(word[2:] for word in covered_words)
        return x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000
