"""Bench of tax forms in strangers' layouts: boxes read, types, decisions; as text, scans and photographs.

Run in ``tests``: ``python -m benchmarks.tax_layouts --half open --as all``, with ``--show`` for what was not right and
``--only NAME`` for some layouts. Pages that were recognised once are kept under ``.bench`` until the drawing or a file of
``evalkit/documents`` changes. Intervals of boxes are bootstrapped over forms, those of forms are exact.

A form may stand on a page in several copies: it is judged by its best extraction, but no other may be accepted wrong.
A second state's row is taken from ``box_16_2`` or from the second part (after ``;`` or a new line) of ``box_16``. A name
with the address that belongs to it is right; an address may be left out of a name.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from benchmarks.first_contact.tax_layouts import drawing
from benchmarks.first_contact.tax_layouts.drawing import REQUIRED, Form, Layout
from benchmarks.measuring import ROOT, TIMESTAMP

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.evaluation.intervals import estimate_proportion, estimate_ratio
from evalkit.extraction.extraction_schema import Extraction, FieldValue
from evalkit.extraction.field_template import list_field_templates
from evalkit.extraction.form_filling import BLANK_FORM, FormFieldExtractor
from evalkit.llm.embedded import EmbeddedModel

WAYS = ("text", "scan", "photo")
TICKED = frozenset(("x", "true", "yes", "1", "checked", "on", "☒", "☑", "✓", "✔", "✗"))
UNTICKED = frozenset(("false", "no", "0", "off", "unchecked", "☐"))
SECONDS_PER_PAGE = 60
_SECOND = re.compile(r"(box_\d+)_2")
# Names without which a field that is not in the truth may still be right, if the form prints its value.
_NOT_JUDGED = frozenset(("document_title", "any_amounts", "issuer_name"))


# ------------------------------------------------------------------------------------------------- comparison


def squash(text: str) -> str:
    """Letters and digits only; every sign of a mask is a star."""
    text = text.casefold()
    if re.fullmatch(r"[x*•#]{3}-?[x*•#]{2}-?\d{4}", text.strip()):
        return f"*****{text.strip()[-4:]}"
    return re.sub(r"[^a-z0-9*]", "", text)


def amount_of(text: str) -> tuple[str, Decimal] | None:
    """Code and amount, or an amount alone with an empty code."""
    match = re.fullmatch(r"([a-z]{0,2})(\(?)(-?)(\d+(?:\.\d*)?)(\)?)(-?)", re.sub(r"[$,\s:]", "", text.casefold()))
    if not match:
        return None
    code, opening, minus, digits, _, trailing = match.groups()
    try:
        amount = Decimal(digits)
    except InvalidOperation:
        return None
    return code, -amount if opening or minus or trailing else amount


def words_of(text: str) -> frozenset[str]:
    """The words of a name or an address."""
    return frozenset(re.findall(r"[a-z0-9]+", text.casefold().replace("'", "")))


def day_of(text: str) -> str:
    """A date as year, month and day; other texts as they are."""
    return re.sub(r"(\d{1,2})/(\d{1,2})/(\d{4})", lambda day: f"{day[3]}-{day[1]:0>2}-{day[2]:0>2}", text.strip())


def is_same(wanted: str, read: str, optional: str = "") -> bool:
    """Whether a value read is the value that the form prints."""
    if wanted == "X":
        return read.strip().casefold() in TICKED
    wanted, read = day_of(wanted), day_of(read)
    if squash(wanted) == squash(read) and wanted.startswith(("(", "-")) == read.strip().startswith(("(", "-")):
        return "." not in wanted or amount_of(wanted) == amount_of(read)
    if amount_of(wanted) is not None:
        return amount_of(wanted) == amount_of(read)
    if not re.search(r"[a-z]", wanted.casefold()) or not read.strip():
        return False
    return words_of(wanted) <= words_of(read) <= words_of(wanted) | words_of(optional)


# ------------------------------------------------------------------------------------------------------ judging


@dataclass
class Verdict:
    """What one extraction makes of one form."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)


def _parts_of(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[;|\n]", text) if part.strip()]


def _read(fields: dict[str, FieldValue], name: str) -> str | None:
    known = fields.get(name)
    return known.value if known is not None and known.is_found else None


def _is_right(form: Form, fields: dict[str, FieldValue], name: str) -> tuple[bool, str | None]:
    """Whether the box is right, and what was read."""
    read = _read(fields, name)
    second = _SECOND.fullmatch(name)
    if read is None and second:
        for other in (f"{second[1]}b", f"{second[1]}_second"):
            read = read or _read(fields, other)
        rows = _parts_of(_read(fields, second[1]) or "")
        read = read or (rows[1] if len(rows) > 1 else None)
    if read is None:
        return False, None
    readings = [read]
    if f"{name}_2" in form.values:
        readings += _parts_of(read)[:1]
    wanted, optional = form.values[name], form.optional.get(name, "")
    return any(is_same(wanted, reading, optional) for reading in readings), read


def judge(form: Form, extraction: Extraction) -> Verdict:
    """Compare the fields of an extraction with what the form prints."""
    verdict = Verdict()
    known = _known_names(form.kind)
    for name, wanted in form.values.items():
        is_right, read = _is_right(form, extraction.fields, name)
        if is_right:
            verdict.right += 1
        elif read is None:
            verdict.missed.append(f"{name}: {wanted!r} not read")
        else:
            verdict.wrong.append(f"{name}: {wanted!r} read as {read!r}")
    printed = {squash(text) for text in form.printed} | {squash(text) for text in form.values.values()}
    for name, claim in extraction.fields.items():
        if name in form.values or name in _NOT_JUDGED or not claim.is_found or not claim.value:
            continue
        if claim.value.strip().casefold() in UNTICKED and name not in _money_names(form.kind):
            continue
        if name not in known and squash(claim.value) in printed:
            continue
        verdict.invented.append(f"{name}: {claim.value!r} invented")
    return verdict


_PEOPLE = ("payer_tin", "payer_name", "recipient_tin", "recipient_name", "recipient_street", "recipient_city")
_TEMPLATES = {template.name: template for template in list_field_templates("tax")}


def _known_names(kind: str) -> frozenset[str]:
    template = _TEMPLATES.get(kind)
    names = {each.name for each in template.fields} if template else {*_PEOPLE, *(f"box_{n}" for n in range(1, 20))}
    return frozenset(name for name in names if not _SECOND.fullmatch(name))


def _money_names(kind: str) -> frozenset[str]:
    template = _TEMPLATES.get(kind)
    return frozenset(each.name for each in template.fields if each.format == "currency") if template else frozenset()


@dataclass
class Outcome:
    """One form of a layout as it was read."""

    layout: str
    form: Form
    extraction: Extraction | None
    verdict: Verdict
    accepted_wrong: list[str]

    @property
    def is_filled(self) -> bool:
        """Whether the form has values."""
        return not self.form.is_blank

    @property
    def is_typed(self) -> bool:
        """Whether the type is right."""
        return self.extraction is not None and self.extraction.document_type == self.form.kind

    @property
    def is_accepted(self) -> bool:
        """Whether no person would see the form."""
        return self.extraction is not None and self.extraction.decision == "AUTO_ACCEPT"

    @property
    def is_called_blank(self) -> bool:
        """Whether the form was taken for a blank one."""
        return self.extraction is not None and self.extraction.stopped_reason == BLANK_FORM


def _faults(form: Form, extraction: Extraction) -> list[str]:
    """What is wrong with accepting this."""
    if extraction.decision != "AUTO_ACCEPT":
        return []
    verdict = judge(form, extraction)
    faults = verdict.wrong + verdict.invented
    faults += [text for text in verdict.missed if text.partition(":")[0] in REQUIRED[form.kind]]
    faults += [f"{name}: not on the form" for name in form.missing]
    faults += [f"type {extraction.document_type}"] if extraction.document_type != form.kind else []
    return faults


def match(layout: str, forms: Sequence[Form], extractions: Sequence[Extraction]) -> list[Outcome]:
    """Give each extraction to the form that it agrees with most; then the best of each form."""
    given: dict[int, list[Extraction]] = {number: [] for number in range(len(forms))}
    spare: list[Extraction] = []
    for extraction in extractions:
        here = [n for n, form in enumerate(forms) if extraction.start_page <= form.page <= extraction.end_page]
        same = [n for n in here if forms[n].kind == extraction.document_type]
        if same:
            given[max(same, key=lambda n: judge(forms[n], extraction).right)].append(extraction)
        elif here:
            spare.append(extraction)
    for mine in given.values():
        if not mine and spare:
            mine.append(spare.pop(0))
    outcomes = []
    for number, form in enumerate(forms):
        verdicts = [(judge(form, extraction), extraction) for extraction in given[number]]
        faults = [fault for extraction in given[number] for fault in _faults(form, extraction)]
        if verdicts:
            best, chosen = max(verdicts, key=lambda pair: (pair[0].right, -len(pair[0].wrong) - len(pair[0].invented)))
            outcomes.append(Outcome(layout, form, chosen, best, faults))
        else:
            nothing = Verdict(missed=[f"{name}: {text!r} not read" for name, text in form.values.items()])
            outcomes.append(Outcome(layout, form, None, nothing, faults))
    extra = [each for each in spare if each.decision == "AUTO_ACCEPT" and each.document_type in REQUIRED]
    if extra and outcomes:
        outcomes[0].accepted_wrong += [f"accepted as {each.document_type}" for each in extra]
    return outcomes


# ------------------------------------------------------------------------------------------------------ reading


def _sources(half: str) -> str:
    """A key that changes with the drawing and with the reader of documents."""
    digest = hashlib.sha256()
    folder = Path(drawing.__file__).parent
    reader = sorted((ROOT / "evalkit" / "documents").rglob("*.py"))
    for path in (folder / "drawing.py", folder / f"{half}.py", *reader):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def read_layout(layout: Layout, way: str, folder: Path, key: str) -> tuple[DocumentBundle, list[Form]]:
    """Draw a layout, make the picture of it, and read that."""
    path, forms = drawing.draw(layout, folder)
    kept = ROOT / ".bench" / "tax_layouts" / key / f"{layout.name}-{way}.json"
    if kept.exists():
        return DocumentBundle.model_validate_json(kept.read_text("utf-8")), forms
    pictures: dict[str, Callable[[Path, Path], None]] = {"scan": drawing.scan, "photo": drawing.photograph}
    if way in pictures:
        picture = folder / f"{layout.name}-{way}.pdf"
        pictures[way](path, picture)
        path = picture
    engine = resolve_ocr_engine("auto")
    settings = PageOcrSettings(engine, SECONDS_PER_PAGE) if engine else None
    bundle = read_document(path, doc_id=path.stem, processing_timestamp=TIMESTAMP, ocr_settings=settings)
    if way in pictures:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(bundle.model_dump_json(), "utf-8")
    return bundle, forms


def run(half: str, way: str, only: str = "") -> Iterator[Outcome]:
    """Read every layout of a half in one way."""
    layouts: list[Layout] = importlib.import_module(f"benchmarks.first_contact.tax_layouts.{half}").layouts()
    key = _sources(half)
    with tempfile.TemporaryDirectory() as folder:
        for layout in layouts:
            if only not in layout.name:
                continue
            bundle, forms = read_layout(layout, way, Path(folder), key)
            extractions = asyncio.run(FormFieldExtractor(EmbeddedModel()).extract_forms(bundle))
            yield from match(layout.name, forms, extractions)


# ----------------------------------------------------------------------------------------------------- printing


def _share(number: int, of: int) -> str:
    estimate = estimate_proportion(number, of)
    if not of:
        return "-"
    return f"{number}/{of} = {number / of:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _box_share(numbers: Sequence[int], boxes: Sequence[int]) -> str:
    if not sum(boxes):
        return "-"
    estimate = estimate_ratio(np.array(numbers, float), np.array(boxes, float), [1.0] * len(boxes))
    return f"{sum(numbers)}/{sum(boxes)} = {sum(numbers) / sum(boxes):.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _print_group(title: str, outcomes: Sequence[Outcome]) -> None:
    filled = [each for each in outcomes if each.is_filled]
    whole = [each for each in filled if not each.form.missing]
    lacking = [each for each in filled if each.form.missing]
    blank = [each for each in outcomes if not each.is_filled]
    boxes = [len(each.form.values) for each in filled]
    print(f"{title}: {len(outcomes)} forms ({len(whole)} complete, {len(lacking)} lack a value, {len(blank)} blank)")
    print(f"  filled boxes right            {_box_share([each.verdict.right for each in filled], boxes)}")
    print(f"  filled boxes wrong            {_box_share([len(each.verdict.wrong) for each in filled], boxes)}")
    print(f"  boxes invented                {sum(len(each.verdict.invented) for each in outcomes)}")
    print(f"  form type right (filled)      {_share(sum(each.is_typed for each in filled), len(filled))}")
    print(f"  complete forms accepted       {_share(sum(each.is_accepted for each in whole), len(whole))}")
    print(
        f"  accepted wrong (0)            {_share(sum(bool(each.accepted_wrong) for each in outcomes), len(outcomes))}"
    )
    print(f"  lacking a value, accepted (0) {_share(sum(each.is_accepted for each in lacking), len(lacking))}")
    print(f"  blank called blank            {_share(sum(each.is_called_blank for each in blank), len(blank))}")
    print(f"  filled called blank (0)       {_share(sum(each.is_called_blank for each in filled), len(filled))}")


def _show(way: str, outcome: Outcome) -> None:
    extraction = outcome.extraction
    read = (
        f"{extraction.document_type}, {extraction.decision}, {extraction.stopped_reason}" if extraction else "no form"
    )
    print(f"{way} {outcome.layout} {outcome.form.kind}: {read}")
    for text in (*outcome.verdict.wrong, *outcome.verdict.invented, *outcome.verdict.missed):
        print(f"    {text}")
    for fault in outcome.accepted_wrong:
        print(f"    ACCEPTED WRONG {fault}")


def main() -> None:
    """Print the figures, by way and by form type."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--half", choices=("open", "sealed"), default="open")
    options.add_argument("--as", dest="way", choices=(*WAYS, "all"), default="text")
    options.add_argument("--only", default="", help="only layouts whose name contains this")
    options.add_argument("--show", action="store_true", help="print what was not right; made-up people only")
    arguments = options.parse_args()
    for way in WAYS if arguments.way == "all" else (arguments.way,):
        outcomes = list(run(arguments.half, way, arguments.only))
        if arguments.show:
            for outcome in outcomes:
                _show(way, outcome)
        _print_group(f"{way}, all types", outcomes)
        for kind in Counter(each.form.kind for each in outcomes):
            _print_group(f"{way}, {kind}", [each for each in outcomes if each.form.kind == kind])


if __name__ == "__main__":
    main()
