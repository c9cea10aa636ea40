"""The public functions of the evaluation, on an output folder in a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import in_bucket

import evalkit


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_bucket_is_reported_and_compared_as_a_folder_is(
    scheme: str, samples: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (tmp_path / "output", in_bucket(scheme, request, monkeypatch))
    files = [samples / "quest_cbc.pdf", samples / "quest_genomic.pdf"]
    runs = [evalkit.run(files, output=place, name="first") for place in places]
    assert [run.run for run in runs] == ["first", "first"]
    local, remote = (evalkit.report(place, truth=samples / "truth.csv") for place in places)
    for section in ("headlines", "types", "segments", "verifiers"):
        assert local[section]._repr_html_() == remote[section]._repr_html_(), section
    folder_and_bucket = evalkit.compare(*places)
    assert len(folder_and_bucket.changed_documents) == 0
    newest_twice = evalkit.compare("first", "first", output=places[1])
    assert newest_twice.changed_documents.to_dict() == folder_and_bucket.changed_documents.to_dict()
