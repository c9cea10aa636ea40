"""Certificates: the bound is rarely wrong at any look, and says what it rests on."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from evaluation.studies import NOTE, OTHER, answer, document, labels, study, truth
from hypothesis import given, settings
from hypothesis import strategies as st
from places import open_folder

import evalkit
from evalkit.evaluation.attention_outcomes import AttentionCheckOutcome
from evalkit.evaluation.certificate import (
    AuditHistory,
    BettingProcess,
    compute_certificates,
    count_more_audits_needed,
    open_answers_for_purge,
    record_certificate_changes,
)
from evalkit.evaluation.drift_monitoring import compute_stratum_drifts
from evalkit.evaluation.study import read_folder_study
from evalkit.pipeline.event_log import LoggedEvent, read_events
from evalkit.pipeline.purge import purge
from evalkit.pipeline.strata import StratumKey
from evalkit.review import SMEReviewHelper
from evalkit.settings import CertificateSettings, Settings

STRATUM = StratumKey(NOTE, "inbox", "local", "embedded", "00000001")
TOLERANT = CertificateSettings(max_error_rate=0.05)


def build_history(probabilities, wrong_positions=()) -> AuditHistory:
    is_wrong = np.zeros(len(probabilities), dtype=bool)
    is_wrong[list(wrong_positions)] = True
    return AuditHistory(np.asarray(probabilities, dtype=float), is_wrong)


def compute_error_bound(history: AuditHistory, *, confidence=0.95, noticed_share=1.0) -> float:
    return BettingProcess(history, noticed_share).compute_error_bound(confidence)


# ---------------------------------------------------------------------------------------------------------------------
# The bound


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.02, 0.05, 0.2, 0.6, 1.0]), st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        min_size=1,
        max_size=7,
    ),
    st.floats(0.5, 1),
)
def test_expected_wealth_never_exceeds_the_stake(documents, noticed_share):
    """Summed over all draws and errors: the reason why the bound holds at every look."""
    expected = 0.0
    for found in itertools.product([False, True], repeat=len(documents)):
        chances = [
            p * m * noticed_share if is_found else 1 - p * m * noticed_share
            for (p, m), is_found in zip(documents, found, strict=True)
        ]
        history = AuditHistory(np.array([p for p, _ in documents]), np.array(found))
        true_rate = np.mean([m for _, m in documents])
        log_wealth = BettingProcess(history, noticed_share).compute_log_wealth(float(true_rate))
        expected += math.prod(chances) * math.exp(log_wealth)
    assert expected <= 1 + 1e-9


#: Wealth of the same bets on audits of every document, by betting_mart of confseq 0.0.11 (bets g / (1 - g m) on the
#: lower side, weighted as here): (documents, positions of wrong ones, error rate, wealth).
CONFSEQ_WEALTH = [
    (370, (), 0.01, 20.934),
    (700, (100,), 0.01, 22.588),
    (400, (10, 50, 200), 0.03, 54.600),
    (1500, (5, 300, 900, 1200), 0.01, 113.352),
]
#: Upper limits of betting_cs of confseq 0.0.11 with its own bets, which adapt to the data (alpha 0.1, two-sided).
CONFSEQ_LIMITS = [0.0160, 0.0105, 0.0251, 0.0079]


@pytest.mark.parametrize(("number", "wrong", "rate", "theirs"), CONFSEQ_WEALTH)
def test_wealth_is_that_of_confseq_with_equal_bets(number, wrong, rate, theirs):
    ours = math.exp(BettingProcess(build_history(np.ones(number), wrong), 1.0).compute_log_wealth(rate))
    assert 0.9 * theirs < ours <= theirs  # exp(g m) instead of 1 / (1 - g m): a little less, for rates that change


@pytest.mark.parametrize(("example", "theirs"), list(zip(CONFSEQ_WEALTH, CONFSEQ_LIMITS, strict=True)))
def test_bound_is_about_that_of_confseqs_adaptive_bets(example, theirs):
    number, wrong, *_ = example
    assert compute_error_bound(build_history(np.ones(number), wrong)) < 1.1 * theirs


def test_audits_without_an_error_that_prove_one_percent():
    assert compute_error_bound(build_history(np.ones(370))) <= 0.01 < compute_error_bound(build_history(np.ones(365)))
    rarely_drawn = build_history(np.full(7400, 0.05))
    assert compute_error_bound(rarely_drawn) <= 0.01
    assert count_more_audits_needed(build_history(np.full(1000, 0.05)), 10_000, 1.0, 0.01, 0.95) == 317


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.03, 0.05, 0.2, 1.0]), st.booleans()), min_size=1, max_size=60),
    st.floats(0.6, 1.0),
)
def test_bound_moves_as_the_evidence_does(rows, noticed_share):
    probabilities = np.array([probability for probability, _ in rows])
    is_wrong = np.array([wrong and probability > 0 for probability, wrong in rows])
    bound = compute_error_bound(AuditHistory(probabilities, is_wrong), noticed_share=noticed_share)
    assert 0 < bound <= 1
    for position in np.flatnonzero(is_wrong):
        fewer = is_wrong.copy()
        fewer[position] = False
        assert compute_error_bound(AuditHistory(probabilities, fewer), noticed_share=noticed_share) <= bound + 1e-6
    assert compute_error_bound(AuditHistory(probabilities, is_wrong), noticed_share=1.0) <= bound + 1e-6
    assert (
        compute_error_bound(AuditHistory(probabilities, is_wrong), confidence=0.5, noticed_share=noticed_share) <= bound
    )


@pytest.mark.parametrize("kind", ["even", "rarely drawn are wrong", "bursts", "worse later", "better later"])
def test_false_bounds_are_rare_at_every_look(kind):
    """Look after each twentieth document, at an error rate that is the tolerated one on average."""
    generator, rate, number, repeats = np.random.default_rng(5), 0.05, 1200, 150
    false_count = 0
    for _ in range(repeats):
        probabilities = np.full(number, 0.3) if kind in ("even", "bursts") else generator.choice([0.15, 0.6], number)
        risks = np.full(number, rate)
        if kind == "rarely drawn are wrong":
            risks = np.where(probabilities < 0.3, 2 * rate, 0.0)
        elif kind == "bursts":
            risks = np.repeat(generator.random(number // 20) < rate, 20).astype(float)
        elif kind in ("worse later", "better later"):
            risks = np.where((np.arange(number) < 600) == (kind == "better later"), 1.6 * rate, 0.4 * rate)
        is_wrong = generator.random(number) < risks
        is_found = is_wrong & (generator.random(number) < probabilities)
        mean_risks, wrong_shares = (np.cumsum(column) / np.arange(1, number + 1) for column in (risks, is_wrong))
        for look in range(10, number, 20):
            true_rate = min(mean_risks[look - 1], wrong_shares[look - 1])
            process = BettingProcess(AuditHistory(probabilities[:look], is_found[:look]), 1.0)
            if true_rate > 0 and process.is_refuted(np.nextafter(true_rate, 0), 0.95):
                false_count += 1
                break
    assert false_count <= 0.05 * repeats + 2 * math.sqrt(0.05 * 0.95 * repeats)


# ---------------------------------------------------------------------------------------------------------------------
# Certificates of a study


def build_audits(count: int, *, wrong=(), waiting=(), unblinded=(), first=0, a_day=200, stratum=STRATUM, **fields):
    """Accepted documents that are all audited, one after another, and answered on the next day."""
    documents = []
    for number in range(first, first + count):
        decided = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number / a_day)
        said = OTHER if number in wrong else NOTE
        review = answer(
            f"d{number:05}",
            said,
            is_blind=number not in unblinded,
            submitted_at=(decided + timedelta(days=1)).isoformat(),
        )
        known = {} if number in waiting else {"truth": truth(said, review_reason="audit"), "reviews": (review,)}
        given = {
            "agent_labels": labels(), "decided_at": decided.isoformat(), "run_started_at": "2026-01-01T00:00:00Z",
            "stratum": stratum, "inclusion_probability": 1.0, "truth_status": "pending" if number in waiting else "reviewed",
        } | known | fields  # fmt: skip
        documents.append(document(f"d{number:05}", **given))
    return documents


def certify(documents, settings=TOLERANT, **fields):
    return compute_certificates(replace(study(*documents), **fields), settings)


def test_certificate_is_per_stratum_and_for_all():
    other = StratumKey(OTHER, "inbox", "local", "embedded", "00000001")
    overall, note, _ = certify([*build_audits(100), *build_audits(20, first=100, stratum=other)])
    assert (overall.stratum, note.stratum) == ("", STRATUM.name)
    assert overall.is_in_force
    assert overall.statement.startswith(
        "At most 5 % of the accepted documents are wrong, 95 % sure, at whatever moment"
    )
    assert "0 of 120 blind audits found a wrong type" in overall.statement
    assert (note.accepted_count, note.audit_count, note.is_in_force) == (100, 100, True)


def test_small_stratum_says_how_many_audits_are_missing():
    overall, _ = certify(build_audits(40))
    assert not overall.is_in_force
    assert f"{overall.more_audits_needed} more audits, all of them right" in overall.statement
    more = 40 + (overall.more_audits_needed or 0)
    assert certify(build_audits(more))[0].is_in_force
    assert not certify(build_audits(more - 1))[0].is_in_force


def test_bound_of_everything_is_no_bound():
    """Without a single answer, a share of 100 % would be true and say nothing."""
    overall, _ = certify(build_audits(3, waiting=range(3)))
    assert overall.error_bound == 1
    assert "an unknown share of the 3 documents" in overall.statement
    assert "100 %" not in overall.statement


def test_certificate_that_cannot_be_had_says_so():
    overall, _ = certify(build_audits(40, a_day=0.2, inclusion_probability=0.05))
    assert overall.more_audits_needed is None
    assert "cannot be certified here" in overall.statement


def test_unanswered_audits_count_as_wrong_or_are_left_out():
    early, late = (
        certify(build_audits(150, waiting=range(5)))[0],
        certify(build_audits(150, waiting=range(145, 150)))[0],
    )
    assert (early.is_proven, early.unanswered_count) == (False, 5)
    assert (late.is_proven, late.unanswered_count, late.accepted_count) == (True, 0, 145)
    answered = certify(build_audits(150))[0]
    assert answered.error_bound < late.error_bound


def test_certificate_ends_when_its_documents_are_old():
    recent = build_audits(120) + build_audits(100, first=2000, a_day=40, waiting=range(2000, 2100))
    old = build_audits(120) + build_audits(100, first=2000, a_day=20, waiting=range(2000, 2100))
    assert [certify(documents)[0].is_proven for documents in (recent, old)] == [True, False]


def test_known_errors_end_a_certificate_although_older_audits_prove_it():
    waiting = {100}
    documents = build_audits(400, waiting=waiting, wrong=range(101, 140))
    assert not certify(documents)[0].is_proven
    assert certify(build_audits(100))[0].is_proven


@pytest.mark.parametrize("status", ["unblinded", "undeterminable"])
def test_only_blind_answers_about_the_type_count(status):
    fields = {
        "unblinded": {"unblinded": range(100)},
        "undeterminable": {"truth": None, "truth_status": "undeterminable"},
    }
    overall = certify(build_audits(100, **fields[status]))[0]
    assert (overall.unanswered_count, overall.is_proven) == (100, False)


def test_blind_answer_counts_although_the_truth_was_changed_later():
    documents = build_audits(100)
    first = answer("d00000", OTHER, is_blind=True, submitted_at="2026-01-02T00:00:00Z")
    changed = replace(documents[0], reviews=(first, *documents[0].reviews))
    assert certify([changed, *documents[1:]])[0].wrong_count == 1


def test_errors_found_without_an_audit_raise_the_bound():
    known = [replace(one, review_reason="escalated") for one in build_audits(20, first=100, wrong=range(100, 120))]
    overall = certify([*build_audits(100), *known])[0]
    assert (overall.is_proven, overall.error_bound) == (False, pytest.approx(20 / 120))


def test_documents_that_could_not_be_drawn_may_all_be_wrong():
    never = [
        replace(one, inclusion_probability=probability, review_reason=None, truth=None, reviews=())
        for one, probability in zip(build_audits(20, first=100), itertools.cycle([0.0, None]), strict=False)
    ]
    overall = certify([*build_audits(100), *never])[0]
    assert not overall.is_proven
    assert overall.error_bound > 20 / 120


def test_answers_of_programs_certify_nothing():
    simulated = [replace(one, reviews=(replace(one.reviews[0], is_simulated=True),)) for one in build_audits(100)]
    overall = certify(simulated)[0]
    assert (overall.is_proven, overall.is_in_force, overall.simulated_count) == (True, False, 100)
    assert "answers by programs prove nothing" in overall.statement


def test_missed_attention_checks_widen_the_bound():
    def build_checks(noticed):
        return tuple(
            AttentionCheckOutcome(
                f"c{number}", "d", "type", "", "answered", "dr_lee", is_fault_noticed=number < noticed
            )
            for number in range(40)
        )

    bounds = [
        certify(build_audits(100), attention_checks=build_checks(noticed))[0].error_bound for noticed in (40, 30, 10)
    ]
    assert bounds == sorted(bounds)
    assert bounds[0] < certify(build_audits(100))[0].error_bound < bounds[1]


def test_new_version_is_another_stratum():
    new = StratumKey(NOTE, "inbox", "local", "embedded", "00000002")
    later = build_audits(30, first=100, stratum=new, run_started_at="2026-01-02T00:00:00Z")
    names = {one.stratum: one.accepted_count for one in certify([*build_audits(100), *later])}
    assert names == {"": 30, new.name: 30}


def test_document_decided_again_after_its_audit_proves_nothing():
    assert certify(build_audits(100, decided_at="2026-06-01T00:00:00Z")) == []


def test_run_that_decides_reviewed_documents_again_proves_nothing():
    """Its documents that were not drawn would look as if they had passed."""
    again = {"run_started_at": "2026-06-01T00:00:00Z", "decided_at": "2026-06-01T00:00:00Z"}
    not_drawn = {
        "truth": None,
        "reviews": (),
        "review_reason": None,
        "truth_status": "unseen",
        "inclusion_probability": 0.5,
    }
    earlier = [*build_audits(50, **again), *build_audits(50, first=50, **again, **not_drawn)]
    assert certify(earlier) == []
    later = build_audits(30, first=100, run_started_at="2026-06-02T00:00:00Z")
    assert [one.accepted_count for one in certify([*earlier, *later])] == [30, 30]


def test_error_found_by_an_audit_counts_when_decided_again():
    """Else deciding just the wrong ones again would clear a stratum."""
    assert certify(build_audits(200))[0].is_in_force
    documents = build_audits(200, wrong={10, 20, 30, 40, 50, 60, 70, 80})
    again = {"run_started_at": "2026-06-01T00:00:00Z", "decided_at": "2026-06-01T00:00:00Z"}
    documents = [
        replace(one, **again, agent_labels=labels(OTHER))
        if one.truth and one.truth.labels.dominant_type == OTHER
        else one
        for one in documents
    ]
    for overall in certify(documents):
        assert (overall.wrong_count, overall.accepted_count, overall.is_in_force) == (8, 200, False)


def test_error_counts_although_its_file_was_exchanged():
    """A better scan of the same letter does not make the answer about the bad one right."""
    documents = build_audits(200, wrong=set(range(0, 80, 10)))
    exchanged = tuple(one for one in documents if one.truth and one.truth.labels.dominant_type == OTHER)
    kept = [one for one in documents if one not in exchanged]
    assert certify(kept)[0].is_in_force
    overall, _ = certify(kept, replaced_documents=exchanged)
    assert (overall.wrong_count, overall.accepted_count, overall.is_in_force) == (8, 200, False)


def test_errors_of_an_earlier_version_do_not_count():
    earlier = build_audits(
        8, wrong=set(range(8)), decided_at="2026-06-01T00:00:00Z", run_started_at="2026-06-01T00:00:00Z"
    )
    later = build_audits(100, first=40_000, run_started_at="2026-07-01T00:00:00Z")
    assert [(one.wrong_count, one.is_in_force) for one in certify([*earlier, *later])] == [(0, True), (0, True)]


def test_documents_that_nobody_could_draw_prove_nothing():
    """Documents that an earlier run did not draw, decided again without the others, are no random draw."""
    not_drawn = {"truth": None, "reviews": (), "review_reason": None, "truth_status": "unseen"}
    for overall in certify(build_audits(9000, inclusion_probability=0.05, **not_drawn)):
        assert (overall.is_proven, overall.missing_draws, overall.is_in_force) == (True, 450, False)
        assert "450 documents fewer were drawn" in overall.statement


def build_brake(stratum: str) -> LoggedEvent:
    return LoggedEvent(
        kind="braked",
        recorded_at="2026-01-01T06:00:00Z",
        recorded_by="evalkit",
        stratum=stratum,
        facts={},
        prev_sha256=None,
    )


@pytest.mark.parametrize("stratum", ["", STRATUM.name, STRATUM.name.rpartition(" | ")[0]])
def test_after_a_brake_only_later_documents_count(stratum):
    assert [one.accepted_count for one in certify(build_audits(100), events=(build_brake(stratum),))] == [49, 49]


def test_brake_of_another_stratum_leaves_this_one_alone():
    overall, note = certify(build_audits(100), events=(build_brake(STRATUM._replace(source="fax").name),))
    assert (overall.accepted_count, note.accepted_count) == (49, 100)


def test_order_of_answers_changes_nothing():
    documents = build_audits(100, wrong={7})
    assert certify(documents) == certify(documents[::-1])


def test_grants_and_withdrawals_are_logged_once(tmp_path: Path):
    output_folder = open_folder(tmp_path)

    def record(documents, now, settings=TOLERANT):
        return record_certificate_changes(
            output_folder, replace(study(*documents), events=tuple(read_events(output_folder))), now, settings
        )

    assert record(build_audits(20), "2026-01-02T00:00:00Z") == []
    granted = record(build_audits(100), "2026-01-03T00:00:00Z")
    assert [(event.kind, event.stratum) for event in granted] == [("certified", ""), ("certified", STRATUM.name)]
    assert record(build_audits(110), "2026-01-04T00:00:00Z") == []
    looser = CertificateSettings(max_error_rate=0.06)
    assert [event.facts["max_error_rate"] for event in record(build_audits(110), "2026-01-04T01:00:00Z", looser)] == [
        0.06
    ] * 2
    assert record(build_audits(110), "2026-01-04T02:00:00Z")[0].facts["max_error_rate"] == TOLERANT.max_error_rate
    withdrawn = record(build_audits(110, wrong=range(90, 110)), "2026-01-05T00:00:00Z")
    assert [event.kind for event in withdrawn] == ["certificate_withdrawn"] * 2
    facts = granted[0].facts
    again = certify(build_audits(100))[0]
    assert (facts["error_bound"], facts["answers_sha256"], facts["audit_count"]) == (
        again.error_bound,
        again.answers_sha256,
        100,
    )
    assert record(build_audits(100), "2026-01-06T00:00:00Z")[0].kind == "certified"
    other = build_audits(10, stratum=STRATUM._replace(versions="00000002"))
    assert [event.kind for event in record(other, "2026-01-07T00:00:00Z")] == ["certificate_withdrawn"] * 2


def test_purging_audited_documents_changes_no_count(tmp_path: Path):
    pages, output = tmp_path / "pages", tmp_path / "output"
    pages.mkdir()
    for number in range(5):
        text = "Progress note. The patient was seen in clinic today. Assessment and plan: continue treatment."
        (pages / f"note{number}.txt").write_text(f"{text} Visit {number}.")
    evalkit.run(pages, output=output, settings=Settings(output=str(output), audit_rate_start=1.0))
    helper = SMEReviewHelper(output, "dr_lee")
    helper.save_review("note0", agrees=True)
    helper.save_review("note1", corrected_dominant_type="Other")
    helper.save_review("note2", undeterminable="illegible")
    for path in output.glob("reviews/*/*.json"):
        path.write_text(path.read_text().replace('"agent": true', '"agent": false'))
    before = read_folder_study(open_folder(output))
    assert [(c.wrong_count, c.unanswered_count) for c in compute_certificates(before)] == [(1, 3), (1, 3)]
    folder = open_folder(output)
    for doc_id in ("note0", "note1", "note2", "note3"):
        purge(folder, [doc_id], purged_at="2026-03-01", read_answer=open_answers_for_purge(folder))
    after = read_folder_study(open_folder(output))
    assert [document.doc_id for document in after.documents] == ["note4"]
    assert compute_certificates(after) == compute_certificates(before)
    assert compute_stratum_drifts(after) == compute_stratum_drifts(before)
    kept = "".join(path.read_text() for path in output.glob("purged/*.json"))
    assert "note" not in kept
    assert '"pages"' not in kept
