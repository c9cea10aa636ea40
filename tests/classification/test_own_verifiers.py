"""A site's own verifiers: installed, isolated, limited, and only ever adding issues under their own name."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import CountingModel, copy_with, doc2_6, doc2_6_answer, parse_answer

from evalkit.classification import own_verifiers
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.own_verifiers import load_own_verifiers
from evalkit.errors import UsageError
from evalkit.llm.model import Answer, Usage

Install = Callable[..., Path]

WELL_BEHAVED = """
    from pydantic import BaseModel
    from evalkit.issue import Issue, IssueSeverity
    from evalkit.llm.model import Question

    class Doses(BaseModel):
        doses: list[str]

    class DoseQuestion(Question):
        role = "ACME"
        answer_type = Doses

        def __init__(self, pages):
            self.pages = pages

        def render_prompt(self):
            return f"Which doses are on pages {self.pages}?"

        def offline(self):
            return Doses(doses=[])

    class Verifier:
        agent = "ACME"

        def validate(self, classification, bundle):
            fields = {"page": 1, "auto_fixable": True, "facts": {"dose": 5}}
            return [Issue.create("ACME", "ACME-DOSE", IssueSeverity.MAJOR, "A dose has no unit.", **fields)]

        def questions(self, classification, bundle, pages=None):
            return [DoseQuestion(pages)]

        def read(self, answers):
            return [
                Issue.create("ACME", "ACME-DOSES", IssueSeverity.MINOR, dose)
                for answer in answers for dose in answer.value.doses
            ]
"""


@pytest.fixture
def install_verifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution with one verifier, as pip would, into a folder that Python looks into."""
    forget()

    def write(source: str, *, module: str = "acme_rules") -> Path:
        root = tmp_path / "site"
        info = root / f"{module}-1.2.dist-info"
        info.mkdir(parents=True)
        (root / f"{module}.py").write_text(textwrap.dedent(source))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[evalkit.verifiers]\ndoses = {module}:Verifier\n")
        (info / "RECORD").write_text(f"{module}.py,,\n{info.name}/METADATA,,\n{info.name}/RECORD,,\n")
        monkeypatch.syspath_prepend(str(root))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        importlib.invalidate_caches()
        return root

    yield write
    forget()


def forget() -> None:
    """As a new process of evalkit begins."""
    own_verifiers._get_or_create_process("doses").end()
    own_verifiers.compute_verifier_version.cache_clear()


def evaluate(model: Any = None, *, seconds: float = 5, supplied: Any = None, **options: Any) -> ClassificationOutcome:
    verifiers = load_own_verifiers(["doses"], seconds)
    orchestrator = RetryOrchestrator(model, own_verifiers=verifiers, **options)
    return asyncio.run(orchestrator.evaluate(doc2_6(), supplied or doc2_6_answer()))


def issues_of(outcome: ClassificationOutcome) -> list[tuple[str, str, str]]:
    return [(issue.issue_id, issue.code, str(issue.severity)) for issue in outcome.issues if issue.agent == "ACME"]


def test_its_issues_count(install_verifier: Install) -> None:
    install_verifier(WELL_BEHAVED)
    outcome = evaluate()
    assert issues_of(outcome) == [("ACME-0001", "ACME-DOSE", "MAJOR")]
    (issue,) = [issue for issue in outcome.issues if issue.agent == "ACME"]
    assert (issue.auto_fixable, issue.ig_id, issue.origin, issue.facts) == (False, "IG-4", "rule", {})
    assert outcome.verdict.decision == "ESCALATE_TO_SME"


class DoseModel(CountingModel):
    async def ask(self, question: Any) -> Any:
        if question.role != "ACME":
            return await super().ask(question)
        self.prompts.append((question.role, question.prompt()))
        return Answer(question, question.answer_type(doses=["5 of what?"]), usage=Usage(calls=1))


@pytest.mark.parametrize(("profile", "asked"), [("full", ["ACME", "V2", "V3", "V4"]), ("lean", ["ACME", "verifier"])])
def test_its_question_is_asked(install_verifier: Install, profile: str, asked: list[str]) -> None:
    install_verifier(WELL_BEHAVED)
    model = DoseModel()
    outcome = evaluate(model, profile=profile)
    assert model.asked == asked
    assert issues_of(outcome)[1:] == [("ACME-0002", "ACME-DOSES", "MINOR")]


def test_after_a_blocker_of_v1_only_rules_run(install_verifier: Install) -> None:
    install_verifier(WELL_BEHAVED)
    model = DoseModel()
    outcome = evaluate(model, supplied=copy_with(doc2_6_answer(), {"number_of_segments": 3}))
    assert (model.asked, issues_of(outcome)) == ([], [("ACME-0001", "ACME-DOSE", "MAJOR")])


def test_questions_that_differ_in_their_pictures_are_two(install_verifier: Install) -> None:
    two_questions = (
        "first, second = DoseQuestion(pages), DoseQuestion(pages); first.images = (b'1',); return [first, second]"
    )
    install_verifier(WELL_BEHAVED.replace("return [DoseQuestion(pages)]", two_questions))
    model = DoseModel()
    evaluate(model)
    assert model.asked.count("ACME") == 2


NOTHING = "def questions(self, *given): return []\n        def read(self, answers): return []"


ISSUE = "Issue.create('ACME', 'ACME-DOSE', IssueSeverity.MINOR, 'A dose.'"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('John Doe')", "ValueError was raised"),
        ("raise SystemExit('John Doe')", "SystemExit was raised"),
        ("import os; os._exit(0)", "the verifier's process ended unexpectedly"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "the verifier's process ended unexpectedly"),
        ("import time; time.sleep(60)", "the verifier took longer than 1 s"),
        (
            "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')",
            "the verifier took longer than 1 s",
        ),  # nothing in Python ends this
        ("return 5", "TypeError was raised"),
        ("return [5]", "the verifier returned an object that is not an Issue"),
        (
            "return [Issue.create('V2', 'V2-OVERLAP', IssueSeverity.BLOCKER, 'not mine')]",
            "must have the agent ACME",
        ),
        (
            "return [Issue.create('ACME', 'V2-OVERLAP', IssueSeverity.MINOR, 'not mine')]",
            "must have the agent ACME",
        ),
        (
            "return [Issue.create('ACME', 'ACME-John Doe', IssueSeverity.MINOR, 'words')]",
            "must have the agent ACME",
        ),
        (
            "return [Issue.create('ACME', 'ACME-DB-AGENT-FAILED', IssueSeverity.MINOR, 'db')]",
            "the verifier must not use the code ACME-DB-AGENT-FAILED",
        ),
        (f"return [{ISSUE}, boxes=((1, float('nan'), 0, 1, 1),))]", "ValueError was raised"),
        (f"return [{ISSUE}, quote='\\ud800')]", "Error was raised"),
    ],
)
def test_a_failure_is_a_blocker_and_quotes_nothing(install_verifier: Install, body: str, reason: str) -> None:
    install_verifier(f"""
    from evalkit.issue import Issue, IssueSeverity

    class Verifier:
        agent = "ACME"
        def validate(self, classification, bundle):
            {body}
        {NOTHING}
    """)
    outcome = evaluate(seconds=1)
    assert issues_of(outcome) == [("ACME-0001", "ACME-AGENT-FAILED", "BLOCKER")]
    message = next(issue.message for issue in outcome.issues if issue.agent == "ACME")
    assert reason in message
    assert "John Doe" not in message
    assert outcome.unanswered == ("ACME",)


def test_a_failing_question_is_a_blocker(install_verifier: Install) -> None:
    install_verifier(WELL_BEHAVED.replace('return f"Which doses', 'raise OSError\n            return f"Which doses'))
    codes = [code for _, code, _ in issues_of(evaluate())]
    assert codes == ["ACME-DOSE", "ACME-AGENT-FAILED"]


def test_what_it_changes_changes_nothing_here(install_verifier: Install) -> None:
    install_verifier(f"""
    class Verifier:
        agent = "ACME"
        def validate(self, classification, bundle):
            object.__setattr__(classification, "segments", ())
            object.__setattr__(bundle.pages[0], "text", "nothing")
            return []
        {NOTHING}
    """)
    model = CountingModel()
    outcome = evaluate(model)
    assert outcome.classification is not None
    assert len(outcome.classification.segments) == 2
    assert outcome.verdict.decision == "AUTO_ACCEPT"


def test_nothing_of_one_document_reaches_another(install_verifier: Install) -> None:
    install_verifier("""
    from evalkit.issue import Issue, IssueSeverity

    class Verifier:
        agent = "ACME"
        seen = 0
        def validate(self, classification, bundle):
            self.seen += 1
            return [Issue.create("ACME", f"ACME-SEEN-{self.seen}", IssueSeverity.MINOR, "Seen.")]
        def questions(self, *given): return []
        def read(self, answers): return []
    """)
    assert issues_of(evaluate()) == issues_of(evaluate()) == [("ACME-0001", "ACME-SEEN-1", "MINOR")]


def test_after_a_slow_document_the_next_one_is_verified(install_verifier: Install) -> None:
    install_verifier(f"""
    import time
    from evalkit.issue import Issue, IssueSeverity

    class Verifier:
        agent = "ACME"
        def validate(self, classification, bundle):
            time.sleep(60 if len(classification.vendor_signals) == 9 else 0)
            return []
        {NOTHING}
    """)
    (verifier,) = load_own_verifiers(["doses"], 2)
    slow = parse_answer(copy_with(doc2_6_answer(), {"vendor_signals": ["Acme"] * 9}))
    with pytest.raises(UsageError, match="took longer than 2 s"):
        verifier.validate(slow, doc2_6())
    assert verifier.validate(parse_answer(doc2_6_answer()), doc2_6()) == []


def test_a_failure_counts_also_where_failures_are_ignored(install_verifier: Install) -> None:
    install_verifier(WELL_BEHAVED.replace("for answer in answers for dose", "for answer in 5 for dose"))
    codes = [code for _, code, _ in issues_of(evaluate(DoseModel(), on_agent_failure="ignore"))]
    assert "ACME-AGENT-FAILED" in codes


def test_its_code_decides_its_version(install_verifier: Install, tmp_path: Path) -> None:
    install_verifier(WELL_BEHAVED)
    (first,) = load_own_verifiers(["doses"], 5)
    assert (first.agent, first.code.name, first.code.version) == ("ACME", "doses", "1.2")
    forget()
    (tmp_path / "site" / "acme_rules.py").write_text(textwrap.dedent(WELL_BEHAVED) + "\n# changed\n")
    (second,) = load_own_verifiers(["doses"], 5)
    assert second.code.sha256 != first.code.sha256


def test_one_that_nobody_installed_is_refused() -> None:
    with pytest.raises(UsageError, match="no installed distribution offers it"):
        load_own_verifiers(["doses"], 5)


def test_a_distribution_in_the_current_folder_is_refused(
    install_verifier: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_verifier(WELL_BEHAVED)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is in the current folder"):
        load_own_verifiers(["doses"], 5)


def test_a_file_of_the_current_folder_is_not_run(
    install_verifier: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_verifier(WELL_BEHAVED)
    here = tmp_path / "here"
    here.mkdir()
    for module in ("acme_rules", "pydantic"):  # the verifier, and what it imports
        (here / f"{module}.py").write_text("raise AssertionError('was run')")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", *sys.path]))
    assert issues_of(evaluate()) == [("ACME-0001", "ACME-DOSE", "MAJOR")]


def test_an_editable_install_is_refused(install_verifier: Install, tmp_path: Path) -> None:
    root = install_verifier(WELL_BEHAVED)
    (root / "acme_rules-1.2.dist-info" / "RECORD").write_text("acme_rules-1.2.dist-info/METADATA,,\n")
    with pytest.raises(UsageError, match="editable installs are not allowed"):
        load_own_verifiers(["doses"], 5)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('agent = "ACME"', 'agent = "V2"', "differ from evalkit's own verifiers"),
        ('agent = "ACME"', 'agent = "acme-9"', "differ from evalkit's own verifiers"),
        ("def read(self", "def reed(self", "has no method read"),
        ("class Verifier:", "raise SystemExit(0)\n    class Verifier:", "SystemExit was raised"),
        ('agent = "ACME"', 'agent = "VERIFIER"', "differ from evalkit's own verifiers"),
        ("class Verifier:", "class Other:", "AttributeError was raised"),
        ("class Verifier:", "import nowhere\n    class Verifier:", "ModuleNotFoundError was raised"),
    ],
)
def test_one_that_cannot_work_is_refused(install_verifier: Install, old: str, new: str, reason: str) -> None:
    install_verifier(WELL_BEHAVED.replace(old, new))
    with pytest.raises(UsageError, match=reason):
        load_own_verifiers(["doses"], 5)
