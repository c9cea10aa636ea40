"""A part of what `python -m benchmarks.interchange_fhir open` measures: nothing of others is in a cut, truths come back."""

import pytest
from benchmarks.interchange_fhir import build, score_cuts, score_round_trips


def test_cuts_hold_nothing_of_others() -> None:
    names = [source.name for source in build("open", "source_files")][::8]
    counts = score_cuts("open", names)
    assert counts["cuts"] == counts["segments"] > 10
    assert counts["cuts with a foreign word"] == counts["Bundles that break the schema"] == 0
    assert counts["pages that show their words"] == counts["pages"]


@pytest.mark.stress
def test_truths_come_back_as_their_author_expects() -> None:
    counts = score_round_trips("open")
    assert sum(count for name, count in counts.items() if name.endswith("as expected")) == counts["truths"] > 40
    assert counts["Bundles"] > 30
    assert counts["Bundles that break the schema"] == 0
