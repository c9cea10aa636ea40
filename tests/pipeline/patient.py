"""An output folder in which everything that evalkit keeps of a document is kept of one patient's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from places import open_folder, open_index

import evalkit
from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
from evalkit.evaluation.sampling import draw_and_queue_sample
from evalkit.review import ReviewSession, SMEReviewHelper
from evalkit.store import Deferral, ModelCall, result_file_name, sample_draw_file_name
from evalkit.store.file_names import TEMP_FOLDER
from evalkit.store.local_folder import generate_process_temp_name

#: The patient's file, and what evalkit makes of its name.
FILE, DOC = "Quagmire, Zebulon 1950.pdf", "Quagmire_Zebulon_1950"
OTHER = "tumor_board"
NOW = "2026-02-02T00:00:00+00:00"


def create_patient_output(samples: Path, folder: Path) -> Path:
    """``folder/output``: two documents run, reviewed, doubted, adjudicated, drawn, seeded, drafted, put off, billed."""
    records, output = folder / "records", folder / "output"
    records.mkdir()
    shutil.copy(samples / "altered_quotes.pdf", records / FILE)
    for name in (OTHER, "quest_cbc", "requisition"):
        shutil.copy(samples / f"{'fabricated_quote' if name == OTHER else name}.pdf", records / f"{name}.pdf")
    answers = records / "answers"
    answers.mkdir()
    for name, source in ((DOC, "altered_quotes"), (OTHER, "fabricated_quote")):
        shutil.copy(samples / f"classifications/{source}.json", answers / f"{name}.json")
    labels = records / "labels.csv"
    labels.write_text(f"doc_id,dominant_type\n{DOC},Zebulonic Report\n{OTHER},Clinical Note\n")
    evalkit.run([records], output=output, workers=1, classifications=answers, production=labels, extract=True)
    _review(output)
    draw_and_queue_sample(open_folder(output), 1, "type", seed="one", drawn_at=NOW)
    plant_and_queue_attention_checks(open_folder(output), 4, seed="one", drawn_at=NOW)
    _leave_traces(output)
    others = [records / f"{name}.pdf" for name in (OTHER, "quest_cbc", "requisition")]
    evalkit.run(others, output=folder / "control", workers=1, extract=True)
    draw_and_queue_sample(open_folder(folder / "control"), 1, "type", seed="one", drawn_at=NOW)
    return output


def _review(output: Path) -> None:
    words = "Zebulon Quagmire, as his sister told me"
    pages = [{"start_page": 1, "end_page": 2, "dominant_type": "Genomic Report"}]
    first = SMEReviewHelper(output, "dr_first")
    for case_id in (DOC, OTHER):
        said = {"corrected_segments": pages} if case_id == DOC else {"corrected_dominant_type": "Clinical Note"}
        first.save_review(case_id, agrees=False, correction_notes=words if case_id == DOC else "a note", **said)
    first.reopen(DOC, "I was wrong about Quagmire")
    first.close()
    desk = ReviewSession(open_folder(output), "dr_first", "tab")
    case = desk.open_and_claim_case(DOC)
    draft = case.draft.set_notes(words)
    desk.submit_and_request_second_opinion(DOC, mark_all_seen(case, draft), "what is Zebulon's?")
    desk.close()
    second = ReviewSession(open_folder(output), "dr_second", "tab")
    case = second.open_and_claim_case(f"{DOC}.second")
    second.submit_review(f"{DOC}.second", mark_all_seen(case, case.draft.set_notes(words)), undeterminable_reason=words)
    second.close()
    third = ReviewSession(open_folder(output), "dr_third", "tab")
    case = third.open_and_claim_case(f"{DOC}.adjudication")
    answer = case.opinions[0].draft.set_notes(words)
    third.save_draft_and_get_time(f"{DOC}.adjudication", answer)
    third.close()
    decided = SMEReviewHelper(output, "dr_third")
    decided.save_review(f"{DOC}.adjudication", corrected_segments=pages, correction_notes=words)
    decided.close()


def mark_all_seen(case, draft):
    for page in case.get_viewing_requirements(case.draft).page_numbers:
        draft = draft.show_page_and_mark_seen(page)
    for issue_id in case.get_viewing_requirements(case.draft).issue_ids:
        draft = draft.show_issue_and_mark_seen(issue_id)
    return draft


def _leave_traces(output: Path) -> None:
    files = open_folder(output)
    sha256 = files.read_json(result_file_name(DOC))["sha256"]
    index = open_index(output)
    for document, answer in ((sha256, "Zebulon Quagmire"), ("ff" * 32, "somebody else")):
        index.call_journal.add_call(
            ModelCall("q" + document, document, "v4", "m", NOW, 1.0, answer, None, 1, 1, 0, 0, "0.01")
        )
    index.deferrals.save(Deferral(f"{DOC}.extraction", "dr_third", "Quagmire is to call back", NOW))
    index.close()
    drawn = {"value": "Other", "probability": {DOC: 0.5, "quest_cbc": 0.75}, "drawn": [DOC]}
    files.create_json_if_absent(
        sample_draw_file_name(2), {"schema_version": 1, "by": "type", "drawn_at": NOW, "strata": [drawn]}
    )
    (output / TEMP_FOLDER).mkdir(exist_ok=True)
    killed = generate_process_temp_name().replace(f".{os.getpid()}-", ".999999999-")
    (output / TEMP_FOLDER / killed).write_text("half a page of Zebulon Quagmire")
