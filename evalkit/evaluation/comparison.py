"""Two runs over the same documents, case by case: what changed, why, and which run was right more often.

Documents are the same where their bytes are. Which of the two answers is right is asked twice: of the documents whose
truth is known in either folder, which are no random ones, so that a difference found there is one of reviewed documents
only; and of all documents of both, each one that chance drew counting for as many as it stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import pandas as pd

from evalkit.evaluation.contrast import Case, Overall, Paired, overall, paired
from evalkit.evaluation.estimates import is_certain
from evalkit.evaluation.metrics import is_exact, merged
from evalkit.evaluation.study import Document, Labels, Study, Truth
from evalkit.evaluation.verifiers import LEVELS, Level
from evalkit.pipeline.supplied_labels import PageSpan

NOT_READ = "NOT READ"
"""Instead of a decision, of a document that could not be read."""
CANNOT_TELL = "cannot tell"
"""Instead of a type: none was given."""

KNOWN_FROM = ("given", "A", "B", "both")
"""Who can know a truth: a file of labels, the reviews of one folder alone, those of both."""

CHANGE_COLUMNS = (
    *("doc_id", "doc_id_b", "decision_a", "decision_b", "rule_a", "rule_b", "type_a", "type_b"),
    *("segments_a", "segments_b", "score_a", "score_b", "appeared", "disappeared", "changed"),
    *("truth", "right_a", "right_b", "true_segments", "segments_right_a", "segments_right_b"),
    *("segments_merged_right_a", "segments_merged_right_b", "truth_from", "simulated"),
)
_RIGHT: dict[Level, str] = {
    "type": "right",
    "segments": "segments_right",
    "segments merged": "segments_merged_right",
}
"""The beginnings of the columns that say whether A and B are right."""

Part = Literal["dominant_type", "segments"]


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
    ``truth, true_segments`` (None: not known) and whether A and B are right, of segments in both readings; ``truth_from``
    (A, B, both, given, disputed); ``simulated``, 1 where a program told the truth."""
    only_a: tuple[str, ...]
    """The doc_ids of documents that B does not have, and of damaged ones whose bytes are not known."""
    only_b: tuple[str, ...]
    """Those that A does not have."""
    decisions: pd.DataFrame
    """Documents by decision of A (rows) and of B (columns)."""
    types: pd.DataFrame
    """``type_a, type_b, documents``: how often A's type became another one."""
    type: Paired
    """The type of the whole document; this and the next two of reviewed documents only."""
    segments: Paired
    """All segments exactly, as they were given."""
    segments_merged: Paired
    """The same, neighbours of one type as one (contract, ruling 12)."""
    drawn_by: Literal["A", "B"]
    """The run by whose draws documents count for as many as they stand for: that of which more were looked at."""
    overall: Mapping[Level, Overall]
    """Over all documents of both."""
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
            f"The comparison of reviewed documents leans here: {self.known_from[run]} of the truths are from reviews of {run} alone, "
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
            "segments_merged": _paired_json(self.segments_merged),
            "drawn_by": self.drawn_by,
            "overall": {level: _overall_json(self.overall[level]) for level in LEVELS},
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
    drawn_by = _drawn_by(pairs)
    return Comparison(
        a=str(a.output),
        b=str(b.output),
        documents=documents.astype({"changed": bool}),
        only_a=tuple(one.doc_id for one in a.documents if id(one) not in of_both),
        only_b=tuple(one.doc_id for one in b.documents if id(one) not in of_both),
        decisions=pd.crosstab(documents["decision_a"], documents["decision_b"]),
        types=_type_changes(pairs),
        type=_paired(rows, "type"),
        segments=_paired(rows, "segments"),
        segments_merged=_paired(rows, "segments merged"),
        drawn_by=drawn_by,
        overall={
            level: overall([_case(*both, drawn_by, level) for both in zip(pairs, rows, strict=True)])
            for level in LEVELS
        },
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


def _written(segments: Sequence[PageSpan]) -> str:
    """Segments as a file of labels has them, by first page.

    >>> _written([(3, 3, None), (1, 2, "Clinical Note")])
    '1-2 Clinical Note; 3 cannot tell'
    """
    ranges = (
        (f"{first}" if first == last else f"{first}-{last}", kind or CANNOT_TELL)
        for first, last, kind in _in_order(segments)
    )
    return "; ".join(f"{pages} {kind}" for pages, kind in ranges)


def _in_order(segments: Sequence[PageSpan]) -> tuple[PageSpan, ...]:
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
    kind, parts = _agreed(kinds), _agreed(segments)
    joined = _agreed({tuple(merged(one)) for one in segments})
    is_disputed = len(kinds) > 1 or len(segments) > 1
    return {
        "truth": kind,
        "right_a": None if kind is None else a.agent is not None and a.agent.dominant_type == kind,
        "right_b": None if kind is None else b.agent is not None and b.agent.dominant_type == kind,
        "true_segments": None if parts is None else _written(parts),
        "segments_right_a": None if parts is None else _is_exact(a.agent, parts),
        "segments_right_b": None if parts is None else _is_exact(b.agent, parts),
        "segments_merged_right_a": None if joined is None else _is_exact(_joined(a.agent), joined),
        "segments_merged_right_b": None if joined is None else _is_exact(_joined(b.agent), joined),
        "truth_from": "disputed" if is_disputed else _source(a.truth, b.truth),
        "simulated": int(any(one is not None and one.is_simulated for one in (a.truth, b.truth))),
    }


def _truths(a: Document, b: Document, part: Part) -> set[Any]:
    """What the folders know to be true of a part; labels that were given stand before what was reviewed."""
    known = [one for one in (a.truth, b.truth) if one and one.says(part)]
    given = [one for one in known if one.source == "GOLD"]
    return {_said(one.labels, part) for one in given or known}


def _agreed(known: AbstractSet[Any]) -> Any:
    """What is true; None where nobody knows or there are two truths."""
    return next(iter(known)) if len(known) == 1 else None


def _said(labels: Labels, part: Part) -> Any:
    return labels.dominant_type if part == "dominant_type" else _in_order(labels.segments)


def _joined(agent: Labels | None) -> Labels | None:
    """The second reading: neighbours of one type are one."""
    return agent and replace(agent, segments=tuple(merged(agent.segments)))


def _is_exact(agent: Labels | None, segments: Sequence[PageSpan]) -> bool:
    """Where nothing was answered, it is never right."""
    return agent is not None and is_exact(segments, agent.segments, typed=True)


def _source(a: Truth | None, b: Truth | None) -> str:
    if any(one is not None and one.source == "GOLD" for one in (a, b)):
        return "given"
    return {(True, True): "both", (True, False): "A", (False, True): "B"}.get((a is not None, b is not None), "")


def _paired(rows: Sequence[Mapping[str, Any]], level: Level) -> Paired:
    return paired([right for row in rows if (right := _right(row, level)) is not None])


def _right(row: Mapping[str, Any], level: Level) -> tuple[bool, bool] | None:
    right_a, right_b = (row[f"{_RIGHT[level]}_{side}"] for side in "ab")
    return None if right_a is None else (right_a, right_b)


# ---------------------------------------------------------------------------------------------------------------------
# Over all documents


def _drawn_by(pairs: Sequence[tuple[Document, Document]]) -> Literal["A", "B"]:
    """One run's draws alone: what both looked at was not drawn independently, and one run may have no reviews yet."""
    of_a, of_b = (sum(pair[side].was_looked_at for pair in pairs) for side in (0, 1))
    return "B" if of_b > of_a else "A"


def _case(pair: tuple[Document, Document], row: Mapping[str, Any], drawn_by: Literal["A", "B"], level: Level) -> Case:
    drawn = pair["AB".index(drawn_by)]
    certain = is_certain(drawn) or any(one.truth is not None and one.truth.source == "GOLD" for one in pair)
    said_a, said_b = (_answer(one.agent, level) for one in pair)
    return Case(_right(row, level), said_a == said_b, 1.0 if certain else drawn.probability, drawn.was_looked_at)


def _answer(agent: Labels | None, level: Level) -> Any:
    """What was said, so that equal answers are equally right; None: nothing."""
    if agent is None or level == "type":
        return agent and agent.dominant_type
    return _in_order(merged(agent.segments) if level == "segments merged" else agent.segments) or None


def _overall_json(outcome: Overall) -> dict[str, Any]:
    estimates = {name: getattr(outcome, name)._asdict() for name in ("a", "b", "difference")}
    return {"population": outcome.population, "documents": outcome.documents, **estimates}


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
