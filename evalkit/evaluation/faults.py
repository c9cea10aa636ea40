"""Faults to be planted into a classification that is right, one at a time: the table of kinds.

Each row says what it is, which agents should see it, and how it is planted. Planting changes a :class:`Draft`: a copy
of the answer as JSON, and where the fault is in the text, of the document. What the texts say is data,
``faults.toml``. Whoever plants knows nothing of who finds: no check is asked here.
"""

from __future__ import annotations

import copy
import random
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Any, Literal

from evalkit.classification.primary_classifier import choose_overall_type, compute_mixture
from evalkit.classification.schema import (
    REPORT_TYPES,
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.classification.v4_evidence_quality import MIN_SNIPPET_WORDS
from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, PackedWords, Page, PageStatus
from evalkit.evaluation.alterations import Kind, Planted, plant
from evalkit.issue import Agent

Json = dict[str, Any]
Dice = random.Random

Nature = Literal["structural", "quote", "semantic"]
"""How a fault can be seen: by counting and adding up; by looking up a quote; only by understanding the text."""

_TYPES = tuple(kind.value for kind in DocumentType)
_PRIMARY, _ABSENT = PresenceLevel.PRIMARY.value, PresenceLevel.NO_EVIDENCE.value
_GENOMIC = DocumentType.GENOMIC_REPORT.value
_OTHER = DocumentType.OTHER.value
_QUOTES_OF = 0
"""Seed of the alterations; which of them is planted, the challenge's own seed says."""


@dataclass(frozen=True, eq=False)
class Clean:
    """A classification that is taken for right, and its document."""

    bundle: DocumentBundle
    classification: ClassificationOutput

    @cached_property
    def altered(self) -> Mapping[Kind, Sequence[Planted]]:
        """Quotes of the document that were altered or invented, by kind."""
        found: dict[Kind, list[Planted]] = {}
        for one in plant(self.bundle, _QUOTES_OF):
            found.setdefault(one.kind, []).append(one)
        return found


@dataclass
class Draft:
    """What a fault is planted into."""

    clean: Clean
    answer: Any
    """A classification as JSON, free to be changed."""
    bundle: DocumentBundle

    @classmethod
    def of(cls, clean: Clean) -> Draft:
        """A copy of the clean one."""
        return cls(clean, copy.deepcopy(clean.classification.to_json()), clean.bundle)

    @property
    def segments(self) -> list[Json]:
        """Those of the answer."""
        segments: list[Json] = self.answer["segments"]
        return segments


Planting = Callable[[Draft, Dice], bool]
"""Changes the draft; False where the kind does not apply to it, and then the draft is of no use any more."""


@dataclass(frozen=True)
class Fault:
    """One kind of fault."""

    id: str
    what: str
    """In words."""
    seen_by: tuple[Agent, ...]
    """Any of these agents should see it."""
    nature: Nature
    plant: Planting


# ------------------------------------------------------------------------------------------------ what drafts consist of


@cache
def texts() -> Mapping[str, Any]:
    """What planted faults say: ``faults.toml``."""
    return tomllib.loads((files("evalkit.evaluation") / "faults.toml").read_text("utf-8"))


def _filled(text: str, dice: Dice) -> str:
    """A text with its slots filled: ``{name}`` by one of that list, ``#`` by a digit."""
    slots: Mapping[str, Sequence[str]] = texts()["slots"]
    for _ in range(2):  # what fills a slot may have slots
        text = re.sub(r"\{(\w+)\}", lambda match: dice.choice(slots[match[1]]), text)
    return re.sub("#", lambda _: str(dice.randint(1, 9)), text)


def _drawn(name: str, dice: Dice) -> str:
    return _filled(dice.choice(texts()[name]), dice)


def _entry(segment: Json, kind: str | None) -> Json | None:
    return next((one for one in segment["segment_composition"] if one["document_type"] == kind), None)


def _claim(segment: Json) -> Json | None:
    """What is said of the type that the segment is called."""
    return _entry(segment, segment["dominant_type"])


def _quoted(draft: Draft, dice: Dice) -> tuple[Json, Json] | None:
    """A segment and its claim, which is PRIMARY and has evidence."""
    found = [(one, claim) for one in draft.segments if (claim := _claim(one)) and claim["top_evidence"]]
    return dice.choice(found) if found else None


def _remixed(draft: Draft) -> bool:
    """Mixture, counts and the overall type as the segments have them: True, for the end of a planting."""
    for index, segment in enumerate(draft.segments, 1):
        segment["segment_index"] = index
        segment["segment_page_count"] = segment["end_page"] - segment["start_page"] + 1
    draft.answer["number_of_segments"] = len(draft.segments)
    segments = ClassificationOutput.model_validate(draft.answer).segments
    mixture = compute_mixture(segments)
    draft.answer["document_mixture"] = [entry.model_dump(mode="json") for entry in mixture]
    overall = choose_overall_type(segments, mixture)
    draft.answer["dominant_type_overall"] = overall.value if overall else None
    return overall is not None


def _relabel(segment: Json, kind: str) -> None:
    """The segment's two types change places, with all that is said of them."""
    old, new = _claim(segment), _entry(segment, kind)
    if old is None or new is None:
        raise ValueError("a clean segment has every type")
    old["document_type"], new["document_type"] = kind, segment["dominant_type"]
    segment["dominant_type"] = kind


def _page(number: int, paragraphs: Sequence[str]) -> Page:
    height = 1 / (len(paragraphs) + 1)
    boxes = [(0.1, height * row, 0.9, height * (row + 1)) for row in range(len(paragraphs))]
    kinds = tuple("paragraph" for _ in paragraphs)
    return Page(
        page_num=number,
        status=PageStatus.TEXT,
        text="\n".join(paragraphs),
        paragraphs=tuple(paragraphs),
        layout_metadata=LayoutMetadata(block_types=kinds, has_tables=False),
        blocks=tuple(Block(type="paragraph", text=text, box=box) for text, box in zip(paragraphs, boxes, strict=True)),
    )


def _with_block(
    bundle: DocumentBundle,
    number: int,
    text: str,
    *,
    first: bool = False,
    furniture: bool = False,
    hidden: bool = False,
) -> DocumentBundle:
    """The document with one more block on that page, below or above all others."""
    page = bundle.page(number)
    block = Block(type="paragraph", text=text, box=(0.1, 0.0 if first else 0.97, 0.9, 0.02 if first else 0.99))
    block = block.model_copy(update={"furniture": furniture, "hidden": hidden})
    blocks = (block, *page.blocks) if first else (*page.blocks, block)
    changes: Json = {"blocks": blocks}
    if not hidden:
        paragraphs = (text, *page.paragraphs) if first else (*page.paragraphs, text)
        shift = len(text) + 1 if first else 0
        words = PackedWords((start + shift, end + shift, *box) for start, end, *box in page.words)
        types = (
            ("paragraph", *page.layout_metadata.block_types)
            if first
            else (*page.layout_metadata.block_types, "paragraph")
        )
        layout = page.layout_metadata.model_copy(update={"block_types": types})
        changes |= {"text": "\n".join(paragraphs), "paragraphs": paragraphs, "words": words, "layout_metadata": layout}
    return _with_pages(bundle, [*bundle.pages[: number - 1], page.model_copy(update=changes), *bundle.pages[number:]])


def _with_pages(bundle: DocumentBundle, pages: Sequence[Page]) -> DocumentBundle:
    return bundle.model_copy(update={"pages": tuple(pages), "total_pages": len(pages)})


def _loose(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


# ------------------------------------------------------------------------------------------------ structure


def _segment_count(draft: Draft, dice: Dice) -> bool:
    draft.answer["number_of_segments"] += dice.choice((-1, 1, 2))
    return True


def _repeated_index(draft: Draft, dice: Dice) -> bool:
    if len(draft.segments) < 2:
        return False
    one, other = dice.sample(draft.segments, 2)
    one["segment_index"] = other["segment_index"]
    return True


def _outside_pages(draft: Draft, dice: Dice) -> bool:
    if dice.random() < 0.5:
        draft.segments[-1]["end_page"] += dice.randint(1, 5)
    else:
        draft.segments[0]["start_page"] = dice.choice((0, -1))
    return True


def _reversed_pages(draft: Draft, dice: Dice) -> bool:
    segment = dice.choice(draft.segments)
    segment["start_page"], segment["end_page"] = segment["end_page"] + dice.randint(1, 2), segment["start_page"]
    return True


def _page_count(draft: Draft, dice: Dice) -> bool:
    dice.choice(draft.segments)["segment_page_count"] += dice.choice((-1, 1, 3))
    return True


def _confidence_range(draft: Draft, dice: Dice) -> bool:
    rows = [row for one in draft.segments for row in one["segment_composition"]] + draft.answer["document_mixture"]
    dice.choice(rows)["confidence"] = dice.choice((1.01, 1.5, 95.0, -0.1))
    return True


def _negative_share(draft: Draft, dice: Dice) -> bool:
    """The sum stays right, so that only the range tells."""
    rows = dice.choice(draft.segments)["segment_composition"]
    one, other = dice.sample(rows, 2)
    by = round(one["segment_share"] + dice.uniform(0.02, 0.1), 4)
    one["segment_share"] = round(one["segment_share"] - by, 4)
    other["segment_share"] = round(other["segment_share"] + by, 4)
    return True


def _absent_rows(rows: Sequence[Json], share: str) -> list[Json]:
    return [row for row in rows if row["presence_level"] == _ABSENT and row[share] == 0]


def _missing_type(draft: Draft, dice: Dice) -> bool:
    rows = dice.choice(draft.segments)["segment_composition"]
    missing = _absent_rows(rows, "segment_share")
    if missing:
        rows.remove(dice.choice(missing))
    return bool(missing)


def _missing_in_mixture(draft: Draft, dice: Dice) -> bool:
    rows = draft.answer["document_mixture"]
    missing = _absent_rows(rows, "overall_share")
    if missing:
        rows.remove(dice.choice(missing))
    return bool(missing)


def _twice(draft: Draft, dice: Dice) -> bool:
    rows = dice.choice(draft.segments)["segment_composition"]
    one, other = dice.sample(rows, 2)
    one["document_type"] = other["document_type"]
    return True


def _unparseable(draft: Draft, dice: Dice) -> bool:
    segment = dice.choice(draft.segments)
    row = dice.choice(segment["segment_composition"])
    match dice.randrange(5):
        case 0:
            del segment["end_page"]
        case 1:
            segment["start_page"] = f"page {segment['start_page']}"
        case 2:
            row["document_type"] = "Laboratory Report"
        case 3:
            row["confidence"] = "high"
        case _:
            draft.answer["segments"] = {"1": segment}
    return True


def _scaled(rows: Sequence[Json], share: str, factor: float) -> bool:
    for row in rows:
        row[share] = round(row[share] * factor, 4)
    return True


def _factor(dice: Dice) -> float:
    return dice.choice((dice.uniform(0.91, 0.98), dice.uniform(1.02, 1.09), dice.uniform(1.2, 2), 100.0))


def _segment_sum(draft: Draft, dice: Dice) -> bool:
    return _scaled(dice.choice(draft.segments)["segment_composition"], "segment_share", _factor(dice))


def _mixture_sum(draft: Draft, dice: Dice) -> bool:
    return _scaled(draft.answer["document_mixture"], "overall_share", _factor(dice))


def _overlap(draft: Draft, dice: Dice) -> bool:
    pairs = list(zip(draft.segments, draft.segments[1:], strict=False))
    if not pairs:
        return False
    one, other = dice.choice(pairs)
    if dice.random() < 0.5 and other["start_page"] > 1:
        other["start_page"] -= 1
    else:
        one["end_page"] += 1
    for segment in (one, other):
        segment["segment_page_count"] = segment["end_page"] - segment["start_page"] + 1
    return True


def _gap(draft: Draft, dice: Dice) -> bool:
    long = [one for one in draft.segments if one["end_page"] > one["start_page"]]
    if not long:
        return False
    segment = dice.choice(long)
    if dice.random() < 0.5:
        segment["start_page"] += 1
    else:
        segment["end_page"] -= 1
    segment["segment_page_count"] -= 1
    for row in segment["segment_composition"]:
        row["top_evidence"] = [one for one in row["top_evidence"] if _is_within(one, segment)]
    return True


def _dropped_segment(draft: Draft, dice: Dice) -> bool:
    if len(draft.segments) < 2:
        return False
    draft.segments.remove(dice.choice(draft.segments))
    return _remixed(draft)


def _is_within(evidence: Json, segment: Json) -> bool:
    return bool(segment["start_page"] <= evidence["page"] <= segment["end_page"])


# ------------------------------------------------------------------------------------------------ consistency


def _dominant_not_largest(draft: Draft, dice: Dice) -> bool:
    segment = dice.choice(draft.segments)
    segment["dominant_type"] = dice.choice([kind for kind in _TYPES if kind != segment["dominant_type"]])
    return True


def _overall_not_largest(draft: Draft, dice: Dice) -> bool:
    overall = draft.answer["dominant_type_overall"]
    shares = {row["document_type"]: row["overall_share"] for row in draft.answer["document_mixture"]}
    others = [kind for kind in _TYPES if shares[kind] < shares[overall] - 0.02]
    if others:
        draft.answer["dominant_type_overall"] = dice.choice(others)
    return bool(others)


def _only_mentioned(draft: Draft, dice: Dice) -> bool:
    """The dominant type is said to be only mentioned, or not there at all."""
    claim = _claim(dice.choice(draft.segments))
    if claim is None:
        return False
    claim["presence_level"] = dice.choice([level.value for level in PresenceLevel if level.value != _PRIMARY])
    return True


def _denied(draft: Draft, dice: Dice) -> bool:
    rows = [row for row in draft.answer["document_mixture"] if row["presence_level"] == _PRIMARY]
    if not rows:
        return False
    dice.choice(rows)["presence_level"] = _ABSENT
    return True


def _unfounded(draft: Draft, dice: Dice) -> bool:
    levels = {row["document_type"]: set[str]() for row in draft.answer["document_mixture"]}
    for segment in draft.segments:
        for row in segment["segment_composition"]:
            levels[row["document_type"]].add(row["presence_level"])
    nowhere = [row for row in draft.answer["document_mixture"] if levels[row["document_type"]] == {_ABSENT}]
    if not nowhere:
        return False
    dice.choice(nowhere)["presence_level"] = _PRIMARY
    return True


def _wrong_mixture(draft: Draft, dice: Dice) -> bool:
    """Some of the largest share goes to another type, so that the largest stays the largest."""
    rows = sorted(draft.answer["document_mixture"], key=lambda row: -row["overall_share"])
    room = (rows[0]["overall_share"] - rows[1]["overall_share"]) / 2 - 0.02
    if room < 0.07:
        return False
    by = round(dice.uniform(0.07, room), 4)
    other = dice.choice(rows[1:])
    rows[0]["overall_share"] = round(rows[0]["overall_share"] - by, 4)
    other["overall_share"] = round(other["overall_share"] + by, 4)
    return True


def _cannot_tell(draft: Draft, dice: Dice) -> bool:
    place = dice.choice([draft.answer, *draft.segments])
    place["dominant_type_overall" if place is draft.answer else "dominant_type"] = None
    return True


# ------------------------------------------------------------------------------------------------ labels and boundaries


def _other_type(segment: Json, dice: Dice) -> str:
    return dice.choice([kind for kind in _TYPES if kind != segment["dominant_type"]])


def _label(draft: Draft, dice: Dice) -> bool:
    """One segment of several; the document's only one is the next row's."""
    if len(draft.segments) < 2:
        return False
    segment = dice.choice(draft.segments)
    _relabel(segment, _other_type(segment, dice))
    return _remixed(draft)


def _all_labels(draft: Draft, dice: Dice) -> bool:
    kinds = [one["dominant_type"] for one in draft.segments]
    wrong = [kind for kind in _TYPES if kind not in kinds]
    if not wrong:
        return False
    kind = dice.choice(wrong)
    for segment in draft.segments:
        _relabel(segment, kind)
    return _remixed(draft)


def _labels_exchanged(draft: Draft, dice: Dice) -> bool:
    """Two documents of a packet are called by each other's type."""
    pairs = [
        (one, other)
        for one, other in zip(draft.segments, draft.segments[1:], strict=False)
        if one["dominant_type"] != other["dominant_type"]
    ]
    if not pairs:
        return False
    one, other = dice.choice(pairs)
    kinds = one["dominant_type"], other["dominant_type"]
    _relabel(one, kinds[1])
    _relabel(other, kinds[0])
    return _remixed(draft)


def _boundary(draft: Draft, dice: Dice, *, by: int) -> bool:
    """A boundary moved by so many pages; what the shorter document had quoted from them is gone with them."""
    choices: list[tuple[Json, Json, int]] = []
    for one, other in zip(draft.segments, draft.segments[1:], strict=False):
        choices += [(one, other, -by)] if one["segment_page_count"] > by else []
        choices += [(one, other, by)] if other["segment_page_count"] > by else []
    dice.shuffle(choices)
    for one, other, step in choices:
        one["end_page"] += step
        other["start_page"] += step
        shorter = one if step < 0 else other
        kept = {
            row["document_type"]: [said for said in row["top_evidence"] if _is_within(said, shorter)]
            for row in shorter["segment_composition"]
        }
        if all(kept[row["document_type"]] or not row["top_evidence"] for row in shorter["segment_composition"]):
            for row in shorter["segment_composition"]:
                row["top_evidence"] = kept[row["document_type"]]
            return _remixed(draft)
        one["end_page"] -= step
        other["start_page"] -= step
    return False


def _merged(draft: Draft, dice: Dice) -> bool:
    """Two documents taken for one: the longer one, or the first."""
    if len(draft.segments) < 2:
        return False
    at = dice.randrange(len(draft.segments) - 1)
    one, other = draft.segments[at : at + 2]
    kept = other if other["segment_page_count"] > one["segment_page_count"] else one
    merged = kept | {"start_page": one["start_page"], "end_page": other["end_page"]}
    draft.segments[at : at + 2] = [merged]
    return _remixed(draft)


# ------------------------------------------------------------------------------------------------ evidence


def _no_evidence(draft: Draft, dice: Dice) -> bool:
    """High confidence, and nothing is quoted."""
    found = _quoted(draft, dice)
    if found is None:
        return False
    found[1].update(top_evidence=[], confidence=0.97)
    return True


def _claimed_without_evidence(draft: Draft, dice: Dice) -> bool:
    rows = [row for one in draft.segments for row in one["segment_composition"] if row["presence_level"] == _ABSENT]
    if not rows:
        return False
    row = dice.choice(rows)
    row.update(presence_level=_PRIMARY, confidence=0.8, top_evidence=[])
    _remixed(draft)
    return True


def _claimed_by_strange_evidence(draft: Draft, dice: Dice) -> bool:
    """A second type is called PRIMARY, by a quote of the first."""
    found = _quoted(draft, dice)
    if found is None:
        return False
    segment, claim = found
    rows = [row for row in segment["segment_composition"] if row["presence_level"] == _ABSENT]
    if not rows:
        return False
    dice.choice(rows).update(
        presence_level=_PRIMARY,
        confidence=0.9,
        top_evidence=[dice.choice(claim["top_evidence"]) | {"anchors_found": []}],
    )
    _remixed(draft)
    return True


def _altered_quote(draft: Draft, dice: Dice, *, kind: Kind) -> bool:
    found = _quoted(draft, dice)
    if found is None:
        return False
    segment, claim = found
    cases = [
        one for one in draft.clean.altered.get(kind, ()) if segment["start_page"] <= one.page <= segment["end_page"]
    ]
    if not cases:
        return False
    case = dice.choice(cases)
    at = dice.randrange(len(claim["top_evidence"]))
    claim["top_evidence"][at] = {"snippet": case.quote, "page": case.page, "anchors_found": []}
    return True


def _moved_quote(draft: Draft, dice: Dice) -> bool:
    """Claimed for another page of the same segment, on which it does not stand."""
    moves = [
        (said, page.page_num)
        for segment in draft.segments
        for row in segment["segment_composition"]
        for said in row["top_evidence"]
        for page in draft.bundle.iter_pages(segment["start_page"], segment["end_page"])
        if page.page_num != said["page"]
        and page.status.is_readable
        and _loose(said["snippet"]) not in _around(draft, page)
    ]
    if not moves:
        return False
    said, page = dice.choice(moves)
    said.update(page=page, anchors_found=[])
    return True


def _around(draft: Draft, page: Page) -> str:
    """What a quote from that page may say: it may run on to the next."""
    return _loose("".join(one.text for one in draft.bundle.iter_pages(page.page_num, page.page_num + 1)))


def _quote_of_other_segment(draft: Draft, dice: Dice) -> bool:
    if len(draft.segments) < 2:
        return False
    one, other = dice.sample(draft.segments, 2)
    claim, theirs = _claim(one), _claim(other)
    if not claim or not theirs or not claim["top_evidence"] or not theirs["top_evidence"]:
        return False
    claim["top_evidence"][0] = dice.choice(theirs["top_evidence"])
    return True


def _page_outside_file(draft: Draft, dice: Dice) -> bool:
    found = _quoted(draft, dice)
    if found is None:
        return False
    dice.choice(found[1]["top_evidence"])["page"] = dice.choice((0, draft.bundle.total_pages + dice.randint(1, 4)))
    return True


def _invented_anchor(draft: Draft, dice: Dice) -> bool:
    found = _quoted(draft, dice)
    if found is None:
        return False
    said = dice.choice(found[1]["top_evidence"])
    anchor = _drawn("anchors", dice)
    said["anchors_found"].append(anchor)
    return _loose(anchor) not in _loose(draft.bundle.page(said["page"]).text)


def _said_instead(draft: Draft, dice: Dice, *, said: str, furniture: bool = False) -> bool:
    """All evidence of a segment's type is a line that the page now has: a reference, a courtesy, a header."""
    found = _quoted(draft, dice)
    if found is None:
        return False
    segment, claim = found
    number = dice.randint(segment["start_page"], segment["end_page"])
    text = _drawn(said, dice)
    if not draft.bundle.page(number).status.is_readable:
        return False
    draft.bundle = _with_block(draft.bundle, number, text, first=furniture, furniture=furniture)
    claim.update(top_evidence=[{"snippet": text, "page": number, "anchors_found": []}], confidence=0.9)
    return True


# ------------------------------------------------------------------------------------------------ traps


def _vendor(draft: Draft, dice: Dice) -> bool:
    """A routine laboratory among the vendors of what is called a genomic report."""
    if not any(one["dominant_type"] == _GENOMIC for one in draft.segments):
        return False
    draft.answer["vendor_signals"].append(dice.choice(texts()["vendors"]))
    return True


def _vendor_unnamed(draft: Draft, dice: Dice) -> bool:
    """Its letterhead stands on the page, and the vendors leave it out."""
    segments = [one for one in draft.segments if one["dominant_type"] == _GENOMIC]
    if not segments:
        return False
    number = dice.choice(segments)["start_page"]
    draft.bundle = _with_block(draft.bundle, number, _drawn("letterheads", dice), first=True)
    return True


def _strange_page(draft: Draft, dice: Dice, *, said: str, kinds: Sequence[str]) -> bool:
    """One more page behind the last, claimed as a document of a type that it is not."""
    text: Mapping[str, Any] = dice.choice(texts()[said])
    number = draft.bundle.total_pages + 1
    paragraphs = [_filled(line, dice) for line in text["page"].strip().splitlines() if line.strip()]
    quoted = [line for line in paragraphs if MIN_SNIPPET_WORDS <= len(line.split()) <= 40]
    draft.bundle = _with_pages(draft.bundle, [*draft.bundle.pages, _page(number, paragraphs)])
    kind = dice.choice([one for one in kinds if one in text.get("as", kinds)])
    evidence = tuple(Evidence(snippet=line, page=number) for line in dice.sample(quoted, min(2, len(quoted))))
    draft.segments.append(_segment_of(kind, number, evidence).model_dump(mode="json"))
    _remixed(draft)
    return True


def _segment_of(kind: str, number: int, evidence: tuple[Evidence, ...]) -> Segment:
    def presence(one: DocumentType) -> TypePresence:
        is_it = one.value == kind
        return TypePresence(
            document_type=one,
            presence_level=PresenceLevel.PRIMARY if is_it else PresenceLevel.NO_EVIDENCE,
            confidence=0.85 if is_it else 0.0,
            segment_share=1.0 if is_it else 0.0,
            top_evidence=evidence if is_it else (),
        )

    return Segment(
        segment_index=number,
        start_page=number,
        end_page=number,
        segment_page_count=1,
        dominant_type=DocumentType(kind),
        segment_composition=tuple(map(presence, DocumentType)),
    )


def _keyword(draft: Draft, dice: Dice) -> bool:
    """A line of an order or cover sheet on a page that is claimed as a report."""
    reports = [one for one in draft.segments if one["dominant_type"] in REPORT_TYPES]
    if not reports:
        return False
    segment = dice.choice(reports)
    number = dice.randint(segment["start_page"], segment["end_page"])
    draft.bundle = _with_block(draft.bundle, number, _drawn("administrative_lines", dice), first=True)
    return True


def _said_to_model(draft: Draft, dice: Dice, *, said: str, hidden: bool) -> bool:
    readable = [page.page_num for page in draft.bundle.pages if page.status.is_readable]
    text = _drawn(said, dice)
    draft.bundle = _with_block(draft.bundle, dice.choice(readable), text, hidden=hidden)
    return True


# ------------------------------------------------------------------------------------------------ the table


_REPORTS = tuple(kind.value for kind in REPORT_TYPES)
_ALTERED = {
    Kind.DIGIT: "a digit",
    Kind.DECIMAL: "a decimal point",
    Kind.SIGN: "a sign",
    Kind.DATE: "a date",
    Kind.UNIT: "a unit",
    Kind.NUMBER_WORD: "a number in words",
    Kind.COMPARATOR: "a comparator",
    Kind.NEGATION: "a negation",
    Kind.NEGATION_CUT: "a negation cut off",
    Kind.MODAL: "a degree of certainty",
    Kind.LATERALITY: "a side",
    Kind.POLARITY: "positive and negative",
    Kind.PATHOGENICITY: "a pathogenicity",
    Kind.GENE: "a gene",
    Kind.VARIANT: "a variant",
    Kind.NAME: "a name",
    Kind.CONTENT_WORD: "a word",
    Kind.INSERTED_WORD: "a word put in",
    Kind.DELETED_WORD: "a word left out",
    Kind.SWAPPED: "two words exchanged",
    Kind.SPLICED: "two sentences joined",
}

# fmt: off
FAULTS: tuple[Fault, ...] = (
    Fault("segment-count", "number_of_segments is not the number of segments", ("V1",), "structural", _segment_count),
    Fault("segment-index", "two segments have one index", ("V1",), "structural", _repeated_index),
    Fault("page-range", "a segment has pages that the document has not", ("V1",), "structural", _outside_pages),
    Fault("page-order", "a segment ends before it begins", ("V1",), "structural", _reversed_pages),
    Fault("page-count", "segment_page_count is wrong", ("V1",), "structural", _page_count),
    Fault("confidence-range", "a confidence is not between 0 and 1", ("V1",), "structural", _confidence_range),
    Fault("share-range", "a share is below 0, the sum right", ("V1",), "structural", _negative_share),
    Fault("type-missing", "a type is missing in a segment", ("V1",), "structural", _missing_type),
    Fault("type-missing-mixture", "a type is missing in the mixture", ("V1",), "structural", _missing_in_mixture),
    Fault("type-twice", "a segment names a type twice", ("V1",), "structural", _twice),
    Fault("shape", "a field is missing or of the wrong kind", ("V1",), "structural", _unparseable),
    Fault("segment-share-sum", "the shares of a segment do not sum to 1", ("V2",), "structural", _segment_sum),
    Fault("mixture-share-sum", "the shares of the mixture do not sum to 1", ("V2",), "structural", _mixture_sum),
    Fault("page-overlap", "two segments claim one page", ("V2",), "structural", _overlap),
    Fault("page-gap", "a page belongs to no segment", ("V2",), "structural", _gap),
    Fault("segment-dropped", "a whole document of the packet is left out", ("V2",), "structural", _dropped_segment),
    Fault("dominant-segment", "the dominant type of a segment is not its largest share", ("V2",), "structural", _dominant_not_largest),
    Fault("dominant-overall", "the document's type is not its largest share", ("V2",), "structural", _overall_not_largest),
    Fault("dominant-presence", "the dominant type is only mentioned, or absent", ("V2",), "structural", _only_mentioned),
    Fault("presence-denied", "the mixture denies what a segment is", ("V2",), "structural", _denied),
    Fault("presence-unfounded", "the mixture claims what no segment has", ("V2",), "structural", _unfounded),
    Fault("mixture", "the mixture does not follow from the pages", ("V2",), "structural", _wrong_mixture),
    Fault("cannot-tell", "no type is given", ("V2",), "structural", _cannot_tell),
    Fault("evidence-none", "high confidence, nothing quoted", ("V1", "V4"), "structural", _no_evidence),
    Fault("presence-no-evidence", "a second type is PRIMARY, nothing quoted", ("V1", "V4"), "structural", _claimed_without_evidence),
    Fault("evidence-outside-file", "evidence on a page that the document has not", ("V4",), "structural", _page_outside_file),
    Fault("evidence-outside-segment", "evidence from another segment", ("V4",), "structural", _quote_of_other_segment),
    Fault("quote-invented", "a quote that stands nowhere", ("V4",), "structural", partial(_altered_quote, kind=Kind.FABRICATED)),
    Fault("quote-moved", "a quote claimed for another page", ("V4",), "quote", _moved_quote),
    Fault("anchor-invented", "an anchor that is not on the page", ("V4",), "quote", _invented_anchor),
    *(Fault(f"quote-{kind.value.replace('_', '-')}", f"a quote altered: {what}", ("V4",), "quote", partial(_altered_quote, kind=kind)) for kind, what in _ALTERED.items()),
    Fault("label", "one document of a packet is called another type", ("V2", "V3", "V4"), "semantic", _label),
    Fault("label-all", "the whole file is called another type", ("V2", "V3", "V4"), "semantic", _all_labels),
    Fault("labels-exchanged", "two neighbours are called each other's type", ("V2", "V3", "V4"), "semantic", _labels_exchanged),
    Fault("presence-strange", "a second type is PRIMARY, by a quote of the first", ("V2", "V4"), "semantic", _claimed_by_strange_evidence),
    Fault("boundary-1", "a boundary is off by one page", ("V2",), "semantic", partial(_boundary, by=1)),
    Fault("boundary-2", "a boundary is off by two pages", ("V2",), "semantic", partial(_boundary, by=2)),
    Fault("boundary-5", "a boundary is off by five pages", ("V2",), "semantic", partial(_boundary, by=5)),
    Fault("merged", "two documents are taken for one", ("V2",), "semantic", _merged),
    Fault("evidence-reference", "the only evidence points elsewhere", ("V4",), "semantic", partial(_said_instead, said="references")),
    Fault("evidence-courtesy", "the only evidence could stand in any document", ("V4",), "semantic", partial(_said_instead, said="courtesies")),
    Fault("evidence-header", "the only evidence is the header of the page", ("V3", "V4"), "semantic", partial(_said_instead, said="headers", furniture=True)),
    Fault("trap-vendor", "a routine laboratory as vendor of a genomic report", ("V3",), "structural", _vendor),
    Fault("trap-letterhead", "its letterhead on the page, left out of the vendors", ("V3",), "semantic", _vendor_unnamed),
    Fault("trap-keyword", "administrative words on a page claimed as a report", ("V3",), "structural", _keyword),
    Fault("trap-form", "a form, order or cover sheet claimed as a report", ("V2", "V3", "V4"), "semantic", partial(_strange_page, said="forms", kinds=_REPORTS)),
    Fault("trap-panel", "a routine panel claimed as a genomic report", ("V2", "V3", "V4"), "semantic", partial(_strange_page, said="panels", kinds=(_GENOMIC,))),
    Fault("trap-boilerplate", "a laboratory's words about its method claimed as a result", ("V2", "V3", "V4"), "semantic", partial(_strange_page, said="boilerplates", kinds=(_GENOMIC,))),
    Fault("trap-quoted", "a report quoted in a note or letter claimed as the report", ("V2", "V3", "V4"), "semantic", partial(_strange_page, said="quoting_notes", kinds=_REPORTS)),
    Fault("instruction", "words for a model on the page", ("V3",), "semantic", partial(_said_to_model, said="instructions", hidden=False)),
    Fault("instruction-hidden", "words for a model, hidden", ("V3",), "semantic", partial(_said_to_model, said="instructions", hidden=True)),
    Fault("text-hidden", "hidden text that says something else than the page", ("V3",), "semantic", partial(_said_to_model, said="hidden_reports", hidden=True)),
)
# fmt: on

BY_ID: Mapping[str, Fault] = {fault.id: fault for fault in FAULTS}
