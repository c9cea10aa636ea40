"""The package's own names, and how it shows itself in a notebook."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from commands import evalkit_command

import evalkit
from evalkit.errors import CaseTaken, UsageError
from evalkit.pipeline import RunSummary
from evalkit.review import ReviewSession
from evalkit.store import OutputIndex, open_output_folder
from widgets import workbench


def test_every_public_name_exists() -> None:
    for name in evalkit.__all__:
        assert getattr(evalkit, name).__module__.startswith(("evalkit.", "widgets.")), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evalkit.nothing  # noqa: B018


def test_public_names_are_loaded_on_first_use() -> None:
    code = "import sys, evalkit; evalkit.__version__; print({'pandas', 'pydantic', 'ipywidgets'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_the_version_is_one() -> None:
    assert evalkit.__version__ == version("evalkit")
    assert evalkit_command("--version").stdout == f"evalkit {evalkit.__version__}\n"


def test_an_error_in_a_notebook_is_its_remedy() -> None:
    error = UsageError("/nothing does not exist", code="READER-MISSING", remedy="Check the path.")
    assert error._render_traceback_() == [
        "UsageError: /nothing does not exist",
        "What to do: Check the path.",
        "Code: READER-MISSING",
    ]
    assert "Take the case over" in "".join(CaseTaken("dr_lee", "2026-01-01T10:30:00Z", False)._render_traceback_())


def test_a_kernel_prints_the_remedy_and_no_traceback() -> None:
    code = "from IPython.core.interactiveshell import InteractiveShell as S\nS.instance().run_cell(\"import evalkit; evalkit.run('/nothing/here')\")"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "What to do: Check the path." in shown
    assert len(shown.splitlines()) == 3


CALLS: dict[str, Callable[[Path, Path], Any]] = {
    "run": lambda folder, pdf: evalkit.run(pdf, output=folder),
    "extract": lambda folder, pdf: evalkit.extract(pdf, output=folder),
    "estimate": lambda folder, pdf: evalkit.estimate(pdf, output=folder),
    "report": lambda folder, _: evalkit.report(folder),
    "explore": lambda folder, _: evalkit.explore(folder),
    "compare runs": lambda folder, _: evalkit.compare("a", "b", output=folder),
    "compare folders": lambda folder, _: evalkit.compare(folder, folder),
    "export": lambda folder, pdf: evalkit.export(folder, pdf.with_suffix(".jsonl")),
    "load_ground_truth": lambda folder, _: evalkit.load_ground_truth(folder),
    "view": lambda folder, _: evalkit.view("doc2_6", output=folder),
    "SMEReviewHelper": lambda folder, _: evalkit.SMEReviewHelper(folder, "dr_lee"),
    "show": lambda folder, _: workbench.show(folder, "dr_lee"),
    "ReviewSession": lambda folder, _: ReviewSession(open_output_folder(folder), "dr_lee", "tab"),
    "OutputIndex": lambda folder, _: OutputIndex(open_output_folder(folder)),
}
CREATING = ("run", "extract", "estimate", "OutputIndex")


@pytest.mark.parametrize("name", CALLS)
def test_library_calls_refuse_folders_that_are_not_evalkits(name: str, samples: Path, tmp_path: Path) -> None:
    foreign, pdf = tmp_path / "holiday", tmp_path / "doc2_6.pdf"
    shutil.copy(samples / pdf.name, pdf)
    (foreign / "photos").mkdir(parents=True)
    (foreign / "beach.jpg").write_bytes(b"sand")
    for folder in (foreign, tmp_path / "missing")[: 1 if name in CREATING else 2]:
        with pytest.raises(UsageError) as raised:
            CALLS[name](folder, pdf)
        assert raised.value.code == "OUTPUT-FOLDER"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["beach.jpg", "doc2_6.pdf", "holiday", "photos"]


def test_summaries_are_short_and_say_what_to_do_next(demo_run: RunSummary, samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    shutil.copytree(demo_run.output, output)
    summaries = {
        "evalkit.show(run.to_frame())": demo_run,
        'evalkit.view("adjoining_notes")': demo_run.documents[0],
        "evalkit.show(extracted.to_frame())": evalkit.extract(samples / "doc2_6.pdf", output=output),
        "report.write_html": evalkit.report(output, truth=samples / "truth.csv"),
        "evalkit.show(comparison.changed_documents)": evalkit.compare(demo_run.output, output),
        "evalkit.show(challenge.to_frame())": evalkit.challenge(output, kinds=["label"], limit=1),
    }
    for next_step, summary in summaries.items():
        shown = summary._repr_html_()
        assert next_step in shown.replace("&quot;", '"')
        assert len(shown) < 4000
