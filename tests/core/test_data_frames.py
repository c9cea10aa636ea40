"""Tables have the same columns and dtypes whatever their rows."""

import pytest

from evalkit.core.data_frames import OUTPUT_ATTRIBUTE, TEXT, build_frame
from evalkit.evaluation import load_ground_truth
from evalkit.pipeline import RunSummary
from evalkit.pipeline.fields_run import ExtractSummary

DTYPES = {"name": TEXT, "pages": "Int64", "share": "Float64", "is_known": "bool"}
ROW = {"name": "a", "pages": 3, "share": 0.5, "is_known": True, "more": 1}
GAPS = ROW | {"name": None, "pages": None, "share": None}


@pytest.mark.parametrize("rows", [[], [ROW], [GAPS], [ROW, GAPS]], ids=len)
def test_dtypes_do_not_depend_on_the_rows(rows: list) -> None:
    frame = build_frame(rows, DTYPES, output="work")
    assert frame.dtypes.astype(str).to_dict() == DTYPES | {"name": "string"}
    assert frame.attrs == {OUTPUT_ATTRIBUTE: "work"}
    assert frame["pages"].sum() == 3 * rows.count(ROW)


def test_names_that_are_no_text_are_kept() -> None:
    assert build_frame([{"name": "\udcff"}], {"name": TEXT})["name"][0] == "\udcff"


def test_a_run_and_an_empty_run_have_the_same_dtypes(demo_run: RunSummary) -> None:
    empty = RunSummary((), (), (), demo_run.output, 0.0)
    for frame, empty_frame in (
        (demo_run.to_frame(), empty.to_frame()),
        (demo_run.issues_frame(), empty.issues_frame()),
    ):
        assert len(frame) > len(empty_frame) == 0
        assert frame.dtypes.equals(empty_frame.dtypes)
        assert not set(frame.dtypes.astype(str)) & {"object", "float64"}
    assert str(ExtractSummary((), (), (), "work", 0.0).to_frame().dtypes["page"]) == "Int64"


def test_the_table_of_a_run_has_numbers_to_compute_with(demo_run: RunSummary) -> None:
    frame = demo_run.to_frame().set_index("doc_id")
    assert frame.loc["doc2_6", "segments"] == "1-5 Genomic Report; 6-8 Clinical Note"  # slide 2
    assert 0 < frame.loc["doc2_6", "confidence"] <= 1
    assert frame["cost_usd"].sum() == 0
    assert frame["seconds"].min() > 0
    assert frame.loc["poor_scan", ["confidence", "segments", "dominant_type"]].isna().all()
    assert frame.loc["quest_genomic", "raised_by"] == "V2, V3"


def test_ground_truth_names_its_folder(demo_run: RunSummary) -> None:
    assert load_ground_truth(demo_run.output).attrs[OUTPUT_ATTRIBUTE] == demo_run.output
