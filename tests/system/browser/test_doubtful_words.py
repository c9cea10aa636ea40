"""Words that two readings of a scan do not share: cut out of the page, with both readings as answers."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import NOTE, evidence, one_segment, parse_answer
from places import open_folder
from system.browser.screen import Screen
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue

from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.documents.bundle import DocumentBundle, PageStatus
from evalkit.review import publish_packet_unless_frozen
from evalkit.review.case_files import read_packet
from evalkit.store import bundle_file_name

DOC_ID = "one_document"
#: Doubtful words of page 1 and 2, with their second readings.
DOUBTS = {"20": "26", "128/76,": "126/78", "72.": "12"}
QUOTES = (
    evidence("Tamoxifen 20 mg daily by mouth", 1),
    evidence("Blood pressure 128/76, pulse 72", 2),
    evidence("Chief complaint: breast lump noticed two weeks ago", 1),
    evidence("pulse 12", 2),
)


@pytest.fixture(scope="module")
def review_server(serve: Serve, small_run_output: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A case of which a scan's numbers are in doubt."""
    output = tmp_path_factory.mktemp("doubtful") / "output"
    shutil.copytree(small_run_output, output)
    queue = CaseQueue(output)
    files = open_folder(output)
    stored_packet = read_packet(files, DOC_ID)
    queue.clear()
    bundle = DocumentBundle.model_validate(files.read_json(bundle_file_name(DOC_ID)), strict=False)
    pages = []
    for page in bundle.pages:
        words = [page.text[start:end] for start, end, *_ in page.words]
        doubts = {position: DOUBTS[word] for position, word in enumerate(words) if word in DOUBTS}
        update = {"status": PageStatus.OCR, "doubtful": tuple(doubts), "second_readings": tuple(doubts.values())}
        pages.append(page.model_copy(update=update))
    bundle = bundle.model_copy(update={"pages": tuple(pages), "doc_id": "fax"})
    answer = parse_answer(one_segment(NOTE, 3, *QUOTES))
    issues = V4EvidenceQualityAssessor().validate(answer, bundle).issues
    packet = stored_packet.model_copy(
        update={"case_id": "fax", "doc_id": "fax", "pdf_filename": "fax.pdf", "classification": answer,
                "issues": tuple(issue for issue in issues if issue.code == "V4-QUOTE-UNCERTAIN"),
                "document_bundle_path": bundle_file_name("fax")}
    )  # fmt: skip
    files.write_json(bundle_file_name("fax"), bundle.model_dump(mode="json"))
    publish_packet_unless_frozen(files, queue._index, packet)
    queue.close()
    with serve(output, ["dr_lee"]) as server:
        yield server


def test_a_doubtful_number_is_shown_as_cut_out_with_both_readings(
    login: Callable[..., Screen], shots: Path | None
) -> None:
    """Three doubtful quotes take three answers and two steps; two doubtful words of one passage are one question."""
    screen = login()
    screen.open("fax")
    cards = screen.page.locator(".ek-issue")
    assert cards.count() == 3
    names = cards.evaluate_all("all => all.map((card) => card.dataset.issue)")
    pressed = ""
    for number, (readings, answers, letters) in enumerate(
        [
            (["“20”", "“26”"], ["The page says 26", "The page says 20"], "xj"),
            (
                ["“128/76”", "“126/78”", "“72”", "“12”"],
                ["The page does not say this", "The page says 128/76 … 72"],
                "xj",
            ),
            (["“72”", "“12”"], ["The page says 72", "The page says 12"], "c"),
        ]
    ):
        selected = screen.page.locator(f'.ek-selected[data-issue="{names[number]}"]')
        selected.locator(".ek-seen").wait_for()
        assert selected.locator(".ek-cut-out b").all_inner_texts() == readings
        widths = selected.locator(".ek-cut-out img").evaluate_all("all => all.map((one) => one.naturalWidth)")
        assert len(widths) == len(readings) // 2
        assert min(widths) > 100
        buttons = screen.page.locator(".ek-verdicts button").all_inner_texts()
        assert [text.removesuffix(letter).strip() for text, letter in zip(buttons, "cx", strict=True)] == answers
        screen.shot(shots, f"doubtful-{number}-1440")
        screen.resize(1280, 720)
        screen.settle()
        screen.shot(shots, f"doubtful-{number}-1280")
        screen.resize(1440, 900)
        screen.settle()
        for letter in letters:
            screen.page.keyboard.press(letter)
            pressed += letter
            screen.settle()
    assert screen.page.locator(".ek-answered").all_inner_texts() == [
        "The page says 20", "The page says 128/76 … 72", "The page says 72",
    ]  # fmt: skip
    assert screen.page.locator(".ek-record .ek-line-quote", has_text="Struck").count() == 1
    assert len(pressed) == 5
    screen.rest()
