"""Check if a text is written like its document type, or only uses its words.

The act of a report is to state its own result; the act of a note is to tell of a person who was seen. An order asks
for a result, a leaflet explains results, a template leaves them blank, a message quotes them, an article or a novel is
about another person: they perform no act. Contract rulings 20 (b), 34 and 37.

The features are the rows of ``act_features.toml``, function words and patterns that show a text's register (none is a
title, a vendor or a word of the built-in model's lexicon), and the signs of ``second_opinion_types``. The weights are
learned by ``tests/benchmarks/act_learning.py``; nothing of the built-in model is used, so that the two can contradict
each other.
"""

import math
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import islice, pairwise
from operator import mul
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from evalkit.classification.findings import Finding, cut_quote_unless_identifying, iter_segment_primary_types
from evalkit.classification.offline.model_weights import (
    ACT_BIAS,
    EmbeddedModelWeights,
    TermWeights,
    TypeWeights,
    add_type_weights,
    load_embedded_weights,
)
from evalkit.classification.offline.second_opinion_boundaries import get_contained_types
from evalkit.classification.offline.second_opinion_types import (
    TYPE_SIGNS,
    TypeSign,
    count_type_signs,
    lower_ascii,
    measure_type_signs_on_pages,
)
from evalkit.classification.offline.text_genres import GenreMatch, find_text_genre
from evalkit.classification.offline.type_scoring import (
    compute_term_weight,
    find_weighted_terms_and_unknown_words,
    softmax,
)
from evalkit.classification.schema import REPORT_TYPES, ClassificationOutput, DocumentType, Segment
from evalkit.core.document_cache import cache_by_identity, cache_document_text
from evalkit.core.package_tables import load_package_table
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.furniture import get_body_text
from evalkit.errors import UsageError
from evalkit.issue import Issue, IssueSeverity

_WORD_PATTERN = re.compile(r"[a-z][a-z/]*(?:['’.-][a-z]+)*")
#: Shorter texts are counted as this many words, so that one word does not decide a short line.
_MIN_WORDS = 60


class WordFeature(NamedTuple):
    """Language feature that is the count of a set of words and word pairs."""

    name: str
    description: str
    """End of the sentence "The text …" about a text that has the words."""
    words: frozenset[str]
    """Single words, and pairs of words with a space between."""


class PatternFeature(NamedTuple):
    """Language feature that is the count of a pattern's matches."""

    name: str
    description: str
    pattern: re.Pattern[str]
    is_case_sensitive: bool
    """True if the pattern is matched against the original text instead of lower-case text."""


class ActFeatures(NamedTuple):
    """Checked rows of ``act_features.toml``, with indices for counting."""

    version: str
    word_features: tuple[WordFeature, ...]
    pattern_features: tuple[PatternFeature, ...]
    indices_by_word: dict[str, tuple[int, ...]]
    """Word or pair → positions in ``word_features`` of the features that count it."""
    first_words: frozenset[str]
    """First words of all word pairs."""

    @property
    def descriptions(self) -> dict[str, str]:
        """Feature name → phrase that completes "the text …" for a text with the feature."""
        own_features: tuple[WordFeature | PatternFeature, ...] = (*self.word_features, *self.pattern_features)
        return {feature.name: feature.description for feature in own_features} | {
            sign.name: f"has {sign.name}" for sign in TYPE_SIGNS
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all features in counting order: word features, patterns, type signs."""
        return (
            *(feature.name for feature in self.word_features),
            *(feature.name for feature in self.pattern_features),
            *(sign.name for sign in TYPE_SIGNS),
        )


class FeatureCounts(NamedTuple):
    """Number of words of a text, and its count of each feature."""

    word_count: int
    word_and_pattern_counts: tuple[int, ...]
    type_sign_counts: tuple[int, ...]


@cache
def load_act_features() -> ActFeatures:
    """Load ``act_features.toml``; cached."""
    rows = load_package_table("evalkit.classification.offline", "act_features.toml")
    word_features = tuple(
        WordFeature(row["name"], row["sign"], frozenset(word.replace("|", " ") for word in row["words"].split()))
        for row in rows["word"]
    )
    indices_by_word: dict[str, tuple[int, ...]] = {}
    for index, feature in enumerate(word_features):
        for word in feature.words:
            indices_by_word[word] = (*indices_by_word.get(word, ()), index)
    pattern_features = tuple(
        PatternFeature(
            row["name"], row["sign"], re.compile(row["expression"], re.MULTILINE), row.get("is_case_sensitive", False)
        )
        for row in rows["form"]
    )
    first_words = frozenset(word.partition(" ")[0] for word in indices_by_word if " " in word)
    return ActFeatures(rows["version"], word_features, pattern_features, indices_by_word, first_words)


@cache_document_text(1024)  # several checks ask about the same pages
def count_features(text: str) -> FeatureCounts:
    """Count each feature in a text, such as the body of a page; cached."""
    features = load_act_features()
    lowercase_text = lower_ascii(text)
    words = _WORD_PATTERN.findall(lowercase_text)
    counts = [0] * len(features.word_features)
    for word in words:
        for index in features.indices_by_word.get(word, ()):
            counts[index] += 1
    for first, second in pairwise(words):
        if first in features.first_words:
            for index in features.indices_by_word.get(f"{first} {second}", ()):
                counts[index] += 1
    counts += [
        len(feature.pattern.findall(text if feature.is_case_sensitive else lowercase_text))
        for feature in features.pattern_features
    ]
    return FeatureCounts(len(words), tuple(counts), count_type_signs(text))


def compute_log_feature_rates(counts_by_page: Sequence[FeatureCounts]) -> list[float]:
    """Return ln(1 + count per hundred words) of each feature over these pages.

    In the order of ``ActFeatures.names``.
    """
    scale = 100 / max(sum(counts.word_count for counts in counts_by_page), _MIN_WORDS)
    columns = zip(
        *((*counts.word_and_pattern_counts, *counts.type_sign_counts) for counts in counts_by_page), strict=True
    )
    return [math.log1p(sum(column) * scale) for column in columns]


def iter_feature_spans(name: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the places (start, end) where a text shows the named feature, in order.

    Matches of white space alone are left out.
    """
    features = load_act_features()
    all_features: tuple[WordFeature | PatternFeature | TypeSign, ...] = (
        *features.word_features,
        *features.pattern_features,
        *TYPE_SIGNS,
    )
    feature = next(feature for feature in all_features if feature.name == name)
    if isinstance(feature, WordFeature):
        yield from _iter_word_spans(feature.words, lower_ascii(text))
        return
    is_for_lowercase = isinstance(feature, PatternFeature) and not feature.is_case_sensitive
    matches = feature.pattern.finditer(lower_ascii(text) if is_for_lowercase else text)
    yield from (match.span() for match in matches if match.group().strip())


def _iter_word_spans(words: AbstractSet[str], lowercase_text: str) -> Iterator[tuple[int, int]]:
    previous: re.Match[str] | None = None
    for match in _WORD_PATTERN.finditer(lowercase_text):
        if match.group() in words:
            yield match.span()
        elif previous and f"{previous.group()} {match.group()}" in words:
            yield previous.start(), match.end()
        previous = match


NO_ACT_CODE: Final = "V2-NO-ACT"
ACT_IN_OTHER_CODE: Final = "V2-ACT-IN-OTHER"
WEIGHTS_FILE = "act_weights.json"

#: Minimum number of words of a segment whose act is judged.
MIN_WORDS_TO_JUDGE = 25

#: Minimum probability of an act that counts as performed.
_PERFORMED_PROBABILITY = 0.5

#: Maximum number of first pages that are tried as the report's own, if text of other types follows it.
MAX_OWN_PAGES = 12
#: Maximum number of places of a feature that are tried as a quote; a place that names the patient cannot be shown.
_MAX_TRIED_SPANS = 5
#: Limit of a feature's standard score, so that an extreme count weighs no more than the extremes of the training texts.
MAX_STANDARD_SCORE = 2.5

ACT_DESCRIPTIONS = {
    DocumentType.CLINICAL_NOTE: "an account, an examination or a plan of a person who was seen",
    DocumentType.PATHOLOGY_REPORT: "a pathologist's own finding or diagnosis",
    DocumentType.GENOMIC_REPORT: "a laboratory's own genetic result with its meaning",
    DocumentType.RADIOLOGY_REPORT: "a radiologist's own finding or impression",
}

_Probability = Annotated[float, Field(ge=0, le=1)]


class ActWeights(TermWeights):
    """Checked contents of ``act_weights.json``.

    A ``TypeWeights`` has one number for each type, in the order of ``FIVE_TYPES``.
    """

    schema_version: Literal[1]
    version: str = Field(min_length=1)
    """First digits of the hash of all weights."""
    learned_from: dict[str, int]
    """Document type → number of training texts."""
    features: dict[str, tuple[float, float, TypeWeights]]
    """Feature → mean and standard deviation in the training texts, weights of the types."""
    bias: TypeWeights
    temperature: Annotated[float, Field(gt=0)]
    min_claimed_probability: _Probability
    """A claimed type is contradicted if its act is less probable than this."""
    max_act_probability: _Probability
    """The type Other is contradicted if an act is performed with at least this probability."""


def load_act_weights() -> ActWeights:
    """Return the weights in use: evalkit's own, or a site's adjusted weights."""
    site_weights = load_embedded_weights()
    return (
        _adjust_weights(load_shipped_act_weights(), site_weights)
        if site_weights.act_adjustments
        else load_shipped_act_weights()
    )


@cache_by_identity
def _adjust_weights(weights: ActWeights, site_weights: EmbeddedModelWeights) -> ActWeights:
    features, bias = dict(weights.features), weights.bias
    for name, added in site_weights.act_adjustments.items():
        if name == ACT_BIAS:
            bias = add_type_weights(bias, added)
        elif name in features:
            mean, deviation, row = features[name]
            features[name] = mean, deviation, add_type_weights(row, added)
    return weights.model_copy(update={"features": features, "bias": bias})


@cache
def load_shipped_act_weights() -> ActWeights:
    """Load ``act_weights.json``, which comes with evalkit; cached.

    UsageError if its features are not those of ``act_features.toml``.
    """
    weights = ActWeights.model_validate_json(
        (files("evalkit.classification.offline") / WEIGHTS_FILE).read_text("utf-8")
    )
    if tuple(weights.features) != load_act_features().names:
        raise UsageError(
            f"the weights in {WEIGHTS_FILE} do not match the features in act_features.toml",
            code="WEIGHTS-ENTRY",
            remedy="Reinstall evalkit to restore both files, or train the weights again (tests/benchmarks/act_learning.py).",
        )
    return weights


@dataclass(frozen=True)
class ActReading:
    """Probability of each type for some pages, judged by how the text is written."""

    pages: Sequence[Page]
    weights: ActWeights

    @cached_property
    def standard_scores(self) -> list[float]:
        """Standard score of each feature, in the order of ``ActWeights.features``."""
        rates = compute_log_feature_rates([count_features(get_body_text(page)) for page in self.pages])
        return [
            max(-MAX_STANDARD_SCORE, min(MAX_STANDARD_SCORE, (rate - mean) / deviation))
            for rate, (mean, deviation, _) in zip(rates, self.weights.features.values(), strict=True)
        ]

    @cached_property
    def probabilities(self) -> dict[DocumentType, float]:
        """Document type → probability that the pages are written like it; sum 1.

        The probability of Other is that no act is performed.
        """
        terms = dict.fromkeys(term for page in self.pages for term in _find_weighted_terms(page, self.weights))
        factors = [1.0] + [compute_term_weight(len(terms))] * len(terms) + self.standard_scores
        rows = [self.weights.bias, *map(self.weights.weights_by_term.__getitem__, terms)]
        rows += (row for _, _, row in self.weights.features.values())
        sums = [sum(map(mul, factors, column)) for column in zip(*rows, strict=True)]
        return dict(zip(FIVE_TYPES, softmax([total / self.weights.temperature for total in sums]), strict=True))

    def compute_act_probability(
        self, kind: DocumentType, contained_types: AbstractSet[DocumentType] = frozenset()
    ) -> float:
        """Compute the probability that the pages, or some, are written like a type.

        The highest of several readings. A note may perform its act on one page, so each page is read alone too. A report whose
        answer claims ``contained_types`` is also read by its first pages alone, if the remaining pages read like one of these
        types.
        """
        readings = [self]
        if kind is DocumentType.CLINICAL_NOTE and len(self.pages) > 1:
            readings += [_create_reading(self.weights, page) for page in self.pages]
        elif kind in REPORT_TYPES and contained_types:
            readings += (
                _create_reading(self.weights, *self.pages[:count])
                for count in range(1, min(len(self.pages), MAX_OWN_PAGES + 1))
                if _create_reading(self.weights, *self.pages[count:]).likeliest_type in contained_types
            )
        return max(reading.probabilities[kind] for reading in readings)

    def contradicts(self, claimed_type: DocumentType, contained_types: AbstractSet[DocumentType] = frozenset()) -> bool:
        """Return True if the pages are not written like the claimed type.

        They do so if they do not perform the type's act, or if they perform an act although the claimed type is Other.
        """
        if claimed_type is DocumentType.OTHER:
            return 1 - self.probabilities[DocumentType.OTHER] >= self.weights.max_act_probability
        return self.compute_act_probability(claimed_type, contained_types) < self.weights.min_claimed_probability

    @property
    def likeliest_type(self) -> DocumentType:
        """Type that the pages most probably are written like."""
        return max(self.probabilities, key=lambda kind: self.probabilities[kind])

    def rank_feature_names(self, kind: DocumentType, instead_of: DocumentType) -> list[str]:
        """Return the features that speak for ``kind`` against another type, best first.

        Only features that are more frequent in the text than in the mean of the training texts.
        """
        first, second = (list(FIVE_TYPES).index(compared_type) for compared_type in (kind, instead_of))
        contributions = {
            name: score * (row[first] - row[second])
            for score, (name, (_, _, row)) in zip(self.standard_scores, self.weights.features.items(), strict=True)
            if score > 0
        }
        return sorted(
            (name for name in contributions if contributions[name] > 0), key=lambda name: -contributions[name]
        )


@cache_by_identity  # several checks read the same pages
def _create_reading(weights: ActWeights, *pages: Page) -> ActReading:
    return ActReading(pages, weights)


@cache_by_identity  # a page is read alone and with others
def _find_weighted_terms(page: Page, weights: ActWeights) -> tuple[str, ...]:
    return find_weighted_terms_and_unknown_words(get_body_text(page), (), weights)[0]


def read_act_of_segment(
    segment: Segment, bundle: DocumentBundle, weights: ActWeights | None = None
) -> ActReading | None:
    """Judge which type a segment is written like; None if it has too little text."""
    return read_act_of_pages(list(bundle.iter_pages(segment.start_page, segment.end_page)), weights)


def read_act_of_pages(pages: Sequence[Page], weights: ActWeights | None = None) -> ActReading | None:
    """Judge which type the pages are written like; None if they have little text."""
    pages = [page for page in pages if page.text.strip()]
    if sum(len(get_body_text(page).split()) for page in pages) < MIN_WORDS_TO_JUDGE:
        return None
    return _create_reading(weights or load_act_weights(), *pages)


def find_contradicted_types(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """Find segments whose text is written like another document type.

    Signs alone may mislead (a note can have rows of values), so the claimed type's act must be improbable too.
    """
    for segment, kind in iter_segment_primary_types(answer):
        if kind not in FIVE_TYPES:
            continue
        pages = list(bundle.iter_pages(segment.start_page, segment.end_page))
        forms = measure_type_signs_on_pages(pages)
        contradicting_type = forms.find_contradicting_type(kind)
        reading = read_act_of_segment(segment, bundle)
        if contradicting_type is None or (
            reading and reading.compute_act_probability(kind, get_contained_types(segment)) >= _PERFORMED_PROBABILITY
        ):
            continue
        sign, page, quote = forms.find_strongest_sign_match(contradicting_type, pages)
        description = "routine lab values" if "analytes" in sign.name else sign.name
        yield Finding(
            reasoning=f"The text has {sign.name}, the form of {contradicting_type.value}; forms of {kind.value} are rare or missing.",
            severity=IssueSeverity.MAJOR,
            message=f"Segment {segment.segment_index} text contains {description} inconsistent with "
            f"{kind.value} PRIMARY classification",
            segment_index=segment.segment_index,
            document_type=kind.value,
            page=page.page_num,
            quote=quote,
            suggested_fix=f"Check whether the segment is {contradicting_type.value}",
        )


def find_act_issues(
    classification: ClassificationOutput, bundle: DocumentBundle, weights: ActWeights | None = None
) -> Iterator[Issue]:
    """Find segments not written like their type, or "Other" written like a type.

    V2-NO-ACT if the pages are nobody's record or do not perform the type's act, V2-ACT-IN-OTHER if pages called Other perform an act.
    """
    for segment in classification.segments:
        if segment.dominant_type is None or segment.dominant_type not in FIVE_TYPES:
            continue
        pages = list(bundle.iter_pages(segment.start_page, segment.end_page))
        if segment.dominant_type is not DocumentType.OTHER and (genre := find_text_genre(pages)):
            yield _build_genre_issue(segment, segment.dominant_type, genre)
            continue
        reading = read_act_of_pages(pages, weights)
        if reading is None:
            continue
        if reading.contradicts(segment.dominant_type, get_contained_types(segment)):
            is_other = segment.dominant_type is DocumentType.OTHER
            yield (
                _build_act_in_other_issue(segment, reading)
                if is_other
                else _build_no_act_issue(segment, segment.dominant_type, reading)
            )


def _build_genre_issue(segment: Segment, claimed_type: DocumentType, genre: GenreMatch) -> Issue:
    return Issue.create(
        "V2",
        NO_ACT_CODE,
        IssueSeverity.MAJOR,
        f"Segment {segment.segment_index} is called {claimed_type.value}, but the text {genre.description}",
        location=f"segment {segment.segment_index} → dominant_type",
        suggested_fix=f"Check whether the segment is a {claimed_type.value}",
        segment_index=segment.segment_index,
        document_type=claimed_type.value,
        page=genre.page.page_num,
        quote=genre.quote,
        facts={"pages": segment.page_range_text, "sign": genre.description},
    )


def _build_act_in_other_issue(segment: Segment, reading: ActReading) -> Issue:
    kind = max(ACT_DESCRIPTIONS, key=lambda act_type: reading.probabilities[act_type])
    page, quote, sign = _find_strongest_quotable_sign(reading, kind, DocumentType.OTHER)
    return Issue.create(
        "V2",
        ACT_IN_OTHER_CODE,
        IssueSeverity.MAJOR,
        f"Segment {segment.segment_index} is called Other, but it reads like {ACT_DESCRIPTIONS[kind]}{sign}",
        location=f"segment {segment.segment_index} → dominant_type",
        suggested_fix=f"Check whether the segment is a {kind.value}",
        segment_index=segment.segment_index,
        document_type=DocumentType.OTHER.value,
        page=page.page_num,
        quote=quote,
        facts={"pages": segment.page_range_text, "other": kind.value, "parts": ACT_DESCRIPTIONS[kind]},
    )


def _build_no_act_issue(segment: Segment, claimed_type: DocumentType, reading: ActReading) -> Issue:
    likeliest_type = reading.likeliest_type
    page, quote, sign = _find_strongest_quotable_sign(reading, likeliest_type, claimed_type)
    is_plain = likeliest_type in (DocumentType.OTHER, claimed_type)
    instead = "" if is_plain else f"; it reads like {ACT_DESCRIPTIONS[likeliest_type]}"
    return Issue.create(
        "V2",
        NO_ACT_CODE,
        IssueSeverity.MAJOR,
        f"Segment {segment.segment_index} is called {claimed_type.value}, but {ACT_DESCRIPTIONS[claimed_type]} "
        f"was {'hardly' if likeliest_type is claimed_type else 'not'} found in it{instead}{sign}",
        location=f"segment {segment.segment_index} → dominant_type",
        suggested_fix=f"Check whether the segment is a {claimed_type.value}",
        segment_index=segment.segment_index,
        document_type=claimed_type.value,
        page=page.page_num,
        quote=quote,
        facts={"pages": segment.page_range_text, "parts": ACT_DESCRIPTIONS[claimed_type]}
        | ({} if is_plain else {"other": likeliest_type.value}),
    )


def _find_strongest_quotable_sign(
    reading: ActReading, kind: DocumentType, instead_of: DocumentType
) -> tuple[Page, str | None, str]:
    for name in reading.rank_feature_names(kind, instead_of):
        for page in reading.pages:
            text = get_body_text(page)
            for start, end in islice(iter_feature_spans(name, text), _MAX_TRIED_SPANS):
                if quote := cut_quote_unless_identifying(page, text, start, end):
                    return page, quote, f": the text {load_act_features().descriptions[name]}"
    return reading.pages[0], None, ""
