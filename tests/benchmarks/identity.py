"""How rightly pages and files are told apart by person: ``python -m benchmarks.identity TRUTH [OUTPUT] [--reread]``.

``TRUTH`` is the folder that ``benchmarks.identity_packets.build`` wrote, or ``benchmarks/identity_labels.jsonl`` (the hand
labels of developers' documents); ``OUTPUT`` the output folder of a run over some of its files. Without it, the files with a text
layer are read here, and V2 is asked about their true documents (of hand-labelled files: about one document). ``--reread`` finds the
identities of the stored pages again, with the rules of this tree, and asks V2 about them. ``--names-only`` asks what V2 says if
the pages behind the first that names its patient stated no birth date and no number.

``python -m benchmarks.identity --drawn 450`` measures packets of labelled texts instead, on whose papers persons are often named
by name alone: of how many with one person, and of how many with several, V2 asks about the true documents.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.first_contact.papers import build_answer
from benchmarks.labelled_texts import examples
from benchmarks.measuring import DATA, bundles_of
from benchmarks.packets import names_somebody
from benchmarks.packets import packets as draw_packets

from evalkit.classification.patient_check import ANY_PATIENT, find_patient_issues
from evalkit.classification.schema import ClassificationOutput
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.documents.identity.person_name import NameAgreement, compare_names, parse_person_name
from evalkit.documents.identity.written_dates import (
    DateRelation,
    compare_birth_dates,
    parse_written_date,
    replace_letters_misread_for_digits,
)

KIND_BY_LABEL = {"record": "mrn"}
NATIONAL_ISSUERS = ("NHS", "CHI", "health card", "national identity")
"""Their numbers are not in the truth."""
DRAWN_SEED = 41
NUMBER_KINDS = ("mrn", "account", "accession", "visit")


@dataclass(frozen=True)
class PrintedPage:
    """What a page prints of its person."""

    layout: str
    name: str | None
    birth_date: str | None
    numbers: frozenset[tuple[str, str]]
    """Kind and number."""


@dataclass(frozen=True)
class TrueFile:
    """A file with the truth about it."""

    doc_id: str
    kind: str
    expected: str
    """``one``, ``several`` or ``mixed``."""
    pages: tuple[PrintedPage, ...]
    path: Path
    """The file."""
    documents: tuple[tuple[int, int, str], ...]
    """First page, last page and type of each document, without pages of others inside one; empty if unknown."""


def read_truth(path: Path) -> Iterator[TrueFile]:
    """Read the truth of drawn packets (a folder), or hand labels (a file)."""
    lines = (path / "truth.jsonl" if path.is_dir() else path).read_text("utf-8").splitlines()
    for truth in map(json.loads, lines):
        doc_id = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(truth["file"]).stem)
        if "expected" in truth:
            kind = f"{truth['kind']} {'fax' if truth['fax'] else 'text'}"
            pages = [
                (page["layout"], page, zip(page["number_kinds"], page["numbers"], strict=True))
                for page in truth["pages"]
            ]
            expected, folder = truth["expected"], path
        else:
            kind, expected = truth["folder"], "several" if truth["several"] else "one"
            folder = DATA.parent / truth["folder"]
            pages = [
                (
                    kind,
                    page["printed"],
                    ((number["kind"], number["number"]) for number in page["printed"]["numbers"]),
                )
                for page in truth["pages"]
            ]
        yield TrueFile(
            doc_id,
            kind,
            expected,
            tuple(
                PrintedPage(
                    layout,
                    printed["name"],
                    printed["birth_date"],
                    frozenset((KIND_BY_LABEL.get(kind, kind), strip_number(number)) for kind, number in numbers),
                )
                for layout, printed, numbers in pages
            ),
            folder / truth["file"],
            tuple(
                (document["start_page"], document["end_page"], document["type"])
                for document in truth.get("documents", ())
                if document["start_page"] not in truth["foreign_pages"]
            ),
        )


def strip_number(number: str) -> str:
    """Letters and digits alone."""
    return re.sub(r"\W", "", number).upper()


def judge_name(printed: str | None, page: Page, *, is_recognised: bool) -> str:
    """``found``, ``shorter``, ``missed``, ``wrong``, ``absent`` or ``invented``."""
    value = next((identifier.value for identifier in page.identifiers if identifier.kind == "patient"), None)
    if printed is None or value is None:
        return {(True, True): "absent", (True, False): "invented"}.get((printed is None, value is None), "missed")
    names = parse_person_name(printed), parse_person_name(value)
    relation = compare_names(*names, is_ocr_text=is_recognised) if all(names) else NameAgreement.DIFFER
    return {NameAgreement.AGREE: "found", NameAgreement.COMPATIBLE: "shorter"}.get(relation, "wrong")


def judge_birth_date(printed: str | None, page: Page) -> str:
    """As ``judge_name``."""
    value = next((identifier.value for identifier in page.identifiers if identifier.kind == "date_of_birth"), None)
    if printed is None or value is None:
        return {(True, True): "absent", (True, False): "invented"}.get((printed is None, value is None), "missed")
    dates = (
        parse_written_date(printed),
        parse_written_date(value) or parse_written_date(replace_letters_misread_for_digits(value)),
    )
    return "found" if all(dates) and compare_birth_dates(*dates) is not DateRelation.DIFFER else "wrong"


def judge_numbers(printed: frozenset[tuple[str, str]], page: Page) -> Iterator[str]:
    """For each number ``mrn found``, ``mrn of another kind``, ``mrn missed`` or ``mrn invented``."""
    found = {
        (identifier.kind, strip_number(identifier.value))
        for identifier in page.identifiers
        if identifier.kind in NUMBER_KINDS
    }
    national = {
        strip_number(identifier.value) for identifier in page.identifiers if identifier.issuer in NATIONAL_ISSUERS
    }
    for kind, number in printed:
        is_of_other_kind = any(number == found_number for _, found_number in found)
        yield f"{kind} {'found' if (kind, number) in found else 'of another kind' if is_of_other_kind else 'missed'}"
    for kind, number in found:
        if number not in national and not any(number == printed_number for _, printed_number in printed):
            yield f"{kind} invented"


def reread_identities(bundle: DocumentBundle) -> DocumentBundle:
    """The bundle with the identities that today's rules find."""
    pages = [
        page.model_copy(update={"identifiers": find_patient_identifiers(page.text, page.words, page.confidences)})
        for page in bundle.pages
    ]
    return bundle.model_copy(update={"pages": tuple(pages)})


def strike_all_but_names(bundle: DocumentBundle) -> DocumentBundle:
    """The bundle whose pages, behind the first that names its patient, state names alone."""
    named = (page.page_num for page in bundle.pages if any(fact.kind == "patient" for fact in page.identifiers))
    first = next(named, bundle.total_pages)
    pages = [
        page.model_copy(update={"identifiers": tuple(fact for fact in page.identifiers if fact.kind == "patient")})
        if page.page_num > first
        else page
        for page in bundle.pages
    ]
    return bundle.model_copy(update={"pages": tuple(pages)})


def load_bundle_and_answer(
    file: TrueFile, output: Path | None
) -> tuple[DocumentBundle, ClassificationOutput | None] | None:
    """The bundle and the answer about a file: those of a run, or the file read now and its true documents.

    None if the run has not read it, or if there is no such file with a text layer.
    """
    if output:
        bundle_path = output / "document_bundles" / f"{file.doc_id}.json"
        if not bundle_path.exists():
            return None
        stored = json.loads((output / "results" / f"{file.doc_id}.json").read_text("utf-8")).get("classification")
        answer = ClassificationOutput.model_validate(stored) if stored else None
        return DocumentBundle.model_validate_json(bundle_path.read_text("utf-8")), answer
    if file.kind.endswith("fax") or not file.path.exists():
        return None
    (bundle,) = bundles_of([file.path])
    if not any(page.words for page in bundle.pages):
        return None
    documents = file.documents or ((1, bundle.total_pages, "Other"),)
    return bundle, ClassificationOutput.model_validate(build_answer(bundle, documents))


def list_patient_codes(answer: ClassificationOutput | None, bundle: DocumentBundle) -> set[str]:
    """The codes that V2 raises about whose pages these are."""
    return {issue.code for issue in find_patient_issues(answer, bundle, ANY_PATIENT)} if answer else set()


def is_named_rightly(expected: str, codes: set[str]) -> bool:
    """Whether V2 says what a file's truth expects: nothing, any of its codes, or a foreign page."""
    if expected == "mixed":
        return "V2-PATIENT-MIXED" in codes
    return bool(codes) is (expected == "several")


def print_counts(title: str, counts: Counter[str]) -> None:
    """Print ``title: 3 found, 1 missed``."""
    print(f"{title}: {', '.join(f'{count} {judgement}' for judgement, count in sorted(counts.items()))}")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("truth", type=Path, nargs="?")
    parser.add_argument("output", type=Path, nargs="?")
    parser.add_argument("--reread", action="store_true", help="find the identities of the stored pages again")
    parser.add_argument(
        "--names-only", action="store_true", help="strike birth dates and numbers behind the first page"
    )
    parser.add_argument("--drawn", type=int, metavar="COUNT", help="draw so many packets of labelled texts instead")
    parser.add_argument("--show", default="none", help="print what is judged so: 'missed', 'wrong', 'file', 'layout' …")
    return parser.parse_args()


def judge_page(printed: PrintedPage, page: Page) -> list[str]:
    """List what became of the page's name, birth date and numbers: ``name found``, ``mrn missed`` …."""
    return [
        f"name {judge_name(printed.name, page, is_recognised=bool(page.confidences))}",
        f"birth date {judge_birth_date(printed.birth_date, page)}",
        *judge_numbers(printed.numbers, page),
    ]


def measure_drawn_packets(count: int, *, are_names_only: bool) -> None:
    """Print how many drawn packets V2 asks about, by the number of persons that their pages print."""
    asked, drawn = Counter(), Counter()
    nameless_texts = [text for text in examples() if not names_somebody(text.text)]
    for packet in draw_packets(nameless_texts, count, seed=DRAWN_SEED):
        answer = ClassificationOutput.model_validate(build_answer(packet.bundle, packet.truth))
        bundle = strike_all_but_names(packet.bundle) if are_names_only else packet.bundle
        codes = list_patient_codes(answer, bundle)
        kind = "several persons" if len({*packet.patients} - {""}) > 1 else "one person"
        drawn[kind] += 1
        asked[kind] += bool(codes)
        if codes:
            print(f"  {packet.bundle.doc_id}, {kind}: {packet.patients}; {sorted(codes)}")
    for kind, kind_count in sorted(drawn.items()):
        print(f"drawn packets, {kind}: {asked[kind]} of {kind_count} asked about")


def main() -> None:
    """Print for pages and for each kind of file how many of how many are right."""
    arguments = parse_arguments()
    if arguments.drawn:
        measure_drawn_packets(arguments.drawn, are_names_only=arguments.names_only)
        return
    counts_by_layout: dict[str, Counter[str]] = {}
    file_counts, right_counts = Counter(), Counter()
    for file in read_truth(arguments.truth):
        loaded = load_bundle_and_answer(file, arguments.output)
        if loaded is None:
            continue
        bundle, answer = loaded
        bundle = reread_identities(bundle) if arguments.reread else bundle
        for printed, page in zip(file.pages, bundle.pages, strict=True):
            judgements = judge_page(printed, page)
            counts_by_layout.setdefault(printed.layout, Counter()).update(judgements)
            for judgement in filter(lambda judgement: arguments.show in judgement, judgements):
                read = {identifier.kind: identifier.value for identifier in page.identifiers}
                print(f"  {file.doc_id} page {page.page_num} ({printed.layout}), {judgement}: {printed}; read {read}")
        codes = list_patient_codes(answer, strike_all_but_names(bundle) if arguments.names_only else bundle)
        is_right = is_named_rightly(file.expected, codes)
        file_counts[file.kind] += 1
        right_counts[file.kind] += is_right
        if arguments.show == "file" and not is_right:
            print(f"  {file.doc_id}, {file.kind}: {file.expected}; {sorted(codes)}")
    print_counts("pages", sum(counts_by_layout.values(), Counter()))
    for kind, count in sorted(file_counts.items()):
        print(f"{kind}: {right_counts[kind]} of {count} files")
    for layout, layout_counts in sorted(counts_by_layout.items()) if arguments.show == "layout" else ():
        print_counts(f"  {layout}", layout_counts)


if __name__ == "__main__":
    main()
