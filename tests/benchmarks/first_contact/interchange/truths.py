"""Ground truths of invented documents as the contract describes them, made from one row each and changed by one idea."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple

TYPES = {"N": "Clinical Note", "P": "Pathology Report", "G": "Genomic Report", "R": "Radiology Report", "O": "Other"}
QUOTES = {
    "N": ("Seen today for a cough of two weeks.", "Plan: fluids, rest, review in ten days."),
    "P": ("Diagnosis: basal cell carcinoma, nodular type.", "Margins are clear by 2 mm."),
    "G": ("KRAS c.35G>A p.(Gly12Asp) was detected.", "No variant was found in EGFR or BRAF."),
    "R": ("Findings: the lungs are clear.", "Impression: no acute disease."),
    "O": ("Please release the records named below.", "Signed by the patient on 3 March 2026."),
}
Outcome = Literal["equal", "newest", "nothing", "refused"]
"""After going out and coming back: equal; the newest revision equal; nothing goes out; refused in words."""


class RoundTrip(NamedTuple):
    """What is in an output folder of one document, and what must be the same after it went out and came back."""

    name: str
    what: str
    pages: tuple[str, ...]
    """The text of each page, on which every quote of the records appears (unless the idea says otherwise)."""
    records: tuple[dict[str, Any], ...]
    """Ground truths by revision, or one bare classification (`kind`)."""
    kind: Literal["ground_truth", "classification"]
    outcome: Outcome
    reason: str
    """What a refusal, or an empty export, must be about."""
    reviews: tuple[dict[str, Any], ...]


class Truth:
    """One document's truth while an idea changes it."""

    def __init__(self, half: str, name: str, what: str, layout: str) -> None:
        self.rng = random.Random(f"{half}/{name}/truth")
        self.name, self.what = name, what
        self.pages: list[str] = []
        self.kind: Literal["ground_truth", "classification"] = "ground_truth"
        self.outcome: Outcome = "equal"
        self.reason = ""
        self.reviews: list[dict[str, Any]] = []
        self.segments: list[dict[str, Any]] = []
        for group in layout.split():
            self._add_segment(group[0], int(group[1:]))
        self.record: dict[str, Any] = {
            "schema_version": 1,
            "doc_id": name,
            "ground_truth_source": "SME_VALIDATED",
            "ground_truth_classification": self._classify(),
            "corrected_dominant_type": None,
            "correction_notes": "",
            "reviewer": "dr_lee",
            "reviewed_at": "2026-03-02T09:30:00+00:00",
            "vouched": ["dominant_type", "segments", "mixture"],
            "review_reason": "escalated",
            "inclusion_probability": None,
            "packet_sha256": self.hash("packet"),
            "revision": 1,
            "supersedes": None,
        }
        self.records = [self.record]

    def hash(self, what: str) -> str:
        return hashlib.sha256(f"{self.name}/{what}".encode()).hexdigest()

    def _add_segment(self, letter: str, count: int) -> None:
        start = len(self.pages) + 1
        first, second = QUOTES[letter]
        for page in range(start, start + count):
            self.pages.append(
                f"{TYPES[letter]}, page {page}\n{first}\n{second}\nReference {self.rng.randrange(10**6, 10**7)}"
            )
        evidence = [
            {"snippet": first, "page": start, "anchors_found": []},
            {"snippet": second, "page": start + count - 1, "anchors_found": [TYPES[letter]]},
        ]
        self.segments.append({
            "segment_index": len(self.segments) + 1,
            "start_page": start,
            "end_page": start + count - 1,
            "segment_page_count": count,
            "dominant_type": TYPES[letter],
            "reasoning": f"The pages read like a {TYPES[letter]}.",
            "segment_composition": [
                {
                    "document_type": kind,
                    "presence_level": "PRIMARY" if kind == TYPES[letter] else "NO_EVIDENCE",
                    "confidence": 0.93 if kind == TYPES[letter] else 0.0,
                    "segment_share": 1.0 if kind == TYPES[letter] else 0.0,
                    "top_evidence": evidence if kind == TYPES[letter] else [],
                }
                for kind in TYPES.values()
            ],
        })  # fmt: skip

    def _classify(self) -> dict[str, Any]:
        shares = dict.fromkeys(TYPES.values(), 0.0)
        for segment in self.segments:
            shares[segment["dominant_type"]] += segment["segment_page_count"] / len(self.pages)
        return {
            "dominant_type_overall": max(shares, key=lambda kind: (round(shares[kind], 6), kind != "Other")),
            "number_of_segments": len(self.segments),
            "segments": self.segments,
            "document_mixture": [
                {
                    "document_type": kind,
                    "presence_level": "PRIMARY" if share else "NO_EVIDENCE",
                    "confidence": 0.93 if share else 0.0,
                    "overall_share": round(share, 4),
                }
                for kind, share in shares.items()
            ],
            "vendor_signals": [],
            "self_evaluation": None,
        }

    @property
    def answer(self) -> dict[str, Any]:
        """The classification of the first record."""
        return self.record["ground_truth_classification"]

    def presence(self, segment: int, letter: str) -> dict[str, Any]:
        """What the segment says of a type."""
        return next(
            row for row in self.segments[segment - 1]["segment_composition"] if row["document_type"] == TYPES[letter]
        )

    def quote(
        self, segment: int, letter: str, snippet: str, page: int, *, printed: str | None = None, **more: Any
    ) -> None:
        """Add a quote, and print it on its page (or `printed` in its place)."""
        self.presence(segment, letter)["top_evidence"].append(
            {"snippet": snippet, "page": page, "anchors_found": [], **more}
        )
        self.pages[page - 1] += "\n" + (snippet if printed is None else printed)

    def revise(self, **changes: Any) -> dict[str, Any]:
        """Add a later revision with these changes; the newest one counts."""
        later = (
            deepcopy(self.records[-1]) | {"revision": len(self.records) + 1, "supersedes": len(self.records)} | changes
        )
        self.records.append(later)
        self.outcome = "newest"
        return later

    def review(self, outcome: str, **more: Any) -> None:
        """Add a review that was submitted."""
        self.reviews.append({
            "schema_version": 1, "reviewer": "dr_lee", "submitted_at": "2026-03-02T09:30:00+00:00",
            "seconds_active": 41.5, "outcome": outcome, "before": None, "after": None, "packet_sha256": self.hash("packet"),
            "prev_sha256": None, "versions": {"evalkit": "0"}, **more,
        })  # fmt: skip

    def end(self, outcome: Outcome, reason: str) -> None:
        self.outcome, self.reason = outcome, reason
        if outcome == "nothing":
            self.records = []

    def as_classification(self) -> dict[str, Any]:
        """Make it a bare answer that no expert saw."""
        self.kind = "classification"
        self.records = [self.answer]
        return self.answer

    def finish(self) -> RoundTrip:
        records = tuple(deepcopy(record) for record in self.records)
        return RoundTrip(
            self.name, self.what, tuple(self.pages), records, self.kind, self.outcome, self.reason, tuple(self.reviews)
        )


TruthIdea = Callable[[Truth], None]


class TruthIdeas:
    """The ideas of one half: a name, a layout such as ``N2 P1``, what is special, and what changes the truth."""

    def __init__(self, half: str) -> None:
        self.half = half
        self.rows: list[tuple[str, str, str, TruthIdea]] = []

    def __call__(self, name: str, layout: str, what: str) -> Callable[[TruthIdea], TruthIdea]:
        def put_down(function: TruthIdea) -> TruthIdea:
            self.rows.append((name, layout, what, function))
            return function

        return put_down

    def add(self, rows: Sequence[tuple[str, str, str, TruthIdea]]) -> None:
        """Put down ideas that fit in a line each."""
        self.rows += rows

    def build(self) -> Iterator[RoundTrip]:
        """All cases of the half."""
        for name, layout, what, function in self.rows:
            truth = Truth(self.half, name, what, layout)
            function(truth)
            yield truth.finish()
