"""The package's own names, and how it shows itself in a notebook."""

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from commands import evalkit_command

import evalkit
from evalkit.errors import CaseTaken, UsageError
from evalkit.pipeline import RunSummary


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
