"""An output folder in which everything that evalkit keeps of a document is kept of one patient's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import evalkit
from evalkit.evaluation.sampling import sample
from evalkit.evaluation.seeding import sample_seeded
from evalkit.review import Desk, SMEReviewHelper
from evalkit.store import Call, Deferral, Files, Index, draw_name, result_name
from evalkit.store.names import SCRATCH
from evalkit.store.scratch import scratch_name

#: The patient's file, and what evalkit makes of its name.
FILE, DOC = "Quagmire, Zebulon 1950.pdf", "Quagmire_Zebulon_1950"
OTHER = "tumor_board"
NOW = "2026-02-02T00:00:00+00:00"


def worked_on(samples: Path, folder: Path) -> Path:
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
    sample(output, 1, "type", seed="one", drawn_at=NOW)
    sample_seeded(output, 4, seed="one", drawn_at=NOW)
    _leave_traces(output)
    others = [records / f"{name}.pdf" for name in (OTHER, "quest_cbc", "requisition")]
    evalkit.run(others, output=folder / "control", workers=1, extract=True)
    sample(folder / "control", 1, "type", seed="one", drawn_at=NOW)
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
    desk = Desk(output, "dr_first", "tab")
    case = desk.open(DOC)
    draft = case.draft.with_notes(words)
    desk.ask_second(DOC, seen(case, draft), "what is Zebulon's?")
    desk.close()
    second = Desk(output, "dr_second", "tab")
    case = second.open(f"{DOC}.second")
    second.submit(f"{DOC}.second", seen(case, case.draft.with_notes(words)), undeterminable=words)
    second.close()
    third = Desk(output, "dr_third", "tab")
    case = third.open(f"{DOC}.adjudication")
    answer = case.opinions[0].draft.with_notes(words)
    third.save_draft(f"{DOC}.adjudication", answer)
    third.close()
    decided = SMEReviewHelper(output, "dr_third")
    decided.save_review(f"{DOC}.adjudication", corrected_segments=pages, correction_notes=words)
    decided.close()


def seen(case, draft):
    for page in case.must_see.pages:
        draft = draft.seen_page(page)
    for issue_id in case.must_see.issues:
        draft = draft.seen_evidence(issue_id)
    return draft


def _leave_traces(output: Path) -> None:
    files = Files(output)
    sha256 = files.read(result_name(DOC))["sha256"]
    index = Index(output)
    for document, answer in ((sha256, "Zebulon Quagmire"), ("ff" * 32, "somebody else")):
        index.calls.add(Call("q" + document, document, "v4", "m", NOW, 1.0, answer, None, 1, 1, 0, 0, "0.01"))
    index.deferrals.put(Deferral(f"{DOC}.extraction", "dr_third", "Quagmire is to call back", NOW))
    index.close()
    drawn = {"value": "Other", "probability": {DOC: 0.5, "quest_cbc": 0.75}, "drawn": [DOC]}
    files.create(draw_name(2), {"schema_version": 1, "by": "type", "drawn_at": NOW, "strata": [drawn]})
    (output / SCRATCH).mkdir(exist_ok=True)
    killed = scratch_name().replace(f".{os.getpid()}-", ".999999999-")
    (output / SCRATCH / killed).write_text("half a page of Zebulon Quagmire")
