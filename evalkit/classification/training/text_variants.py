"""Variants of labelled texts: in part, without labels, misread, quoting."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from evalkit.classification.schema import DocumentType
from evalkit.classification.training.labelled_texts import LabelledText

_LONG_TEXT_LENGTH = 1200
_SEED = 5
_LABEL_PATTERN = re.compile(r"(?m)^[ \t]*[-•*]?[ \t]*[^\n:]{2,70}:[ \t]*|[A-Z][A-Z /&-]{3,40}:")
_OCR_CONFUSIONS = dict(
    zip("lieahtcugsoBSIO", ("1", "l", "c", "o", "b", "f", "e", "v", "q", "5", "0", "8", "5", "l", "0"), strict=True)
)


class TextVariant(NamedTuple):
    """A text as it was, or as it might have been.

    A part of it, without labels, misread, with a report quoted in it.
    """

    name: str
    original: LabelledText
    text: str
    quoted_report: LabelledText | None = None
    """The report that is quoted in it."""


def create_text_variants(labelled_texts: Sequence[LabelledText], fold_by_group: Mapping[str, int]) -> list[TextVariant]:
    """Create every text's variants.

    A quoted report is from the note's own fold and, if possible, source.
    """
    text_variants: list[TextVariant] = []
    texts_by_fold_and_type: dict[tuple[int, DocumentType], list[LabelledText]] = defaultdict(list)
    for labelled_text in labelled_texts:
        texts_by_fold_and_type[fold_by_group[labelled_text.group], labelled_text.document_type].append(labelled_text)
    for labelled_text in labelled_texts:
        random_source = random.Random(f"{_SEED} {labelled_text.id}")  # noqa: S311 - the same variants each time
        text_variants += [
            TextVariant(name, labelled_text, text) for name, text in _vary_text(labelled_text, random_source)
        ]
        text_variants += _insert_quoted_reports(
            labelled_text, texts_by_fold_and_type, fold_by_group[labelled_text.group], random_source
        )
    return text_variants


def _vary_text(labelled_text: LabelledText, random_source: random.Random) -> Iterator[tuple[str, str]]:
    text = labelled_text.text
    yield "whole", text
    if len(text) > _LONG_TEXT_LENGTH / 2:
        yield "beginning", text[:500]
    if len(text) > _LONG_TEXT_LENGTH:
        yield "middle", text[len(text) // 3 : len(text) // 3 + 900]
        yield "end", text[-700:]
    if len(unlabelled := _LABEL_PATTERN.sub("", text)) > 100:
        yield "no labels", unlabelled
    yield "one line", " ".join(text.split())
    yield "misread", simulate_ocr_errors(text, 0.08, random_source)


def _insert_quoted_reports(
    labelled_text: LabelledText,
    texts_by_fold_and_type: Mapping[tuple[int, DocumentType], Sequence[LabelledText]],
    fold: int,
    random_source: random.Random,
) -> Iterator[TextVariant]:
    text = labelled_text.text
    if labelled_text.document_type is not DocumentType.CLINICAL_NOTE or len(text) <= 300:
        return
    for kind in (DocumentType.RADIOLOGY_REPORT, DocumentType.PATHOLOGY_REPORT, DocumentType.GENOMIC_REPORT):
        if candidates := texts_by_fold_and_type.get((fold, kind)):
            # One source quotes one other at most: each pair of sources is held out together, and learned without once more.
            source = max(
                {candidate.source for candidate in candidates}, key=lambda name: (name == labelled_text.source, name)
            )
            quoted_report = random_source.choice([candidate for candidate in candidates if candidate.source == source])
            excerpt = quoted_report.text[: int(len(text) * random_source.choice((0.3, 0.5)))]
            insert_position = text.find("\n", len(text) // 2)
            insert_position = len(text) // 2 if insert_position < 0 else insert_position
            yield TextVariant(
                f"quotes {kind.value}",
                labelled_text,
                f"{text[:insert_position]}\nRESULTS:\n{excerpt}\n{text[insert_position:]}",
                quoted_report,
            )


def simulate_ocr_errors(text: str, error_rate: float, random_source: random.Random) -> str:
    """Simulate a poor scan: characters mistaken, dropped and split."""
    characters: list[str] = []
    for character in text:
        if not character.isalnum() or random_source.random() >= error_rate:
            characters.append(character)
            continue
        draw = random_source.random()
        if draw < 0.6:
            characters.append(_OCR_CONFUSIONS.get(character, character))
        elif draw < 0.8:
            characters.append(character + " ")
    return "".join(characters)
