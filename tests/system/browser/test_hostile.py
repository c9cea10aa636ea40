"""Nothing that a document, a file name, a vendor or a model says runs in the expert's browser."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from system.browser.screen import Screen
from system.browser.server import Serve, Served

import evalkit
from evalkit.pipeline.document_discovery import sanitise_file_stem

PAYLOAD = "<img src=x onerror=\"window.__xss='img'\"><script>window.__xss='script'</script>${7*7}$$\\alert(1)$$"
MARK = "onerror"


@pytest.fixture(scope="module")
def hostile(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A case whose every text is an attack."""
    import pymupdf

    folder = tmp_path_factory.mktemp("hostile")
    name = "x <img src=x onerror=window.__xss=1>"
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((60, 80), f"CLINICAL NOTE {PAYLOAD}"[:90], fontsize=9)
    page.insert_text((60, 120), "The patient denies chest pain and returns for follow-up in two weeks.", fontsize=9)
    document.save(folder / f"{name}.pdf")
    kinds = ["Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other"]
    evidence = [{"snippet": f"never written {PAYLOAD}", "page": 1, "anchors_found": [PAYLOAD]}]
    presence = [
        {
            "document_type": kind,
            "presence_level": "PRIMARY" if kind == "Clinical Note" else "NO_EVIDENCE",
            "confidence": 0.9 if kind == "Clinical Note" else 0.0,
            "segment_share": 1.0 if kind == "Clinical Note" else 0.0,
            "top_evidence": evidence if kind == "Clinical Note" else [],
        }
        for kind in kinds
    ]
    answer = {
        "dominant_type_overall": "Clinical Note",
        "number_of_segments": 1,
        "segments": [
            {
                "segment_index": 1,
                "start_page": 1,
                "end_page": 1,
                "segment_page_count": 1,
                "dominant_type": "Clinical Note",
                "reasoning": PAYLOAD,
                "segment_composition": presence,
            }
        ],
        "document_mixture": [
            {key: value for key, value in one.items() if key not in ("segment_share", "top_evidence")}
            | {"overall_share": one["segment_share"]}
            for one in presence
        ],
        "vendor_signals": [PAYLOAD],
        "self_evaluation": PAYLOAD,
    }
    (folder / "answers").mkdir()
    (folder / "answers" / f"{sanitise_file_stem(name + '.pdf')}.json").write_text(json.dumps(answer))
    output = folder / "output"
    evalkit.run([folder / f"{name}.pdf"], output=output, classifications=folder / "answers")
    with serve(output, ["dr_lee"]) as server:
        yield server


def test_hostile_text_is_shown_and_never_runs(hostile: Served, chromium: Browser, shots: Path | None) -> None:
    screen = Screen(chromium, hostile.address, 1440, 900)
    screen.log_in(hostile.codes["dr_lee"])
    assert MARK in screen.page.locator(".ek-case").inner_text()
    (case_id,) = screen.cases()
    screen.open(case_id)
    for name in [issue.get_attribute("data-issue") for issue in screen.page.query_selector_all(".ek-issue")]:
        screen.page.locator(f'.ek-issue[data-issue="{name}"] .ek-message').click()  # found anew: cards are redrawn
        screen.page.wait_for_selector(f'.ek-selected[data-issue="{name}"]')
    screen.page.get_by_text("What the program claims").click()
    screen.note(PAYLOAD)
    screen.page.wait_for_timeout(800)
    assert MARK in screen.page.locator(".ek-case-panel").inner_text()
    screen.shot(shots, "hostile-1440")
    screen.button("Other").click()
    screen.page.wait_for_selector(".ek-types .ek-chosen:has-text('Other')")
    screen.button("Submit correction").click()
    screen.page.wait_for_selector(".ek-notice:has-text('corrected')")
    screen.page.wait_for_selector(".ek-queue-head")  # it was the only case
    assert screen.page.evaluate("window.__xss === undefined")
    assert screen.page.locator("img[src='x']").count() == 0
    assert screen.outside == []
    review = json.loads((hostile.output / f"reviews/{case_id}/0001.json").read_text())
    assert review["correction_notes"] == PAYLOAD
    screen.close()
