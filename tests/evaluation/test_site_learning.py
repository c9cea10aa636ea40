"""A folder of a hospital's letters: proposed, promoted, used, checked and taken back weights."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from copy import copy
from pathlib import Path

import pytest
from commands import evalkit_command
from evaluation.letter_hospital import Letter, write_folder

import evalkit
from evalkit.classification.offline.model_weights import load_embedded_weights, load_shipped_weights
from evalkit.document_types import use_own_types
from evalkit.errors import StoreError, UsageError
from evalkit.evaluation import learning
from evalkit.evaluation.site_learning import ProposalOutcome, promote_proposal, propose_site_weights, revert_promotion
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.event_log import read_events
from evalkit.pipeline.site_weights import load_weights_in_force, use_weights_in_force
from evalkit.review import SMEReviewHelper
from evalkit.review.ground_truth import ShownMachineAnswers
from evalkit.settings import Settings
from evalkit.store import OutputFolder, open_output_folder

COUNT = 64
WHEN = "2026-04-01T00:00:00Z"
NameReviewer = Callable[[int], str]


class Hospital:
    """An output folder with the letters that were put into it."""

    def __init__(self, folder: Path) -> None:
        self.inputs, self.output = folder / "in", folder / "out"
        self.letters = write_folder(self.inputs, COUNT)
        self.decisions = self.run()

    def copy_to(self, output: Path) -> Hospital:
        copied = copy(self)
        copied.output = Path(shutil.copytree(self.output, output))
        return copied

    @property
    def files(self) -> OutputFolder:
        return open_output_folder(self.output)

    def run(self) -> dict[str, str | None]:
        """The decisions of a run over all letters."""
        self.summary = evalkit.run([self.inputs], output=self.output)
        return {document.doc_id: document.decision for document in self.summary.documents}

    def review(
        self, name_reviewer: NameReviewer, answer: Callable[[int, Letter], str] = lambda _, letter: letter.kind
    ) -> None:
        """Each letter answered: accepted ones blind, the others with the program's answer in sight."""
        for number, letter in enumerate(self.letters):
            moment = letter.answered_at.isoformat()
            helper = SMEReviewHelper(self.output, reviewer=name_reviewer(number), clock=lambda moment=moment: moment)
            is_blind = self.decisions[letter.name] == "AUTO_ACCEPT"
            helper.save_review(
                letter.name,
                agrees=False,
                corrected_dominant_type=answer(number, letter),
                shown=ShownMachineAnswers(agent=not is_blind),
            )

    def propose(self, **options: object) -> ProposalOutcome:
        return propose_site_weights(self.files, Settings.load(), proposed_at=WHEN, **options)


@pytest.fixture(autouse=True)
def few_answers_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MIN_LATER", 16)
    monkeypatch.setattr(learning, "MIN_LEARNED", 16)


@pytest.fixture(scope="module")
def both_hospitals(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hospital, Hospital]:
    """The hospital before and after its letters were answered rightly, made once: who changes it works on a copy."""
    folder = tmp_path_factory.mktemp("hospital")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALKIT_AUDIT_RATE_START", "1")
        patch.chdir(folder)
        unanswered = Hospital(folder)
        answered = unanswered.copy_to(folder / "answered")
        answered.review(by_turns)
        return unanswered, answered


@pytest.fixture
def unanswered(both_hospitals: tuple[Hospital, Hospital], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospital:
    monkeypatch.setenv("EVALKIT_AUDIT_RATE_START", "1")
    monkeypatch.chdir(tmp_path)
    return both_hospitals[0].copy_to(tmp_path / "out")


@pytest.fixture
def hospital(both_hospitals: tuple[Hospital, Hospital], unanswered: Hospital, tmp_path: Path) -> Hospital:
    """Answered."""
    return both_hospitals[1].copy_to(tmp_path / "answered")


def by_turns(number: int) -> str:
    return f"dr_{'abc'[number // 2 % 3]}"


def test_promoted_weights_decide_until_they_are_taken_back(hospital: Hospital) -> None:
    before = hospital.decisions
    assert Counter(before.values())["ESCALATE_TO_SME"] > COUNT / 3
    outcome = hospital.propose()
    assert outcome.challenge.obstacles == ()
    assert outcome.challenge.facts["wrong_challenger"] < outcome.challenge.facts["wrong_champion"]
    assert hospital.run() == before, "a proposal alone changes nothing"
    promoted = promote_proposal(hospital.files, promoted_by="A. Analyst", promoted_at=WHEN)
    assert Counter(hospital.run().values())["ESCALATE_TO_SME"] < COUNT / 8
    assert "promoted on 2026-04-01 by A. Analyst" in (hospital.summary.weights_note or "")
    stored = json.loads((hospital.output / "results" / "letter_001.json").read_text())
    assert stored["versions"]["weights"] == promoted.facts["challenger"]
    shown = evalkit_command("show", "letter_001", "--why", "--output", str(hospital.output)).stdout
    assert "letterhead that the site knows +" in shown
    revert_promotion(hospital.files, reverted_by="B. Analyst", reverted_at=WHEN)
    assert hospital.run() == before
    assert hospital.summary.weights_note is None
    kinds = [(event.kind, event.recorded_by) for event in read_events(hospital.files)]
    assert [row for row in kinds if row[0].startswith("promot")] == [
        ("promoted", "A. Analyst"),
        ("promotion_reversed", "B. Analyst"),
    ]
    with pytest.raises(UsageError, match="came with evalkit"):
        revert_promotion(hospital.files, reverted_by="B. Analyst", reverted_at=WHEN)


def test_changed_weights_are_found_and_never_used(hospital: Hospital) -> None:
    file_name = hospital.propose().file_name
    promote_proposal(hospital.files, promoted_by="A. Analyst", promoted_at=WHEN)
    assert verify_integrity(hospital.files).faults == ()
    with use_weights_in_force(hospital.files):
        assert load_embedded_weights() is not load_shipped_weights()
    stored = hospital.output / str(file_name)
    stored.write_bytes(stored.read_bytes().replace(b'"temperature": ', b'"temperature":  ', 1))
    assert [fault.file for fault in verify_integrity(hospital.files).faults] == [file_name]
    with pytest.raises(StoreError, match="changed after its promotion"):
        load_weights_in_force(hospital.files)


def test_a_proposal_holds_no_word_of_a_patient(hospital: Hospital) -> None:
    stored = (hospital.output / str(hospital.propose().file_name)).read_text().casefold()
    names = {word.casefold() for letter in hospital.letters for word in letter.text.split("Patient: ")[1].split()[:2]}
    assert not [name for name in names if f'"{name.strip(",")}' in stored or f' {name.strip(",")}"' in stored]
    assert not [letter.name for letter in hospital.letters if letter.name in stored]


def test_simulated_reviewers_teach_only_if_allowed(unanswered: Hospital) -> None:
    unanswered.review(lambda number: f"simulated_{by_turns(number)}")
    refused = unanswered.propose()
    assert refused.file_name is None
    assert [(row.reason, row.answers) for row in refused.challenge.left_out] == [("simulated reviewers", COUNT)]
    assert unanswered.propose(allow_simulated=True).challenge.obstacles == ()


def test_answers_with_a_type_of_the_site_are_left_out_and_counted(unanswered: Hospital) -> None:
    (unanswered.output / "own_types.toml").write_text('["Operative Note"]\ndefinition = "A surgeon\'s account."\n')
    try:
        unanswered.review(by_turns, lambda number, letter: "Operative Note" if number % 8 == 0 else letter.kind)
        outcome = unanswered.propose()
        left_out = {row.reason: row.answers for row in outcome.challenge.left_out}
        assert left_out["a type of your own, which cannot be learned yet"] == COUNT // 8
        assert not any("more answers" in obstacle for obstacle in outcome.challenge.obstacles)
    finally:
        use_own_types({})


def test_a_week_of_wrong_answers_is_left_out_and_named(unanswered: Hospital) -> None:
    """All pathology letters of the third week are called Other."""
    unanswered.review(by_turns, lambda number, letter: "Other" if number // 8 == 2 and number % 2 else letter.kind)
    outcome = unanswered.propose()
    assert "2026-W04" in {row.who for row in outcome.challenge.left_out}
    assert not outcome.challenge.learned_ids & {f"letter_{number:03}" for number in range(16, 24)}


def test_the_commands_propose_promote_and_revert(hospital: Hospital) -> None:
    output = ("--output", str(hospital.output))
    without = evalkit_command("learn", "promote", "--by", "A. Analyst", *output)
    assert (without.returncode, "no new weights were proposed yet" in without.stderr) == (2, True)
    early = evalkit_command("learn", "propose", "--until", "2026-01-10", *output)
    assert (early.returncode, "Not to be promoted: more answers are needed" in early.stdout) == (1, True)
    proposed = evalkit_command("learn", "propose", *output)
    assert (proposed.returncode, "site_weights/0001.json may be promoted" in proposed.stdout) == (0, True)
    promoted = evalkit_command("learn", "promote", "--by", "A. Analyst", "--json", *output)
    assert json.loads(promoted.stdout)["recorded_by"] == "A. Analyst"
    reverted = evalkit_command("learn", "revert", "--by", "A. Analyst", *output)
    assert f"Weights {load_shipped_weights().version} are in force again." in reverted.stdout
