"""Learn a site's own weights from its experts' answers, and judge them on later files.

The challenger learns from blind answers and corrections until a cut-off, and is compared with the weights in force, the
champion, on files that were answered later. An answer is learned only if the other weeks support it, and a week or
reviewer with too many unsupported answers is left out as a whole and named: so wrong answers are not learned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import binom, fisher_exact

from evalkit.classification.offline.model_weights import EmbeddedModelWeights, parse_weights_json
from evalkit.classification.schema import DocumentType
from evalkit.classification.training.guard import count_guard_errors
from evalkit.classification.training.site_weights import SiteDocument, SiteTrainingSet
from evalkit.core.grouping import group_by
from evalkit.documents.bundle import DocumentBundle
from evalkit.evaluation.splitting import GroupingFeatures, group_related_documents, hash_shingles
from evalkit.pipeline.event_log import EventFact
from evalkit.pipeline.supplied_labels import TypedPageRange

#: Share of the answered files, the newest, on which the challenger is judged.
LATER_SHARE = 1 / 3
#: Fewest blind answers and corrections to learn from, and fewest later files to judge by.
MIN_LEARNED, MIN_LATER = 30, 30
#: Highest p-value of McNemar's test at the first attempt; the nth attempt has 1/n² of it.
MAX_P_VALUE = 0.05
#: An answer is learned only if weights that were learned without its week find it at least this probable; the second
#: number is for answers that agree with the program's in sight, because people agree with its errors too.
MIN_SUPPORT, MIN_CONFIRMATION_SUPPORT = 0.3, 0.8
#: p-value from which a part's share of unsupported answers is no chance.
_MAX_SUSPICION_P = 0.05
#: Share of the shipped validation texts that the challenger may get wrong beyond the champion.
_MAX_GUARD_LOSS = 0.02
#: Two files with this share of common text are copies.
_COPY_OVERLAP = 0.8


class AnsweredFile(NamedTuple):
    """One file with its experts' answer."""

    bundle: DocumentBundle
    dominant_type: str
    segments: tuple[TypedPageRange, ...]
    """Page ranges with their types; empty if only the type of the whole file is vouched for."""
    answered_at: str
    """Time of the answer, ISO 8601."""
    reviewers: frozenset[str]
    is_blind: bool
    """True if the expert answered before the program's answer was shown."""
    is_correction: bool
    """True if the answer differs from the program's."""
    weight: float = 1.0
    """Number of files that this one represents among all."""

    @property
    def week(self) -> str:
        """The answer's week by ISO 8601, such as ``2026-W07``."""
        year, week, _ = datetime.fromisoformat(self.answered_at).isocalendar()
        return f"{year}-W{week:02}"

    def iter_site_documents(self, group: str) -> Iterator[SiteDocument]:
        """Yield the documents of the file with their types, pages without text left out."""
        for first_page, last_page, document_type in self.segments or (
            (1, self.bundle.total_pages, self.dominant_type),
        ):
            pages = tuple(page for page in self.bundle.iter_pages(first_page, last_page) if page.text.strip())
            if pages and document_type is not None:
                kind = DocumentType(document_type)
                yield SiteDocument(
                    self.bundle.doc_id,
                    pages,
                    kind,
                    group,
                    self.week,
                    self.reviewers,
                    is_blind=self.is_blind,
                    is_confirmation=not (self.is_blind or self.is_correction),
                    has_known_pages=bool(self.segments),
                )


class FileOutcome(NamedTuple):
    """What the program makes of a file."""

    dominant_type: str | None
    segments: tuple[TypedPageRange, ...]
    is_accepted: bool

    def is_right(self, answered_file: AnsweredFile) -> bool:
        """Return True if the program's answer is the expert's, as far as vouched for."""
        return self.dominant_type == answered_file.dominant_type and answered_file.segments in ((), self.segments)


#: Function that decides files by the given weights.
DecideFiles = Callable[[Sequence[AnsweredFile], EmbeddedModelWeights], Sequence[FileOutcome]]


class LeftOut(NamedTuple):
    """Answers that are not learned, and why."""

    who: str
    """The week or reviewer; empty for single answers."""
    reason: str
    count: int


@dataclass(frozen=True)
class Challenge:
    """A challenger with the comparison that decides whether it may be promoted."""

    weights_json: Mapping[str, object] | None
    """Contents of a ``weights.json``; None if there was too little to learn from."""
    facts: Mapping[str, EventFact]
    """Counts, figures and dates, by name; never a document's."""
    left_out: tuple[LeftOut, ...]
    obstacles: tuple[str, ...]
    """Reasons why the challenger may not be promoted; empty if it may."""
    learned_ids: frozenset[str] = frozenset()
    """Files that the challenger learned from; never stored."""


def challenge_champion(
    answered_files: Iterable[AnsweredFile],
    champion: EmbeddedModelWeights,
    decide_files: DecideFiles,
    *,
    letterhead_salt: str,
    attempt: int = 1,
    cutoff: str | None = None,
) -> Challenge:
    """Learn a challenger from the earlier answers and judge it by the later ones.

    ``cutoff``: last moment of the answers to learn from; None: the newest ``LATER_SHARE`` of the files are later ones.
    ``attempt``: number of challengers of this champion, this one included.
    """
    files = sorted(answered_files, key=lambda answered_file: (answered_file.answered_at, answered_file.bundle.sha256))
    if cutoff is None:
        cutoff = files[max(len(files) - round(len(files) * LATER_SHARE), 1) - 1].answered_at if files else ""
    groups, copies = _number_groups(files), _number_groups(files, copies_only=True)
    documents = [
        (document, copy)
        for file, group, copy in zip(files, groups, copies, strict=True)
        if file.answered_at <= cutoff
        for document in file.iter_site_documents(str(group))
    ]
    training_set = SiteTrainingSet([document for document, _ in documents], champion, letterhead_salt)
    is_learned, left_out = screen_answers(training_set, [copy for _, copy in documents])
    learned_groups = {group for file, group in zip(files, groups, strict=True) if file.answered_at <= cutoff}
    independent_count = sum(
        not document.is_confirmation
        for document, learned in zip(training_set.documents, is_learned.tolist(), strict=True)
        if learned
    )
    distrusted = {row.who for row in left_out}
    later_files = [
        file
        for file, group in zip(files, groups, strict=True)
        if file.answered_at > cutoff and group not in learned_groups and file.reviewers.isdisjoint(distrusted)
    ]
    facts: dict[str, EventFact] = {
        "cutoff": cutoff,
        "attempt": attempt,
        "champion": champion.version,
        "learned_documents": int(is_learned.sum()),
        "learned_blind_or_corrected": independent_count,
        "left_out_documents": int((~is_learned).sum()),
        "later_files": len(later_files),
    }
    obstacles = [
        f"{missing} more {what} are needed"
        for missing, what in (
            (MIN_LEARNED - independent_count, "blind answers or corrections that other weeks support"),
            (MIN_LATER - len(later_files), "later files to judge by"),
        )
        if missing > 0
    ]
    if obstacles:
        return Challenge(None, facts, left_out, tuple(obstacles))
    weights_json = training_set.build_weights(is_learned)
    challenger = parse_weights_json(weights_json)
    pairs = list(
        zip(later_files, *(decide_files(later_files, weights) for weights in (champion, challenger)), strict=True)
    )
    pairs, distrusted_judges = _leave_out_suspicious_judges(pairs)
    facts["judged_files"] = len(pairs)
    later_facts, later_obstacles = judge_outcomes(pairs, max_p_value=MAX_P_VALUE / attempt**2)
    guard_errors = [count_guard_errors(weights) for weights in (champion, challenger)]
    facts |= {"challenger": challenger.version, **later_facts}
    facts |= {"guard_texts": guard_errors[0].texts, "guard_errors_champion": guard_errors[0].errors}
    facts |= {"guard_errors_challenger": guard_errors[1].errors}
    if guard_errors[1].errors - guard_errors[0].errors > _MAX_GUARD_LOSS * guard_errors[0].texts:
        later_obstacles.append(
            f"of the {guard_errors[0].texts} validation texts that come with evalkit, the new weights get "
            f"{guard_errors[1].errors} wrong, the present ones {guard_errors[0].errors}"
        )
    learned_ids = frozenset(
        document.id for document, learned in zip(training_set.documents, is_learned.tolist(), strict=True) if learned
    )
    return Challenge(weights_json, facts, (*left_out, *distrusted_judges), tuple(later_obstacles), learned_ids)


def _number_groups(files: Sequence[AnsweredFile], *, copies_only: bool = False) -> list[int]:
    """Number the groups of files that share a patient or are copies, or only copies."""
    features = [
        GroupingFeatures(str(index), file.bundle.sha256, frozenset(), hash_shingles(_join_text(file.bundle)))
        if copies_only
        else replace(GroupingFeatures.from_bundle(file.bundle), doc_id=str(index))
        for index, file in enumerate(files)
    ]
    number_by_index = {
        int(member.doc_id): number
        for number, group in enumerate(group_related_documents(features, _COPY_OVERLAP))
        for member in group
    }
    return [number_by_index[index] for index in range(len(files))]


# ---------------------------------------------------------------------------------------------------- screening


def screen_answers(
    training_set: SiteTrainingSet, copy_numbers: Sequence[int]
) -> tuple[npt.NDArray[np.bool_], tuple[LeftOut, ...]]:
    """Mark the answers that are learned, and say which are left out.

    ``copy_numbers``: equal for documents that are copies of each other.
    """
    documents = training_set.documents
    types_by_copy = group_by(range(len(documents)), lambda index: copy_numbers[index])
    is_learned = np.array(
        [len({documents[other].document_type for other in types_by_copy[number]}) == 1 for number in copy_numbers],
        dtype=bool,
    )
    left_out = [LeftOut("", "copies of one document were given different types", int((~is_learned).sum()))]
    min_support = [MIN_CONFIRMATION_SUPPORT if document.is_confirmation else MIN_SUPPORT for document in documents]
    is_independent = np.array([not document.is_confirmation for document in documents], dtype=bool)
    support = training_set.compute_support(is_learned & is_independent)
    is_supported = support >= np.array(min_support)
    for what, names in (
        ("week", [(document.week,) for document in documents]),
        ("reviewer", [tuple(sorted(document.reviewers)) for document in documents]),
    ):
        for name, is_part in _find_suspicious_parts(names, support >= MIN_SUPPORT):
            count = int((is_part & (support < MIN_SUPPORT)).sum())
            reason = f"other weeks do not support {count} of this {what}'s {int(is_part.sum())} answers"
            left_out.append(LeftOut(name, reason, int((is_part & is_learned).sum())))
            is_learned &= ~is_part
    left_out.append(LeftOut("", "other weeks do not support them", int((is_learned & ~is_supported).sum())))
    return is_learned & is_supported, tuple(row for row in left_out if row.count)


def _find_suspicious_parts(
    names_by_document: Sequence[tuple[str, ...]], is_supported: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield the weeks or reviewers with more unsupported answers than all others have."""
    for name in sorted({name for names in names_by_document for name in names}):
        is_part = np.array([name in names for names in names_by_document], dtype=bool)
        table = [
            [int((side & ~is_supported).sum()), int((side & is_supported).sum())] for side in (is_part, ~is_part)
        ]
        if table[0][0] > 1 and fisher_exact(table, alternative="greater").pvalue <= _MAX_SUSPICION_P:
            yield name, is_part


# ------------------------------------------------------------------------------------------------------ judging


#: A later file, and what champion and challenger make of it.
JudgedFile = tuple[AnsweredFile, FileOutcome, FileOutcome]


def _leave_out_suspicious_judges(pairs: Sequence[JudgedFile]) -> tuple[list[JudgedFile], list[LeftOut]]:
    """Leave out weeks and reviewers that contradict both weights more often than others do."""
    is_supported = np.array(
        [file.dominant_type in {first.dominant_type, second.dominant_type} for file, first, second in pairs], dtype=bool
    )
    is_kept, left_out = np.ones(len(pairs), dtype=bool), []
    for names in ([(file.week,) for file, *_ in pairs], [tuple(sorted(file.reviewers)) for file, *_ in pairs]):
        for name, is_part in _find_suspicious_parts(names, is_supported):
            left_out.append(LeftOut(name, "old and new weights contradict too many of these answers", int(is_part.sum())))
            is_kept &= ~is_part
    return [pair for pair, kept in zip(pairs, is_kept.tolist(), strict=True) if kept], left_out


def judge_outcomes(pairs: Sequence[JudgedFile], *, max_p_value: float) -> tuple[dict[str, EventFact], list[str]]:
    """Compare both on later files; return the figures and the obstacles to a promotion.

    Figures are weighted to all files. Obstacles: no significantly fewer wrong answers, more wrong answers accepted, or a
    gain that rests on one reviewer or week.
    """
    facts: dict[str, EventFact] = {}
    for side, position in (("champion", 1), ("challenger", 2)):
        rows = [(pair[0].weight, pair[position].is_right(pair[0]), pair[position].is_accepted) for pair in pairs]
        facts[f"wrong_{side}"] = _sum_weights(weight for weight, is_right, _ in rows if not is_right)
        facts[f"wrong_accepted_{side}"] = _sum_weights(
            weight for weight, is_right, is_accepted in rows if is_accepted and not is_right
        )
        facts[f"needlessly_escalated_{side}"] = _sum_weights(
            weight for weight, is_right, is_accepted in rows if is_right and not is_accepted
        )
    gains = [
        file.weight * (challenger.is_right(file) - champion.is_right(file))
        for file, champion, challenger in pairs
    ]
    p_value = compute_sign_test_p_value(gains)
    facts |= {"only_challenger_right": sum(gain > 0 for gain in gains), "only_champion_right": sum(gain < 0 for gain in gains)}
    facts |= {"p_value": round(p_value, 6), "max_p_value": round(max_p_value, 6)}
    obstacles = []
    if p_value > max_p_value:
        obstacles.append(
            f"it is not shown that the new weights are right more often (p {p_value:.2g}, at most {max_p_value:.2g} is needed)"
        )
    if facts["wrong_accepted_challenger"] > facts["wrong_accepted_champion"]:  # type: ignore[operator]
        obstacles.append(
            f"more wrong answers would be accepted: {facts['wrong_accepted_challenger']} instead of {facts['wrong_accepted_champion']}"
        )
    judges = [{file.week, *file.reviewers} for file, *_ in pairs]
    for name in sorted(set().union(*judges)):
        rest = sum(gain for gain, names in zip(gains, judges, strict=True) if name not in names)
        if p_value <= max_p_value and rest <= 0:
            obstacles.append(f"without {name}, the new weights are right no more often")
    return facts, obstacles


def compute_sign_test_p_value(gains: Sequence[float]) -> float:
    """Compute the one-sided p-value of McNemar's exact test for weighted pairs.

    ``gains``: weight of each file that only the challenger got right, negative if only the champion did, else 0. The
    signs are equally likely if neither is better; the distribution of their weighted sum is exact.

    >>> compute_sign_test_p_value([1.0] * 9 + [-1.0]), compute_sign_test_p_value([0.0])
    (0.0107421875, 1.0)
    """
    probability_by_sum = {0.0: 1.0}
    for weight, count in Counter(abs(gain) for gain in gains if gain).items():
        steps = [(weight * (2 * wins - count), float(binom.pmf(wins, count, 0.5))) for wins in range(count + 1)]
        sums: Counter[float] = Counter()
        for (total, probability), (step, step_probability) in product(probability_by_sum.items(), steps):
            sums[round(total + step, 6)] += probability * step_probability
        probability_by_sum = dict(sums)
    observed = round(sum(gains), 6) - 1e-6
    return min(1.0, sum(probability for total, probability in probability_by_sum.items() if total >= observed))


def _sum_weights(weights: Iterable[float]) -> float:
    return round(sum(weights), 2)
