"""Folders that earlier versions of evalkit wrote, database and all, open and verify, and work goes on in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalkit.batch.integrity import verify
from evalkit.batch.purge import purge
from evalkit.batch.reindex import reindex
from evalkit.evaluation.study import read_study
from evalkit.review import Desk, SMEReviewHelper

FOLDERS = sorted((Path(__file__).parent / "earlier").iterdir())


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shutil.copytree(request.param, tmp_path / "output")
    return tmp_path / "output"


def test_it_opens_and_work_goes_on(earlier: Path) -> None:
    assert verify(earlier).faults == ()
    desk = Desk(earlier, "dr_lee", "tab")
    case = desk.open("segment_count")
    assert (case.is_completed, len(case.reviews)) == (True, 3)
    assert case.bundle.total_pages == 4
    desk.close()
    helper = SMEReviewHelper(earlier, "dr_lee")
    helper.reopen("segment_count", "once more")
    helper.save_review("segment_count", agrees=True)
    helper.close()
    assert reindex(earlier) == (2, 1)
    assert verify(earlier).faults == ()
    assert {one.doc_id for one in read_study(earlier).reviewed} == {"segment_count"}
    purge(earlier, ["segment_count"], purged_at="2027-01-01T00:00:00+00:00")
    assert verify(earlier).faults == ()
