"""Measure the fields of clinical reports against what their pages print.

From ``tests``: ``python -m benchmarks.field_reports --half HALF [--fax] [--show] [--attempts]``, where HALF is open,
sealed, second_sealed, third_sealed, fourth_open, fourth_sealed, fifth_open, fifth_sealed, sixth_open, sixth_sealed,
seventh_open, seventh_sealed, eighth_open, eighth_sealed, ninth_open or ninth_sealed.
The truth is the author's; spellings are compared leniently by this module's own rules, meanings strictly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.first_contact.field_reports.drawing import draw_report, fax_report
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest

from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.extraction.extraction_schema import Extraction, FieldStatus, FieldValue
from evalkit.extraction.reliability_loop import ReliabilityLoop
from evalkit.extraction.report_extraction import ReportPageRange, extract_reports

FOLDER = Path(__file__).parent / "first_contact" / "field_reports"
HALVES = (
    "open",
    "sealed",
    "second_sealed",
    "third_sealed",
    "fourth_open",
    "fourth_sealed",
    "fifth_open",
    "fifth_sealed",
    "sixth_open",
    "sixth_sealed",
    "seventh_open",
    "seventh_sealed",
    "eighth_open",
    "eighth_sealed",
    "ninth_open",
    "ninth_sealed",
)
TYPES = {"pathology": "Pathology Report", "genomics": "Genomic Report", "radiology": "Radiology Report", "lab": "Other"}
MATTERS = {"histology", "grade", "margins", "ihcMarkers", "mutations", "msiStatus", "tmb", "impression", "findings",
           "measurements", "labValues"}  # fmt: skip
_AMINO = dict(zip(["Ala", "Arg", "Asn", "Asp", "Cys", "Gln", "Glu", "Gly", "His", "Ile", "Leu", "Lys", "Met", "Phe", "Pro", "Ser", "Thr", "Trp", "Tyr", "Val", "Ter"],
                  "ARNDCQEGHILKMFPSTWYV*", strict=True))  # fmt: skip
_STAINS = {"estrogenreceptor": "er", "oestrogenreceptor": "er", "progesteronereceptor": "pr", "her2neu": "her2",
           "ki67index": "ki67", "mib1": "ki67", "chromogranina": "chromogranin", "ca9": "caix",
           "smoothmuscleactin": "sma", "hcaldesmon": "caldesmon"}  # fmt: skip
_POLARITIES = (
    ("close", r"\bclose\b(?!st)"),
    ("equivocal", r"equivocal|indeterminate"),
    (
        "negative",
        r"negative|uninvolved|not involved|free|clear\b|no tumou?r|\bneg\b|\br0\b|not present at|non-?reactive",
    ),
    ("positive", r"positive|involved|present at|reaches|\bpos\b|\br1\b|on ink|(?<!non)(?<!non-)reactive"),
    ("retained", r"retained|intact|preserved"),
    ("lost", r"\blost\b|loss|absent"),
    ("wild", r"wild"),
    ("aberrant", r"aberrant|mutant|overexpress"),
)


def squash(text: str) -> str:
    """The text in lower case, with plain dashes and single spaces."""
    text = re.sub(
        r"[\u2010-\u2015\u2212]", "-", text.lower().replace("\u00d7", "x").replace("\u00b5", "u").replace("\u03bc", "u")
    )
    return re.sub(r"\s+", " ", text.replace("tumour", "tumor")).strip(" .;,:")


def read_words(text: str) -> str:
    return re.sub(r"[^a-z0-9+*<>=%.]+", " ", squash(text)).strip(" .")


def read_polarity(text: str) -> str | None:
    return next((name for name, pattern in _POLARITIES if re.search(pattern, squash(text))), None)


def read_sizes(text: str) -> set[tuple[float, ...]]:
    """Sizes in millimetres, each with all its dimensions."""
    sizes = re.finditer(
        r"(\d+(?:\.\d+)?(?:\s*(?:mm|cm)?\s*(?:x|by)\s*\d+(?:\.\d+)?)*)[\s-]*(mm|cm|millimet\w+|centimet\w+)\b",
        squash(text),
    )
    return {
        tuple(
            round(float(number) * (10 if size[2].startswith("c") else 1), 2)
            for number in re.findall(r"\d+(?:\.\d+)?", size[1])
        )
        for size in sizes
    }


def read_grades(text: str) -> set[str]:
    text = re.sub(r"\(?\b(?:total )?score:? \d(?!\s*\+)/?9?|\b\d/9\b|\d of 9", " ", squash(text))
    sums = {f"sum {re.sub(r'[^0-9+]', '', hit)}" for hit in re.findall(r"\d\s*\+\s*\d(?!\s*\+)", text)}
    words = {word for word in ("well", "moderate", "poor", "undifferentiated", "high", "low") if word in text}
    text = re.sub(r"\d(?:\s*\+\s*\d)+(?:\s*=\s*\d+)?|\bof [34]\b|/[34]\b|\(\)|20[0-9]{2}", " ", text)
    romans = {"i": "1", "ii": "2", "iii": "3", "iv": "4"}
    numbers = {romans.get(hit, hit) for hit in re.findall(r"(?:\b|(?<=g))([1-5]|i{1,3}|iv)\b", text)}
    return sums | words | numbers


def read_change(text: str) -> tuple[str, str, str]:
    """Gene or first word, coding change and protein change with one-letter names."""
    text = re.sub(r"[\u2010-\u2015]", "-", text)
    gene = re.search(r"\b[A-Z][A-Z0-9]{1,8}\b(?!_)", text)
    coding = re.search(r"c\.\s?[\d*+\-_]+(?:[ACGT]+>[ACGT]+|(?:delins|del|dup|ins)[ACGT]*)?", text)
    protein = re.search(r"p\.\s?\(?([A-Za-z*0-9_=]+)\)?", text) or re.search(
        r"\b((?!"
        + re.escape(gene[0] if gene else "-")
        + r"\b)[ACDEFGHIKLMNPQRSTVWY]\d{2,4}(?:[ACDEFGHIKLMNPQRSTVWY]|\*|fs\*?\d*))",
        text,
    )
    short = protein[1] if protein else ""
    for long, letter in _AMINO.items():
        short = re.sub(long, letter, short)
    short = re.sub(r"fs.*", "fs", short.replace("X", "*"))
    deletion = re.sub(r"(del|dup)[ACGT]+$", r"\1", coding[0].replace(" ", "")) if coding else ""
    return (gene[0] if gene else squash(text)), deletion, short


def is_same_change(shown: str, form: str) -> bool:
    """Whether both name one variant; fusions and copy numbers by their words."""
    left, right = read_change(shown), read_change(form)
    if not (right[1] or right[2]):
        words = set(read_words(form).split())
        return words <= set(read_words(shown).split()) or squash(form) in squash(shown)
    pairs = [pair for pair in zip(left[1:], right[1:], strict=True) if all(pair)]
    return left[0] == right[0] and bool(pairs) and all(first == second for first, second in pairs)


def is_right(name: str, shown: str, forms: Sequence[str]) -> bool:
    """Whether the shown value means what one of the forms prints."""
    return any(_means_same(name, shown, form) for form in forms)


def _means_same(name: str, shown: str, form: str) -> bool:  # noqa: PLR0911
    if name == "histology":
        return read_words(form) in read_words(shown) and not re.match(r"no |negative|history of", squash(shown))
    if name == "margins":
        sizes = read_sizes(shown)
        return read_polarity(shown) == read_polarity(form) and (
            not sizes or not read_sizes(form) or sizes <= read_sizes(form)
        )
    if name == "ihcMarkers":
        percents = [re.findall(r"[<>]?\s?\d+(?:\.\d+)?\s?%", text.replace(" ", "")) for text in (shown, form)]
        scores = [re.findall(r"\b[0-3]\+", text) for text in (shown, form)]
        polarities = [read_polarity(text) for text in (shown, form)]
        return (
            (polarities[0] == polarities[1] or (None in polarities and bool(percents[0] or scores[0])))
            and (not percents[1] or percents[0] == percents[1])
            and (not all(scores) or scores[0] == scores[1])
        )
    if name in ("tumorSize", "measurements"):
        return read_sizes(shown) == read_sizes(form)
    if name == "mutations":
        return is_same_change(shown, form)
    if name == "labValues":
        numbers = [re.findall(r"[<>]?\d+(?:\.\d+)?", re.sub(r"(?<=[<>])\s|,", "", text)) for text in (shown, form)]
        shown, form = (re.sub(r"(?<=10)[eE^*]{1,2}(?=\d)", "^", text) for text in (shown, form))
        unit = re.sub(r"^[<>\d.,\s]+|\(.*", "", squash(form)).strip()
        return (numbers[0][:1] == numbers[1][:1] if numbers[1] else squash(form) in squash(shown)) and (
            not unit or unit.replace(" ", "") in squash(shown).replace(" ", "")
        )
    if name == "stage":
        parts = re.compile(r"(?:m|[yr]?p)?[tnm](?:is|[0-4x])[a-d]?(?:mi)?\d?|\b(?:iv|i{1,3})[a-c]?\d?\b")
        stages = [{hit.lstrip("yrp") for hit in parts.findall(squash(text))} for text in (shown, form)]
        return stages[0] == stages[1] if stages[1] else squash(shown) == squash(form)
    if name == "msiStatus":
        kinds = [re.sub(r"microsatellite |msi[- ]?", "", squash(text)) for text in (shown, form)]
        return all(kind.startswith(("mss", "stable")) for kind in kinds) or kinds[0][:1] == kinds[1][:1]
    return read_words(shown) == read_words(form) or (name == "tmb" and squash(form).split()[0] in squash(shown).split())


@dataclass
class Tally:
    """What was counted over some reports."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    attempts: dict[int, list[tuple[float, int, int]]] = field(default_factory=dict)


@dataclass
class Marks:
    """The marks of one attempt's fields."""

    printed: int = 0
    right: int = 0
    wrong: int = 0
    false_absent: int = 0
    differences: list[str] = field(default_factory=list)
    serious: bool = False

    def note(self, name: str, words: str, *, wrong: bool = False) -> None:
        self.wrong += wrong
        self.serious |= wrong or name in MATTERS
        self.differences.append(f"{name}: {words}")


def mark_fields(report: Mapping[str, Any], fields: Mapping[str, FieldValue]) -> Marks:
    """Compare the fields with the report's truth."""
    marks = Marks()
    for name, truth in report["fields"].items():
        shown = {key.partition(".")[2]: value for key, value in fields.items() if key.split(".")[0] == name}
        _mark_field(marks, name, truth, shown)
    return marks


def _mark_field(marks: Marks, name: str, truth: Mapping[str, Any], shown: Mapping[str, FieldValue]) -> None:
    found = {key: value.value or "" for key, value in shown.items() if value.status is FieldStatus.FOUND}
    if truth["status"] == "not_present":
        allowed = truth.get("tolerated", ())
        for text in found.values():
            if not is_right(name, text, allowed):
                marks.note(name, f"nothing is printed, shown {text!r}", wrong=True)
        return
    if truth["status"] == "ambiguous":
        for text in found.values():
            marks.note(name, f"printed are {truth['candidates']}, shown as sure {text!r}", wrong=True)
        return
    is_absent = bool(shown) and all(value.status is FieldStatus.NOT_PRESENT for value in shown.values())
    marks.false_absent += is_absent
    rest = dict(found)
    for label, forms in _list_wanted(name, truth):
        marks.printed += 1
        hit = next((key for key, text in rest.items() if _is_hit(name, label, key, text, forms)), None)
        if hit is None:
            marks.note(name, f"printed {label} {forms}, shown {list(found.values()) or 'nothing'}"[:240])
        else:
            marks.right += 1
            del rest[hit]
    allowed = [form for _, forms in _list_wanted(name, truth) for form in forms] + list(truth.get("tolerated", ()))
    for key, text in rest.items():
        is_known = name == "genes" or (name in ("measurements", "mutations") and is_right(name, text, allowed))
        if not is_known:
            marks.note(name, f"not printed so: {key} {text!r}"[:240], wrong=True)


def _list_wanted(name: str, truth: Mapping[str, Any]) -> list[tuple[str, Sequence[str]]]:
    """The values that are wanted, each with its label and accepted forms."""
    if "first" in truth:
        return [("", [f"{truth['first']} ... {truth['last']}"])]
    values = truth["values"]
    if isinstance(values, dict):
        return [(label, forms) for label, forms in values.items() if forms[0] != "ambiguous"]
    if name in ("mutations", "genes", "measurements"):
        return [("", forms) for forms in values]
    return [("", [form for forms in values for form in forms])]


def _is_hit(name: str, label: str, key: str, text: str, forms: Sequence[str]) -> bool:
    if " ... " in forms[0]:
        first, last = map(read_words, forms[0].split(" ... "))
        bare = re.sub(r"^(?:\d+\.? |- )+", "", read_words(text))
        return bare.startswith(re.sub(r"^(?:\d+\.? |- )+", "", first)) and bare.endswith(last)
    if name == "grade":
        wanted = set().union(*map(read_grades, forms))
        grades = read_grades(text)
        return bool(grades & wanted) and grades <= wanted
    if label:
        names = [re.sub(r"[^a-z0-9]", "", squash(part)) for part in (key, label)]
        names = [_STAINS.get(part, part) for part in names]
        return names[0] == names[1] and is_right(name, text, forms)
    return is_right(name, text, forms)


def extract(report: Mapping[str, Any], folder: Path, settings: PageOcrSettings | None) -> Extraction:
    path = folder / f"{report['id']}.pdf"
    draw_report(report, path)
    if settings:
        fax_report(path, folder / f"{report['id']}-fax.pdf")
        path = folder / f"{report['id']}-fax.pdf"
    bundle = read_document(
        path, doc_id=report["id"], processing_timestamp="2025-01-01T00:00:00Z", ocr_settings=settings
    )
    pages = ReportPageRange(1, len(bundle.pages), TYPES[report["kind"]])
    return asyncio.run(extract_reports(bundle, [pages], ReliabilityLoop()))[0]


def count_report(report: Mapping[str, Any], extraction: Extraction, tally: Tally) -> list[str]:
    """Add the report to the tally; return its differences."""
    marks = mark_fields(report, extraction.fields)
    counts, is_accepted = tally.counts, extraction.decision == "AUTO_ACCEPT"
    fields_printed = sum(truth["status"] == "found" for truth in report["fields"].values())
    counts.update(reports=1, printed=marks.printed, right=marks.right, wrong=marks.wrong, absent=marks.false_absent)
    counts.update(fields=fields_printed, accepted=is_accepted, accepted_wrong=is_accepted and marks.serious)
    if report["should"] == "accept":
        counts.update(should=1, should_accepted=is_accepted)
        if not is_accepted:
            open_issues = [issue for issue in extraction.issues if issue.status != "repaired"]
            tally.reasons.update({f"{issue.code}: {' '.join(issue.message.split()[:4])}" for issue in open_issues})
    else:
        counts.update(person=1, person_accepted=is_accepted)
    last: tuple[float, int, int] | None = None
    for number in (1, 2, 3):
        records = [record for record in extraction.history if record.iteration == number]
        if records:
            attempt = mark_fields(report, records[0].fields)
            last = (records[0].score or 0.0, attempt.right, attempt.printed)
        if last:
            tally.attempts.setdefault(number, []).append(last)
    return [*marks.differences, f"{extraction.decision}, should be: {report['should']}"] if marks.differences else []


def share(part: int, whole: int) -> str:
    """The share in per cent with its 95 % interval."""
    if not whole:
        return "-"
    interval = binomtest(part, whole).proportion_ci(method="wilson")
    return f"{part}/{whole} {100 * part / whole:.1f} % ({100 * interval.low:.0f}-{100 * interval.high:.0f})"


def list_shares(counts: Counter[str]) -> Iterator[tuple[str, str]]:
    yield "values right of those printed", share(counts["right"], counts["printed"])
    yield "wrong values (per value shown)", share(counts["wrong"], counts["wrong"] + counts["right"])
    yield "false not_present (per printed field)", share(counts["absent"], counts["fields"])
    yield "accepted of those that should be", share(counts["should_accepted"], counts["should"])
    yield "accepted of those for a person", share(counts["person_accepted"], counts["person"])
    yield "accepted with a wrong or missing value", share(counts["accepted_wrong"], counts["accepted"])


def show_tallies(tallies: Mapping[str, Tally], console: Console, title: str, *, attempts: bool) -> None:
    table = Table("", *tallies, title=title)
    for rows in zip(*(list_shares(tally.counts) for tally in tallies.values()), strict=True):
        table.add_row(rows[0][0], *(text for _, text in rows))
    if attempts:
        for number in (1, 2, 3):
            past = {kind: tally.attempts.get(number, []) for kind, tally in tallies.items()}
            table.add_row(f"attempt {number}: mean score", *map(_mean, past.values()))
            table.add_row(
                f"attempt {number}: values right",
                *(share(sum(row[1] for row in rows), sum(row[2] for row in rows)) for rows in past.values()),
            )
    console.print(table)
    for reason, count in tallies["total"].reasons.most_common(25):
        console.print(f"needless escalation, {count} x {reason}", highlight=False)


def _mean(rows: Sequence[tuple[float, int, int]]) -> str:
    scores = [row[0] for row in rows]
    if not scores:
        return "-"
    mean = sum(scores) / len(scores)
    deviation = (sum((score - mean) ** 2 for score in scores) / max(1, len(scores) - 1)) ** 0.5
    return f"{mean:.3f} +- {1.96 * deviation / len(scores) ** 0.5:.3f}"


def load_reports(half: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text().splitlines()]


def main() -> None:
    """Print the shares of one half, by kind and in total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="open")
    for switch in ("--fax", "--show", "--attempts"):
        parser.add_argument(switch, action="store_true")
    options = parser.parse_args()
    engine = resolve_ocr_engine("auto") if options.fax else None
    if options.fax and engine is None:
        parser.error("no OCR engine is installed")
    settings = PageOcrSettings(engine, 60) if engine else None
    console = Console(width=200)
    tallies = {kind: Tally() for kind in TYPES} | {"total": Tally()}
    with tempfile.TemporaryDirectory() as folder:
        for report in load_reports(options.half):
            extraction = extract(report, Path(folder), settings)
            count_report(report, extraction, tallies[report["kind"]])
            differences = count_report(report, extraction, tallies["total"])
            if options.show and differences:
                console.print(f"{report['id']} ({report['layout']})", *differences, sep="\n   ", markup=False)
    paper = "fax" if options.fax else "text"
    show_tallies(tallies, console, f"Field reports, {options.half} half, {paper}", attempts=options.attempts)


if __name__ == "__main__":
    main()
