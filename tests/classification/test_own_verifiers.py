"""A site's own verifiers: installed, isolated, limited, and only ever adding issues under their own name."""

from __future__ import annotations

import asyncio
import importlib
import pickle
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import CountingModel, doc2_6, doc2_6_answer, edited, read

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
            return [Issue.create("ACME", "ACME-DOSE", IssueSeverity.MAJOR, "A dose has no unit.", page=1, auto_fixable=True)]

        def questions(self, classification, bundle, pages=None):
            return [DoseQuestion(pages)]

        def read(self, answers):
            return [
                Issue.create("ACME", "ACME-DOSES", IssueSeverity.MINOR, dose)
                for answer in answers for dose in answer.value.doses
            ]
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution with one verifier, as pip would, into a folder that Python looks into."""
    own_verifiers.identify_code.cache_clear()
    own_verifiers._load_instance.cache_clear()
    modules_before = set(sys.modules)

    def write(source: str, *, module: str = "acme_rules", version: str = "1.2", folder: Path | None = None) -> Path:
        root = folder or tmp_path / "site"
        info = root / f"{module}-{version}.dist-info"
        info.mkdir(parents=True)
        (root / f"{module}.py").write_text(textwrap.dedent(source))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[evalkit.verifiers]\ndoses = {module}:Verifier\n")
        (info / "RECORD").write_text(f"{module}.py,,\n{info.name}/METADATA,,\n{info.name}/RECORD,,\n")
        monkeypatch.syspath_prepend(str(root))
        importlib.invalidate_caches()
        return root

    yield write
    own_verifiers.identify_code.cache_clear()
    own_verifiers._load_instance.cache_clear()
    for module in set(sys.modules) - modules_before:
        if module.startswith("acme_"):
            del sys.modules[module]


def evaluate(model: Any = None, *, seconds: float = 5, supplied: Any = None, **options: Any) -> ClassificationOutcome:
    verifiers = load_own_verifiers(["doses"], seconds)
    orchestrator = RetryOrchestrator(model, own_verifiers=verifiers, **options)
    return asyncio.run(orchestrator.evaluate(doc2_6(), supplied or doc2_6_answer()))


def issues_of(outcome: ClassificationOutcome) -> list[tuple[str, str, str]]:
    return [(issue.issue_id, issue.code, str(issue.severity)) for issue in outcome.issues if issue.agent == "ACME"]


def test_its_issues_count(install: Install) -> None:
    install(WELL_BEHAVED)
    outcome = evaluate()
    assert issues_of(outcome) == [("ACME-0001", "ACME-DOSE", "MAJOR")]
    (issue,) = [issue for issue in outcome.issues if issue.agent == "ACME"]
    assert (issue.auto_fixable, issue.ig_id, issue.origin) == (False, "IG-4", "rule")
    assert outcome.verdict.decision == "ESCALATE_TO_SME"


class DoseModel(CountingModel):
    async def ask(self, question: Any) -> Any:
        if question.role != "ACME":
            return await super().ask(question)
        self.prompts.append((question.role, question.prompt()))
        return Answer(question, question.answer_type(doses=["5 of what?"]), usage=Usage(calls=1))


@pytest.mark.parametrize(("profile", "asked"), [("full", ["ACME", "V2", "V3", "V4"]), ("lean", ["ACME", "verifier"])])
def test_its_question_is_asked(install: Install, profile: str, asked: list[str]) -> None:
    install(WELL_BEHAVED)
    model = DoseModel()
    outcome = evaluate(model, profile=profile)
    assert model.asked == asked
    assert issues_of(outcome)[1:] == [("ACME-0002", "ACME-DOSES", "MINOR")]


def test_after_a_blocker_of_v1_only_rules_run(install: Install) -> None:
    install(WELL_BEHAVED)
    model = DoseModel()
    outcome = evaluate(model, supplied=edited(doc2_6_answer(), {"number_of_segments": 3}))
    assert (model.asked, issues_of(outcome)) == ([], [("ACME-0001", "ACME-DOSE", "MAJOR")])


NOTHING = "def questions(self, *given): return []\n        def read(self, answers): return []"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('John Doe')", "ValueError was raised"),
        ("raise SystemExit('John Doe')", "SystemExit was raised"),
        ("import time; time.sleep(3)", "it took longer than 0.2 s"),
        ("return 5", "TypeError was raised"),
        ("return [Issue.create('V2', 'V2-OVERLAP', IssueSeverity.BLOCKER, 'not mine')]", "only raise issues of ACME"),
        ("return [Issue.create('ACME', 'V2-OVERLAP', IssueSeverity.MINOR, 'not mine')]", "only raise issues of ACME"),
    ],
)
def test_a_failure_is_a_blocker_and_quotes_nothing(install: Install, body: str, reason: str) -> None:
    install(f"""
    from evalkit.issue import Issue, IssueSeverity

    class Verifier:
        agent = "ACME"
        def validate(self, classification, bundle):
            {body}
        {NOTHING}
    """)
    outcome = evaluate(seconds=0.2)
    assert issues_of(outcome) == [("ACME-0001", "ACME-AGENT-FAILED", "BLOCKER")]
    message = next(issue.message for issue in outcome.issues if issue.agent == "ACME")
    assert reason in message
    assert "John Doe" not in message
    assert outcome.unanswered == ("ACME",)


def test_a_failing_question_is_a_blocker(install: Install) -> None:
    install(WELL_BEHAVED.replace('return f"Which doses', 'raise OSError\n            return f"Which doses'))
    codes = [code for _, code, _ in issues_of(evaluate())]
    assert codes == ["ACME-DOSE", "ACME-AGENT-FAILED"]


def test_what_it_changes_is_a_copy(install: Install) -> None:
    install(f"""
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


def test_its_code_decides_its_version(install: Install, tmp_path: Path) -> None:
    install(WELL_BEHAVED)
    (first,) = load_own_verifiers(["doses"], 5)
    assert (first.agent, first.code.name, first.code.version) == ("ACME", "doses", "1.2")
    own_verifiers.identify_code.cache_clear()
    (tmp_path / "site" / "acme_rules.py").write_text(textwrap.dedent(WELL_BEHAVED) + "\n# changed\n")
    (second,) = load_own_verifiers(["doses"], 5)
    assert second.code.sha256 != first.code.sha256


def test_another_process_loads_the_same_code(install: Install, tmp_path: Path) -> None:
    install(WELL_BEHAVED)
    (verifier,) = load_own_verifiers(["doses"], 5)
    sent = pickle.loads(pickle.dumps(verifier))
    assert [issue.code for issue in sent.validate(read(doc2_6_answer()), doc2_6())] == ["ACME-DOSE"]
    own_verifiers.identify_code.cache_clear()
    own_verifiers._load_instance.cache_clear()
    (tmp_path / "site" / "acme_rules.py").write_text(textwrap.dedent(WELL_BEHAVED) + "\n# changed\n")
    (failure,) = sent.validate(read(doc2_6_answer()), doc2_6())
    assert (failure.code, "other code of it is installed" in failure.message) == ("ACME-AGENT-FAILED", True)


def test_one_that_nobody_installed_is_refused() -> None:
    own_verifiers.identify_code.cache_clear()
    with pytest.raises(UsageError, match="no installed distribution offers it"):
        load_own_verifiers(["doses"], 5)


def test_a_distribution_in_the_current_folder_is_refused(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(WELL_BEHAVED)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="lies in the current folder"):
        load_own_verifiers(["doses"], 5)


def test_a_module_of_the_current_folder_is_not_run(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(WELL_BEHAVED)
    here = tmp_path / "here"
    here.mkdir()
    (here / "acme_rules.py").write_text("raise AssertionError('was run')")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    with pytest.raises(UsageError, match="read from elsewhere"):
        load_own_verifiers(["doses"], 5)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('agent = "ACME"', 'agent = "V2"', "a name of its own"),
        ('agent = "ACME"', 'agent = "acme-9"', "a name of its own"),
        ("def read(self", "def reed(self", "no method read"),
        ("class Verifier:", "class Other:", "cannot be made .AttributeError"),
        ("class Verifier:", "import nowhere\n    class Verifier:", "cannot be made .ModuleNotFoundError"),
    ],
)
def test_one_that_cannot_work_is_refused(install: Install, old: str, new: str, reason: str) -> None:
    install(WELL_BEHAVED.replace(old, new))
    with pytest.raises(UsageError, match=reason):
        load_own_verifiers(["doses"], 5)
