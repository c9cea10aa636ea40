"""Differences between a quote and its passage in the document, each with its kind.

A similarity score cannot tell a misprint from a changed finding, so the words of quote and passage are aligned and each
difference is named. A difference is noise only if a word was misspelt as OCR engines and typists do, so that the result
is no word any more. Every other difference in words, numbers and signs (see ``tokens.py``) is reported. Punctuation
counts only next to a negation.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from rapidfuzz.distance import Editop, Levenshtein, Opcode

from evalkit.grounding.critical_terms import PATTERNS, DifferenceKind, get_terms_version, load_kind_by_word, load_terms
from evalkit.grounding.normalise import normalise_characters
from evalkit.grounding.tokens import Token, tokenise
from evalkit.grounding.vocabulary import IMPOSSIBLE_USE_COUNT

#: Function of a folded word and a number: True if the word is English, or occurs at least that many times in the
#: document.
IsWord = Callable[[str, int], bool]


class QuoteDifference(NamedTuple):
    """One difference between a quote and the page."""

    kind: DifferenceKind
    quote_text: str
    """Words in the quote; empty if the quote omits words of the page."""
    page_text: str
    """Words on the page; empty if the quote adds words."""
    is_doubtful: bool = False
    """True if the difference may be an error of OCR or copying, so that a person has to look."""

    def __str__(self) -> str:
        """Describe the difference in a clause for a clinician."""
        if not self.page_text:
            return f"{self.kind}: the quote adds “{self.quote_text}”"
        if not self.quote_text:
            return f"{self.kind}: the quote leaves out “{self.page_text}”"
        return f"{self.kind}: the document says “{self.page_text}”, the quote “{self.quote_text}”"


class PassageComparison(NamedTuple):
    """Result of comparing a quote with a passage."""

    differences: tuple[QuoteDifference, ...]
    matched_share: float
    """Share (0..1) of the quote's words that the passage has, too."""
    compared_span: tuple[int, int] | None = None
    """Start and end of the compared text in ``text_before + passage + text_after``; None if unknown."""


#: Pattern of a division inside a word of the original text: a hyphen at a line's end, or invisible characters.
_WORD_DIVISION = r"(?:[-\u2010\u2011]\s+|[\u00ad\u200b]+)?"
#: Groups of letters that OCR or a typist confuses, and the form by which they are replaced; folded.
_LOOKALIKE_PAIRS = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("li", "h"), ("ii", "u"), ("nn", "m"))
_LOOKALIKE_TRANSLATION = str.maketrans("10l|!5", "ioiiis")
_CONFUSABLE_LETTERS = frozenset(
    map(frozenset, ("ec", "oc", "li", "ij", "lt", "tf", "nh", "hb", "uv", "nu", "gq", "yv", "rn"))
)
_OPPOSITE_PREFIXES = (
    ("hypo", "hyper"), ("intra", "inter"), ("intra", "extra"), ("infra", "supra"), ("ab", "ad"), ("ante", "anti"),
    ("pre", "post"), ("pre", "peri"), ("pre", "pro"), ("endo", "exo"), ("macro", "micro"), ("brady", "tachy"),
    ("dys", "eu"), ("hemi", "semi"), ("uni", "bi"), ("mono", "bi"), ("mono", "poly"), ("per", "pre"), ("sub", "supra"),
    ("an", "a"), ("in", "im"), ("ile", "ili"), ("perin", "periton"), ("hyp", "hyper"), ("para", "peri"),
)  # fmt: skip
_TERM_CHANGING_PREFIXES = frozenset(
    ("a", "an", "un", "in", "im", "ir", "il", "non", "dis", "de", "anti", "re", "mal", "mis", "sub", "hemi", "semi")
)
_CONFUSABLE_SUFFIXES = (
    ("ectomy", "otomy"), ("ectomy", "ostomy"), ("otomy", "ostomy"), ("itis", "osis"), ("oma", "osis"), ("oma", "itis"),
    ("emia", "uria"), ("ia", "ic"), ("penia", "philia"), ("penia", "cytosis"), ("phasia", "phagia"), ("gram", "graph"),
    ("um", "al"), ("us", "al"), ("ium", "eum"), ("ine", "one"), ("ol", "il"),
)  # fmt: skip
#: Least length of a word that is still recognisable with one misprint, and with two misprints.
_MIN_MISPRINT_LENGTH, _TWO_MISPRINTS_LENGTH = 5, 8
#: The start and the end of the passage are adjusted by up to this many words, because they were found by letters.
_MAX_SHIFT_WORDS = 5
#: Version of these rules. Raise it with every change that alters a verdict.
_RULES_VERSION = 4
#: If words in a row differ in several kinds, the difference gets the first of these kinds.
_KINDS_BY_WEIGHT = (
    DifferenceKind.NEGATION, DifferenceKind.POLARITY, DifferenceKind.GENE, DifferenceKind.PATHOGENICITY, DifferenceKind.LATERALITY, DifferenceKind.MODAL, DifferenceKind.COMPARATOR,
    DifferenceKind.DATE, DifferenceKind.NUMBER, DifferenceKind.DECIMAL, DifferenceKind.UNIT, DifferenceKind.NAME,
)  # fmt: skip


def get_grounding_version() -> str:
    """Return the version of the rules for differences and of the critical words.

    It is part of every fingerprint.
    """
    return f"{_RULES_VERSION} words {get_terms_version()}"


def has_content_words(text: str) -> bool:
    """Return True if a text has a number or a word other than articles and the like.

    Words that do not count are in the table ``stop`` of ``difference.toml``.
    """
    stop_words = load_terms("stop")
    return any(match.group().casefold() not in stop_words for match in PATTERNS["word"].finditer(text))


def compare_quote_with_passage(
    quote: str, text_before: str, passage: str, text_after: str, *, is_ocr_text: bool, is_known_word: IsWord
) -> PassageComparison:
    """Compare a quote word by word with a similar passage, and name all differences.

    ``text_before`` and ``text_after`` are a little text around the passage, which is extended into them if that fits the
    quote better. With ``is_ocr_text``, the passage comes from OCR, which may have misread a digit. ``is_known_word``
    recognises real words.
    """
    text = text_before + passage + text_after
    quote_tokens, context_tokens = tokenise(quote), tokenise(text)
    passage_start, passage_size = len(tokenise(text_before)), len(tokenise(passage))
    if not quote_tokens or not passage_size:
        return PassageComparison((), 0.0)
    quote_letters, context_letters = _encode_words_as_letters(quote_tokens, context_tokens)
    start, end = _widen_to_divided_words(
        quote_tokens,
        context_tokens,
        *_find_most_similar_token_range(quote_letters, context_letters, passage_start, passage_size),
    )
    matched_tokens = context_tokens[start:end]
    unmatched_tokens = (*context_tokens[passage_start:start], *context_tokens[end : passage_start + passage_size])
    all_differences = [
        QuoteDifference(DifferenceKind.NEGATION, "", token.text)
        for token in unmatched_tokens
        if token.folded in load_terms("turning")
    ]
    all_differences += _find_omitted_compound_parts(context_tokens, start, end)
    matched_count = len(quote_tokens)
    for operation in _compute_merged_edit_opcodes(quote_letters, context_letters[start:end]):
        quote_part, page_part = (
            quote_tokens[operation.src_start : operation.src_end],
            matched_tokens[operation.dest_start : operation.dest_end],
        )
        if operation.tag == "equal":
            all_differences += _compare_negation_punctuation(
                quote_tokens,
                matched_tokens,
                operation.src_start,
                operation.dest_start,
                operation.src_end - operation.src_start,
            )
            continue
        part_differences = list(_compare_parts(quote_part, page_part, is_ocr_text, is_known_word))
        all_differences += part_differences
        if any(difference.kind is not DifferenceKind.DIVISION for difference in part_differences):
            matched_count -= len(quote_part)
    passage_indices = range(
        passage_start, min(passage_start + passage_size, len(context_tokens))
    )  # passage_size may count one token more than the joined text has
    negation_indices = [
        index for index in passage_indices if context_tokens[index].folded in load_terms("turning")
    ]  # negations are reported as differences, so the span must include them
    shown_range = min([start, *negation_indices]), max([end, *(index + 1 for index in negation_indices)])
    return PassageComparison(
        tuple(all_differences),
        max(matched_count, 0) / len(quote_tokens),
        _locate_token_range(text, context_tokens, *shown_range),
    )


def _locate_token_range(
    text: str, context_tokens: Sequence[Token], first_token: int, end_token: int
) -> tuple[int, int] | None:
    """Return the span of some tokens in ``text``; None if it cannot be determined.

    It cannot if ``text`` writes one of the tokens in other characters.
    """
    position, span_start = 0, 0
    for index, token in enumerate(context_tokens[:end_token]):
        token_span = _find_next_token_span(token, text, position)
        if token_span is None:
            return None
        if index == first_token:
            span_start = token_span[0]
        position = token_span[1]
    return span_start, position


def _find_next_token_span(token: Token, text: str, position: int) -> tuple[int, int] | None:
    """Return the span of a token in ``text`` from ``position`` on; None if not found.

    ``text`` may divide the word at a line's end, which the token does not show.
    """
    token_start = text.find(token.text, position)
    if token_start >= 0 and (
        text[position:token_start] == token.gap_before
        or normalise_characters(text[position:token_start]) == token.gap_before
    ):
        return token_start, token_start + len(token.text)
    divided_match = re.compile(_WORD_DIVISION.join(map(re.escape, token.text))).search(text, position)
    is_next = divided_match and normalise_characters(text[position : divided_match.start()]) == token.gap_before
    return divided_match.span() if divided_match and is_next else None


def _encode_words_as_letters(*token_sequences: Sequence[Token]) -> list[str]:
    """Encode each word as one character (equal words equally), to align them faster."""
    letter_by_word: dict[str, str] = {}
    return [
        "".join([letter_by_word.setdefault(token.folded, chr(len(letter_by_word))) for token in token_sequence])
        for token_sequence in token_sequences
    ]


def _find_most_similar_token_range(
    quote_letters: str, context_letters: str, passage_start: int, passage_size: int
) -> tuple[int, int]:
    """Find the start and end of the words that are most similar to the quote.

    The search is limited to a few words around ``passage_start`` and its end. Of equally similar spans, the longest is
    taken, so that a word in the place of another counts as a change, not as a missing word.
    """
    passage_end = passage_start + passage_size

    def measure_distance(start: int, end: int) -> int:
        return Levenshtein.distance(quote_letters, context_letters[start:end])

    start = min(
        range(max(passage_start - _MAX_SHIFT_WORDS, 0), min(passage_start + _MAX_SHIFT_WORDS, passage_end)),
        key=lambda index: (measure_distance(index, passage_end), index),
    )
    end_candidates = range(
        max(passage_end - _MAX_SHIFT_WORDS, start) + 1, min(passage_end + _MAX_SHIFT_WORDS, len(context_letters)) + 1
    )
    end = min(end_candidates, key=lambda index: (measure_distance(start, index), -index))
    return start, end


def _widen_to_divided_words(
    quote_tokens: Sequence[Token], context_tokens: Sequence[Token], start: int, end: int
) -> tuple[int, int]:
    """Extend the span if the page divides the quote's first or last word into parts."""
    while start and quote_tokens[0].folded.endswith(_join_without_divisions(context_tokens[start - 1 : start + 1])):
        start -= 1
    while end < len(context_tokens) and quote_tokens[-1].folded.startswith(
        _join_without_divisions(context_tokens[end - 1 : end + 1])
    ):
        end += 1
    return start, end


def _find_omitted_compound_parts(context_tokens: Sequence[Token], start: int, end: int) -> Iterator[QuoteDifference]:
    """Find parts that the quote cut off from its first or last word.

    For example (cut at the bar): non-|small, 3|+4, <|5, A|-.
    """
    for left_index, right_index, omitted_index in ((start - 1, start, start - 1), (end - 1, end, end)):
        if (
            left_index >= 0
            and right_index < len(context_tokens)
            and _is_one_term(context_tokens[left_index], context_tokens[right_index])
        ):
            yield QuoteDifference(
                DifferenceKind.NEGATION
                if context_tokens[omitted_index].folded in load_terms("prefixes")
                else _classify_token(context_tokens[omitted_index]) or DifferenceKind.WORD,
                "",
                context_tokens[omitted_index].text,
            )


def _is_one_term(left: Token, right: Token) -> bool:
    if left.folded in load_terms("leading", "signs") and right.folded[:1].isdigit():
        return True
    if any(map(str.isspace, right.gap_before)) or right.gap_before.strip("-/:+"):
        return False
    has_digit = left.folded[-1:].isdigit() or right.folded[:1].isdigit()
    return right.gap_before == "-" or not right.gap_before or (has_digit and right.gap_before in ("/", ":", "+"))


def _compare_negation_punctuation(
    quote_tokens: Sequence[Token], page_tokens: Sequence[Token], quote_start: int, page_start: int, length: int
) -> Iterator[QuoteDifference]:
    """Compare punctuation next to negations, as "No, cancer" differs from "no cancer".

    The words from ``quote_start`` and ``page_start`` on are equal in quote and page, for ``length`` words.
    """
    negations = load_terms("turning")
    for offset in range(1 if quote_start == 0 or page_start == 0 else 0, length):
        quote_token, page_token = quote_tokens[quote_start + offset], page_tokens[page_start + offset]
        previous_word = quote_tokens[quote_start + offset - 1].folded if quote_start + offset else ""
        if quote_token.folded not in negations and previous_word not in negations:
            continue
        if PATTERNS["non_stop_character"].sub("", quote_token.gap_before) != PATTERNS["non_stop_character"].sub(
            "", page_token.gap_before
        ):
            yield QuoteDifference(
                DifferenceKind.NEGATION,
                f"{previous_word}{quote_token.gap_before}{quote_token.text}",
                f"{previous_word}{page_token.gap_before}{page_token.text}",
                is_doubtful=True,
            )


def _compute_merged_edit_opcodes(quote_letters: str, page_letters: str) -> Iterator[Opcode]:
    for is_equal, group in groupby(
        Levenshtein.opcodes(quote_letters, page_letters), key=lambda operation: operation.tag == "equal"
    ):
        operations = list(group)
        first, last = operations[0], operations[-1]
        yield first if is_equal else Opcode("replace", first.src_start, last.src_end, first.dest_start, last.dest_end)


# Differences between words in a row


def _compare_parts(
    quote_part: Sequence[Token], page_part: Sequence[Token], is_ocr_text: bool, is_known_word: IsWord
) -> Iterator[QuoteDifference]:
    if _join_without_divisions(quote_part) == _join_without_divisions(page_part):
        if not _is_division_insignificant(quote_part, page_part):
            yield QuoteDifference(
                DifferenceKind.DIVISION, _join_token_texts(quote_part), _join_token_texts(page_part), is_doubtful=True
            )
        return
    if len(quote_part) == len(page_part):
        for quote_token, page_token in zip(quote_part, page_part, strict=True):
            if quote_token.folded != page_token.folded and (
                difference := _compare_tokens(quote_token, page_token, is_ocr_text, is_known_word)
            ):
                yield difference
        return
    if (
        quote_part
        and page_part
        and _is_misprint(
            _join_without_divisions(quote_part), _join_without_divisions(page_part), is_ocr_text, is_known_word
        )
    ):
        return
    yield from _compare_parts_of_unequal_length(quote_part, page_part, is_ocr_text)


def _compare_parts_of_unequal_length(
    quote_part: Sequence[Token], page_part: Sequence[Token], is_ocr_text: bool
) -> Iterator[QuoteDifference]:
    """Name the difference between unequal numbers of words in quote and page.

    Its kind is that of the most important critical word that only one side has, else WORD. No difference if only words
    such as "is" and "was" are added or omitted.
    """
    quote_words, page_words = {token.folded for token in quote_part}, {token.folded for token in page_part}
    added_tokens = [token for token in quote_part if token.folded not in page_words]
    omitted_tokens = [token for token in page_part if token.folded not in quote_words]
    if all(token.folded in load_terms("copulas") for token in (*added_tokens, *omitted_tokens)):
        return
    articles = load_terms("articles")
    if all(token.folded in articles for token in (*added_tokens, *omitted_tokens)):
        yield QuoteDifference(
            DifferenceKind.WORD, _join_token_texts(quote_part), _join_token_texts(page_part), is_doubtful=True
        )
        return
    present_kinds = {kind for token in (*omitted_tokens, *added_tokens) if (kind := _classify_token(token))}
    kind = next((kind for kind in _KINDS_BY_WEIGHT if kind in present_kinds), DifferenceKind.WORD)
    is_doubtful = is_ocr_text and _is_lookalike(_join_without_divisions(quote_part), _join_without_divisions(page_part))
    yield QuoteDifference(kind, _join_token_texts(quote_part), _join_token_texts(page_part), is_doubtful=is_doubtful)


def _compare_tokens(
    quote_token: Token, page_token: Token, is_ocr_text: bool, is_known_word: IsWord
) -> QuoteDifference | None:
    """Return the difference between two words in the same place; None for a misprint."""
    is_name = any(
        PATTERNS["uppercase_name"].fullmatch(token.text) and not is_known_word(token.folded, IMPOSSIBLE_USE_COUNT)
        for token in (quote_token, page_token)
    )
    if not is_name and _is_misprint(quote_token.folded, page_token.folded, is_ocr_text, is_known_word):
        return None
    kind = _classify_token_pair(quote_token, page_token)
    is_doubtful = (
        _is_lookalike(quote_token.folded, page_token.folded)
        if kind
        else Levenshtein.distance(quote_token.folded, page_token.folded) <= 2
    )
    is_unknown_word = (
        not kind
        and not is_name
        and not is_known_word(quote_token.folded, 1)
        and not is_known_word(page_token.folded, IMPOSSIBLE_USE_COUNT)
    )
    return QuoteDifference(
        kind or DifferenceKind.WORD,
        quote_token.text,
        page_token.text,
        is_doubtful=is_doubtful and (is_ocr_text or is_unknown_word),
    )


def _classify_token_pair(quote_token: Token, page_token: Token) -> DifferenceKind | None:
    if PATTERNS["amount"].fullmatch(quote_token.folded) and PATTERNS["amount"].fullmatch(page_token.folded):
        if re.sub(r"\D", "", quote_token.folded) == re.sub(r"\D", "", page_token.folded):
            return DifferenceKind.DECIMAL
        if PATTERNS["date"].fullmatch(quote_token.folded) or PATTERNS["date"].fullmatch(page_token.folded):
            return DifferenceKind.DATE
        # If a decimal point moves, zeros are added: 0.05 and 0.5 have the same digits apart from zeros at the ends.
        if re.sub(r"\D", "", quote_token.folded).strip("0") == re.sub(r"\D", "", page_token.folded).strip("0"):
            return DifferenceKind.DECIMAL
        return DifferenceKind.NUMBER
    return _classify_token(page_token) or _classify_token(quote_token)


def _classify_token(token: Token) -> DifferenceKind | None:
    if kind := load_kind_by_word().get(token.folded):
        return kind
    if PATTERNS["amount"].fullmatch(token.folded):
        return (
            DifferenceKind.DATE
            if PATTERNS["date"].fullmatch(token.folded) and "/" in token.folded
            else DifferenceKind.NUMBER
        )
    has_digit = PATTERNS["digit"].search(token.folded)
    if PATTERNS["gene"].fullmatch(token.text) or (
        PATTERNS["variant"].match(token.folded) and (has_digit or "." in token.folded)
    ):
        return DifferenceKind.GENE
    return DifferenceKind.NAME if has_digit or PATTERNS["uppercase_name"].fullmatch(token.text) else None


def classify_words(text: str) -> DifferenceKind | None:
    """Return the kind of the first number, unit, sign, name or critical word; or None."""
    return next(filter(None, map(_classify_token, tokenise(text))), None)


def _join_without_divisions(tokens: Iterable[Token]) -> str:
    """Join words without spaces, except between two numbers."""
    text = ""
    for token in tokens:
        text += f" {token.folded}" if text[-1:].isdigit() and token.folded[:1].isdigit() else token.folded
    return text


def _is_division_insignificant(quote_part: Sequence[Token], page_part: Sequence[Token]) -> bool:
    """Return True if all divisions between words are without meaning.

    These are divisions at a line break, hyphen or cell border, and next to a number or sign.
    """
    return all(
        right.has_loose_gap or not (left.folded[-1:].isalpha() and right.folded[:1].isalpha())
        for part in (quote_part, page_part)
        for left, right in pairwise(part)
    )


def _join_token_texts(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens)


# Misprints


def _is_misprint(quote_word: str, page_word: str, is_ocr_text: bool, is_known_word: IsWord) -> bool:
    """Return True if one of two words is a misprint of the other and no real word.

    The misprint is in the quote; on a page read by OCR, it may also be on the page.
    """
    if DifferenceKind.UNIT in (
        load_kind_by_word().get(page_word),
        load_kind_by_word().get(quote_word),
    ):  # the dictionary does not have all units: mmol, µmol, nmol
        return False
    if is_ocr_text and quote_word.isalpha() and is_known_word(quote_word, 1) and not is_known_word(page_word, 2):
        return not _has_term_changing_affix(quote_word, page_word) and _is_typical_misprint(
            page_word, quote_word, is_dictionary_word=is_known_word(quote_word, IMPOSSIBLE_USE_COUNT)
        )
    return (
        quote_word.isalpha()
        and page_word.isalpha()
        and quote_word not in load_kind_by_word()
        and not is_known_word(quote_word, 1)
        and not _has_term_changing_affix(quote_word, page_word)
        and _is_typical_misprint(
            quote_word, page_word, is_dictionary_word=is_known_word(page_word, IMPOSSIBLE_USE_COUNT)
        )
    )


def _is_typical_misprint(misprint: str, word: str, *, is_dictionary_word: bool) -> bool:
    """Return True if ``misprint`` differs from ``word`` as OCR or typing errors do.

    Such errors are confused letters that look alike, and a letter doubled, halved or dropped. A letter may be dropped
    only from a dictionary word: without a letter, an unknown term may be another term.
    """
    if min(len(misprint), len(word)) < _MIN_MISPRINT_LENGTH - 1:
        return False
    word_pairs = ((word, misprint), (_normalise_lookalikes(word), _normalise_lookalikes(misprint)))
    if word_pairs[1][0] == word_pairs[1][1]:
        return True
    max_edits = 1 if word in load_kind_by_word() or len(word) < _TWO_MISPRINTS_LENGTH else 2
    return any(
        len(edits := Levenshtein.editops(*word_pair)) <= max_edits
        and all(_is_typical_misprint_edit(edit, *word_pair, is_dictionary_word) for edit in edits)
        for word_pair in word_pairs
    )


def _is_typical_misprint_edit(edit: Editop, word: str, misprint: str, is_dictionary_word: bool) -> bool:
    word_index, misprint_index = edit.src_pos, edit.dest_pos
    if edit.tag == "replace":
        return frozenset((word[word_index], misprint[misprint_index])) in _CONFUSABLE_LETTERS
    if edit.tag == "delete":
        return (0 < word_index < len(word) - 1 and is_dictionary_word) or word[word_index] in (
            word[word_index - 1 : word_index],
            word[word_index + 1 : word_index + 2],
        )
    return misprint[misprint_index] in (
        misprint[max(misprint_index - 1, 0) : misprint_index],
        misprint[misprint_index + 1 : misprint_index + 2],
    )


def _normalise_lookalikes(word: str) -> str:
    for lookalike, replacement in _LOOKALIKE_PAIRS:
        word = word.replace(lookalike, replacement)
    return word.translate(_LOOKALIKE_TRANSLATION)


def _is_lookalike(left: str, right: str) -> bool:
    """Return True if OCR may have read one text as the other.

    They may differ in one character, or in two if one text has at least six characters.
    """
    return Levenshtein.distance(left, right) <= (1 if max(len(left), len(right)) < 6 else 2)


def _has_term_changing_affix(left: str, right: str) -> bool:
    """Return True if a prefix or ending makes two terms different (hypo-, hyper-)."""
    for shorter, longer in ((left, right), (right, left)):
        if longer.endswith(shorter) and longer.removesuffix(shorter) in _TERM_CHANGING_PREFIXES:
            return True
        for left_affix, right_affix in _OPPOSITE_PREFIXES:
            if shorter.startswith(left_affix) and longer == right_affix + shorter[len(left_affix) :]:
                return True
        for left_affix, right_affix in _CONFUSABLE_SUFFIXES:
            if shorter.endswith(left_affix) and longer == shorter[: -len(left_affix)] + right_affix:
                return True
    return False
