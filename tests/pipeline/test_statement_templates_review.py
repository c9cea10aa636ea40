"""``evalkit review-template``: files, exit statuses, settings, what it costs, and what the doctor says of reviewers."""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from places import in_bucket, open_folder, open_index
from servers import gemini
from servers.gemini import Call
from statements.drawn import SHAPES, draw
from statements.reviewing import (
    KEY,
    NOTHING,
    break_template,
    build_sound_template,
    review_without_model,
    reviewer_answer,
    role_of,
    serve_answers,
    statement,
    wrong_dates,
)
from typer.testing import CliRunner

from evalkit.cli import app
from evalkit.doctor import run_doctor_checks
from evalkit.errors import DocumentError, UsageError
from evalkit.evaluation.template_review_metrics import measure_template_reviews, read_template_review_cycles
from evalkit.llm.vision_support import TEST_IMAGE_TEXT
from evalkit.pipeline.purge import find_expired_documents, find_restored_purged_doc_ids, purge
from evalkit.pipeline.statement_templates import build_review_loop_config
from evalkit.review import SMEReviewHelper
from evalkit.settings import Settings
from evalkit.statements.convergence import MAX_RETRIES_BY_SCENARIO
from evalkit.statements.review_cycles import ReviewCycle
from evalkit.statements.reviewer_report import MAX_ISSUES_BY_SEVERITY, SHOWN_ISSUE_CAPS
from evalkit.statements.rule_based_review import RULE_REVIEWER_VERSION
from evalkit.statements.statement_template import TemplateStatus, parse_template_toml
from evalkit.statements.template_review_loop import ReviewLoopConfig
from evalkit.store import CaseClaim, template_review_file_name

TEMPLATE_ID = "first_meadow_bank_v1"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a statement and the template that reads it."""
    made = tmp_path_factory.mktemp("built")
    (made / "statement.pdf").write_bytes(draw("CR and DR", 1).pdf)
    words = ["build-template", str(made / "statement.pdf"), "--to", str(made / "bank.toml")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return made


@pytest.fixture
def folder(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As ``built``, with a template of other dates and one with the signs exchanged besides."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    text = Path("bank.toml").read_text()
    Path("dates.toml").write_text(text.replace("%d %b %Y", "%d.%m.%Y"))
    signs = text.replace('"cr"', '"XX"').replace('"dr"', '"cr"').replace('"XX"', '"dr"')
    Path("signs.toml").write_text(signs)
    return tmp_path


def review(*words: str, exit_code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["review-template", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == exit_code, done.output
    return dict(json.loads(done.stdout))


def stored(output: str = "output") -> Any:
    return parse_template_toml((Path(output) / f"templates/{TEMPLATE_ID}.toml").read_text(), "stored")


def test_a_template_that_both_pass_is_stable(folder: Path) -> None:
    made = review("bank.toml", "statement.pdf")
    assert (made["outcome"], made["status"], made["attempts"], made["case_id"]) == ("approved", "stable", 1, None)
    assert made["cycles"] == [f"template_reviews/{TEMPLATE_ID}/cycle_1.json"]
    assert stored().status is TemplateStatus.STABLE
    assert (
        parse_template_toml(Path("bank.toml").read_text(), "bank").status is TemplateStatus.DRAFT
    )  # somebody's own file
    written = [path for path in Path("output").rglob("*") if path.is_file()]
    assert {path.relative_to("output").parts[0] for path in written} >= {
        "template_reviews", "templates", "document_bundles"
    }  # fmt: skip
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in written)
    applied = CliRunner().invoke(app, ["apply-template", TEMPLATE_ID, "statement.pdf"])
    assert "is a draft" not in applied.output


def test_a_fault_is_mended_and_each_attempt_leaves_its_file(folder: Path) -> None:
    made = review("dates.toml", "statement.pdf")
    assert (made["outcome"], made["attempts"]) == ("approved", 2)
    first, second = (json.loads((Path("output") / name).read_text()) for name in made["cycles"])
    assert (first["outcome"], second["outcome"]) == ("retry", "approved")
    assert first["review_cycle_id"] == second["review_cycle_id"]
    assert second["cost"]["final_outcome"] == "approved"
    assert stored().version == 2


def test_what_a_person_has_to_decide_stays_a_draft(folder: Path) -> None:
    made = review("signs.toml", "statement.pdf")
    assert (made["outcome"], made["status"]) == ("escalated", "draft")
    assert made["case_id"] == f"{TEMPLATE_ID}.statement_template"
    assert made["escalation"]["escalation_reason"] == "critical_disagreement"
    assert stored().status is TemplateStatus.DRAFT
    packet = SMEReviewHelper("output", reviewer="dr_lee").load_packet(made["case_id"])
    assert packet.template_case.escalation.escalation_reason == "critical_disagreement"
    assert [one.severity for one in packet.open_issues][:1] == ["BLOCKER"]
    told = CliRunner().invoke(app, ["review-template", "signs.toml", "statement.pdf"])
    assert told.exit_code == 0
    assert "signs are inverted" in told.output
    assert "a person decides (critical_disagreement)" in told.output


def queued() -> list[str]:
    done = CliRunner().invoke(app, ["queue", "--json"], catch_exceptions=False)
    return [row["case_id"] for row in json.loads(done.stdout)]


def test_escalated_template_is_queued_with_statement_pages(folder: Path) -> None:
    made = review("signs.toml", "statement.pdf")
    assert queued() == [made["case_id"]]
    packet = json.loads(Path(f"output/sme_packets/sme_packet_{made['case_id']}.json").read_text())
    assert packet["kind"] == "statement_template"
    assert (packet["pdf_filename"], packet["total_pages"]) == ("statement.pdf", 1)
    assert packet["template_case"]["escalation"] == made["escalation"]
    assert [one["severity"] for one in packet["issues"]] == ["BLOCKER"]
    bundle = json.loads((Path("output") / packet["document_bundle_path"]).read_text())
    assert len(bundle["pages"]) == 1
    review("signs.toml", "statement.pdf")
    assert queued() == [made["case_id"]]
    review("bank.toml", "statement.pdf")
    assert queued() == []


def test_a_case_that_somebody_has_open_stays_as_it_is(folder: Path) -> None:
    case_id = review("signs.toml", "statement.pdf")["case_id"]
    packet = Path(f"output/sme_packets/sme_packet_{case_id}.json")
    index = open_index("output")
    since, until = "2026-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"
    index.claims.acquire_or_get_live_claim(CaseClaim(case_id, "dr_lee", "tab", since, until), now=since)
    index.close()
    before, draft = packet.read_text(), stored()
    done = CliRunner().invoke(app, ["review-template", "dates.toml", "statement.pdf"])
    assert done.exit_code == 0, done.output
    assert stored() == draft  # as it is on somebody's screen, though the reviewers pass another one
    Path("evalkit.toml").write_text("[vllm_review]\nenabled = false")
    done = CliRunner().invoke(app, ["review-template", "bank.toml", "statement.pdf"])
    assert "that case and the template in the output folder were not changed" in done.output
    assert packet.read_text() == before


def test_a_persons_decision_ranks_above_a_later_pass_by_machines(folder: Path) -> None:
    case_id = review("signs.toml", "statement.pdf")["case_id"]
    draft = stored()
    Path(f"output/reviews/{case_id}").mkdir(parents=True)
    Path(f"output/reviews/{case_id}/review_1.json").write_text("{}")
    done = CliRunner().invoke(app, ["review-template", "bank.toml", "statement.pdf"])
    assert done.exit_code == 0, done.output
    assert "passed both reviewers, but a person has decided or will decide this template" in done.output
    assert stored() == draft
    assert review("bank.toml", "statement.pdf")["is_taken"] is True


def test_draft_never_replaces_an_approved_template(folder: Path) -> None:
    review("bank.toml", "statement.pdf")
    before = stored()
    review("signs.toml", "statement.pdf")
    assert stored() == before
    with pytest.raises(UsageError, match="is an approved template"):
        CliRunner().invoke(app, ["build-template", "statement.pdf"], catch_exceptions=False)
    assert [name.rpartition("_")[2] for name in open_folder("output").list_json_files(f"template_reviews/{TEMPLATE_ID}")] == [
        "1.json", "2.json",
    ]  # fmt: skip


def test_a_repeated_review_writes_the_same_but_for_clocks(folder: Path) -> None:
    texts = []
    for output in ("one", "other"):
        made = review("dates.toml", "statement.pdf", "--output", output)
        texts.append([_timeless(json.loads((Path(output) / name).read_text())) for name in made["cycles"]])
    assert texts[0] == texts[1]


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key != "times" and not key.endswith("_at")}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def test_a_template_may_lie_in_a_bucket(
    folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = in_bucket("s3", request, monkeypatch)
    build = ["build-template", "statement.pdf", "--output", bucket]
    done = CliRunner().invoke(app, [*build, "--json"])
    assert json.loads(done.stdout)["template"] == f"{bucket}/templates/{TEMPLATE_ID}.toml"
    made = review(TEMPLATE_ID, "statement.pdf", "--output", bucket)
    assert (made["outcome"], made["cycles"]) == ("approved", [f"template_reviews/{TEMPLATE_ID}/cycle_1.json"])
    kept = parse_template_toml(open_folder(bucket).read_bytes(f"templates/{TEMPLATE_ID}.toml").decode(), "kept")
    assert kept.status is TemplateStatus.STABLE
    assert isinstance(CliRunner().invoke(app, build).exception, UsageError)
    done = CliRunner().invoke(app, ["apply-template", f"{TEMPLATE_ID}.toml", "statement.pdf", "--output", bucket])
    assert done.exit_code == 0, done.output
    assert not Path("output").exists()


def test_purged_statement_is_reimported_only_on_request(folder: Path) -> None:
    review("bank.toml", "statement.pdf")
    now = datetime.now(UTC)
    assert find_expired_documents(open_folder("output"), unchanged_since=now - timedelta(days=1)).finished == ()
    assert find_expired_documents(open_folder("output"), unchanged_since=now + timedelta(days=1)).finished == (
        "statement",
    )
    backup = Path("output/document_bundles/statement.json").read_bytes()
    (done,) = purge(open_folder("output"), ["statement"], purged_at=now.isoformat())
    assert any("cycle_1" in name for name in done.removed_files)
    with pytest.raises(UsageError, match=r"statement\.pdf was purged"):
        review("bank.toml", "statement.pdf")
    assert find_restored_purged_doc_ids(open_folder("output")) == []
    Path("output/document_bundles/statement.json").write_bytes(backup)  # restored
    assert find_restored_purged_doc_ids(open_folder("output")) == ["statement"]
    purge(open_folder("output"), ["statement"], purged_at=now.isoformat())
    assert review("bank.toml", "statement.pdf", "--even-purged")["status"] == "stable"
    assert review("bank.toml", "statement.pdf")["status"] == "stable"  # it was let in: nobody asks twice
    assert find_restored_purged_doc_ids(open_folder("output")) == []


def test_statement_of_equal_file_name_gets_its_own_id(folder: Path) -> None:
    review("bank.toml", "statement.pdf")
    Path("more").mkdir()
    Path("more/statement.pdf").write_bytes(draw("CR and DR", 1, month=1).pdf)
    review("bank.toml", "more/statement.pdf")
    review("bank.toml", "statement.pdf")
    purge(open_folder("output"), ["statement"], purged_at=datetime.now(UTC).isoformat())
    review("bank.toml", "more/statement.pdf")  # keeps its name though the other is free now
    review("bank.toml", "statement.pdf", "--even-purged")
    names = sorted(path.stem for path in Path("output/document_bundles").iterdir())
    assert names[0] == "statement"
    assert re.fullmatch("statement-[0-9a-f]{8}", names[1])
    assert len(names) == 2


def test_another_statement_touches_no_earlier_template(folder: Path) -> None:
    """Two statements of one bank: each has its own template, case and cycles."""
    first = review("signs.toml", "statement.pdf")
    kept = {path: path.read_bytes() for path in Path("output").rglob("*.json") if "bundles" not in str(path)}
    draft = stored()
    Path("other.pdf").write_bytes(draw("signed amounts", 1).pdf)
    text = Path("signs.toml").read_text()
    Path("other.toml").write_text("\n".join(line for line in text.splitlines() if "built_from" not in line))
    for toml in ("signs.toml", "other.toml"):
        other = review(toml, "other.pdf")
        assert other["template"] == "templates/first_meadow_bank_v2.toml"
        assert {name.split("/")[1] for name in other["cycles"]} == {"first_meadow_bank_v2"}
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert stored() == draft
    assert first["case_id"] in queued()
    review("bank.toml", "statement.pdf")
    assert first["case_id"] not in queued()


def test_the_next_month_leaves_a_stable_template_as_it_is(folder: Path) -> None:
    review("bank.toml", "statement.pdf")
    before = stored()
    Path("next.pdf").write_bytes(draw("CR and DR", 1, month=1).pdf)
    made = review(TEMPLATE_ID, "next.pdf")
    assert (made["outcome"], made["template"]) == ("approved", f"templates/{TEMPLATE_ID}.toml")
    assert stored() == before
    assert [path.name for path in Path("output/templates").iterdir()] == [f"{TEMPLATE_ID}.toml"]


def test_drift_of_the_next_month_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank moves its columns: the stable template stays, and its own template is built for the new layout."""
    review("bank.toml", "statement.pdf")
    before = stored()
    shape = SHAPES["CR and DR"]
    columns = tuple(
        (name, title, {"amount": 300, "balance": 420}.get(name, x), side) for name, title, x, side in shape.columns
    )
    monkeypatch.setitem(SHAPES, "CR and DR", replace(shape, columns=columns))
    Path("next.pdf").write_bytes(draw("CR and DR", 1, month=1).pdf)
    applied = CliRunner().invoke(app, ["apply-template", TEMPLATE_ID, "next.pdf"])
    assert applied.exit_code == 1
    assert "the column “Amount” is printed" in applied.output
    assert "evalkit build-template" in applied.output
    done = CliRunner().invoke(app, ["review-template", TEMPLATE_ID, "next.pdf"])
    assert done.exit_code == 0, done.output
    assert "no longer fits what the bank prints" in done.output
    assert "first_meadow_bank_v2 is approved and stable" in done.output
    assert stored() == before


def test_a_draft_of_another_statement_is_no_replacement(folder: Path) -> None:
    for month in (0, 1, 0):
        Path("month.pdf").write_bytes(
            Path("statement.pdf").read_bytes() if not month else draw("CR and DR", 1, month=1).pdf
        )
        assert CliRunner().invoke(app, ["build-template", "month.pdf"]).exit_code == 0
    assert sorted(path.stem for path in Path("output/templates").iterdir()) == [TEMPLATE_ID, "first_meadow_bank_v2"]


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["gone.toml", "statement.pdf"], UsageError, "there is no template gone.toml"),
        (["wrong.toml", "statement.pdf"], UsageError, "wrong.toml, line 1"),
        (["bank.toml", "other.pdf"], UsageError, "contains none of the texts"),
        (["bank.toml", "letter.pdf"], DocumentError, "letter.pdf"),
        (["bank.toml", "statement.pdf", "--model", "nobody:x"], UsageError, "there is no model"),
    ],
)
def test_faults(words: list[str], error: type[Exception], says: str, folder: Path) -> None:
    Path("wrong.toml").write_text('template_id = "a b"\n')
    Path("letter.pdf").write_bytes(b"no PDF")
    Path("other.pdf").write_bytes(draw("European dates and decimals", 2).pdf)
    done = CliRunner().invoke(app, ["review-template", *words])
    assert isinstance(done.exception, error)
    assert says in str(done.exception)


# Models ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[gemini.GeminiServer]:
    with serve_answers({}) as server:
        monkeypatch.setenv("EVALKIT_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        yield server


def test_a_model_sees_the_statements_pages(folder: Path, asked: gemini.GeminiServer) -> None:
    made = review("bank.toml", "statement.pdf", "--model", "gemini:m")
    assert made["outcome"] == "approved"
    assert made["cost"]["total_tokens"]["input"] > 0
    assert sorted(call.role for call in asked.calls) == ["layout_geometry", "semantic_financial"]
    for call in asked.calls:
        assert len(call.images) == 1
        assert call.images[0].startswith(b"\x89PNG")
        assert len(call.images[0]) > 10_000
        assert "in this order: page 1." in call.prompt


def test_each_role_has_its_own_model_and_temperature(folder: Path, asked: gemini.GeminiServer) -> None:
    finding = reviewer_answer(("high", "sign_logic", "refunds are shown as purchases"))
    asked.answer = lambda call: {"layout_geometry": finding, "semantic_financial": NOTHING}.get(call.role, "{}")
    Path("evalkit.toml").write_text(
        '[vllm_review.reviewers]\nlayout_model = "gemini:gemini-2.5-flash"\nsemantic_model = "gemini:gemini-2.5-flash-lite"\n'
        'arbitrator_model = "gemini:gemini-2.5-pro"\nlayout_temperature = 0.7\narbitrator_temperature = 0.3\n'
    )
    made = review("bank.toml", "statement.pdf")
    assert {(call.role, call.model, call.config["temperature"]) for call in asked.calls} == {
        ("layout_geometry", "gemini-2.5-flash", 0.7),
        ("semantic_financial", "gemini-2.5-flash-lite", 0.2),
        ("arbitrator", "gemini-2.5-pro", 0.3),
    }  # fmt: skip
    assert made["escalation"]["escalation_reason"] == "reviewer_failed"  # {} is no arbitration
    first = json.loads((Path("output") / made["cycles"][0]).read_text())
    assert [report["reviewer_model"] for report in first["reports"]] == [
        f"{RULE_REVIEWER_VERSION}, gemini:gemini-2.5-flash", f"{RULE_REVIEWER_VERSION}, gemini:gemini-2.5-flash-lite"
    ]  # fmt: skip
    assert "gemini:gemini-2.5-pro" not in json.dumps(first["failures"])


def test_an_answer_is_paid_once(folder: Path, asked: gemini.GeminiServer) -> None:
    for _ in range(2):
        review("bank.toml", "statement.pdf", "--model", "gemini:m")
    assert len(asked.calls) == 2


def test_a_model_may_better_the_builders_template(folder: Path, asked: gemini.GeminiServer) -> None:
    text = Path("bank.toml").read_text().replace('statement = ""', 'statement = "Everyday account"')
    asked.answer = lambda call: json.dumps({"reasoning": "", "template": text})
    done = CliRunner().invoke(app, ["build-template", "statement.pdf", "--to", "new.toml", "--model", "gemini:m"])
    assert done.exit_code == 0, done.output
    assert "as gemini:m proposed it" in done.output
    assert parse_template_toml(Path("new.toml").read_text(), "new").identity.statement == "Everyday account"
    (call,) = asked.calls
    assert role_of(call.prompt) == "builder"
    assert call.images


# Settings -------------------------------------------------------------------------------------------------------------

#: Specification 004, "Default Settings".
DEFAULTS = """
[vllm_review]
enabled = true  # Phase 3 only

[vllm_review.reviewers]
layout_model = "claude-3-5-sonnet"
semantic_model = "claude-3-5-sonnet"
arbitrator_model = "claude-3-opus"

[vllm_review.timeouts]
single_reviewer_seconds = 60
total_cycle_seconds = 180
arbitration_seconds = 45

[vllm_review.retry]
max_attempts = 3
convergence_threshold = -0.2

[vllm_review.pass_criteria]
max_critical = 0
max_high = 0
max_medium = 3
max_low = 10

[vllm_review.issue_caps]
bbox_accuracy = 5
column_mapping = 3
sign_logic = 2
date_format = 3
multiline_handling = 3
reconciliation_strategy = 2
provenance = 5
other = 5
"""


def test_specified_settings_are_read_and_are_the_defaults(folder: Path) -> None:
    without = Settings.load().vllm_review
    Path("evalkit.toml").write_text(DEFAULTS)
    given = Settings.load().vllm_review
    assert given.reviewers.model_name_by_role == {
        "layout_geometry": "anthropic:claude-3-5-sonnet",
        "semantic_financial": "anthropic:claude-3-5-sonnet",
        "arbitrator": "anthropic:claude-3-opus",
    }
    assert given.model_copy(update={"reviewers": without.reviewers}) == without
    rules = build_review_loop_config(Settings.load())
    assert rules == ReviewLoopConfig()
    assert (rules.max_issues_by_severity, rules.shown_issue_caps, rules.max_retries_by_scenario) == (
        MAX_ISSUES_BY_SEVERITY,
        SHOWN_ISSUE_CAPS,
        MAX_RETRIES_BY_SCENARIO,
    )
    assert (rules.reviewer_seconds, rules.both_reviewers_seconds, rules.arbitration_seconds, rules.cycle_seconds) == (
        60, 90, 45, 180
    )  # fmt: skip
    assert rules.temperature_by_role == {"layout_geometry": 0.1, "semantic_financial": 0.2, "arbitrator": 0.0}


@pytest.mark.parametrize(
    ("toml", "attempts", "reason"),
    [
        ("[vllm_review]\nenabled = false", 1, "review_disabled"),
        ("[vllm_review.retry]\nmax_attempts = 0", 1, "max_retries_exceeded"),
        ("[vllm_review.retry]\nmax_attempts = 1", 2, None),
        ("[vllm_review.pass_criteria]\nmax_high = 5", 1, None),
    ],
)
def test_settings_decide(toml: str, attempts: int, reason: str | None, folder: Path) -> None:
    Path("evalkit.toml").write_text(toml)
    made = review("dates.toml", "statement.pdf")
    assert made["attempts"] == attempts
    assert (made["escalation"] or {}).get("escalation_reason") == reason


@pytest.mark.parametrize(
    "toml", ["[vllm_review.timeouts]\nsingle_reviewer_seconds = 0", "[vllm_review]\nenable = true"]
)
def test_settings_that_are_none_are_named(toml: str, folder: Path) -> None:
    Path("evalkit.toml").write_text(toml)
    with pytest.raises(UsageError, match="vllm_review"):
        Settings.load()


def test_the_schemas_fit_what_is_written(folder: Path) -> None:
    made = review("dates.toml", "statement.pdf")
    cycle = json.loads((Path("output") / made["cycles"][0]).read_text())
    values = {
        "reviewer_report": cycle["reports"],
        "arbitration_report": [cycle["arbitration"]],
        "statement_template": [stored().model_dump(mode="json", by_alias=True)],
        "template_review": [cycle],
    }
    for name, written in values.items():
        shown = json.loads(CliRunner().invoke(app, ["schema", name]).stdout)
        for value in written:
            jsonschema.validate(value, shown)
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate({**value, "template_id": None}, shown)


# How reviews do -------------------------------------------------------------------------------------------------------


def test_metrics_of_reviews(tmp_path: Path) -> None:
    files, number = open_folder(tmp_path), 0
    unsound = statement(closing="999.99")
    for template, bundle in (
        (build_sound_template(statement()), statement()),
        (break_template(statement(), wrong_dates), statement()),
        (build_sound_template(unsound), unsound),
    ):
        for cycle in review_without_model(template, bundle).cycles:
            number += 1
            files.write_json(template_review_file_name("example", number), cycle.model_dump(mode="json"))
    known = measure_template_reviews(read_template_review_cycles(files))
    assert (known.review_count, known.attempt_count) == (3, 5)
    assert known.first_pass_approval_rate.value == pytest.approx(1 / 3)
    assert known.convergence_rate.value == pytest.approx(2 / 3)
    assert known.arbitration_rate.value == pytest.approx(3 / 5)
    assert known.disagreement_categories == {"reconciliation_strategy": 3, "date_format": 1}
    assert known.escalation_reasons == {"hypotheses_exhausted": 1}
    assert (known.input_tokens, known.cost_usd) == (0, 0)
    assert [cycle.attempt for cycle in read_template_review_cycles(files)] == [1, 1, 2, 1, 2]
    assert isinstance(read_template_review_cycles(files)[0], ReviewCycle)


def test_ten_cycles_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    files = open_folder(tmp_path)
    (cycle,) = review_without_model(build_sound_template(statement()), statement()).cycles
    for number in range(1, 12):
        files.write_json(
            template_review_file_name("t", number), {**cycle.model_dump(mode="json"), "review_cycle_id": f"rc_{number}"}
        )
    assert [one.review_cycle_id for one in read_template_review_cycles(files)] == [
        f"rc_{number}" for number in range(1, 12)
    ]


# The doctor -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "is_fine", "says"),
    [
        ("gemini:gemini-2.5-flash", True, "sees images; reads 1,048,576 tokens"),
        ("anthropic:claude-sonnet-4-5", True, "sees images; reads 200,000 tokens"),
        ("openai:gpt-4o", True, "sees images; reads 128,000 tokens"),
        ("gemini:gemma-3-1b-it", False, "cannot see images"),
        ("openai:gpt-4-0613", False, "reads 8,192 tokens at once, 32,000 are needed"),
        ("vllm:llama3.2", True, "images: not known"),
        ("vllm:Qwen/Qwen2.5-VL-7B", True, "sees images; its context length is not known"),
        ("ollama:llava", False, "reads 4,096 tokens at once, 32,000 are needed"),
        ("openai:house-model", True, "images: not known"),
        ("embedded", True, "own checks only"),
    ],
)
def test_the_doctor_knows_who_can_review(model: str, is_fine: bool, says: str, tmp_path: Path) -> None:
    settings = Settings.load(output=str(tmp_path), vllm_review={"reviewers": {"layout_model": model}})
    found = [
        one for one in run_doctor_checks(settings) if one.name == "template reviewer" and one.found.startswith(model)
    ]
    assert [(one.is_fine, says in one.found) for one in found] == [(is_fine, True)]
    if not is_fine:
        # Who has named it for documents alone need not care.
        default = Settings.load(output=str(tmp_path), models={"default": model})
        assert all(one.is_fine for one in run_doctor_checks(default) if one.name == "template reviewer")


@pytest.mark.parametrize(("answer", "is_fine"), [(TEST_IMAGE_TEXT, True), (None, False), ("5920", False)])
def test_the_doctor_shows_a_reviewer_a_picture(
    answer: str | None, is_fine: bool, asked: gemini.GeminiServer, tmp_path: Path
) -> None:
    def answered(call: Call) -> str:
        return json.dumps({"ready": True, "number": answer})

    asked.answer = answered
    settings = Settings.load(
        output=str(tmp_path), vllm_review={"reviewers": {"semantic_model": "gemini:gemini-2.5-flash"}}
    )
    found = [
        one
        for one in run_doctor_checks(settings, asks_models=True)
        if "gemini" in one.found and one.name == "template reviewer"
    ]
    assert [one.is_fine for one in found] == [is_fine]
    (call,) = asked.calls
    assert call.images[0].startswith(b"\x89PNG")
