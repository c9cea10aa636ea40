"""The report and the dossier on paper: no column is cut off at the edge."""

import shutil
from pathlib import Path

import pytest
from pipeline.patient import NOW
from places import open_folder
from playwright.sync_api import Browser

from evalkit.evaluation.dossier import write_dossier
from evalkit.evaluation.report import build_report
from evalkit.evaluation.study import read_study
from evalkit.pipeline import RunSummary
from evalkit.samples.simulated_experts import simulate_and_submit_reviews
from evalkit.settings import Settings

#: A4 without the margins that the dossier sets, in CSS pixels.
PAPER_WIDTH = 688


@pytest.fixture(scope="module")
def folder(demo_run: RunSummary, samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Report and dossier of the demo, reviewed."""
    folder = tmp_path_factory.mktemp("printed")
    shutil.copytree(demo_run.output, folder / "output")
    output = open_folder(folder / "output")
    simulate_and_submit_reviews(output, samples / "truth.csv")
    build_report(read_study(folder / "output"), made_at=NOW).write_html(folder / "report.html")
    write_dossier(output, folder / "dossier.html", Settings(), made_at=NOW)
    return folder


@pytest.mark.parametrize("name", ["report", "dossier"])
def test_no_table_is_wider_than_the_paper(chromium: Browser, folder: Path, name: str) -> None:
    page = chromium.new_page(viewport={"width": PAPER_WIDTH, "height": 1000})
    page.emulate_media(media="print")
    page.goto((folder / f"{name}.html").as_uri())
    widths = page.evaluate(
        "[...document.querySelectorAll('table')].map(table => [table.caption.innerText, table.offsetWidth])"
    )
    page.close()
    assert "By reviewer" in dict(widths)
    assert [row for row in widths if row[1] > PAPER_WIDTH] == []
