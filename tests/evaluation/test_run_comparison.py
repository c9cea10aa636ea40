"""Two runs case by case: what changed, which was right, and the command that prints it."""

import csv
import json
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from commands import evalkit_command
from evaluation.findings import finding
from evaluation.studies import GENOMIC, NOTE, OTHER, document, escalated_document, labels, study, truth
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame
from places import open_folder
from scipy.stats import multinomial

import evalkit
from evalkit.cli.render import render_comparison
from evalkit.cli.terminal import ConsoleTable
from evalkit.document_types import use_own_types
from evalkit.evaluation.run_comparison import CHANGE_COLUMNS, RunComparison, compare_paired_accuracy, compare_studies
from evalkit.evaluation.study import DocumentRecord
from evalkit.samples import write_demo_folder
from evalkit.samples.simulated_experts import simulate_and_submit_reviews

ABSENT, ALTERED = "V4-QUOTE-ABSENT", "V4-QUOTE-ALTERED"


def row(frame: DataFrame, doc_id: str) -> dict:
    (only,) = frame[frame["doc_id"] == doc_id].to_dict("records")
    return only


# ---------------------------------------------------------------------------------------------------------------------
# What changed


def test_documents_are_matched_by_their_bytes() -> None:
    a = study(
        document("one"),
        document("two", sha256="2" * 64),
        document("torn", sha256=None, decision=None, agent_labels=None),
    )
    b = study(document("three"), document("renamed", sha256="2" * 64), document("torn", sha256=None, decision=None))
    one = compare_studies(a, b)
    assert [(row["doc_id"], row["doc_id_b"]) for row in one.documents_table.to_dict("records")] == [("two", "renamed")]
    assert one.only_in_a == ("one", "torn")
    assert one.only_in_b == ("three", "torn")
    assert tuple(one.documents_table.columns) == CHANGE_COLUMNS


def test_what_changed_and_why() -> None:
    found_a = (finding(ABSENT), finding(ABSENT), finding(ALTERED), finding("V1-PAGE-COUNT", status="repaired"))
    a = study(
        escalated_document(
            "x", issues=found_a, agent_labels=labels(NOTE, (1, 1, NOTE), (2, 2, None)), evidence_quality_score=0.4
        ),
        document("same", evidence_quality_score=0.95),
        document("lost"),
    )
    b = study(
        document("x", issues=(finding(ABSENT), finding("V2-DOMINANT-TIE", "MINOR")), agent_labels=labels(GENOMIC)),
        document("same", evidence_quality_score=0.95),
        document("lost", decision=None, decision_rule=None, agent_labels=None, truth_status="unreadable"),
    )
    one = compare_studies(a, b)
    assert list(one.changed_documents["doc_id"]) == ["x", "lost"]
    changed = row(one.documents_table, "x")
    assert changed["appeared"] == {"V2-DOMINANT-TIE": 1}
    assert changed["disappeared"] == {ABSENT: 1, ALTERED: 1}
    assert (changed["rule_a"], changed["rule_b"]) == ("1", "7")
    assert (changed["segments_a"], changed["segments_b"]) == ("1 Clinical Note; 2 cannot tell", "1-2 Genomic Report")
    assert changed["score_a"] == 0.4
    assert one.decision_crosstab.to_dict() == {
        "AUTO_ACCEPT": {"AUTO_ACCEPT": 1, "ESCALATE_TO_SME": 1},
        "NOT READ": {"AUTO_ACCEPT": 1, "ESCALATE_TO_SME": 0},
    }
    assert one.type_changes.to_dict("records") == [
        {"type_a": NOTE, "type_b": GENOMIC, "documents": 1},
        {"type_a": NOTE, "type_b": "cannot tell", "documents": 1},
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"decision": "ESCALATE_TO_SME"},
        {"decision_rule": "6"},
        {"agent_labels": labels(GENOMIC)},
        {"agent_labels": labels(NOTE, (1, 1, NOTE), (2, 2, NOTE))},
        {"issues": (finding("V2-DOMINANT-TIE", "MINOR"),)},
        {"evidence_quality_score": 0.9},
    ],
)
def test_any_of_these_is_a_change(change: dict) -> None:
    assert len(compare_studies(study(document("a")), study(document("a", **change))).changed_documents) == 1
    assert compare_studies(
        study(document("a")), study(document("a", call_count=3, processing_seconds=9.0, review_probability=0.9))
    ).changed_documents.empty


def test_models_and_prompts_side_by_side() -> None:
    shipped = {"model": "embedded", "prompt Merged_Verifier": "aaa", "evalkit": "1"}
    own = {"model": "ollama:x", "model v2": "gemini:y", "prompt Merged_Verifier": "bbb", "evalkit": "1"}
    later = own | {"prompt Merged_Verifier": "ccc"}
    a = study(document("a", versions=shipped), document("b", versions=shipped))
    b = study(document("a", versions=own), document("b", versions=later))
    one = compare_studies(a, b)
    assert list(one.versions_table.itertuples(index=False, name=None)) == [
        ("model", "embedded", "ollama:x"),
        ("prompt Merged_Verifier", "aaa", "bbb, ccc"),
        ("evalkit", "1", "1"),
        ("model v2", "", "gemini:y"),
    ]
    assert one.to_json()["versions"][0] == {"of": "model", "a": "embedded", "b": "ollama:x"}
    shown = next(part for part in render_comparison(one) if isinstance(part, ConsoleTable))
    assert [row[0] for row in shown.rows] == ["model", "prompt Merged_Verifier", "model v2"]


def test_effort_side_by_side() -> None:
    a = study(
        document("a", call_count=4, token_count=100, cost_usd=Decimal("0.10"), processing_seconds=2.0),
        document("b", call_count=4, token_count=50, cost_usd=Decimal("0.20"), processing_seconds=1.0),
        document("only", call_count=9, token_count=9, cost_usd=Decimal(9), processing_seconds=9.0),
    )
    b = study(
        document("a", call_count=2, token_count=30, cost_usd=None, processing_seconds=1.5),
        document("b", call_count=2, token_count=30, cost_usd=Decimal("0.1"), processing_seconds=None),
    )
    one = compare_studies(a, b)
    assert list(one.effort_table.itertuples(index=False, name=None)) == [
        ("calls", 8, 4),
        ("tokens", 150, 60),
        ("cost_usd", Decimal("0.30"), None),
        ("seconds", 2.0, 1.5),
    ]
    assert one.to_json()["effort"][2] == {"measure": "cost_usd", "a": "0.30", "b": None}


def test_folders_without_a_common_document() -> None:
    one = compare_studies(study(document("a")), study(document("b")))
    assert one.changed_documents.empty
    assert one.decision_crosstab.empty
    assert one.type_accuracy.document_count == one.segment_accuracy.document_count == 0
    assert json.loads(json.dumps(one.to_json()))["decisions"] == {}


# ---------------------------------------------------------------------------------------------------------------------
# Which is right


def judged(a: DocumentRecord, b: DocumentRecord) -> RunComparison:
    return compare_studies(study(a), study(b))


@pytest.mark.parametrize(
    ("truth_a", "truth_b", "source", "kind"),
    [
        (None, None, "", None),
        (truth(NOTE), None, "A", NOTE),
        (None, truth(NOTE), "B", NOTE),
        (truth(NOTE), truth(NOTE), "both", NOTE),
        (truth(NOTE), truth(GENOMIC), "disputed", None),
        (truth(NOTE, source="GOLD"), truth(GENOMIC), "given", NOTE),
        (truth(NOTE, source="GOLD"), truth(NOTE, source="GOLD"), "given", NOTE),
        (truth(NOTE, vouched=frozenset()), truth(GENOMIC), "both", GENOMIC),
    ],
)
def test_whose_truth_counts(truth_a, truth_b, source, kind) -> None:
    one = judged(document("a", truth=truth_a), document("a", truth=truth_b, agent_labels=labels(GENOMIC)))
    found = row(one.documents_table, "a")
    assert found["truth_from"] == source
    assert found["truth"] == kind if kind else found["truth"] is None
    assert one.disputed_doc_ids == (("a",) if source == "disputed" else ())
    assert one.type_accuracy.document_count == (1 if kind else 0)
    if kind:
        assert (found["right_a"], found["right_b"]) == (kind == NOTE, kind == GENOMIC)


def test_segments_must_match_exactly_and_be_vouched_for() -> None:
    two = ((1, 1, NOTE), (2, 2, OTHER))
    one = judged(document("a", truth=truth(NOTE, *two)), document("a", agent_labels=labels(NOTE, *two)))
    assert (one.type_accuracy.both_right, one.segment_accuracy.only_b_right, one.segment_accuracy.document_count) == (
        1,
        1,
        1,
    )
    kind_only = truth(NOTE, *two, vouched=frozenset({"dominant_type"}))
    assert judged(document("a", truth=kind_only), document("a")).segment_accuracy.document_count == 0


def test_segment_order_does_not_matter() -> None:
    two = ((1, 1, NOTE), (2, 2, OTHER))
    backwards = two[::-1]
    a = document("a", agent_labels=labels(NOTE, *two), truth=truth(NOTE, *backwards))
    b = document("a", agent_labels=labels(NOTE, *backwards), truth=truth(NOTE, *two))
    one = judged(a, b)
    assert (one.segment_accuracy.both_right, one.segment_accuracy.document_count) == (1, 1)
    assert one.changed_documents.empty
    assert one.disputed_doc_ids == ()
    assert row(one.documents_table, "a")["segments_b"] == "1 Clinical Note; 2 Other"


def test_who_knows_the_truths_and_which_way_that_leans() -> None:
    gold = truth(source="GOLD")
    known_a = {"given": gold, "one": truth(), "two": truth(), "three": truth(), "both": truth(), "none": None}
    known_b = {"given": gold, "one": None, "two": None, "three": None, "both": truth(), "none": None}
    a, b = (study(*(document(name, truth=said) for name, said in known.items())) for known in (known_a, known_b))
    one, mirrored = compare_studies(a, b), compare_studies(b, a)
    assert one.truth_origin_counts == {"given": 1, "A": 3, "B": 0, "both": 1}
    assert mirrored.truth_origin_counts == {"given": 1, "A": 0, "B": 3, "both": 1}
    assert "3 of the truths come from reviews of A only" in one.comparability_warning
    assert "3 of the truths come from reviews of B only" in mirrored.comparability_warning
    assert compare_studies(a, a).comparability_warning is None
    assert "escalated" not in one.comparability_warning, "all were accepted, and drawn"
    told = json.loads(json.dumps(one.to_json()))
    assert (told["known_from"], told["leaning"]) == (one.truth_origin_counts, one.comparability_warning)


def test_escalated_documents_are_counted_where_they_bias() -> None:
    a, b = (
        study(escalated_document("one", truth=known), document("two", truth=known), document("three"))
        for known in (truth(), None)
    )
    assert "and A escalated 1 of these documents" in compare_studies(a, b).comparability_warning
    assert "and B escalated 1 of these documents" in compare_studies(b, a).comparability_warning


def test_documents_that_wait_are_said_to_count_as_wrong() -> None:
    some = [document(f"drawn{number}", truth=truth(), review_probability=0.5) for number in range(3)]
    waiting = [escalated_document(f"waits{number}") for number in range(2)]
    sentence = "2 that must be reviewed and have no known truth count as wrong"
    for documents, is_told in (([*some, *waiting], True), (some, False)):
        comparison = compare_studies(study(*documents), study(*documents))
        assert comparison.to_json()["overall"]["type"]["missing"] == (2 if is_told else 0)
        lines = [line for line in render_comparison(comparison) if isinstance(line, str)]
        assert any(line.startswith("Type: ") and line.endswith(sentence) for line in lines) == is_told


def test_a_missing_answer_is_never_right() -> None:
    one = judged(document("a", truth=truth(), agent_labels=None), document("a", truth=truth(is_simulated=True)))
    assert (one.type_accuracy.only_b_right, one.segment_accuracy.only_b_right, one.simulated_truth_count) == (1, 1, 1)


def test_mcnemar_by_hand() -> None:
    """Of ten discordant documents one speaks for A: 2 · (1 + 10) / 2¹⁰."""
    outcome = compare_paired_accuracy([(True, True)] * 5 + [(False, True)] * 9 + [(True, False)] + [(False, False)] * 5)
    assert outcome.p_value == pytest.approx(22 / 1024, abs=1e-9)
    assert outcome.describe_winner() == "B is right more often"
    assert (outcome.document_count, outcome.discordant_count) == (20, 10)
    assert outcome.difference.value == pytest.approx(0.4, abs=1e-9)


@pytest.mark.parametrize(
    ("only_a", "only_b", "verdict"),
    [
        (0, 0, "too few to tell: exactly one answer is right on 0 documents, at least 6 are needed"),
        (0, 5, "too few to tell: exactly one answer is right on 5 documents, at least 6 are needed"),
        (0, 6, "B is right more often"),
        (6, 0, "A is right more often"),
        (1, 6, "no difference shown"),
        (3, 3, "no difference shown"),
    ],
)
def test_what_the_counts_allow_to_say(only_a: int, only_b: int, verdict: str) -> None:
    outcome = compare_paired_accuracy([(True, False)] * only_a + [(False, True)] * only_b + [(True, True)] * 100)
    assert outcome.describe_winner() == verdict
    assert (outcome.p_value is None) == (only_a + only_b == 0)


def test_the_interval_of_a_difference_by_hand() -> None:
    """Ten documents, A right on the first eight, B on the last six: no correlation is left after its correction."""
    outcome = compare_paired_accuracy([(True, True)] * 5 + [(True, False)] * 3 + [(False, True)] + [(False, False)])
    # Wilson's ends of 8 and of 6 of 10, and together = 5 · 1 - 3 · 1 = 2, which the correction of 5 takes away.
    z = 1.959963984540054
    ends = {}
    for right in (8, 6):
        middle, half = 2 * right + z * z, z * (z * z + 4 * right * (10 - right) / 10) ** 0.5
        ends[right] = ((middle - half) / (20 + 2 * z * z), (middle + half) / (20 + 2 * z * z))
    below = ((0.6 - ends[6][0]) ** 2 + (ends[8][1] - 0.8) ** 2) ** 0.5
    above = ((0.8 - ends[8][0]) ** 2 + (ends[6][1] - 0.6) ** 2) ** 0.5
    assert outcome.difference.value == pytest.approx(-0.2, abs=1e-9)
    assert outcome.difference.low == pytest.approx(-0.2 - below, abs=1e-9)
    assert outcome.difference.high == pytest.approx(-0.2 + above, abs=1e-9)
    assert outcome.difference.method == "Newcombe"


@given(*[st.integers(0, 30)] * 4)
def test_exchanging_the_runs_mirrors_the_outcome(both: int, only_a: int, only_b: int, neither: int) -> None:
    pairs = [(True, True)] * both + [(True, False)] * only_a + [(False, True)] * only_b + [(False, False)] * neither
    one, other = compare_paired_accuracy(pairs), compare_paired_accuracy([(b, a) for a, b in pairs])
    assert (one.only_a_right, one.only_b_right) == (other.only_b_right, other.only_a_right)
    assert one.p_value == pytest.approx(other.p_value) if one.discordant_count else one.p_value is None
    assert one.difference.low == pytest.approx(-other.difference.high, abs=1e-9)
    assert -1 <= one.difference.low <= one.difference.high <= 1
    if one.document_count:
        assert one.difference.low <= one.difference.value <= one.difference.high


@pytest.mark.parametrize(
    "chances", [(0.9, 0.05, 0.03, 0.02), (0.6, 0.2, 0.1, 0.1), (0.5, 0.05, 0.05, 0.4), (0.7, 0.02, 0.2, 0.08)]
)
def test_the_interval_covers_the_true_difference(chances: tuple[float, ...]) -> None:
    """Summed exactly over all outcomes of 20 documents."""
    n, true, covered = 20, chances[2] - chances[1], 0.0
    for both in range(n + 1):
        for a in range(n + 1 - both):
            for b in range(n + 1 - both - a):
                counts = (both, a, b, n - both - a - b)
                chance = multinomial.pmf(counts, n, chances)
                if chance > 1e-6:
                    interval = _interval(*counts)
                    covered += chance * (interval[0] <= true <= interval[1])
    assert covered >= 0.94


def _interval(both: int, a: int, b: int, neither: int) -> tuple[float, float]:
    pairs = [(True, True)] * both + [(True, False)] * a + [(False, True)] * b + [(False, False)] * neither
    difference = compare_paired_accuracy(pairs).difference
    return difference.low, difference.high


# ---------------------------------------------------------------------------------------------------------------------
# The command


@pytest.fixture(scope="module")
def two_runs(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Two runs that share two documents, one of them supplied with an answer in the first; and a file of labels."""
    folder = tmp_path_factory.mktemp("compared")
    shared = [samples / "quest_cbc.pdf", samples / "fabricated_quote.pdf"]
    evalkit.run(
        [*shared, samples / "clinical_note.pdf"], output=folder / "a", classifications=samples / "classifications"
    )
    (folder / "renamed").mkdir()
    copies = [shutil.copy(path, folder / "renamed" / f"again_{path.name}") for path in shared]
    evalkit.run(copies, output=folder / "b")
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("doc_id", "dominant_type"), ("fabricated_quote", OTHER), ("quest_cbc", OTHER)])
    return folder / "a", folder / "b", folder / "labels.csv"


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    write_demo_folder(folder)
    return folder


def test_the_command_prints_both_runs(two_runs: tuple[Path, Path, Path]) -> None:
    a, b, labelled = two_runs
    shown = evalkit_command("compare", a, b, "--truth", labelled)
    assert shown.returncode == 0, shown.stderr
    assert (
        "known labels that match no document in the folder: fabricated_quote, quest_cbc" in shown.stderr
    )  # of B, where they are renamed
    assert "2 documents in both, 1 only in A, 0 only in B" in shown.stdout
    assert "Only in A: clinical_note" in shown.stdout
    assert "−V4-QUOTE-ABSENT" in shown.stdout
    assert "2 documents with a known truth" in shown.stdout
    assert "too few to tell" in shown.stdout
    assert "Type: of all 2 documents in both, estimated from 2 by the draws of A: A right " in shown.stdout
    assert "Segments exactly, neighbours of one type merged, reviewed only: no document in both has" in shown.stdout


def test_the_command_prints_json_for_programs(two_runs: tuple[Path, Path, Path]) -> None:
    a, b, labelled = two_runs
    shown = evalkit_command("compare", a, b, "--json", "--truth", labelled)
    value = json.loads(shown.stdout)
    assert {one["doc_id"]: one["doc_id_b"] for one in value["documents"]} == {
        "fabricated_quote": "again_fabricated_quote",
        "quest_cbc": "again_quest_cbc",
    }
    assert value["only_a"] == ["clinical_note"]
    assert value["type"]["documents"] == 2
    assert value["segments"]["p_value"] is None


@pytest.fixture
def no_own_types() -> Iterator[None]:
    use_own_types({})
    yield
    use_own_types({})


@pytest.mark.usefixtures("no_own_types")
@pytest.mark.parametrize("order", [1, -1])
def test_the_truth_may_be_a_type_of_either_folder(
    two_runs: tuple[Path, Path, Path], tmp_path: Path, order: int
) -> None:
    folders = [shutil.copytree(path, tmp_path / path.name) for path in two_runs[:2]]
    (folders[0] / "own_types.toml").write_text('["Operative Note"]\ndefinition = "A surgeon\'s account."\n')
    labels_file = tmp_path / "labels.csv"
    labels_file.write_text("doc_id,dominant_type\nfabricated_quote,Operative Note\nquest_cbc,Other\n")
    shown = evalkit_command("compare", *folders[::order], "--truth", labels_file)
    assert shown.returncode == 0, shown.stderr
    assert "Truths: 2 given" in shown.stdout


def test_a_folder_without_results_is_one_line(two_runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    shown = evalkit_command("compare", two_runs[0], tmp_path)
    assert shown.returncode == 2
    assert len(shown.stderr.strip().splitlines()) == 1


def test_the_command_says_whose_reviews_tell_the_truth(
    two_runs: tuple[Path, Path, Path], samples: Path, tmp_path: Path
) -> None:
    a, b, _ = two_runs
    shutil.copytree(a, tmp_path / "a")
    simulate_and_submit_reviews(
        open_folder(tmp_path / "a"), samples / "truth.csv", error_rate=0.0, second_opinion_rate=0.0
    )
    shown = evalkit_command("compare", tmp_path / "a", b)
    assert shown.returncode == 0, shown.stderr
    (told,) = (line for line in shown.stdout.splitlines() if line.startswith("Truths: "))
    assert told.endswith(" from reviews of A alone")
    assert "is biased" in shown.stdout
    given = evalkit_command("compare", *two_runs[:2], "--truth", two_runs[2])
    assert "Truths: 2 given\n" in given.stdout
    assert "is biased" not in given.stdout


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_damaged_file_makes_the_exit_status_and_nothing_else(
    two_runs: tuple[Path, Path, Path], tmp_path: Path, more: tuple[str, ...]
) -> None:
    a, b, _ = two_runs
    shutil.copytree(a, tmp_path / "a")
    (tmp_path / "a/results/quest_cbc.json").write_text("{")
    shown = evalkit_command("compare", tmp_path / "a", b, *more)
    assert shown.returncode == 1
    assert "quest_cbc" in shown.stderr
    assert "fabricated_quote" in shown.stdout
    if more:
        assert [one["doc_id"] for one in json.loads(shown.stdout)["documents"]] == ["fabricated_quote"]
    else:
        assert "1 documents in both" in shown.stdout
        assert "US dollars" in shown.stdout


def test_a_label_of_production_is_remarked_until_it_is_mapped(
    two_runs: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(two_runs[0], tmp_path / "a")
    kept = {"schema_version": 1, "labels": {"quest_cbc": {"dominant_type": "LAB"}}}
    (tmp_path / "a/production.json").write_text(json.dumps(kept))
    words = ("compare", tmp_path / "a", two_runs[1])
    assert "'LAB'" in evalkit_command(*words).stderr
    monkeypatch.setenv("EVALKIT_FOREIGN_TYPES", '{"LAB": "Other"}')
    assert evalkit_command(*words).stderr == ""


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_report_of_damaged_files_is_whole_and_ends_with_1(
    two_runs: tuple[Path, Path, Path], tmp_path: Path, more: tuple[str, ...]
) -> None:
    shutil.copytree(two_runs[0], tmp_path / "a")
    (tmp_path / "a/results/quest_cbc.json").write_text("{")
    shown = evalkit_command("report", "--output", tmp_path / "a", "--to", tmp_path / "r.html", *more)
    assert shown.returncode == 1
    assert "quest_cbc" in (" ".join(json.loads(shown.stdout)["warnings"]) if more else shown.stderr)
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_a_run_compared_with_itself_shows_nothing(two_runs: tuple[Path, Path, Path]) -> None:
    shown = evalkit_command("compare", two_runs[0], two_runs[0])
    assert "0 documents changed" in shown.stdout
    assert shown.stdout.count("no document in both has a known truth") == 1
    assert "95 % interval" not in shown.stdout
