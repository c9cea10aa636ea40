"""Cases as Label Studio tasks: page images, answers, and labelling config.

The program's answer is left out where the next expert must answer before seeing it. Addresses of pages carry the first
digits of the document's hash, never its name.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.render import encode_webp, open_pdf_to_render, render_opened_page
from evalkit.errors import EvalkitError
from evalkit.evaluation.exports.content import ExportContent, iterate_base_cases
from evalkit.evaluation.exports.export_folder import replace_export_folder
from evalkit.evaluation.label_studio.regions import (
    ANSWER_PREFIX,
    NO_TYPE,
    TRUTH_PREFIX,
    UNDETERMINABLE,
    WORDS_BY_FLAG,
    LabelledAnswer,
    PageSize,
    build_results,
    describe_answer,
)
from evalkit.evaluation.private_files import create_private_file
from evalkit.review import CaseOpinions, GroundTruth, SegmentFlag, compute_packet_digest, describe_issue
from evalkit.review.case_files import read_answering_model_name, read_packet_bundle
from evalkit.review.shown_documents import load_shown_pdf

_PAGE_DPI = 110
#: Names of the pages' folders: so many hexadecimal digits of the document's hash.
_HASH_DIGITS = 12


def write_label_studio_folder(content: ExportContent, target: Path) -> int:
    """Write all classification cases' tasks, config and pages; return the task count.

    A case whose pages cannot be drawn is left out, and named in ``content.problems``.
    """
    with replace_export_folder(target, "labelstudio") as folder:
        (folder / "pages").mkdir(mode=0o700)
        tasks = []
        records = {document.truth.record.doc_id: document.truth.record for document in content.documents}
        for opinions in iterate_base_cases(content):
            if opinions.base_packet.kind != "classification":
                continue
            try:
                tasks.append(_build_task(content, opinions, records, folder, target.name))
            except EvalkitError as error:
                content.problems.append(f"{opinions.base_packet.case_id!r}: {error}")
        create_private_file(folder / "tasks.json", json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
        config = _render_template(
            "label_studio.xml.j2",
            types=list(DocumentType),
            no_type=NO_TYPE,
            undeterminable=UNDETERMINABLE,
            problems=WORDS_BY_FLAG.values(),
        )
        create_private_file(folder / "labelling_config.xml", config)
        readme = _render_template(
            "label_studio_readme.md.j2", task_count=len(tasks), root=target.parent, folder=target.as_posix()
        )
        create_private_file(folder / "README.md", readme)
    return len(tasks)


def _render_template(name: str, **values: Any) -> str:
    from jinja2 import Environment, StrictUndefined  # imported late: few commands need it

    return (
        Environment(undefined=StrictUndefined, autoescape=name.endswith(".xml.j2"), keep_trailing_newline=True)
        .from_string((files("evalkit.evaluation") / "templates" / name).read_text("utf-8"))
        .render(**values)
    )


def must_be_answered_blind(opinions: CaseOpinions) -> bool:
    """Return True if the next expert must answer before the program's answer is shown."""
    is_answered = opinions.get_newest_revision(opinions.base_packet.case_id) > 0
    return opinions.is_opinion_awaited or (opinions.base_packet.is_first_review_blind and not is_answered)


def _build_task(
    content: ExportContent,
    opinions: CaseOpinions,
    records: Mapping[str, GroundTruth],
    folder: Path,
    folder_name: str,
) -> dict[str, Any]:
    packet = opinions.base_packet
    bundle = read_packet_bundle(content.output_folder, packet)
    page_folder = f"pages/{bundle.sha256[:_HASH_DIGITS]}"
    page_sizes = _draw_pages(content, bundle, folder / page_folder)
    is_blind = must_be_answered_blind(opinions)
    addresses = [f"{folder_name}/{page_folder}/{_name_page(page)}" for page in range(1, bundle.total_pages + 1)]
    questions = dict.fromkeys(map(describe_issue, packet.with_asked_questions().open_issues))
    task: dict[str, Any] = {
        "data": {
            "case_id": packet.case_id,
            "packet_sha256": compute_packet_digest(packet),
            "document_sha256": bundle.sha256,
            "total_pages": bundle.total_pages,
            "answer_shown": not is_blind,
            "question": "" if is_blind else "\n".join(questions),
            "pages": [f"/data/local-files/?d={quote(address)}" for address in addresses],
        }
    }
    if is_blind:
        return task
    if packet.classification:
        answer = describe_answer(packet.classification, bundle)
        model_name = read_answering_model_name(content.output_folder, packet) or "unknown"
        task["predictions"] = [
            {"model_version": model_name, "result": build_results(answer, page_sizes, ANSWER_PREFIX)}
        ]
    truth = describe_truth(opinions, records.get(packet.doc_id), bundle)
    if truth:
        # Without completed_by, because Label Studio refuses a file that names a person whom it does not know.
        task["annotations"] = [
            {
                "id": opinions.get_newest_revision(packet.case_id),
                "ground_truth": True,
                "result": build_results(truth, page_sizes, TRUTH_PREFIX),
            }
        ]
    return task


def describe_truth(opinions: CaseOpinions, record: GroundTruth | None, bundle: DocumentBundle) -> LabelledAnswer | None:
    """Describe the parts of the truth that an expert confirmed.

    None without truth. None also while an attention check shows the document, because its answer must stay hidden.
    """
    if record is None or record.reviewer is None or opinions.is_attention_check_pending:
        return None
    answer = describe_answer(record.ground_truth_classification, bundle)
    review = opinions.find_closing_review(opinions.base_packet.case_id, record.reviewer)
    rows = review.segment_flags if review else ()
    has_segments = "segments" in record.vouched
    return replace(
        answer,
        dominant_type=answer.dominant_type if "dominant_type" in record.vouched else None,
        segments=answer.segments if has_segments else None,
        flags=tuple(SegmentFlag(start_page=row["start_page"], flag=row["flag"]) for row in rows if "flag" in row)
        if has_segments
        else (),
        notes=record.correction_notes,
    )


def _draw_pages(content: ExportContent, bundle: DocumentBundle, page_folder: Path) -> list[PageSize]:
    opened_pdf, path = open_pdf_to_render(load_shown_pdf(content.output_folder, bundle))
    sizes = []
    page_folder.mkdir(mode=0o700)
    try:
        with opened_pdf.document:
            for page in range(1, bundle.total_pages + 1):
                image = render_opened_page(opened_pdf, path, page, _PAGE_DPI)
                create_private_file(page_folder / _name_page(page), encode_webp(image))
                sizes.append(image.size)
    except EvalkitError:
        shutil.rmtree(page_folder)  # no pages without their task
        raise
    return sizes


def _name_page(page: int) -> str:
    return f"{page:04}.webp"
