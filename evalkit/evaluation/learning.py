"""Training of a site's weights on experts' answers, and test on later files.

The challenger learns from blind answers and corrections until a cut-off, and is compared with the weights in force, the
champion, on files that were answered later. An answer is learned only if the other weeks support it, and a week or
reviewer with too many unsupported answers is left out as a whole and named: so wrong answers are not learned.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import binom, fisher_exact

from evalkit.classification.offline.model_weights import EmbeddedModelWeights, parse_weights_json
from evalkit.classification.orchestrator import ClassificationOutcome
from evalkit.classification.schema import DocumentType
from evalkit.classification.training.guard import count_guard_errors
from evalkit.classification.training.site_weights import SiteDocument, SiteTrainingSet
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.document_cache import keep_results
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
#: An answer is learned only if weights that were learned without its week find each of its documents at least this
#: probable; the second number is for answers that agree with the program's in sight, because people agree with its errors.
MIN_SUPPORT, MIN_CONFIRMATION_SUPPORT = 0.5, 0.8
#: p-value from which a part's share of unsupported answers is no chance.
_MAX_SUSPICION_P = 0.05
#: Share of the shipped validation texts that the challenger may get wrong beyond the champion: about what the shipped
#: weights get wrong of such texts if they have not learned them.
_MAX_GUARD_LOSS = 0.10
#: Two files with this share of common text are copies.
_COPY_OVERLAP = 0.8


class AnsweredFile(NamedTuple):
    """One file with its experts' answer, to learn from."""

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
                yield SiteDocument(
                    self.bundle.doc_id,
                    pages,
                    DocumentType(document_type),
                    group,
                    self.week,
                    self.reviewers,
                    is_blind=self.is_blind,
                    is_confirmation=not (self.is_blind or self.is_correction),
                    has_known_pages=bool(self.segments),
                )


class FileOutcome(NamedTuple):
    """The program's answer about a file, and whether it was accepted."""

    dominant_type: str | None
    segments: tuple[TypedPageRange, ...]
    is_accepted: bool

    @classmethod
    def create(cls, outcome: ClassificationOutcome) -> FileOutcome:
        """Create the record of an orchestrator's outcome."""
        answer = outcome.classification
        segments = () if answer is None else answer.segments
        return cls(
            None if answer is None else answer.dominant_type_overall,
            tuple((segment.start_page, segment.end_page, segment.dominant_type) for segment in segments),
            outcome.verdict.decision is Decision.AUTO_ACCEPT,
        )

    def is_right(self, answered_file: AnsweredFile) -> bool:
        """Return True if the program's answer equals the expert's confirmed parts."""
        return self.dominant_type == answered_file.dominant_type and answered_file.segments in ((), self.segments)


#: Function that decides files by the given weights.
DecideFiles = Callable[[Sequence[AnsweredFile], EmbeddedModelWeights], Sequence[FileOutcome]]


class LeftOut(NamedTuple):
    """Answers that are not used for training, and why."""

    who: str
    """The week or reviewer; empty for single answers."""
    reason: str
    answers: int


@dataclass(frozen=True)
class Challenge:
    """New weights with the comparison that decides whether they may be used."""

    weights_json: Mapping[str, object] | None
    """Contents of a ``weights.json``; None if there was too little to learn from."""
    facts: Mapping[str, EventFact]
    """Counts, figures and dates, by name; never a document's."""
    left_out: tuple[LeftOut, ...]
    obstacles: tuple[str, ...]
    """Reasons why the challenger may not be promoted; empty if it may."""
    learned_ids: frozenset[str] = frozenset()
    """Files that the challenger learned from; never stored."""


class LearnedWeights(NamedTuple):
    """New weights learned from answers before the cut-off time."""

    weights_json: Mapping[str, object]
    """Contents of a ``weights.json``."""
    independent_count: int
    """Number of documents learned from that were answered blind or corrected."""
    learned_count: int
    document_count: int
    left_out: tuple[LeftOut, ...]
    learned_ids: frozenset[str]


def learn_weights(
    files: Sequence[AnsweredFile], groups: Sequence[int], champion: EmbeddedModelWeights, letterhead_salt: str
) -> LearnedWeights:
    """Learn new weights from answered files; ``groups`` as by ``number_groups``."""
    documents = [
        document for file, group in zip(files, groups, strict=True) for document in file.iter_site_documents(str(group))
    ]
    with keep_results():  # pages are read alone and with others
        training_set = SiteTrainingSet(documents, champion, letterhead_salt)
        is_learned, left_out = screen_answers(training_set)
        weights_json = training_set.build_weights(is_learned)
    learned = [document for document, is_chosen in zip(documents, is_learned.tolist(), strict=True) if is_chosen]
    return LearnedWeights(
        weights_json,
        sum(not document.is_confirmation for document in learned),
        len(learned),
        len(documents),
        left_out,
        frozenset(document.id for document in learned),
    )


def challenge_champion(
    answered_files: Iterable[AnsweredFile],
    champion: EmbeddedModelWeights,
    decide_files: DecideFiles,
    *,
    letterhead_salt: str,
    attempt: int = 1,
    cutoff: str | None = None,
) -> Challenge:
    """Train new weights on earlier answers and compare them on later answers.

    ``cutoff``: last moment of the answers to learn from; None: the newest ``LATER_SHARE`` of the files are later ones.
    ``attempt``: number of challengers of this champion that were judged, this one included.
    """
    files = sorted(answered_files, key=lambda answered_file: (answered_file.answered_at, answered_file.bundle.sha256))
    if cutoff is None:
        cutoff = files[max(len(files) - round(len(files) * LATER_SHARE), 1) - 1].answered_at if files else ""
    groups = number_groups(files)
    earlier_count = sum(file.answered_at <= cutoff for file in files)
    learned_groups = set(groups[:earlier_count])
    later_files = [
        file
        for file, group in zip(files[earlier_count:], groups[earlier_count:], strict=True)
        if group not in learned_groups
    ]
    facts: dict[str, EventFact] = {"champion": champion.version, "cutoff": cutoff, "later_files": len(later_files)}
    if len(later_files) < MIN_LATER or earlier_count < MIN_LEARNED:
        missing = max(0, MIN_LEARNED - earlier_count), max(0, MIN_LATER - len(later_files))
        return Challenge(
            None, facts, (), (f"more answers are needed: {missing[0]} to learn from, {missing[1]} later ones",)
        )
    learned = learn_weights(files[:earlier_count], groups[:earlier_count], champion, letterhead_salt)
    facts |= {
        "learned_documents": learned.learned_count,
        "learned_blind_or_corrected": learned.independent_count,
        "left_out_documents": learned.document_count - learned.learned_count,
    }
    if (missing_answers := MIN_LEARNED - learned.independent_count) > 0:
        obstacle = (
            f"{missing_answers} more blind answers or corrections that other weeks support are needed to learn from"
        )
        return Challenge(None, facts, learned.left_out, (obstacle,))
    challenger = parse_weights_json(learned.weights_json)
    distrusted = {row.who for row in learned.left_out}
    trusted_files = [file for file in later_files if file.reviewers.isdisjoint(distrusted)]
    pairs, distrusted_judges = _leave_out_suspicious_judges(
        list(zip(trusted_files, *(decide_files(trusted_files, side) for side in (champion, challenger)), strict=True))
    )
    judged_facts, obstacles = judge_outcomes(pairs, max_p_value=MAX_P_VALUE / attempt**2)
    guard, guard_after = count_guard_errors(champion), count_guard_errors(challenger)
    facts |= {"challenger": challenger.version, "attempt": attempt, "judged_files": len(pairs), **judged_facts}
    facts |= {"guard_texts": guard.texts, "guard_errors_champion": guard.errors}
    facts |= {"guard_errors_challenger": guard_after.errors}
    if len(pairs) < MIN_LATER:
        obstacles.append(f"{MIN_LATER - len(pairs)} more later files with trusted answers are needed to judge by")
    if guard_after.errors - guard.errors > _MAX_GUARD_LOSS * guard.texts:
        obstacles.append(
            f"of the {guard.texts} validation texts that come with evalkit, the new weights get {guard_after.errors} wrong, "
            f"the present ones {guard.errors}"
        )
    left_out = (*learned.left_out, *distrusted_judges)
    return Challenge(learned.weights_json, facts, left_out, tuple(obstacles), learned.learned_ids)


def number_groups(files: Sequence[AnsweredFile]) -> list[int]:
    """Assign one number to files that share a patient or are copies."""
    return _number_related(_keep_surest_identifiers(GroupingFeatures.from_bundle(file.bundle)) for file in files)


def _keep_surest_identifiers(features: GroupingFeatures) -> GroupingFeatures:
    """Keep a file's patient keys, or else its names and numbers.

    Several patients may share names and numbers.
    """
    keys = {(kind, value) for kind, value in features.patient_identifiers if kind == "key"}
    others = {(kind, value) for kind, value in features.patient_identifiers if kind != "date_of_birth"}
    return replace(features, patient_identifiers=frozenset(keys or others))


def _number_copies(documents: Iterable[SiteDocument]) -> list[int]:
    return _number_related(
        GroupingFeatures("", "", frozenset(), hash_shingles("\n".join(page.text for page in document.pages)))
        for document in documents
    )


def _number_related(features: Iterable[GroupingFeatures]) -> list[int]:
    numbered = [replace(feature, doc_id=str(index)) for index, feature in enumerate(features)]
    number_by_id = {
        member.doc_id: number
        for number, group in enumerate(group_related_documents(numbered, _COPY_OVERLAP))
        for member in group
    }
    return [number_by_id[feature.doc_id] for feature in numbered]


# ---------------------------------------------------------------------------------------------------- screening


def screen_answers(training_set: SiteTrainingSet) -> tuple[npt.NDArray[np.bool_], tuple[LeftOut, ...]]:
    """Mark the answers to learn from, and explain which are excluded."""
    documents, copy_numbers = training_set.documents, _number_copies(training_set.documents)
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
    # Whoever errs about one document of a file is not believed about the others.
    unsupported_ids = {document.id for document, is_fine in zip(documents, is_supported, strict=True) if not is_fine}
    is_supported = np.array([document.id not in unsupported_ids for document in documents], dtype=bool)
    left_out.append(LeftOut("", "other weeks do not support them", int((is_learned & ~is_supported).sum())))
    return is_learned & is_supported, tuple(row for row in left_out if row.answers)


def _find_suspicious_parts(
    names_by_document: Sequence[tuple[str, ...]], is_supported: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield the weeks or reviewers with more unsupported answers than all others have."""
    for name in sorted({name for names in names_by_document for name in names}):
        is_part = np.array([name in names for names in names_by_document], dtype=bool)
        table = [[int((side & ~is_supported).sum()), int((side & is_supported).sum())] for side in (is_part, ~is_part)]
        if table[0][0] > 1 and fisher_exact(table, alternative="greater").pvalue <= _MAX_SUSPICION_P:
            yield name, is_part


# ------------------------------------------------------------------------------------------------------ judging


#: A later file, and what champion and challenger make of it.
JudgedFile = tuple[AnsweredFile, FileOutcome, FileOutcome]


def _leave_out_suspicious_judges(pairs: Sequence[JudgedFile]) -> tuple[list[JudgedFile], list[LeftOut]]:
    """Leave out weeks and reviewers that contradict both weights unusually often."""
    is_supported = np.array(
        [file.dominant_type in {first.dominant_type, second.dominant_type} for file, first, second in pairs], dtype=bool
    )
    is_kept, left_out = np.ones(len(pairs), dtype=bool), []
    for names in ([(file.week,) for file, *_ in pairs], [tuple(sorted(file.reviewers)) for file, *_ in pairs]):
        for name, is_part in _find_suspicious_parts(names, is_supported):
            left_out.append(
                LeftOut(name, "old and new weights contradict too many of these answers", int(is_part.sum()))
            )
            is_kept &= ~is_part
    return [pair for pair, is_chosen in zip(pairs, is_kept.tolist(), strict=True) if is_chosen], left_out


def judge_outcomes(pairs: Sequence[JudgedFile], *, max_p_value: float) -> tuple[dict[str, EventFact], list[str]]:
    """Compare old and new weights on later files; return figures and obstacles.

    Figures are weighted to all files. Obstacles: no significantly fewer wrong answers, more wrong answers accepted, or a
    gain that rests on one reviewer or week.
    """
    facts: dict[str, EventFact] = {}
    for number, side in enumerate(("champion", "challenger")):
        rows = [
            (file.weight, outcomes[number].is_right(file), outcomes[number].is_accepted) for file, *outcomes in pairs
        ]
        facts[f"wrong_{side}"] = _sum_weights(weight for weight, is_right, _ in rows if not is_right)
        facts[f"wrong_accepted_{side}"] = _sum_weights(
            weight for weight, is_right, is_accepted in rows if is_accepted and not is_right
        )
        facts[f"needlessly_escalated_{side}"] = _sum_weights(
            weight for weight, is_right, is_accepted in rows if is_right and not is_accepted
        )
    gains = [
        file.weight * (challenger.is_right(file) - champion.is_right(file)) for file, champion, challenger in pairs
    ]
    p_value = compute_sign_test_p_value(gains)
    facts |= {
        "only_challenger_right": sum(gain > 0 for gain in gains),
        "only_champion_right": sum(gain < 0 for gain in gains),
    }
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

    >>> round(compute_sign_test_p_value([1.0] * 9 + [-1.0]), 6), compute_sign_test_p_value([0.0])
    (0.010742, 1.0)
    """
    probability_by_sum = {0.0: 1.0}
    for weight, count in Counter(abs(gain) for gain in gains if gain).items():
        steps = [(weight * (2 * wins - count), float(binom.pmf(wins, count, 0.5))) for wins in range(count + 1)]
        sums: dict[float, float] = defaultdict(float)
        for (total, probability), (step, step_probability) in product(probability_by_sum.items(), steps):
            sums[round(total + step, 6)] += probability * step_probability
        probability_by_sum = dict(sums)
    observed = round(sum(gains), 6) - 1e-6
    return min(1.0, sum(probability for total, probability in probability_by_sum.items() if total >= observed))


def _sum_weights(weights: Iterable[float]) -> float:
    return round(sum(weights), 2)
