"""Conversion of answers to and from Label Studio's regions and choices.

The labelling config is ``label_studio.xml.j2``. Pages are the pictures of one multi-page image: ``item_index`` counts
from 0. Each document is stated by the type that is chosen on its first page, so that documents neither overlap nor leave
pages out. Boxes are percent of the page.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import cos, radians, sin
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from evalkit.classification.schema import ClassificationOutput, DocumentType, ReviewedEvidence
from evalkit.core.records import DiscreetModel, describe_first_error
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused
from evalkit.grounding import QuoteLocator
from evalkit.issue import PageBox
from evalkit.review.draft import FLAG_KINDS, ExpertQuote, FlagKind, SegmentFlag
from evalkit.review.gapless_segments import SegmentDraft, fit_segments_to_file

#: Prefixes of the ids of results, by which an unchanged copy is recognised when it comes back.
ANSWER_PREFIX, TRUTH_PREFIX = "evalkit-answer", "evalkit-truth"
#: The choice on the first page of a document whose type the program could not tell.
NO_TYPE = "type not known"
UNDETERMINABLE = "nobody can tell"
#: The words of the screen for what may be wrong with a document apart from its type.
WORDS_BY_FLAG: dict[FlagKind, str] = {
    "other_patient": "another patient's",
    "duplicate": "in the file twice",
    "out_of_order": "pages out of order",
}
_FLAG_BY_WORDS = {words: flag for flag, words in WORDS_BY_FLAG.items()}

#: Width and height in pixels of a page's picture.
PageSize = tuple[int, int]


@dataclass(frozen=True)
class LabelledAnswer:
    """Answer to one case, in the parts that Label Studio can represent.

    What it does not state is None or empty.
    """

    dominant_type: DocumentType | None = None
    """The type of the whole file."""
    segments: tuple[SegmentDraft, ...] | None = None
    """The documents, which together cover every page once; None if no page was marked as a beginning."""
    quotes: tuple[ExpertQuote, ...] = ()
    flags: tuple[SegmentFlag, ...] = ()
    """What is wrong with a document, by its first page."""
    notes: str = ""
    is_undeterminable: bool = False
    remarks: tuple[str, ...] = field(default=(), compare=False)
    """A sentence for each part of the annotation that was left out, because evalkit has no place for it."""


def describe_answer(classification: ClassificationOutput, bundle: DocumentBundle) -> LabelledAnswer:
    """Describe a classification with the quotes that can be shown as boxes on pages."""
    segments, _ = fit_segments_to_file(classification.segments, bundle.total_pages)
    locator = QuoteLocator(bundle)
    quotes = (
        ExpertQuote(page=evidence.page, snippet=evidence.snippet, boxes=boxes, document_type=presence.document_type)
        for segment in classification.segments
        for presence in segment.segment_composition
        for evidence in presence.top_evidence
        if (boxes := _find_boxes(evidence, locator))
    )
    return LabelledAnswer(
        dominant_type=classification.dominant_type_overall,
        segments=segments or None,
        quotes=tuple(dict.fromkeys(quotes)),
    )


def _find_boxes(evidence: Any, locator: QuoteLocator) -> tuple[PageBox, ...]:
    own_boxes = evidence.boxes if isinstance(evidence, ReviewedEvidence) else ()
    location = None if own_boxes else locator.locate(evidence.snippet, evidence.page)
    boxes = own_boxes if location is None else location.boxes if location.is_found else ()
    return tuple(box for box in boxes if box[0] == evidence.page)


def build_results(answer: LabelledAnswer, page_sizes: Sequence[PageSize], id_prefix: str) -> list[dict[str, Any]]:
    """Build the ``result`` of a Label Studio annotation from an answer."""
    rows = [{"to_name": "pages", **row} for row in _iterate_results(answer, page_sizes)]
    # A region and its text have one id.
    return [{"id": f"{id_prefix}-{row.pop('number', number)}", **row} for number, row in enumerate(rows)]


def _iterate_results(answer: LabelledAnswer, page_sizes: Sequence[PageSize]) -> Iterator[dict[str, Any]]:
    if answer.dominant_type:
        yield _build_choice("file_type", answer.dominant_type.value)
    for segment in answer.segments or ():
        choice = segment.dominant_type.value if segment.dominant_type else NO_TYPE
        yield _build_choice("begins", choice, item_index=segment.start_page - 1)
    for page in dict.fromkeys(flag.start_page for flag in answer.flags):
        words = [WORDS_BY_FLAG[flag.flag] for flag in answer.flags if flag.start_page == page]
        yield _build_choice("document_problem", *words, item_index=page - 1)
    if answer.is_undeterminable:
        yield _build_choice("cannot_tell", UNDETERMINABLE)
    if answer.notes:
        yield {"from_name": "notes", "type": "textarea", "value": {"text": [answer.notes]}}
    boxes = ((quote, box) for quote in answer.quotes for box in quote.boxes)
    for number, (quote, (page, x0, y0, x1, y1)) in enumerate(boxes):
        width, height = page_sizes[page - 1]
        corners = {"x": x0, "y": y0, "width": x1 - x0, "height": y1 - y0}
        percent = {name: round(100 * share, 4) for name, share in corners.items()} | {"rotation": 0}
        region = {
            "number": f"quote-{number}",
            "item_index": page - 1,
            "image_rotation": 0,
            "original_width": width,
            "original_height": height,
        }
        labels = [quote.document_type.value] if quote.document_type else []
        yield {
            **region,
            "from_name": "quotes",
            "type": "rectanglelabels",
            "value": percent | {"rectanglelabels": labels},
        }
        if quote.snippet:
            value = percent | {"text": [quote.snippet]}
            yield {**region, "from_name": "quote_text", "type": "textarea", "value": value}


def _build_choice(name: str, *choices: str, **place: int) -> dict[str, Any]:
    return {"from_name": name, "type": "choices", **place, "value": {"choices": list(choices)}}


# --- back -----------------------------------------------------------------------------------------------------------


class _Row(DiscreetModel):
    model_config = ConfigDict(frozen=True, strict=True)


_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Value(_Row):
    choices: list[str] = []
    text: list[str] | str = []
    rectanglelabels: list[str] = []
    x: _Number = 0.0
    y: _Number = 0.0
    width: Annotated[_Number, Field(ge=0)] = 0.0
    height: Annotated[_Number, Field(ge=0)] = 0.0
    rotation: _Number = 0.0

    @property
    def joined_text(self) -> str:
        return self.text if isinstance(self.text, str) else "\n".join(self.text)


class _Result(_Row):
    id: str = ""
    type: str
    from_name: str
    to_name: str
    item_index: int | None = None
    image_rotation: _Number | None = None
    original_width: Annotated[_Number, Field(gt=0)] = 1.0
    original_height: Annotated[_Number, Field(gt=0)] = 1.0
    value: _Value

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """The box's upright frame, in shares of the page.

        The box is turned clockwise about its corner.
        """
        value, width, height = self.value, self.original_width, self.original_height
        turn = radians(value.rotation)
        across = (value.width * width * cos(turn), -value.height * height * sin(turn))
        down = (value.width * width * sin(turn), value.height * height * cos(turn))
        left, right = (value.x + pick(0.0, across[0], across[1], sum(across)) / width for pick in (min, max))
        top, bottom = (value.y + pick(0.0, down[0], down[1], sum(down)) / height for pick in (min, max))
        return left / 100, top / 100, right / 100, bottom / 100


#: By name of a control, the type of its results.
_TYPE_BY_CONTROL = {
    "file_type": "choices",
    "begins": "choices",
    "document_problem": "choices",
    "cannot_tell": "choices",
    "notes": "textarea",
    "quotes": "rectanglelabels",
    "quote_text": "textarea",
}
_TYPE_BY_WORDS = {document_type.casefold(): document_type for document_type in DocumentType}
_PER_PAGE_CONTROLS = ("begins", "document_problem", "quotes")
#: Half of the last digit to which shares are rounded.
_ROUNDED_SHARE = 1e-6

_T = TypeVar("_T")


def parse_results(raw_results: Sequence[Any], total_pages: int) -> LabelledAnswer:
    """Parse an annotation's ``result``; ReviewRefused lists all errors.

    The message never quotes text of the document.
    """
    problems: list[str] = []
    remarks: list[str] = []
    results = [
        result
        for number, raw in enumerate(raw_results, 1)
        for result in _parse_result(raw, number, total_pages, problems, remarks)
    ]
    answer = _ResultReader([*_drop_repeated(results)], total_pages, problems, remarks).read()
    if problems:
        raise ReviewRefused(
            "; ".join(dict.fromkeys(problems)),
            code="IMPORT-ANSWER",
            remedy="Correct the annotation in Label Studio, with evalkit's labelling config, and export again.",
        )
    return replace(answer, remarks=tuple(dict.fromkeys(remarks)))


def _parse_result(
    raw: Any, number: int, total_pages: int, problems: list[str], remarks: list[str]
) -> Iterator[_Result]:
    foreign = _describe_foreign_part(raw)
    if foreign:
        remarks.append(f"{foreign} left out")
        return
    try:
        result = _Result.model_validate(raw)
    except ValidationError as error:
        problems.append(describe_first_error(error, f"result {number}"))
        return
    if _TYPE_BY_CONTROL[result.from_name] != result.type or result.to_name != "pages":
        problems.append(f"result {number} ({result.from_name}) is not as in the labelling config")
    elif result.from_name in _PER_PAGE_CONTROLS and result.item_index is None and total_pages > 1:
        problems.append(f"result {number} ({result.from_name}) does not say on which page it is")
    elif "\0" in result.value.joined_text:
        problems.append(f"the text of result {number} ({result.from_name}) has the character NUL")
    elif result.item_index is not None and not 0 <= result.item_index < total_pages:
        problems.append(f"result {number} is on page {result.item_index + 1}, but the file has {total_pages}")
    else:
        yield result


def _describe_foreign_part(raw: Any) -> str:
    """Describe a part of an annotation that the labelling config lacks, else empty."""
    if not isinstance(raw, dict):
        return ""
    if raw.get("type") == "relation":
        return "relations between boxes"
    name = raw.get("from_name")
    if not isinstance(name, str) or name in _TYPE_BY_CONTROL:
        return ""
    return f"the control {name[:40]!r}, which the labelling config lacks,"


def _drop_repeated(results: Iterable[_Result]) -> Iterator[_Result]:
    seen: list[str] = []
    for result in results:
        content = result.model_dump_json()
        if content not in seen:
            seen.append(content)
            yield result


class _ResultReader:
    """Reader of one annotation's results.

    What contradicts itself is added to ``problems``, what is left out to ``remarks``.
    """

    def __init__(self, results: Sequence[_Result], total_pages: int, problems: list[str], remarks: list[str]) -> None:
        self._results, self._total_pages, self._problems, self._remarks = results, total_pages, problems, remarks

    def read(self) -> LabelledAnswer:
        file_types = [
            self._get_type(choice, "the file's type")
            for result in self._list("file_type")
            for choice in result.value.choices
        ]
        notes = [result.value.joined_text for result in self._list("notes")]
        segments = self._read_segments()
        return LabelledAnswer(
            dominant_type=self._take_one(file_types, "the file has several types"),
            segments=segments,
            quotes=tuple(self._iterate_quotes()),
            flags=tuple(self._iterate_flags(segments or ())),
            notes="\n".join(notes).strip(),
            is_undeterminable=any(UNDETERMINABLE in result.value.choices for result in self._list("cannot_tell")),
        )

    def _list(self, control: str) -> list[_Result]:
        return [result for result in self._results if result.from_name == control]

    def _take_one(self, values: Sequence[_T | None], problem: str) -> _T | None:
        distinct = list(dict.fromkeys(values))
        if len(distinct) > 1:
            self._problems.append(problem)
        return distinct[0] if distinct else None

    def _get_type(self, label: str, place: str) -> DocumentType | None:
        document_type = _TYPE_BY_WORDS.get(" ".join(label.split()).casefold())
        if document_type is None:
            reason = "no type was chosen" if label == NO_TYPE else f"{label[:40]!r} is not a document type"
            self._problems.append(f"{place}: {reason}")
        return document_type

    def _read_segments(self) -> tuple[SegmentDraft, ...] | None:
        choices_by_page: dict[int, list[str]] = {}
        for result in self._list("begins"):
            choices_by_page.setdefault((result.item_index or 0) + 1, []).extend(result.value.choices)
        types_by_page = {
            page: self._take_one(
                [self._get_type(choice, f"page {page}") for choice in choices],
                f"several types were chosen for the document that begins on page {page}",
            )
            for page, choices in sorted(choices_by_page.items())
            if choices
        }
        if not types_by_page:
            return None
        if 1 not in types_by_page:
            self._problems.append("no document begins on page 1")
        bounds = pairwise([*types_by_page, self._total_pages + 1])
        return tuple(
            SegmentDraft(start_page=start, end_page=next_start - 1, dominant_type=types_by_page[start])
            for start, next_start in bounds
        )

    def _iterate_flags(self, segments: Sequence[SegmentDraft]) -> Iterator[SegmentFlag]:
        starts = {segment.start_page for segment in segments}
        for result in self._list("document_problem"):
            page = (result.item_index or 0) + 1
            if page not in starts:
                self._problems.append(f"page {page} is marked as a problem, but no document begins there")
            for words in result.value.choices:
                if words in _FLAG_BY_WORDS:
                    yield SegmentFlag(start_page=page, flag=_FLAG_BY_WORDS[words])
                else:
                    self._problems.append(f"page {page}: {words[:40]!r} is not in the labelling config")

    def _iterate_quotes(self) -> Iterator[ExpertQuote]:
        text_by_id = {result.id: result.value.joined_text for result in self._list("quote_text")}
        if text_by_id.keys() - {result.id for result in self._list("quotes")}:
            self._problems.append("the text of a quote has no box")
        boxes_by_quote: dict[tuple[int, DocumentType | None, str], list[PageBox]] = {}
        for number, result in enumerate(self._list("quotes")):
            page, value = (result.item_index or 0) + 1, result.value
            x0, y0, x1, y1 = result.frame
            inside = [round(min(max(corner, 0.0), 1.0), 6) for corner in (x0, y0, x1, y1)]
            left, top, right, bottom = inside
            # Versions of Label Studio differ in whether a box's place is that on the turned picture.
            is_turned = (result.image_rotation or 0) % 360 != 0
            if is_turned or left >= right or top >= bottom:
                reason = (
                    "whose picture was turned on the screen" if is_turned else "which is empty or outside of the page"
                )
                self._remarks.append(f"a box on page {page}, {reason}, left out")
                continue
            if max(abs(was - now) for was, now in zip((x0, y0, x1, y1), inside, strict=True)) > _ROUNDED_SHARE:
                self._remarks.append(f"a box clipped at the edge of page {page}")
            types = [self._get_type(label, f"a box on page {page}") for label in value.rectanglelabels]
            document_type = self._take_one(types, f"a box on page {page} has several types")
            text = text_by_id.get(result.id, "")
            if not text.strip():
                self._remarks.append(f"a box on page {page} has no text")
            # A quote over several lines has a box for each; without a text each box is a quote of its own.
            key = page, document_type, text or f"\0{number}"
            boxes_by_quote.setdefault(key, []).append((page, left, top, right, bottom))
        for (page, document_type, text), boxes in boxes_by_quote.items():
            snippet = "" if text.startswith("\0") else text
            try:
                yield ExpertQuote(page=page, snippet=snippet, boxes=tuple(boxes), document_type=document_type)
            except ValidationError as error:
                self._problems.append(describe_first_error(error, f"a quote on page {page}"))


def list_flag_rows(answer: LabelledAnswer) -> Iterator[dict[str, Any]]:
    """List the flags of documents in the form that a submission expects."""
    for index, segment in enumerate(answer.segments or (), 1):
        for flag in FLAG_KINDS:
            if SegmentFlag(start_page=segment.start_page, flag=flag) in answer.flags:
                yield {"segment_index": index, "flag": flag}


def choose_new_quotes(answer: LabelledAnswer, agent_answer: ClassificationOutput | None) -> tuple[ExpertQuote, ...]:
    """Choose the quotes of an annotation that the program's answer does not have."""
    known = {
        (evidence.page, presence.document_type, _join_words(evidence.snippet))
        for segment in (agent_answer.segments if agent_answer else ())
        for presence in segment.segment_composition
        for evidence in presence.top_evidence
    }
    return tuple(
        quote for quote in answer.quotes if (quote.page, quote.document_type, _join_words(quote.snippet)) not in known
    )


def _join_words(text: str) -> str:
    return " ".join(text.split())
