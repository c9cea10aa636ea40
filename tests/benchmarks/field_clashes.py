"""Contradicted fields: ``python -m benchmarks.field_clashes [--half open|sealed]``.

The reports are by another author, who has not read the rules: short pathology, genomic and radiology reports in which one
field is stated twice, is corrected, or only seems to be. An accepted report with a value that must never be accepted is the
grave error; a look-alike that goes to a person costs time. ``--show`` prints each report that came out wrong.

Each row names the ``field`` (and ``item``: the stain), the ``right`` values, those that must ``never`` be accepted, and who
decides: ``found`` (a look-alike, nothing is contradicted), ``person``, or ``either``. Any of the right values will do; of
the fields with several values (variants, measurements) each one is needed, and ``|`` separates its spellings.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pymupdf

from evalkit.documents.readers import read_document
from evalkit.extraction.extraction_schema import Extraction, FieldStatus, FieldValue
from evalkit.extraction.reliability_loop import ReliabilityLoop
from evalkit.extraction.report_extraction import ReportPageRange, extract_reports

FOLDER = Path(__file__).parent / "first_contact" / "field_clashes"
DOCUMENT_TYPES = {"pathology": "Pathology Report", "genomics": "Genomic Report", "radiology": "Radiology Report"}
#: Fields whose right values are all needed.
LISTED_FIELDS = ("mutations", "measurements")
_NO_DATE = "none"
_AMINO_ACIDS = {
    "ala": "a", "arg": "r", "asn": "n", "asp": "d", "cys": "c", "gln": "q", "glu": "e", "gly": "g", "his": "h", "ile": "i",
    "leu": "l", "lys": "k", "met": "m", "phe": "f", "pro": "p", "ser": "s", "thr": "t", "trp": "w", "tyr": "y", "val": "v",
    "ter": "*",
}  # fmt: skip
_ACID = "|".join(_AMINO_ACIDS)
#: Other words for the same, by field; applied in this order to lower-case text.
_SYNONYMS: dict[str, tuple[tuple[str, str], ...]] = {
    "margins": (
        (r"\b(not|nor|no longer) (involved|positive|transected)|\buninvolved|\bno involvement", "negative"),
        (r"\b(no|without) (residual )?(tumor|tumour|carcinoma|cancer) (at|on|in|touches)\b", "negative"),
        (r"\br1\b|\binvolved|\binvolvement|\btransected|\bink\b|\bincomplete\w*|\bpresent at|\breach\w*", "positive"),
        (r"\br0\b|\bclear\b|\bfree\b|\bcomplete\w*", "negative"),
    ),
    "grade": (
        (r"\bpoor(ly)?\b", "3"),
        (r"\bmoderate(ly)?\b", "2"),
        (r"\bwell\b", "1"),
        (r"\biii\b|\bg3\b", "3"),
        (r"\bii\b|\bg2\b", "2"),
        (r"\bi\b|\bg1\b", "1"),
        (r"\s*\+\s*", "+"),
    ),
    "ihcMarkers": (
        (r"\b(not|non)[- ]?amplified|\bno amplification|\bnot over-?expressed|\bno expression|\bnot expressed", "negative"),
        (r"\b(not|non)[- ](positive|reactive)", "negative"),
        (r"\bamplified|\bover-?expressed|\breactive|(?<!\d)3\+", "positive"),
        (r"(?<![\d.])1\+|(?<![\d.])0 ?%|^0$|\bscore 0\b", "negative"),
        (r"\blost\b|\bloss\b|\babsent\b", "lost"),
        (r"\bretained\b|\bintact\b|\bpreserved\b", "retained"),
        (r"(\d) ?%", r"\1%"),
    ),
    "msiStatus": (
        (r"\bmsi[- ]?h(igh)?\b|\bhigh\b|\bunstable\b", "msi-h"),
        (r"\bmss\b|\bstable\b", "mss"),
    ),
    "stage": ((r"[\s,;]+", ""),),
    "mutations": (
        (rf"(?<![a-z])({_ACID})(?=\d)|(?<=\d)({_ACID})(?![a-z])|(?<=\d)({_ACID})(?=fs)", "ACID"),
        (r"\bp\.\(?", ""),
        (r"[()\[\];,:]", " "),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The extraction of one row's report."""

    row: dict[str, Any]
    extraction: Extraction

    @property
    def is_accepted(self) -> bool:
        """True if no person looks at the report."""
        return self.extraction.decision == "AUTO_ACCEPT"

    @property
    def values(self) -> list[FieldValue]:
        """The values of the row's field, of its stain only."""
        return list(self.named_values.values())

    @property
    def named_values(self) -> dict[str, FieldValue]:
        """The values of the row's field by the extraction's names."""
        stain = _squeeze(self.row.get("item", ""))
        return {
            name: field
            for name, field in self.extraction.fields.items()
            if name.partition(".")[0] == self.row["field"] and _squeeze(name.partition(".")[2]).startswith(stain)
        }

    @property
    def has_right_value(self) -> bool:
        """True if the field's value, found or ambiguous, is a right one."""
        if self.row["right"] == [_NO_DATE]:
            return not any(field.value for field in self.values)
        wanted = [any(self._matches(field, phrase) for field in self.values) for phrase in self.row["right"]]
        return all(wanted) if self.row["field"] in LISTED_FIELDS else any(wanted)

    @property
    def has_never_value(self) -> bool:
        """True if a value is one that must never be accepted."""
        return any(self._is_never(field) for field in self.values)

    @property
    def has_found_never_value(self) -> bool:
        """True if such a value is said to be found."""
        return any(field.status is FieldStatus.FOUND and self._is_never(field) for field in self.values)

    @property
    def is_ambiguous(self) -> bool:
        """True if the row's field is left to a person."""
        return any(field.status is FieldStatus.AMBIGUOUS for field in self.values)

    @property
    def reasons(self) -> list[str]:
        """The reasons why a person looks: code and field of each open issue."""
        open_issues = [issue for issue in self.extraction.issues if issue.status != "repaired"]
        return sorted({f"{issue.code} {issue.location}".strip() for issue in open_issues}) or ["no reason named"]

    @property
    def name(self) -> str:
        """What came out, in a few words."""
        if self.is_accepted and self.has_never_value:
            return "ACCEPTED WRONG"
        if self.is_accepted and not self.has_right_value:
            return "accepted without the right value"
        if self.is_accepted:
            return "accepted though a person must decide" if self.row["must"] == "person" else "right"
        return "sent for nothing" if self.row["must"] == "found" else "right"

    def _matches(self, field: FieldValue, phrase: str) -> bool:
        return any(_find(self.row["field"], field.value or "", spelling) is not None for spelling in phrase.split("|"))

    def _is_never(self, field: FieldValue) -> bool:
        """True if a wrong value stands in the text, and no right one before it."""
        name, text = self.row["field"], field.value or ""
        spellings = [spelling for phrase in self.row["right"] for spelling in phrase.split("|")]
        rights = [place for spelling in spellings if (place := _find(name, text, spelling)) is not None]
        wrongs = [place for phrase in self.row["never"] if (place := _find(name, text, phrase)) is not None]
        if not wrongs:
            return False
        # "Negative, except medial: positive" is a positive margin, and a size may name the former one first.
        return not rights or (name not in ("margins", "measurements", "tumorSize") and min(wrongs) < min(rights))


def _squeeze(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _find(field_name: str, text: str, phrase: str) -> int | None:
    """Return the place of the phrase in a value, in any spelling; None if it is not there."""
    if field_name in ("tumorSize", "measurements"):
        wanted = _list_millimetres(phrase)
        return 0 if wanted and set(wanted) <= set(_list_millimetres(text)) else None
    text, phrase = _normalize(field_name, text), _normalize(field_name, phrase)
    if field_name == "ihcMarkers" and re.fullmatch(r"[<>~]?\d[\d.]*%", text):
        text += " positive"  # a share of stained cells alone; 0 % is negative by now
    if field_name == "stage":
        place = text.find(phrase)
        return place if place >= 0 else None
    places = []
    for word in [phrase] if field_name == "grade" else phrase.split():
        match = re.search(rf"(?<![\w+*]){re.escape(word)}(?![\w+*])", text)
        if match is None:
            return None
        places.append(match.start())
    return min(places, default=None)


def _normalize(field_name: str, text: str) -> str:
    text = text.lower().strip()
    for pattern, word in _SYNONYMS.get(field_name, ()):
        if word == "ACID":
            text = re.sub(pattern, lambda match: _AMINO_ACIDS[match.group()], text)
        else:
            text = re.sub(pattern, word, text)
    return re.sub(r"\s+", " ", text).strip()


def _list_millimetres(text: str) -> list[float]:
    """List the sizes of a text in millimetres; the last unit of "2 x 3 cm" holds for both."""
    sizes: list[float] = []
    unit = "cm"
    for number, its_unit in reversed(
        re.findall(r"(\d+(?:[.,]\d+)?)[\s-]*(cm|mm|centimet\w+|millimet\w+)?", text.lower())
    ):
        unit = its_unit or unit
        sizes.append(round(float(number.replace(",", ".")) * (10 if unit.startswith("c") else 1), 3))
    return sizes


def read_rows(half: str) -> list[dict[str, Any]]:
    """The rows of a half."""
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text("utf-8").splitlines()]


def draw_report(text: str, path: Path) -> None:
    """Draw the text on one page: in columns if it has any, else in a proportional font."""
    lines = text.splitlines()
    longest = max(map(len, lines))
    has_columns = any(re.search(r"\S {3,}\S", line) for line in lines)
    size = min(10.0, 510 / (0.6 * longest), 720 / (1.3 * len(lines)))
    with pymupdf.open() as document:  # type: ignore[no-untyped-call]
        page = document.new_page(width=612, height=792)
        for number, line in enumerate(lines):
            place = (54, 54 + size * 1.3 * number)
            page.insert_text(place, line, fontname="cour" if has_columns else "helv", fontsize=size)
        document.save(path, no_new_id=True)


def extract_rows(rows: Sequence[dict[str, Any]], folder: Path) -> Iterator[Outcome]:
    """Draw each row's report into the folder, read it and extract its fields."""
    for row in rows:
        path = folder / f"{row['id']}.pdf"
        draw_report(row["text"], path)
        bundle = read_document(path, doc_id=row["id"], processing_timestamp="2025-01-01T00:00:00Z")
        reports = [ReportPageRange(1, len(bundle.pages), DOCUMENT_TYPES[row["kind"]])]
        for extraction in asyncio.run(extract_reports(bundle, reports, ReliabilityLoop())):
            yield Outcome(row, extraction)


def _format_row(title: str, outcomes: Sequence[Outcome]) -> str:
    look_alikes = [outcome for outcome in outcomes if outcome.row["must"] == "found"]
    persons = [outcome for outcome in outcomes if outcome.row["must"] == "person"]
    accepted_right = sum(outcome.is_accepted and outcome.name == "right" for outcome in look_alikes)
    counts = (
        len(outcomes),
        sum(outcome.name == "ACCEPTED WRONG" for outcome in outcomes),
        sum(not outcome.is_accepted and outcome.has_found_never_value for outcome in outcomes),
        sum(outcome.has_right_value for outcome in outcomes),
        sum(outcome.name == "accepted without the right value" for outcome in outcomes),
        f"{sum(not outcome.is_accepted for outcome in persons)}/{len(persons)}",
        f"{accepted_right}/{len(look_alikes)}",
        sum(not outcome.is_accepted for outcome in look_alikes),
    )
    return f"{title:14}" + "".join(f"{count:>10}" for count in counts)


def main() -> None:
    """Print the counts of each field, and the reasons of needless looks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--show", action="store_true", help="print each report that came out wrong")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with TemporaryDirectory() as folder:
        outcomes = list(extract_rows(read_rows(arguments.half), Path(folder)))
    by_field: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_field[outcome.row["field"]].append(outcome)
    columns = ("reports", "ACC.WRONG", "found w.", "right", "acc.miss", "to person", "alike acc", "alike sent")
    print(f"{'field':14}" + "".join(f"{column:>10}" if len(column) < 10 else f" {column}" for column in columns))
    for name, group in by_field.items():
        print(_format_row(name, group))
    print(_format_row("all", outcomes))
    print(
        "\nACC.WRONG: accepted with a value that must never be (0 wanted); found w.: such a value found, but the report sent;"
        "\nacc.miss: accepted without a right value; to person: contradictions that were sent; alike acc: look-alikes"
        "\naccepted with the right value; alike sent: look-alikes that a person must look at, because of:"
    )
    sent = [outcome for outcome in outcomes if outcome.name == "sent for nothing"]
    for reason, count in Counter(reason for outcome in sent for reason in outcome.reasons).most_common():
        print(f"{count:6}  {reason}")
    if arguments.show:
        for outcome in outcomes:
            if outcome.name != "right":
                shown = {name: f"{field.status}: {field.value}" for name, field in outcome.named_values.items()}
                print(f"\n{outcome.row['id']} {outcome.name} ({outcome.row['why']})\n   {shown}")
                print(f"   right {outcome.row['right']}, never {outcome.row['never']}, {outcome.row['must']}")
                if not outcome.is_accepted:
                    print(f"   {'; '.join(outcome.reasons)}")


if __name__ == "__main__":
    main()
