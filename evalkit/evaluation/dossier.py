"""The dossier for an AI committee: one HTML file with all numbers and sources.

The file contains the digests of all record files. With them every number can be computed again from the folder as it was,
and each change of the file or of a record can be named.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd

from evalkit.core.grouping import group_by
from evalkit.core.records import StrictRecord
from evalkit.core.safe_io import read_regular_file
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.evaluation import attention_checks, document_type_scores, headline_estimates, plots, reviewer_performance
from evalkit.evaluation.certificate import compute_certificates
from evalkit.evaluation.private_files import write_private_file
from evalkit.evaluation.report import (
    SIMULATED_WARNING,
    EvaluationFigure,
    EvaluationReport,
    EvaluationSection,
    EvaluationTable,
    convert_report_to_json,
    format_cell,
    load_template_environment,
    tabulate_measures,
    warn_about_learned_documents,
)
from evalkit.evaluation.study import DocumentRecord, ReviewRecord, Study, read_folder_study
from evalkit.pipeline.audit.file_digests import (
    COVERED_FOLDERS,
    FolderChanges,
    FolderComparison,
    FolderDigests,
    PastOutputFolder,
    compute_folder_digests,
    create_hasher,
)
from evalkit.pipeline.audit.verify import IntegrityFault, verify_integrity
from evalkit.pipeline.event_log import EventKind, LoggedEvent, append_event, read_events
from evalkit.pipeline.purge import read_purge_records
from evalkit.pipeline.strata import StratumKey
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.settings import CertificateSettings, Settings
from evalkit.store import EVENTS_FOLDER, INTENDED_USE_FILE, PATIENT_SALT_FILE, OutputFolder, event_file_name

SCHEMA_VERSION = 1

#: Strata with fewer documents than the largest ones are counted together.
_MAX_STRATA = 24
#: Maximum number of differing lines of a dossier that are named one by one.
_MAX_NAMED_LINES = 20
_BLANK_SEAL = "0" * 64
_SEAL_PATTERN = re.compile(r'<code id="seal">([0-9a-f]{64})</code>')
_BASIS_PATTERN = re.compile(r'<script type="application/json" id="basis">(.*?)</script>', re.DOTALL)
#: The settings on which the figures and the supervision depend.
_SHOWN_SETTINGS = (
    *("profile", "reader", "languages", "patients", "show_production", "on_agent_failure", "lossless_repair"),
    *("audit_rate_start", "audit_target", "audit_rate", "certificate"),
)
_REVIEWER_COLUMNS = {
    "quickest_tenth": "seconds of the quickest tenth",
    "same_shown": "program's type, where shown",
    "same_hidden": "program's type, where hidden",
}
_OUTCOME_COLOURS = {"validated": "#0b5cad", "corrected": "#b8740a", "undeterminable": "#667085", "reopened": "#b42318"}
_CERTIFICATE_KINDS: tuple[EventKind, ...] = ("certified", "certificate_withdrawn")
_TRUTH_SCORES = (headline_estimates.score_agent_type, headline_estimates.score_agent_segmentation)
_LEARNING_KINDS: tuple[EventKind, ...] = ("promoted", "promotion_reversed")
_DRIFT_TEXT = (
    "If audits find more errors than before, the brake is put on: from then on every accepted document of that stratum is "
    "checked by an expert, until the stratum is released."
)
_LEARNING_TEXT = (
    "What the program learned from this site's reviews. A newly learned model replaces the one in force only by an analyst's "
    "command, after it was compared with it on later documents. Without such an event, the model is the one that was delivered."
)
_REMEDY = "Compare the dossier with its paper copy or with the file that was handed over, or write a new dossier."


class DossierBasis(StrictRecord):
    """The records of a dossier, from which it can be computed again."""

    schema_version: int = SCHEMA_VERSION
    made_at: str
    """Time of the dossier (ISO 8601, UTC)."""
    program: dict[str, str]
    """Versions of the programs that compute the figures and draw the plots."""
    settings: dict[str, str]
    """The settings in force, by name."""
    has_reviewer_names: bool
    """False if reviewers appear as numbers."""
    fault_count: int
    """Number of faults that `audit verify` found."""
    digests: FolderDigests
    sections: list[dict[str, Any]]
    """All tables, with their numbers unrounded."""


# ------------------------------------------------------------------------------------------------------ writing


def write_dossier(
    output_folder: OutputFolder, html_path: Path, settings: Settings, *, made_at: str
) -> EvaluationReport:
    """Write an output folder's dossier, and record it in the folder's log.

    ``made_at`` is ISO 8601 in UTC. UsageError if the file cannot be written; StoreError.
    """
    fault_count = len(verify_integrity(output_folder).faults)
    hasher = create_hasher(output_folder)
    digests = compute_folder_digests(output_folder, hasher)
    basis = DossierBasis(
        made_at=made_at,
        program=_read_program_versions(),
        settings=_describe_settings(settings),
        has_reviewer_names=settings.dossier.reviewer_names,
        fault_count=fault_count,
        digests=digests,
        sections=[],
    )
    # From here on, only what the digests cover is read: experts may work meanwhile.
    report = build_dossier(PastOutputFolder(output_folder, digests, hasher), basis)
    basis = basis.model_copy(update={"sections": convert_report_to_json(report)["sections"]})
    html = render_dossier(report, basis)
    write_private_file(html, html_path, error_code="DOSSIER", remedy="Name another output file with --to.")
    with hold_case_write_lock(output_folder):
        append_event(
            output_folder,
            "dossier_written",
            recorded_at=made_at,
            facts={"sha256": hashlib.sha256(html.encode()).hexdigest(), "seal": _read_seal(html)},
        )
    return report


def _read_program_versions() -> dict[str, str]:
    return {name: version(name) for name in ("evalkit", "matplotlib", "numpy", "scipy")}


def _describe_settings(settings: Settings) -> dict[str, str]:
    values = settings.model_dump(mode="json", include={*_SHOWN_SETTINGS, "models"})
    return {
        f"{name} {part_name}".strip(): format_cell(part)
        for name, value in values.items()
        for part_name, part in (value if isinstance(value, dict) else {"": value}).items()
        if part is not None
    }


def render_dossier(report: EvaluationReport, basis: DossierBasis) -> str:
    """Render the dossier as HTML.

    Its seal is the SHA-256 of the whole file, with zeros for the seal.
    """
    basis_json = basis.model_dump_json().replace("<", "\\u003c")
    template = load_template_environment().get_template("dossier.html.j2")
    html = template.render(report=report, basis=basis, basis_json=basis_json, seal=_BLANK_SEAL)
    return html.replace(_BLANK_SEAL, _compute_seal(html, _BLANK_SEAL))


def _compute_seal(html: str, present_seal: str) -> str:
    text = html.replace(present_seal, _BLANK_SEAL)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _read_seal(html: str) -> str:
    return match[1] if (match := _SEAL_PATTERN.search(html)) else ""


# ------------------------------------------------------------------------------------------------------ checking


@dataclass(frozen=True)
class DossierVerification:
    """Result of comparing a dossier with its output folder."""

    faults: tuple[IntegrityFault, ...]
    """What was changed, in the dossier or in the records on which it rests."""
    notes: tuple[str, ...]
    """Sentences about what was added or purged since."""


def verify_dossier(output_folder: OutputFolder, html_path: Path, *, fault_count: int) -> DossierVerification:
    """Compute a dossier again from the earlier state of its records, and compare.

    ``fault_count`` is the number of faults that ``verify_integrity`` finds now. UsageError if the file cannot be read.
    """
    html = _read_dossier_text(html_path)
    faults = list(_check_log_and_seal(output_folder, html_path, html))
    is_logged = not faults
    basis_match = _BASIS_PATTERN.search(html)
    try:
        basis = DossierBasis.model_validate_json(basis_match[1] if basis_match else "")
    except ValueError:  # also if it is no text
        faults.append(_blame(html_path, "its block of numbers and hashes was changed so that it cannot be read"))
        return DossierVerification(tuple(faults), ())
    if not output_folder.has_file(PATIENT_SALT_FILE):
        faults.append(
            IntegrityFault(PATIENT_SALT_FILE, "it is missing", "Restore it from a backup: names are hashed with it.")
        )
        return DossierVerification(tuple(faults), ())
    comparison = FolderComparison(output_folder, basis.digests)
    changes = comparison.find_changes()
    faults += changes.changed
    notes = [*changes.notes, *_describe_additions(changes, is_logged=is_logged)]
    if basis.fault_count != fault_count:
        faults.append(_blame(html_path, f"it states {basis.fault_count} damaged records; now there are {fault_count}"))
    try:
        report = build_dossier(comparison.past_folder, basis)
    except EvalkitError as error:
        faults.append(_blame(html_path, f"its numbers cannot be computed again: {error.message}"))
        return DossierVerification(tuple(faults), tuple(notes))
    differences = list(_compare_numbers(basis.sections, convert_report_to_json(report)["sections"]))
    if basis.program == _read_program_versions():
        differences += _compare_text(html, render_dossier(report, basis))
    else:
        notes.append(
            "The dossier was made with other versions of evalkit or of its libraries: only its numbers are compared."
        )
    if is_logged and changes.purged_count and not changes.changed:
        notes += [
            f"No longer to be computed, because documents were purged: {difference}" for difference in differences
        ]
    else:
        faults += [_blame(html_path, difference) for difference in differences]
    return DossierVerification(tuple(faults), tuple(notes))


def _read_dossier_text(html_path: Path) -> str:
    try:
        return read_regular_file(html_path).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(
            f"{html_path} cannot be read ({error.strerror})",
            code="AUDIT-DOSSIER",
            remedy="Give a file that `evalkit dossier --to FILE` wrote.",
        ) from None


def _blame(html_path: Path, what: str) -> IntegrityFault:
    return IntegrityFault(str(html_path), what, _REMEDY)


def _check_log_and_seal(output_folder: OutputFolder, html_path: Path, html: str) -> Iterator[IntegrityFault]:
    try:
        logged = [event.facts for event in _select_events(read_events(output_folder), "dossier_written")]
    except StoreError:  # `verify_integrity` reports it
        logged = []
    seal = _read_seal(html)
    content = html.encode("utf-8", "surrogateescape")
    if hashlib.sha256(content).hexdigest() not in {facts.get("sha256") for facts in logged}:
        is_known = seal in {facts.get("seal") for facts in logged}
        what = "it was changed after it was made" if is_known else "the folder's log has no dossier with this hash"
        yield _blame(html_path, f"{what}: its SHA-256 is another one than the log has")
    if not seal or seal != _compute_seal(html, seal):
        yield _blame(html_path, "its seal does not fit its content")


def _describe_additions(changes: FolderChanges, *, is_logged: bool) -> Iterator[str]:
    own_event = Counter({COVERED_FOLDERS[EVENTS_FOLDER]: 1} if is_logged else {})
    if added_counts := Counter(changes.added) - own_event:
        added = ", ".join(f"{count} {what}" for what, count in sorted(added_counts.items()))
        yield f"Added since the dossier was made, and left out of the comparison: {added}."
    if changes.purged_count:
        yield f"Removed since by recorded purges: {changes.purged_count} files."


def _compare_numbers(stated: Any, computed: Any, place: str = "") -> Iterator[str]:
    """Yield a sentence for each number or text that differs from the computed one."""
    if isinstance(stated, dict) and isinstance(computed, dict) and stated.keys() == computed.keys():
        for key in stated:
            yield from _compare_numbers(stated[key], computed[key], f"{place}, {key}" if place else key)
    elif isinstance(stated, list) and isinstance(computed, list) and len(stated) == len(computed):
        for number, (stated_item, computed_item) in enumerate(zip(stated, computed, strict=True), 1):
            name = (
                computed_item.get("title") or computed_item.get("caption") if isinstance(computed_item, dict) else None
            )
            item_place = f"“{name}”" if name else f"row {number}"
            yield from _compare_numbers(stated_item, computed_item, f"{place}, {item_place}" if place else item_place)
    elif stated != computed or type(stated) is not type(computed):
        yield f"number in {place}: it states {_shorten(stated)}; the records give {_shorten(computed)}"


def _shorten(value: Any) -> str:
    text = f"{len(value)} entries" if isinstance(value, list | dict) else str(value)
    text = text.encode("utf-8", "replace").decode()  # a changed byte may be no text
    return text if len(text) <= 80 else f"{text[:79]}…"


def _compare_text(html: str, expected_html: str) -> Iterator[str]:
    """Yield the place of each line that differs from the file as it must be."""
    lines, expected_lines = html.split("\n"), expected_html.split("\n")
    section = table = "the head"
    difference_count = 0
    for line, expected in zip_longest(lines, expected_lines, fillvalue=""):
        if match := re.match(
            r"(?:<figure><div[^>]*>)?<(h2|caption|svg|footer|script)[^>]*>(?:\d+\. )?([^<]*)", expected
        ):
            section = match[2] if match[1] == "h2" else section
            table = {"caption": f", table “{match[2]}”", "svg": ", plot"}.get(match[1], "")
            section = {"footer": "the seal", "script": "the block of numbers and hashes"}.get(match[1], section)
        if line != expected:
            difference_count += 1
            if difference_count <= _MAX_NAMED_LINES:
                yield f"visible text in “{section}”{table}: it shows “{_strip_tags(line)}” instead of “{_strip_tags(expected)}”"
    if difference_count > _MAX_NAMED_LINES:
        yield f"{difference_count - _MAX_NAMED_LINES} further lines differ"


def _strip_tags(line: str) -> str:
    return _shorten(re.sub(r"<[^>]*>", " ", line).strip() or line.strip())


# ------------------------------------------------------------------------------------------------------ sections


def build_dossier(output_folder: OutputFolder, basis: DossierBasis) -> EvaluationReport:
    """Build the sections of a dossier from the records of an output folder."""
    study = read_folder_study(output_folder)
    events = study.events
    name_person = _choose_person_names(study, events, has_names=basis.has_reviewer_names)
    simulated_warning = SIMULATED_WARNING.format(count=study.simulated_review_count, of=len(study.reviews))
    warnings = [
        *([simulated_warning] if study.simulated_review_count else ()),
        *warn_about_learned_documents(study),
        *([f"{len(study.problems)} record files are damaged, and missing from the figures."] if study.problems else ()),
    ]
    return EvaluationReport(
        basis.made_at,
        study,
        tuple(warnings),
        (
            _build_summary_section(study, events, basis),
            EvaluationSection("use", "Intended use", _read_intended_use(output_folder)),
            _build_versions_section(study, basis),
            _build_validation_section(study),
            _build_certificate_section(study, events, name_person),
            _build_log_section("drift", "Drift and brake", _DRIFT_TEXT, study, ("braked", "released"), name_person),
            _build_incidents_section(output_folder, study),
            _build_log_section("learning", "Learning", _LEARNING_TEXT, study, _LEARNING_KINDS, name_person),
            _build_oversight_section(study, name_person),
            _build_records_section(events, basis),
        ),
    )


def _build_summary_section(study: Study, events: Sequence[LoggedEvent], basis: DossierBasis) -> EvaluationSection:
    accepted = [document for document in study.documents if document.is_accepted]
    strata_now = {event.stratum: event.kind for event in _select_events(events, "braked", "released")}
    rows: list[tuple[str, Any]] = [
        ("documents processed", len(study.documents)),
        ("of these accepted without a person", len(accepted)),
        ("documents decided by a reviewer", len(study.reviewed_documents)),
        *(
            (
                f"{name}, all accepted documents",
                headline_estimates.estimate_headline("", "", accepted, measure).estimate,
            )
            for name, measure in (("right type", _TRUTH_SCORES[0]), ("all segments right", _TRUTH_SCORES[1]))
            if accepted
        ),
        ("strata with a certificate now", len(_list_certified_strata(study, events)[0])),
        ("strata with the brake on now", sum(kind == "braked" for kind in strata_now.values())),
        ("records found changed or missing", basis.fault_count),
    ]
    return EvaluationSection(
        "summary",
        "In short",
        "The figures that decide, each explained in its section below. A range in brackets is a 95 % interval. A segment is "
        "one document in a file of several. A stratum is all documents of one type from one source folder; for certificates "
        "also of one reader, model and set of versions.",
        (EvaluationTable("This site today", pd.DataFrame(rows, columns=["what", "figure"])),),
    )


def _read_intended_use(output_folder: OutputFolder) -> str:
    if output_folder.has_file(INTENDED_USE_FILE):
        return output_folder.read_bytes(INTENDED_USE_FILE).decode("utf-8", "replace")
    return (files("evalkit.evaluation") / INTENDED_USE_FILE).read_text("utf-8")


def _choose_person_names(study: Study, events: Sequence[LoggedEvent], *, has_names: bool) -> Callable[[str], str]:
    people = {review.reviewer for review in study.reviews} | {event.recorded_by for event in events}
    people |= {check.reviewer for check in study.attention_checks if check.reviewer}
    numbered = {name: f"Person {number}" for number, name in enumerate(sorted(people - {"evalkit"}), 1)}
    return lambda name: name if has_names else numbered.get(name, name)


def _build_versions_section(study: Study, basis: DossierBasis) -> EvaluationSection:
    version_counts = Counter(part for document in study.documents for part in document.versions.items())
    prompts, others = (
        [
            (name, value, count)
            for (name, value), count in sorted(version_counts.items())
            if name.startswith("prompt ") is is_prompt
        ]
        for is_prompt in (True, False)
    )
    prompt_rows = [
        ("prompts", ", ".join(f"{name.removeprefix('prompt ')} {value}" for name, value, _ in group), count)
        for count, group in group_by(prompts, lambda row: row[2]).items()
    ]
    return EvaluationSection(
        "versions",
        "What makes the decisions",
        "Program, models, prompts, tables of rules and reader, each with the number of documents whose present answer it "
        "made. A document whose answer was made with other versions must not be judged by the figures of these.",
        (
            EvaluationTable("Versions of the strata", study.versions_frame()),
            EvaluationTable(
                "Each version", pd.DataFrame([*others, *prompt_rows], columns=["component", "version", "documents"])
            ),
            EvaluationTable(
                "Settings in force when the dossier was made",
                pd.DataFrame(list(basis.settings.items()), columns=["setting", "value"]),
            ),
        ),
    )


def _build_validation_section(study: Study) -> EvaluationSection:
    headline_rows = [
        {
            "figure": headline.name,
            "of": headline.population_description,
            "documents": headline.population_size,
            "reviewed": headline.reviewed_count,
            "estimate": headline.estimate,
            "these documents only": headline.archive_estimate,
        }
        for headline in headline_estimates.estimate_headlines(study)
    ]
    type_rows = [
        (scores.type_name, scores.document_count, scores.precision, scores.recall, scores.f1)
        for scores in document_type_scores.score_document_types(study)[1]
    ]
    stratum_rows = [
        _describe_stratum(stratum, documents, study.version_labels)
        for stratum, documents in _iterate_strata(study.documents)
    ]
    plotted = {
        " · ".join((row["type"], row["source"], row["versions"])): row["type right"] for row in stratum_rows[:12]
    }
    return EvaluationSection(
        "validation",
        "Local validation",
        "How often the answers are right on this site's own documents. Every estimate is for all documents of its row, also "
        "those that nobody looked at: accepted documents are checked by random draws, and each checked one counts for those "
        "that it stands for. The range in brackets is the 95 % interval. Documents without a decision count as wrong in the "
        "estimate, and as right at the upper end of the interval.",
        (
            EvaluationTable("All documents", pd.DataFrame(headline_rows)),
            EvaluationTable(
                "By true type", pd.DataFrame(type_rows, columns=["type", "reviewed", "precision", "recall", "f1"])
            ),
            EvaluationTable(
                "By stratum: the program's type, source folder, versions",
                pd.DataFrame(stratum_rows),
                "Another model, prompt, table or reader is another stratum, so that nothing is carried over from the old one. "
                "The section “What makes the decisions” lists what the names of versions stand for.",
            ),
        ),
        (
            EvaluationFigure(
                "Type right, by stratum, with 95 % intervals", plots.plot_intervals(plotted, "share right")
            ),
        ),
    )


def _iterate_strata(
    documents: Sequence[DocumentRecord],
) -> Iterator[tuple[StratumKey | None, list[DocumentRecord]]]:
    """Yield each stratum and its documents, largest first.

    The stratum is None for unreadable documents and, last, for the smallest strata.
    """
    documents_by_stratum = group_by(documents, lambda document: document.stratum)
    ranked = sorted(documents_by_stratum.items(), key=lambda item: (-len(item[1]), str(item[0])))
    yield from ranked[:_MAX_STRATA]
    if others := [document for _, group in ranked[_MAX_STRATA:] for document in group]:
        yield None, others


def _describe_stratum(
    stratum: StratumKey | None, documents: Sequence[DocumentRecord], labels: Mapping[tuple[str, ...], str]
) -> dict[str, Any]:
    accepted = [document for document in documents if document.is_accepted]
    type_estimate, segment_estimate, accepted_estimate = (
        headline_estimates.estimate_headline("", "", population, measure)
        for population, measure in (
            (documents, headline_estimates.score_agent_type),
            (documents, headline_estimates.score_agent_segmentation),
            (accepted, headline_estimates.score_agent_type),
        )
    )
    return {
        "type": stratum.document_type if stratum else "unreadable, or smaller strata",
        "source": stratum.source or "unknown" if stratum else "–",
        "versions": labels[stratum[2:]] if stratum else "–",
        "documents": len(documents),
        "accepted": len(accepted),
        "reviewed": type_estimate.reviewed_count,
        "type right": type_estimate.estimate,
        "segments right": segment_estimate.estimate,
        "type right where accepted": accepted_estimate.estimate if accepted else None,
    }


def _list_certified_strata(study: Study, events: Sequence[LoggedEvent]) -> tuple[list[str], list[str]]:
    """List strata with a certificate still proven, and those the next run withdraws."""
    newest = {event.stratum: event for event in _select_events(events, *_CERTIFICATE_KINDS)}
    strata: tuple[list[str], list[str]] = [], []
    for stratum, event in sorted(newest.items()):
        if event.kind == "certified":
            stated = {name: event.facts[name] for name in CertificateSettings.model_fields if name in event.facts}
            try:
                computed = compute_certificates(study, CertificateSettings.model_validate(stated))
            except ValueError:  # a changed event
                computed = []
            is_refuted = not any(certificate.stratum == stratum and certificate.is_in_force for certificate in computed)
            strata[is_refuted].append(stratum)
    return strata


def _build_certificate_section(
    study: Study, events: Sequence[LoggedEvent], name_person: Callable[[str], str]
) -> EvaluationSection:
    history = _select_events(events, *_CERTIFICATE_KINDS)
    newest = {event.stratum: event for event in history}
    valid, refuted = _list_certified_strata(study, events)
    if refuted:
        about = (
            f"{len(valid)} of {len(newest)} strata that ever had a certificate have one now. Do not rely on those of "
            f"{', '.join(map(study.describe_stratum, refuted))}: the records no longer prove them, and the next "
            "run withdraws them."
        )
    elif valid:
        about = f"{len(valid)} of {len(newest)} strata that ever had a certificate have one now."
    elif newest:
        about = "No stratum has a certificate now: all that were granted were withdrawn."
    else:
        about = (
            "No certificate was ever granted: the blind audits so far do not prove a limit of the error rate. Until then, "
            "rely on the estimates above and their intervals."
        )
    return EvaluationSection(
        "certificate",
        "Certificate and its history",
        f"{about} A certificate states a limit of the share of wrong answers among accepted documents. It holds at whatever "
        "moment one looks, and is withdrawn when model, prompt, table or reader change, or when the brake is on.",
        (
            _tabulate_events("Now", study, sorted(newest.values(), key=lambda event: event.stratum), name_person),
            _tabulate_events("History", study, history, name_person),
        ),
    )


def _build_incidents_section(output_folder: OutputFolder, study: Study) -> EvaluationSection:
    accepted = [document for document in study.documents if document.is_accepted]
    scored = [(score(document), document) for document in accepted for score in _TRUTH_SCORES]
    wrong_ids = {document.doc_id for value, document in scored if value == 0}
    validated_faults = sum(check.is_wrongly_validated for check in study.attention_checks)
    error_counts = Counter(document.error_code for document in study.documents if document.error_code)
    rows = [
        ("accepted documents that a review found wrong in type or segments", len(wrong_ids)),
        ("reviews that were reopened", sum(review.outcome == "reopened" for review in study.reviews)),
        ("planted faults that a reviewer did not notice", validated_faults),
        ("record files that are damaged", len(study.problems)),
        *((f"files that could not be processed: {code}", count) for code, count in sorted(error_counts.items())),
    ]
    purges_by_day = group_by(read_purge_records(output_folder), lambda record: record.purged_at[:10])
    purge_rows = [
        (day, len(records), sum(len(chain.reviews) for record in records for chain in record.chains))
        for day, records in sorted(purges_by_day.items())
    ]
    return EvaluationSection(
        "incidents",
        "Incidents and removed documents",
        "What went wrong, and what is no longer there. Of a removed document only hashes are kept.",
        (
            EvaluationTable("Incidents", pd.DataFrame(rows, columns=["what happened", "number"])),
            EvaluationTable(
                "Documents removed by a purge",
                pd.DataFrame(purge_rows, columns=["day", "documents", "reviews removed with them"]),
            ),
        ),
    )


def _build_log_section(
    key: str,
    title: str,
    about: str,
    study: Study,
    kinds: Sequence[EventKind],
    name_person: Callable[[str], str],
) -> EvaluationSection:
    table = _tabulate_events("Events", study, _select_events(study.events, *kinds), name_person)
    return EvaluationSection(key, title, about, (table,))


def _build_oversight_section(study: Study, name_person: Callable[[str], str]) -> EvaluationSection:
    reviewer_table = reviewer_performance.tabulate_reviewer_performance(study)
    check_table = attention_checks.tabulate_reviewer_fault_detection(study.attention_checks)
    check_table = check_table[check_table["fault"] == attention_checks.ALL_FAULTS]
    check_table = check_table[["reviewer", "seen", "noticed", "validated", "share"]]
    signed_counts = Counter((review.outcome, review.signature_meaning or "(not stated)") for review in study.reviews)
    tables = [
        EvaluationTable("Attention checks: planted faults that were noticed", check_table),
        EvaluationTable(
            "Second opinions, given without seeing the first",
            tabulate_measures(reviewer_performance.measure_expert_agreement(study)[1]),
        ),
        EvaluationTable(
            "What reviewers stated by submitting",
            pd.DataFrame(
                [(*key, count) for key, count in sorted(signed_counts.items())],
                columns=["decision", "statement beside the button", "reviews"],
            ),
            "Each review has the reviewer's name, the time and this statement, bound by a hash to the document, to the case "
            "as it was shown, and to the reviews before it. Reviews made before evalkit recorded statements have none.",
        ),
    ]
    if not reviewer_table.empty:
        tables.insert(0, EvaluationTable("By reviewer", reviewer_table.rename(columns=_REVIEWER_COLUMNS)))
    for table in tables:
        if "reviewer" in table.frame:
            table.frame["reviewer"] = table.frame["reviewer"].map(name_person)
    return EvaluationSection(
        "oversight",
        "Human oversight",
        "Who reviewed, how long it took, how far reviewers agree who did not see each other's answers, and how often they "
        "noticed a fault that was planted to test their attention.",
        tuple(tables),
        (_plot_reviews_by_month(study.reviews),) if study.reviews else (),
    )


def _plot_reviews_by_month(reviews: Sequence[ReviewRecord]) -> EvaluationFigure:
    reviews_by_month = group_by(reviews, lambda review: review.submitted_at[:7])
    counts = {
        month: Counter(review.outcome for review in month_reviews)
        for month, month_reviews in sorted(reviews_by_month.items())[-24:]
    }
    return EvaluationFigure("Reviews by month", plots.plot_stacked_bars(counts, _OUTCOME_COLOURS, "reviews"))


def _build_records_section(events: Sequence[LoggedEvent], basis: DossierBasis) -> EvaluationSection:
    digests, counts = basis.digests, basis.digests.count_by_folder()
    rows = [
        (what, counts[folder], digests.compute_folder_digest(folder))
        for folder, what in COVERED_FOLDERS.items()
        if counts[folder]
    ]
    newest_event = digests.files.get(event_file_name(len(events))) if events else None
    dossiers = [
        (event.recorded_at[:16].replace("T", " "), event.facts.get("seal"))
        for event in _select_events(events, "dossier_written")
    ]
    verdict = (
        "When the dossier was made, no record was found changed or missing."
        if not basis.fault_count
        else f"When the dossier was made, {basis.fault_count} records were found changed, missing or unreadable."
    )
    return EvaluationSection(
        "records",
        "Proof that the records are unchanged",
        f"{verdict} Reviews, events and purges are chained by hashes. This file contains the hash of every record, the newest "
        "ones included, so that a later change, removal or exchange of any of them can be named. What is added later is told "
        f"apart. {'The newest event of the log has the SHA-256 ' + newest_event + '.' if newest_event else 'The log has no event yet.'}",
        (
            EvaluationTable("Records", pd.DataFrame(rows, columns=["kind", "files", "SHA-256 of all their hashes"])),
            EvaluationTable(
                "Earlier dossiers of this folder", pd.DataFrame(dossiers, columns=["made at (UTC)", "seal"])
            ),
        ),
    )


def _select_events(events: Sequence[LoggedEvent], *kinds: EventKind) -> list[LoggedEvent]:
    return [event for event in events if event.kind in kinds]


def _tabulate_events(
    caption: str, study: Study, events: Sequence[LoggedEvent], name_person: Callable[[str], str]
) -> EvaluationTable:
    rows = [
        (
            event.recorded_at[:16].replace("T", " "),
            event.kind.replace("_", " "),
            study.describe_stratum(event.stratum),
            name_person(event.recorded_by),
            "; ".join(f"{name.replace('_', ' ')} {format_cell(value)}" for name, value in event.facts.items()),
        )
        for event in events
    ]
    return EvaluationTable(
        caption, pd.DataFrame(rows, columns=["when (UTC)", "what", "stratum", "by", "on what grounds"])
    )
