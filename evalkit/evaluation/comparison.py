"""Two runs over the same documents, case by case: what changed, why, and which run was right more often.

Documents are the same where their bytes are. Which of the two answers is right is asked of the documents whose truth is
known in either folder: these are no random ones, so that a difference found there is one of reviewed documents only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pandas as pd

from evalkit.batch.labels import Span
from evalkit.evaluation.intervals import Estimate
from evalkit.evaluation.metrics import is_exact
from evalkit.evaluation.study import Document, Labels, Study, Truth

NOT_READ = "NOT READ"
"""Instead of a decision, of a document that could not be read."""
CANNOT_TELL = "cannot tell"
"""Instead of a type: none was given."""

KNOWN_FROM = ("given", "A", "B", "both")
"""Who can know a truth: a file of labels, the reviews of one folder alone, those of both."""

_FEWEST = 6
"""Discordant documents below which no outcome can have a p-value under 0.05: 2 · 0.5⁵ is 0.0625."""
_Z = 1.959963984540054
"""97.5 % of a standard normal distribution lie below."""

CHANGE_COLUMNS = (
    *("doc_id", "doc_id_b", "decision_a", "decision_b", "rule_a", "rule_b", "type_a", "type_b"),
    *("segments_a", "segments_b", "score_a", "score_b", "appeared", "disappeared", "changed"),
    *(
        "truth",
        "right_a",
        "right_b",
        "true_segments",
        "segments_right_a",
        "segments_right_b",
        "truth_from",
        "simulated",
    ),
)

Part = Literal["dominant_type", "segments"]


@dataclass(frozen=True)
class Paired:
    """How often each of two answers was right about the same documents."""

    both: int
    only_a: int
    only_b: int
    neither: int
    p_value: float | None
    """Of McNemar's exact test: how likely so uneven a count is where none is better; None without discordant ones."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1, with the 95 % interval."""

    @property
    def documents(self) -> int:
        """All of them."""
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def discordant(self) -> int:
        """Those of which only one answer was right: they alone tell the two apart."""
        return self.only_a + self.only_b

    @property
    def verdict(self) -> str:
        """In words."""
        if self.discordant < _FEWEST:
            return f"too few to tell: the answers differ in being right on {self.discordant}, {_FEWEST} are the fewest"
        if self.p_value is None or self.p_value >= 0.05:
            return "no difference shown"
        return "B is right more often" if self.only_b > self.only_a else "A is right more often"


@dataclass(frozen=True)
class Comparison:
    """Two output folders side by side."""

    a: str
    """The folder."""
    b: str
    """The other."""
    documents: pd.DataFrame
    """One row per document of both, by A's doc_id: ``doc_id, doc_id_b``; decision, rule, type (None: cannot tell, or no
    answer), segments (as ``1-2 Clinical Note; 3 Other``), evidence quality score of either (``…_a``, ``…_b``); the open
    issues that only B, or only A, has, as code → number (``appeared, disappeared``); whether any of that ``changed``;
    ``truth, true_segments`` (None: not known) and whether A and B are right; ``truth_from`` (A, B, both, given, disputed);
    ``simulated``, 1 where a program told the truth."""
    only_a: tuple[str, ...]
    """The doc_ids of documents that B does not have, and of damaged ones whose bytes are not known."""
    only_b: tuple[str, ...]
    """Those that A does not have."""
    decisions: pd.DataFrame
    """Documents by decision of A (rows) and of B (columns)."""
    types: pd.DataFrame
    """``type_a, type_b, documents``: how often A's type became another one."""
    type: Paired
    """The type of the whole document."""
    segments: Paired
    """All segments exactly, as they were given."""
    disputed: tuple[str, ...]
    """Documents of which the two folders know different truths: they are left out of what is in dispute."""
    simulated: int
    """Documents whose truth a program told."""
    known_from: Mapping[str, int]
    """Documents with a known truth by who knows it: ``given`` (a file of labels), ``A`` alone, ``B`` alone, ``both``."""
    effort: pd.DataFrame
    """``measure, a, b``: calls, tokens, cost_usd (None: not known), seconds, of the documents of both; seconds of those
    that were timed in both."""

    @property
    def changed(self) -> pd.DataFrame:
        """The documents of which anything changed."""
        return self.documents[self.documents["changed"]]

    @property
    def leaning(self) -> str | None:
        """Why accuracies cannot be compared plainly, in words: one run's reviews alone tell more of the truths."""
        run = "A" if self.known_from["A"] > self.known_from["B"] else "B"
        if self.known_from["A"] == self.known_from["B"]:
            return None
        return (
            f"A comparison of accuracies leans here: {self.known_from[run]} of the truths are from reviews of {run} alone, "
            f"mostly of documents that {run} escalated, which are hard for {run} (this leans against it), by experts who "
            "may have seen its answer (this leans towards it)"
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values; money as text."""
        return {
            "a": self.a,
            "b": self.b,
            "documents": records(self.documents),
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
            "decisions": {a: {b: int(n) for b, n in row.items()} for a, row in self.decisions.T.to_dict().items()},
            "types": records(self.types),
            "type": _paired_json(self.type),
            "segments": _paired_json(self.segments),
            "disputed": list(self.disputed),
            "simulated": self.simulated,
            "known_from": dict(self.known_from),
            "leaning": self.leaning,
            "effort": [
                {name: str(value) if isinstance(value, Decimal) else value for name, value in row.items()}
                for row in records(self.effort)
            ],
        }


def compare(a: Study, b: Study) -> Comparison:
    """The two studies' documents, matched by SHA-256."""
    in_a, in_b = _by_bytes(a), _by_bytes(b)
    pairs = [(one, in_b[sha256]) for sha256, one in in_a.items() if sha256 in in_b]
    of_both = {id(one) for pair in pairs for one in pair}
    rows = [_row(*pair) for pair in pairs]
    documents = pd.DataFrame(rows, columns=list(CHANGE_COLUMNS))
    return Comparison(
        a=str(a.output),
        b=str(b.output),
        documents=documents.astype({"changed": bool}),
        only_a=tuple(one.doc_id for one in a.documents if id(one) not in of_both),
        only_b=tuple(one.doc_id for one in b.documents if id(one) not in of_both),
        decisions=pd.crosstab(documents["decision_a"], documents["decision_b"]),
        types=_type_changes(pairs),
        type=paired([(row["right_a"], row["right_b"]) for row in rows if row["right_a"] is not None]),
        segments=paired(
            [(row["segments_right_a"], row["segments_right_b"]) for row in rows if row["segments_right_a"] is not None]
        ),
        disputed=tuple(row["doc_id"] for row in rows if row["truth_from"] == "disputed"),
        simulated=sum(row["simulated"] for row in rows),
        known_from={name: sum(row["truth_from"] == name for row in rows) for name in KNOWN_FROM},
        effort=_effort(pairs),
    )


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain values: None for what is missing, never NaN."""
    plain = frame.astype(object)
    return [
        {str(name): value for name, value in row.items()} for row in plain.where(plain.notna(), None).to_dict("records")
    ]


def _by_bytes(study: Study) -> dict[str, Document]:
    return {one.sha256: one for one in study.documents if one.sha256 is not None}


# ---------------------------------------------------------------------------------------------------------------------
# What changed


def _row(a: Document, b: Document) -> dict[str, Any]:
    codes_a, codes_b = _open_codes(a), _open_codes(b)
    sides = {"a": _side(a), "b": _side(b)}
    return {
        "doc_id": a.doc_id,
        "doc_id_b": b.doc_id,
        **{f"{name}_{side}": value for side, values in sides.items() for name, value in values.items()},
        "appeared": dict(codes_b - codes_a),
        "disappeared": dict(codes_a - codes_b),
        "changed": (sides["a"], codes_a) != (sides["b"], codes_b),
        **_judged(a, b),
    }


def _side(document: Document) -> dict[str, Any]:
    agent = document.agent
    return {
        "decision": document.decision or NOT_READ,
        "rule": document.decision_rule,
        "type": agent.dominant_type if agent else None,
        "segments": _written(agent.segments) if agent else None,
        "score": document.evidence_quality,
    }


def _open_codes(document: Document) -> Counter[str]:
    return Counter(one.code for one in document.findings if one.status == "open")


def _written(segments: Sequence[Span]) -> str:
    """Segments as a file of labels has them, by first page.

    >>> _written([(3, 3, None), (1, 2, "Clinical Note")])
    '1-2 Clinical Note; 3 cannot tell'
    """
    ranges = (
        (f"{first}" if first == last else f"{first}-{last}", kind or CANNOT_TELL)
        for first, last, kind in _in_order(segments)
    )
    return "; ".join(f"{pages} {kind}" for pages, kind in ranges)


def _in_order(segments: Sequence[Span]) -> tuple[Span, ...]:
    return tuple(sorted(segments, key=lambda one: (*one[:2], one[2] or "")))


def _type_changes(pairs: Sequence[tuple[Document, Document]]) -> pd.DataFrame:
    said = [(_side(a)["type"] or CANNOT_TELL, _side(b)["type"] or CANNOT_TELL) for a, b in pairs]
    counted = Counter(pair for pair in said if pair[0] != pair[1])
    most_first = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return pd.DataFrame([(*pair, n) for pair, n in most_first], columns=["type_a", "type_b", "documents"])


def _effort(pairs: Sequence[tuple[Document, Document]]) -> pd.DataFrame:
    timed = [(a.seconds, b.seconds) for a, b in pairs if a.seconds is not None and b.seconds is not None]
    of_a, of_b = [a for a, _ in pairs], [b for _, b in pairs]
    rows = [
        ("calls", sum(one.calls for one in of_a), sum(one.calls for one in of_b)),
        ("tokens", sum(one.tokens for one in of_a), sum(one.tokens for one in of_b)),
        ("cost_usd", _cost(of_a), _cost(of_b)),
        ("seconds", sum(a for a, _ in timed), sum(b for _, b in timed)),
    ]
    return pd.DataFrame(rows, columns=["measure", "a", "b"], dtype=object)


def _cost(documents: Sequence[Document]) -> Decimal | None:
    costs = [one.cost_usd for one in documents]
    return None if None in costs else sum((one for one in costs if one is not None), Decimal(0))


# ---------------------------------------------------------------------------------------------------------------------
# Which is right


def _judged(a: Document, b: Document) -> dict[str, Any]:
    kinds, segments = _truths(a, b, "dominant_type"), _truths(a, b, "segments")
    kind = kinds.pop() if len(kinds) == 1 else None
    parts = segments.pop() if len(segments) == 1 else None
    is_disputed = bool(kinds or segments)
    return {
        "truth": kind,
        "right_a": None if kind is None else a.agent is not None and a.agent.dominant_type == kind,
        "right_b": None if kind is None else b.agent is not None and b.agent.dominant_type == kind,
        "true_segments": None if parts is None else _written(parts),
        "segments_right_a": None if parts is None else _is_exact(a.agent, parts),
        "segments_right_b": None if parts is None else _is_exact(b.agent, parts),
        "truth_from": "disputed" if is_disputed else _source(a.truth, b.truth),
        "simulated": int(any(one is not None and one.is_simulated for one in (a.truth, b.truth))),
    }


def _truths(a: Document, b: Document, part: Part) -> set[Any]:
    """What the folders know to be true of a part; labels that were given stand before what was reviewed."""
    known = [one for one in (a.truth, b.truth) if one and one.says(part)]
    given = [one for one in known if one.source == "GOLD"]
    return {_said(one.labels, part) for one in given or known}


def _said(labels: Labels, part: Part) -> Any:
    return labels.dominant_type if part == "dominant_type" else _in_order(labels.segments)


def _is_exact(agent: Labels | None, segments: Sequence[Span]) -> bool:
    """Where nothing was answered, it is never right."""
    return agent is not None and is_exact(segments, agent.segments, typed=True)


def _source(a: Truth | None, b: Truth | None) -> str:
    if any(one is not None and one.source == "GOLD" for one in (a, b)):
        return "given"
    return {(True, True): "both", (True, False): "A", (False, True): "B"}.get((a is not None, b is not None), "")


def paired(right: Sequence[tuple[bool, bool]]) -> Paired:
    """Whether A and B were right, one pair per document, counted and tested.

    Source: McNemar, Psychometrika 12 (1947), here exactly, as a binomial test of the discordant pairs; the interval is
    Newcombe's, Statistics in Medicine 17 (1998) 2635, method 10.

    >>> outcome = paired([(True, True)] * 36 + [(False, True)] * 12 + [(True, False)] * 2)
    >>> round(outcome.p_value, 6), [round(number, 4) for number in outcome.difference[:3]], outcome.verdict
    (0.012939, [0.2, 0.0569, 0.3404], 'B is right more often')
    """
    from scipy.stats import binomtest

    counts = Counter((bool(a), bool(b)) for a, b in right)
    both, neither = counts[True, True], counts[False, False]
    only_a, only_b = counts[True, False], counts[False, True]
    discordant = only_a + only_b
    return Paired(
        both,
        only_a,
        only_b,
        neither,
        p_value=float(binomtest(only_b, discordant).pvalue) if discordant else None,
        difference=_difference(both, only_b, only_a, neither),
    )


def _difference(both: int, first: int, second: int, neither: int) -> Estimate:
    """Share right of the first − share right of the second, which judge the same documents."""
    n = both + first + second + neither
    if n == 0:
        return Estimate(None, -1.0, 1.0, 0, "Newcombe")
    right_1, right_2 = both + first, both + second
    share_1, share_2 = right_1 / n, right_2 / n
    (low_1, high_1), (low_2, high_2) = _wilson(right_1, n), _wilson(right_2, n)
    together = both * neither - first * second
    spread = math.sqrt(right_1 * (n - right_1) * right_2 * (n - right_2))
    # A correction for continuity: a few documents show less of how the two go together than they seem to.
    correlation = (max(together - n / 2, 0) if together > 0 else together) / spread if spread else 0.0
    below, above = share_1 - low_1, high_2 - share_2
    further_below = math.sqrt(below**2 - 2 * correlation * below * above + above**2)
    below, above = share_2 - low_2, high_1 - share_1
    further_above = math.sqrt(below**2 - 2 * correlation * below * above + above**2)
    value = (first - second) / n
    return Estimate(value, max(value - further_below, -1.0), min(value + further_above, 1.0), n, "Newcombe")


def _wilson(right: int, n: int) -> tuple[float, float]:
    """Both ends of a share's interval. Source: Wilson, Journal of the American Statistical Association 22 (1927)."""
    middle = 2 * right + _Z**2
    half = _Z * math.sqrt(_Z**2 + 4 * right * (n - right) / n)
    whole = 2 * (n + _Z**2)
    return (middle - half) / whole, (middle + half) / whole


def _paired_json(outcome: Paired) -> dict[str, Any]:
    return {
        "documents": outcome.documents,
        "both": outcome.both,
        "only_a": outcome.only_a,
        "only_b": outcome.only_b,
        "neither": outcome.neither,
        "discordant": outcome.discordant,
        "p_value": outcome.p_value,
        "difference": outcome.difference._asdict(),
        "verdict": outcome.verdict,
    }
