"""De-identification of texts by patterns: names, dates, numbers, places.

The patterns and words are in ``identifiers.toml``. Three steps: (1) Mask values behind labels ("Patient: …", "MRN …")
and forms that need no label (dates, telephone numbers, e-mail addresses, "Dr. …", "…, MD"). (2) Mask each name or
number that is labelled anywhere in the document wherever else it appears: on other pages, in answers and in reviewers'
notes. (3) Replace the names of the output folder's documents and reviewers by pseudonyms, and mask the identifying
words of these names.

Kept on purpose: years alone, ages up to 89, times of the day, names of hospitals and laboratories.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, pairwise
from typing import Any

from evalkit.classification.offline.lexicon import load_lexicon
from evalkit.classification.patient_keys import KeyedClassification
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.vendors import load_vendors
from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_by, split_into_runs
from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import SUFFIXES
from evalkit.evaluation.ground_truth_table import GroundTruthDocument
from evalkit.review.ground_truth import SIMULATED_PREFIX, is_simulated_reviewer

# --- what identifiers look like -------------------------------------------------------------------------------------


_TABLES = load_package_table("evalkit.evaluation", "identifiers.toml")
_FORMS = {
    **_TABLES["forms"],
    "file_suffix": f"(?:{'|'.join(map(re.escape, SUFFIXES))})",
}


def _expand_forms(pattern: str | Sequence[str]) -> str:
    """Join a pattern's lines, and replace each ``(?&name)`` by that form."""
    return re.sub(r"\(\?&(\w+)\)", lambda reference: _expand_forms(_FORMS[reference[1]]), "".join(pattern))


_MASK_PATTERNS = tuple(
    (mask, re.compile(_expand_forms(pattern), re.IGNORECASE)) for mask, pattern in _TABLES["masks"]["rows"]
)
_DEGREE = _expand_forms("(?&degree)")
_PARTICLES_BEFORE_NAME = re.compile(_expand_forms(r"(?<!\w)(?:(?&name_particles))\Z"), re.IGNORECASE)
#: Patterns of medical terms by kind.
MEDICAL_TERM_PATTERNS = {
    kind: re.compile(_expand_forms(pattern), re.IGNORECASE) for kind, pattern in _TABLES["medical_terms"].items()
}
_NON_NAME_WORDS, _FILE_NAME_WORDS, _WORDS_THAT_ARE_ALSO_NAMES = (
    frozenset(_TABLES["words"][name].split()) for name in ("non_names", "file_names", "also_names")
)
#: Words with a typical medical or technical ending ("-ectomy", "-graphy"), which are no names.
_TERM_SUFFIX_PATTERN = re.compile(r"\w{3,}(?:tions?|logy|graphy|scopy|ectomy|ical|ated|ized)")


@dataclass(frozen=True)
class KnownIdentifiers:
    """Names and numbers known to identify a person, masked wherever they occur."""

    names: frozenset[str] = frozenset()
    """Full names, as written in the document."""
    numbers: frozenset[str] = frozenset()
    """Record numbers and other labelled numbers, as written in the document."""
    folder_words: frozenset[str] = frozenset()
    """Identifying words of the output folder's file and reviewer names, in lower case
    (``PseudonymMap.folder_words``)."""

    @classmethod
    def from_bundle(cls, bundle: DocumentBundle) -> KnownIdentifiers:
        """Collect the names and numbers that are labelled anywhere in a document."""
        labelled_identifiers = find_labelled_identifiers([page.text for page in bundle.pages])
        page_identifiers = [identifier for page in bundle.pages for identifier in page.identifiers]
        return cls(
            names=labelled_identifiers.names
            | {identifier.value for identifier in page_identifiers if identifier.kind == "patient"},
            numbers=labelled_identifiers.numbers
            | {identifier.value for identifier in page_identifiers if identifier.kind == "mrn"},
        )

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """Pattern of all names and numbers (groups ``name``, ``number``); None if empty."""
        name_parts = {name_part for name in self.names for name_part in _iterate_name_parts(name)}
        spellings = {
            spelling
            for name_part in name_parts
            for spelling in (name_part, name_part.upper(), name_part.title(), name_part.capitalize())
        }
        alternatives = []
        if spellings:
            any_spelling = "|".join(
                re.escape(spelling) for spelling in sorted(spellings, key=lambda form: (-len(form), form))
            )
            any_case = "|".join(
                re.escape(name_part) for name_part in sorted(name_parts, key=lambda part: (-len(part), part))
            )
            # In lower case, only two name parts in a row match: "may" and "long" alone are ordinary words.
            alternatives.append(
                rf"(?P<name>(?<![^\W_])(?:{any_spelling})(?:[ ](?:{any_spelling})|,[ ]?(?:{any_spelling})|[ ]{_FORMS['capital']}\.(?=[ ](?:{any_spelling})))*(?![^\W_])"
                rf"|(?<![^\W_])(?i:(?:{any_case})[ ,]+(?:\w\.?[ ])?(?:{any_case}))(?![^\W_]))"
            )
        numbers = sorted(self.numbers, key=lambda number: (-len(number), number))
        if numbers:
            alternatives.append(rf"(?P<number>(?<!\w)(?i:{'|'.join(re.escape(number) for number in numbers)})(?!\w))")
        return re.compile("|".join(alternatives)) if alternatives else None


NO_IDENTIFIERS = KnownIdentifiers()


def find_labelled_identifiers(texts: Iterable[str]) -> KnownIdentifiers:
    """Collect names with a label, title or degree, and labelled numbers, in texts.

    Numbers with fewer than four digits are left out.
    """
    masked_values = [(mask, text[start:end]) for text in texts for mask, start, end in _find_pattern_matches(text)]
    numbers = {value for mask, value in masked_values if mask == "ID" and _count_digits(value) >= 4}
    return KnownIdentifiers(frozenset(value for mask, value in masked_values if mask == "NAME"), frozenset(numbers))


def _iterate_name_parts(name: str) -> Iterator[str]:
    """Yield a name's identifying words, without initials, titles and form words."""
    for name_part in re.findall(r"[^\W\d_](?:[\w'’-]*\w)?", name):
        if (
            len(name_part) > 1
            and name_part[0].isupper()
            and name_part.casefold() not in _NON_NAME_WORDS
            and not re.fullmatch(_DEGREE, name_part)
        ):
            yield name_part


def _count_digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


@cache_document_text(64)  # each page is searched twice: for the names of the whole document, then to mask the page
def _find_pattern_matches(text: str) -> tuple[tuple[str, int, int], ...]:
    return tuple(
        (mask, *match.span("v" if "v" in pattern.groupindex else 0))
        for mask, pattern in _MASK_PATTERNS
        for match in pattern.finditer(text)
    )


def find_mask_spans(text: str, known_identifiers: KnownIdentifiers = NO_IDENTIFIERS) -> list[tuple[int, int, str]]:
    """List the spans to mask: (start, exclusive end, mask), sorted, not overlapping."""
    known_matches = [] if known_identifiers.pattern is None else [
        ("NAME" if match.lastgroup == "name" else "ID", _find_name_start(text, match.start()), match.end())
        for match in known_identifiers.pattern.finditer(text)
    ]  # fmt: skip
    ranked_spans = sorted(
        (start, end, rank, mask)
        for rank, (mask, start, end) in enumerate(
            chain(
                _find_pattern_matches(text),
                known_matches,
                _iterate_folder_word_masks_with_spans(known_identifiers.folder_words, text),
            )
        )
        if end > start
    )
    overlapping = split_into_runs(ranked_spans, lambda run, span: span[0] < max(end for _, end, *_ in run))
    return [
        (run[0][0], max(end for _, end, *_ in run), min((rank, mask) for *_, rank, mask in run)[1])
        for run in overlapping
    ]


def _iterate_folder_word_masks_with_spans(folder_words: Container[str], text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (mask, start, end) for each word that occurs in a file or reviewer name."""
    for token in _TOKEN_PATTERN.finditer(text):
        if token[0].startswith(_DOCUMENT_PREFIX):
            continue
        if token[0].casefold() in folder_words and _is_written_as_name(token[0]):
            yield ("ID" if _count_digits(token[0]) else "NAME"), token.start(), token.end()
        elif not token[0].isalpha():
            for part in _LETTERS_PATTERN.finditer(token[0]):
                if part[0].casefold() in folder_words and _is_written_as_name(part[0]):
                    yield "NAME", token.start() + part.start(), token.start() + part.end()


def _is_written_as_name(word: str) -> bool:
    return word[0].isupper() or (len(word) > 2 and word.casefold() not in _WORDS_THAT_ARE_ALSO_NAMES)


def _find_name_start(text: str, start: int) -> int:
    """Return the start of a name, including particles before it ("de la" Fontaine)."""
    particles = _PARTICLES_BEFORE_NAME.search(text, max(start - 12, 0), start)
    return particles.start() if particles else start


def mask_text(text: str, known_identifiers: KnownIdentifiers = NO_IDENTIFIERS) -> str:
    """Return the text with identifiers replaced by masks such as ``[NAME]``.

    Further masks: ``[PHONE]``, ``[EMAIL]``, ``[URL]``, ``[ADDRESS]``, ``[ID]``, ``[AGE]``. ``known_identifiers`` are
    the names and numbers labelled on any page of the document; they are masked too.

    >>> mask_text("Patient: Helen Marsh  DOB: 03/22/1971. Mrs. Marsh is 66 years old, BRCA1 c.5266dupC, 12.5 mg.")
    'Patient: [NAME]  DOB: [DATE]. Mrs. [NAME] is 66 years old, BRCA1 c.5266dupC, 12.5 mg.'
    """
    text_parts, position = [], 0
    for start, end, mask in find_mask_spans(text, known_identifiers):
        text_parts += [text[position:start], f"[{mask}]"]
        position = end
    return "".join([*text_parts, text[position:]])


# --- records --------------------------------------------------------------------------------------------------------


_DOCUMENT_PREFIX = "doc_"


def create_document_pseudonym(sha256: str) -> str:
    """Create a document's pseudonym: ``doc_`` and 12 digits of the PDF's hash."""
    return f"{_DOCUMENT_PREFIX}{sha256[:12]}"


def assign_reviewer_pseudonyms(reviewers: Iterable[str]) -> dict[str, str]:
    """Return a pseudonym (``reviewer_1`` …) for each reviewer, in order of hashes.

    Simulated reviewers (programs) keep their prefix.
    """
    sorted_reviewers = sorted(
        set(reviewers), key=lambda name: hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    )
    return {
        reviewer: f"{SIMULATED_PREFIX if is_simulated_reviewer(reviewer) else ''}reviewer_{number}"
        for number, reviewer in enumerate(sorted_reviewers, 1)
    }


#: A run of letters and digits, or a document's pseudonym as a whole.
_TOKEN_PATTERN = re.compile(rf"{_DOCUMENT_PREFIX}[0-9a-f]{{12}}(?![^\W_])|[^\W_]+")
_LETTERS_PATTERN = re.compile(r"[^\W\d_]+")
_FILE_ENDING = re.compile(rf"(?:{'|'.join(map(re.escape, SUFFIXES))})(?![^\W_])", re.IGNORECASE)
#: Maximum number of characters between two words of a name, such as ", " or " (".
_MAX_NAME_GAP = 3


@dataclass(frozen=True)
class NamedDocument:
    """The names by which notes may mention a document of the output folder."""

    doc_id: str
    filename: str
    """File name of the PDF, with its extension."""
    sha256: str | None
    """SHA-256 of the PDF; None if neither ground truth, index nor result records it."""


@dataclass(frozen=True)
class _NameForm:
    """One spelling of a document's or reviewer's name, with its pseudonym."""

    words: tuple[str, ...]
    spelling: str
    pseudonym: str
    is_file: bool

    @cached_property
    def is_identifying(self) -> bool:
        """True if at least one word identifies the file or person; False for "ct_scan"."""
        return any(word not in _WORDS_THAT_ARE_ALSO_NAMES for word in _iterate_identifying_words(self.spelling))

    def is_name_reference(self, matched_text: str, *, has_file_ending: bool) -> bool:
        """Return True if the matched words mean this file or reviewer, not ordinary words."""
        if self.is_identifying or (has_file_ending and self.is_file):
            return True
        if not self.is_file:  # the reviewer "analyst" is not meant by "Analyst": the letter case must match
            return len(matched_text) > 1 and matched_text == self.spelling
        is_code = (
            not matched_text.isalpha()
            and not matched_text.isdigit()
            and len(matched_text) > 3
            and matched_text.isalnum()
        )
        return matched_text.casefold() == self.spelling.casefold() and (
            "_" in matched_text or (is_code and not _is_medical_term(matched_text))
        )


class PseudonymMap:
    """Pseudonyms for an output folder's documents and reviewers.

    Names are found in any letter case, with any separators between their words, and with or without the extension
    ``.pdf``. A name that consists of ordinary words only is found only if written exactly the same.
    """

    def __init__(self, documents: Iterable[NamedDocument], reviewers: Iterable[str]) -> None:
        named_documents = list(documents)
        self.reviewer_pseudonyms = assign_reviewer_pseudonyms(reviewers)
        """Reviewer's name → pseudonym."""
        self.document_pseudonyms = {
            named_document.doc_id: create_document_pseudonym(named_document.sha256)
            if named_document.sha256
            else "[NAME]"
            for named_document in named_documents
        }
        """doc_id → pseudonym; ``[NAME]`` if the PDF's hash is unknown."""
        name_forms = {
            _NameForm(_fold_name_words(name), name, pseudonym, is_file=False)
            for name, pseudonym in self.reviewer_pseudonyms.items()
        }
        for named_document in named_documents:
            for name in (named_document.doc_id, _FILE_ENDING.sub("", named_document.filename)):
                name_forms.add(
                    _NameForm(
                        _fold_name_words(name), name, self.document_pseudonyms[named_document.doc_id], is_file=True
                    )
                )
        sorted_forms = sorted(name_forms, key=lambda form: (-len(form.words), form.spelling, form.pseudonym))
        self._forms_by_first_word = group_by((form for form in sorted_forms if form.words), lambda form: form.words[0])
        identifying_names = (
            name_form.spelling
            for name_form in name_forms
            if name_form.is_file or not is_simulated_reviewer(name_form.spelling)
        )
        self.folder_words = frozenset(word for name in identifying_names for word in _iterate_identifying_words(name))
        """Identifying words of all file and reviewer names, in lower case, for ``KnownIdentifiers.folder_words``."""

    def pseudonymise_text(self, text: str) -> str:
        """Return the text with all documents' and reviewers' names replaced by pseudonyms."""
        tokens = list(_TOKEN_PATTERN.finditer(text))
        folded_tokens = [token[0].casefold() for token in tokens]
        text_parts, position, token_index = [], 0, 0
        while token_index < len(tokens):
            replacement = next(self._iterate_pseudonyms_at(text, tokens, folded_tokens, token_index), None)
            if replacement is None:
                token_index += 1
                continue
            pseudonym, end, token_count = replacement
            text_parts += [text[position : tokens[token_index].start()], pseudonym]
            position, token_index = end, token_index + token_count
            while token_index < len(tokens) and tokens[token_index].start() < end:  # skip the file extension
                token_index += 1
        return "".join([*text_parts, text[position:]])

    def _iterate_pseudonyms_at(
        self, text: str, tokens: Sequence[re.Match[str]], folded_tokens: Sequence[str], token_index: int
    ) -> Iterator[tuple[str, int, int]]:
        """Yield the names that begin at a token, longest first.

        Each is a tuple of pseudonym, end position in the text and number of tokens.
        """
        for name_form in self._forms_by_first_word.get(folded_tokens[token_index], ()):
            name_tokens = tokens[token_index : token_index + len(name_form.words)]
            if tuple(folded_tokens[token_index : token_index + len(name_form.words)]) != name_form.words:
                continue
            if any(next_token.start() - token.end() > _MAX_NAME_GAP for token, next_token in pairwise(name_tokens)):
                continue
            start, end = name_tokens[0].start(), name_tokens[-1].end()
            ending_match = _FILE_ENDING.match(text, end)
            if name_form.is_name_reference(text[start:end], has_file_ending=ending_match is not None):
                yield name_form.pseudonym, ending_match.end() if ending_match else end, len(name_tokens)


def _fold_name_words(name: str) -> tuple[str, ...]:
    """Return a name's words in lower case, with composed (NFC) accents."""
    return tuple(token[0].casefold() for token in _TOKEN_PATTERN.finditer(unicodedata.normalize("NFC", name)))


def _iterate_identifying_words(name: str) -> Iterator[str]:
    """Yield a name's identifying words, without ordinary words and short numbers.

    Words are in lower case.
    """
    for token in _fold_name_words(name):
        if _count_digits(token) > (4 if token.isdigit() else 3):
            yield token
        elif not _is_medical_term(token):
            yield from (
                letters
                for letters in _LETTERS_PATTERN.findall(token)
                if len(letters) > 1 and not _is_ordinary_word(letters)
            )


def _is_ordinary_word(word: str) -> bool:
    return word not in _WORDS_THAT_ARE_ALSO_NAMES and (
        bool({word, word.removesuffix("s")} & _load_ordinary_words())
        or _TERM_SUFFIX_PATTERN.fullmatch(word) is not None
    )


@cache
def _load_ordinary_words() -> frozenset[str]:
    """Load words that identify nobody: of file names, forms, types and vendors."""
    groups = (chain(group.phrases, group.symbols) for group in load_lexicon().groups)
    vendor_names = ((vendor.name, *vendor.names, *vendor.short_names) for vendor in load_vendors())
    joined_text = " ".join(chain.from_iterable(chain(groups, vendor_names)))
    return _NON_NAME_WORDS | _FILE_NAME_WORDS | {word.casefold() for word in _LETTERS_PATTERN.findall(joined_text)}


def _is_medical_term(word: str) -> bool:
    return any(pattern.fullmatch(word) for pattern in MEDICAL_TERM_PATTERNS.values())


def deidentify_document(
    document: GroundTruthDocument, known_identifiers: KnownIdentifiers, pseudonym_map: PseudonymMap
) -> GroundTruthDocument:
    """Return a copy of a record with pseudonyms and with its free text masked.

    ``known_identifiers`` are those of the record's document. ``pseudonym_map`` covers the whole output folder, because
    notes may mention other documents. KeyError if the record's document or a reviewer has no pseudonym.
    """
    record = document.record

    def redact(text: str) -> str:
        return mask_text(pseudonym_map.pseudonymise_text(text), known_identifiers)

    redacted_record = record.model_copy(
        update={
            "doc_id": pseudonym_map.document_pseudonyms[record.doc_id],
            "ground_truth_classification": _redact_classification(record.ground_truth_classification, redact),
            "correction_notes": redact(record.correction_notes),
            "reviewer": record.reviewer and pseudonym_map.reviewer_pseudonyms[record.reviewer],
        }
    )
    answer_reviewers = tuple(pseudonym_map.reviewer_pseudonyms[reviewer] for reviewer in document.answer_reviewers)
    return replace(document, record=redacted_record, answer_reviewers=answer_reviewers)


def _redact_classification(classification: ClassificationOutput, redact: Callable[[str], str]) -> KeyedClassification:
    answer_json = classification.to_json()
    for segment in answer_json["segments"]:
        segment["reasoning"] = redact(segment["reasoning"])
        for presence in segment["segment_composition"]:
            for evidence in presence["top_evidence"]:
                evidence["snippet"] = redact(evidence["snippet"])
                evidence["anchors_found"] = [redact(anchor) for anchor in evidence["anchors_found"]]
    answer_json["vendor_signals"] = [redact(signal) for signal in answer_json["vendor_signals"]]
    answer_json["self_evaluation"] = _redact_json(answer_json["self_evaluation"], redact)
    return KeyedClassification.model_validate(answer_json)


#: A number of five or more digits: in free-form JSON any such number may be a record number.
_LONG_NUMBER_PATTERN = re.compile(r"(?<![\w.,-])\d{5,}(?![\w-]|[.,]\d)")
_MIN_IDENTIFYING_NUMBER = 10_000


def _redact_json(json_value: Any, redact: Callable[[str], str]) -> Any:
    """Redact every text and key of a JSON value; mask numbers of five or more digits."""
    if isinstance(json_value, str):
        return _LONG_NUMBER_PATTERN.sub("[ID]", redact(json_value))
    if isinstance(json_value, list):
        return [_redact_json(member, redact) for member in json_value]
    if isinstance(json_value, dict):
        return {_redact_json(key, redact): _redact_json(member, redact) for key, member in json_value.items()}
    if (
        isinstance(json_value, int | float)
        and abs(json_value) >= _MIN_IDENTIFYING_NUMBER
        and (isinstance(json_value, int) or json_value.is_integer())
    ):
        return "[ID]"
    return json_value
