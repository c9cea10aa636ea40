"""The notebooks as an analyst opens them: beside `.demo` and `output`, in JupyterLab's kernel."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
MAKEFILE = NOTEBOOKS.parent / "Makefile"


@pytest.fixture(scope="module")
def desk(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(samples, folder / ".demo")
    shutil.copytree(NOTEBOOKS, folder / "notebooks", ignore=shutil.ignore_patterns(".*"))
    run_notebook(folder, "run_pipeline")
    left_cases = re.search(r"simulated_experts .*\n\t  (.*)\n", MAKEFILE.read_text())
    simulated = ["-m", "evalkit.samples.simulated_experts", "output", ".demo/truth.csv", *left_cases[1].split()]
    subprocess.run([sys.executable, *simulated], cwd=folder, check=True)
    for name in ("export_ground_truth", "evaluation_report", "sme_review"):
        run_notebook(folder, name)
    return folder


def run_notebook(folder: Path, name: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", f"{name}.ipynb"],
        cwd=folder / "notebooks",
        check=True,
    )


def test_the_pipeline_notebook_runs_everything(desk: Path) -> None:
    assert len(list((desk / "output/results").iterdir())) == len(
        json.loads((desk / ".demo/expected.json").read_text())["documents"]
    )


def test_one_case_is_validated_and_one_corrected(desk: Path) -> None:
    validated = json.loads((desk / "output/ground_truth/gt_segment_count.json").read_text())
    assert validated["ground_truth_source"] == "SME_VALIDATED"
    assert validated["ground_truth_classification"]["number_of_segments"] == 2
    corrected = json.loads((desk / "output/ground_truth/gt_quest_genomic.json").read_text())
    assert corrected["ground_truth_source"] == "SME_CORRECTED"
    assert corrected["corrected_dominant_type"] == "Other"
    assert corrected["ground_truth_classification"]["dominant_type_overall"] == "Other"
    assert (corrected["revision"], corrected["reviewer"]) == (1, "simulated_analyst")


def test_the_export_has_both(desk: Path) -> None:
    lines = (desk / "output/ground_truth.jsonl").read_text().splitlines()
    assert {"quest_genomic", "segment_count"} < {json.loads(line)["doc_id"] for line in lines}


def test_notebooks_write_the_report_and_production_errors(desk: Path) -> None:
    assert (desk / "output/report.html").stat().st_size > 50_000
    rows = (desk / "output/production_errors.csv").read_text().splitlines()
    assert rows[0].startswith("doc_id,production,agent,truth,right")


def test_the_dataset_is_divided_and_has_a_card(desk: Path) -> None:
    folder = desk / "output/dataset"
    card = (folder / "README.md").read_text()
    assert "Have a person check the export" in " ".join(card.split())
    assert "documents were reviewed by a program (`is_simulated`), which gave 9 of 9 answers" in " ".join(card.split())
    parts = [pd.read_parquet(path, columns=["doc_id"]) for path in folder.glob("data/*.parquet")]
    names = set(pd.concat(parts)["doc_id"])
    assert len(names) > 10
    assert all(name.startswith("doc_") for name in names)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_front_doors_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    for cell in cells:
        source = "".join(cell["source"])
        assert len(source.splitlines()) <= 12
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            assert not any(line.startswith(("def ", "class ")) for line in source.splitlines())
