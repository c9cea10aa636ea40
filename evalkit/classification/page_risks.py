"""Risk that the classification of a page is wrong, estimated from the result.

It combines the confidence in the segment's type, the stated doubt about the page break before the page, and the open
issues about the page. No decision depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evalkit.classification.v2_consistency import get_stated_beginning_probabilities

#: Risk from an open issue, for all pages of its segment; for its page alone if the issue has no segment or is about the
#: page break before the page.
RISK_BY_SEVERITY = {"BLOCKER": 0.9, "MAJOR": 0.5, "MINOR": 0.02}
_SEAM_CODE = "V2-BOUNDARY-DOUBT"
#: Codes about patients and missing pages, which say little about types and boundaries and count as MINOR.
_CODES_OF_OTHER_QUESTIONS = ("V2-PATIENT-", "V2-PAGES-")


def compute_page_risks(
    classification: Mapping[str, Any] | None, issues: Sequence[Mapping[str, Any]], page_count: int
) -> list[float]:
    """Compute the risk, 0..1, that a page's type or the boundary before it is wrong.

    ``classification`` and ``issues`` as in a stored result; all risks are 1 if the classification is None. KeyError and
    TypeError if they have another shape.
    """
    if classification is None:
        return [1.0] * page_count
    certainties = np.zeros(page_count)
    beginnings = set()
    pages_by_segment: dict[int | None, range] = {None: range(1, page_count + 1)}
    for segment in classification["segments"]:
        pages = range(max(1, segment["start_page"]), min(page_count, segment["end_page"]) + 1)
        beginnings.add(segment["start_page"])
        pages_by_segment[segment["segment_index"]] = pages
        for presence in segment["segment_composition"]:
            if presence["document_type"] == segment["dominant_type"]:
                certainties[pages.start - 1 : pages.stop - 1] = presence["confidence"]
    for page, probability in get_stated_beginning_probabilities(classification["self_evaluation"]).items():
        # the self-evaluation of another system may have any content
        if 1 < page <= page_count and type(probability) in (int, float) and 0 <= probability <= 1:
            certainties[page - 1] *= probability if page in beginnings else 1 - probability
    for issue in issues:
        if issue["status"] == "open":
            is_other_question = issue["code"].startswith(_CODES_OF_OTHER_QUESTIONS)
            risk = RISK_BY_SEVERITY["MINOR" if is_other_question else issue["severity"]]
            for page in _find_pages_at_issue(issue, pages_by_segment):
                certainties[page - 1] *= 1 - risk
    return [1 - certainty for certainty in np.clip(certainties, 0, 1).tolist()]


def _find_pages_at_issue(issue: Mapping[str, Any], pages_by_segment: Mapping[int | None, range]) -> range:
    is_about_page = issue["code"] == _SEAM_CODE or issue["segment_index"] is None
    if is_about_page and issue["page"] in pages_by_segment[None]:
        return range(issue["page"], issue["page"] + 1)
    return pages_by_segment.get(issue["segment_index"], range(0))
