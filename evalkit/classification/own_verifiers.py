"""Verifiers of a site's own, each in an installed distribution and named in ``evalkit.toml`` (contract ruling 33).

A distribution offers one as an entry point of the group ``evalkit.verifiers``. What it is given are copies, it works
for a bounded time, and it can only add issues under its own name: whatever else happens is ``{AGENT}-AGENT-FAILED``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import site
import sysconfig
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar, get_args

from pydantic import BaseModel

from evalkit.classification.findings import PageRange, build_agent_failure
from evalkit.classification.schema import ClassificationOutput
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import EvalkitError, UsageError
from evalkit.issue import Issue, ShippedAgent
from evalkit.llm.model import Answer, DocumentQuestion, Question

ENTRY_POINT_GROUP = "evalkit.verifiers"
_AGENT_PATTERN = re.compile(r"[A-Z][A-Z0-9]{1,15}")
_TAKEN_AGENTS = {agent.upper() for agent in get_args(ShippedAgent)} | {"V5"}
_METHODS = ("validate", "questions", "read")

T = TypeVar("T")


@dataclass(frozen=True)
class OwnVerifierVersion:
    """The exact code of a verifier."""

    name: str
    """Of the entry point."""
    version: str
    """Of the distribution."""
    sha256: str
    """Of all files of the distribution but its metadata, names included."""


@dataclass(frozen=True)
class _PreparedQuestion(DocumentQuestion[BaseModel]):
    """A verifier's question with its prompt and its offline answer: a model asks it without running the verifier's code."""

    role: str
    source: Question[Any]
    prompt_text: str
    offline_answer: BaseModel
    answer_type: type[BaseModel]
    bundle: DocumentBundle
    images: tuple[bytes, ...] = ()

    def render_prompt(self) -> str:
        return self.prompt_text

    def offline(self) -> BaseModel:
        return self.offline_answer


@dataclass
class _LoadedVerifier:
    """A verifier's instance in this process."""

    instance: Any
    overdue_thread: Thread | None = None
    """A call that took too long cannot be ended: nothing is asked of the verifier until it has ended by itself."""


@dataclass(frozen=True)
class OwnVerifier:
    """A site's verifier as the orchestrator sees it. It can be sent to other processes, which load it themselves."""

    agent: str
    code: OwnVerifierVersion
    time_limit_seconds: float = field(compare=False)

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """Return what it computes, or the issue that says that it could not."""

        def validate(instance: Any) -> list[Issue]:
            return self._check_issues(instance.validate(_copy(classification), _copy(bundle)))

        try:
            return self._call(validate)
        except UsageError as error:
            return [build_agent_failure(self.agent, error.message)]

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: PageRange | None = None
    ) -> list[Question[Any]]:
        """Return its questions with their prompts and offline answers. UsageError if it could not work."""

        def prepare(instance: Any) -> list[Question[Any]]:
            questions = instance.questions(_copy(classification), _copy(bundle), pages)
            return [self._prepare_question(question, bundle) for question in questions]

        return self._call(prepare)

    def read(self, answers: Sequence[Answer[Any]]) -> list[Issue]:
        """Turn the answers into issues. UsageError if it could not work.

        A question without an answer is this verifier's failure, whatever it would make of it.
        """
        if failed_answer := next((answer for answer in answers if answer.value is None), None):
            raise _build_failure(failed_answer.failure or "no reason was given")
        if not answers:
            return []
        own_answers = [
            replace(answer, question=answer.question.source, value=_copy(answer.value))
            for answer in answers
            if isinstance(answer.question, _PreparedQuestion) and answer.value is not None
        ]

        def read(instance: Any) -> list[Issue]:
            return [
                issue.model_copy(update={"origin": "model"}) for issue in self._check_issues(instance.read(own_answers))
            ]

        return self._call(read)

    def _call(self, step: Callable[[Any], list[T]]) -> list[T]:
        """Run a step within the time limit. UsageError, which quotes nothing that the verifier says."""
        loaded = _load_instance(self.code)
        if loaded.overdue_thread and loaded.overdue_thread.is_alive():
            raise _build_failure("it is still busy with an earlier document")
        outcome: list[list[T]] = []
        failures: list[BaseException] = []

        def run() -> None:
            try:
                outcome.append(step(loaded.instance))
            except BaseException as error:  # noqa: BLE001 - not even an exit may end the run
                failures.append(error)

        thread = Thread(target=run, name=f"verifier {self.agent}", daemon=True)
        thread.start()
        thread.join(self.time_limit_seconds)
        if outcome:
            return outcome[0]
        if not failures:
            loaded.overdue_thread = thread
            raise _build_failure(f"it took longer than {self.time_limit_seconds:g} s")
        if isinstance(failures[0], _OwnVerifierError):
            raise failures[0]
        raise _build_failure(f"{type(failures[0]).__name__} was raised")

    def _check_issues(self, issues: Iterable[Issue]) -> list[Issue]:
        """Return its open issues, none of them auto-fixable. UsageError for one that is not its own."""
        checked_issues = []
        for issue in issues:
            if not isinstance(issue, Issue) or issue.agent != self.agent or not issue.code.startswith(f"{self.agent}-"):
                raise _build_failure(f"it may only raise issues of {self.agent} with codes {self.agent}-…")
            if issue.code == f"{self.agent}-AGENT-FAILED":
                raise _build_failure("it says so itself")
            checked_issues.append(
                Issue.create(
                    self.agent,
                    issue.code,
                    issue.severity,
                    issue.message,
                    **issue.model_dump(
                        exclude={"ig_id", "issue_id", "agent", "code", "severity", "message", "auto_fixable", "status"}
                    ),
                )
            )
        return checked_issues

    def _prepare_question(self, question: Question[Any], bundle: DocumentBundle) -> Question[Any]:
        if question.role != self.agent:
            raise _build_failure(f"the role of its questions must be {self.agent}")
        prepared = _PreparedQuestion(
            role=self.agent,
            source=question,
            prompt_text=question.prompt(),
            offline_answer=question.offline(),
            answer_type=question.answer_type,
            bundle=bundle,
            images=question.images,
        )
        prepared.get_answer_schema()  # a shape that no provider takes is found here
        return prepared


class _OwnVerifierError(UsageError):
    """A verifier that could not work; the words are ours."""


def _build_failure(reason: str) -> _OwnVerifierError:
    return _OwnVerifierError(reason, code="VERIFIER", remedy="Correct the verifier, or take it out of evalkit.toml.")


def _copy(model: BaseModel) -> Any:
    """What a verifier changes in its copy changes nothing here."""
    return model.model_copy(deep=True)


def load_own_verifiers(names: Sequence[str], time_limit_seconds: float) -> tuple[OwnVerifier, ...]:
    """Load the verifiers of these entry points. UsageError naming one that cannot be used."""
    verifiers: list[OwnVerifier] = []
    for name in dict.fromkeys(names):
        code = identify_code(name)
        instance = _load_instance(code).instance
        agent = getattr(instance, "agent", None)
        if not isinstance(agent, str) or not _AGENT_PATTERN.fullmatch(agent) or agent in _TAKEN_AGENTS:
            raise _build_usage_error(
                name, "its agent must be a name of its own: 2 to 16 capitals and digits, not V1 or the like"
            )
        if missing_methods := [method for method in _METHODS if not callable(getattr(instance, method, None))]:
            raise _build_usage_error(name, f"it has no method {missing_methods[0]}")
        if any(verifier.agent == agent for verifier in verifiers):
            raise _build_usage_error(name, f"another verifier is called {agent}, too")
        verifiers.append(OwnVerifier(agent, code, time_limit_seconds))
    return tuple(verifiers)


@cache
def identify_code(name: str) -> OwnVerifierVersion:
    """Find the installed code of an entry point, without running it. UsageError if there is none that may be run."""
    entry_point, distribution = _find_entry_point(name)
    digest = hashlib.sha256()
    for path, content_path in _list_files(distribution):
        content = content_path.read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    _require_own_modules(name, entry_point, distribution)
    return OwnVerifierVersion(name, distribution.version, digest.hexdigest())


def _find_entry_point(name: str) -> tuple[EntryPoint, Distribution]:
    offered = entry_points(group=ENTRY_POINT_GROUP)
    matches = {
        entry_point.dist.name: (entry_point, entry_point.dist)
        for entry_point in offered
        if entry_point.name == name and entry_point.dist is not None
    }
    if len(matches) > 1:
        raise _build_usage_error(name, f"{' and '.join(sorted(matches))} both offer it")
    if not matches:
        other_names = ", ".join(sorted({entry_point.name for entry_point in offered})) or "none"
        raise _build_usage_error(
            name, f"no installed distribution offers it in the group {ENTRY_POINT_GROUP} (offered: {other_names})"
        )
    ((entry_point, distribution),) = matches.values()
    if _is_in_current_folder(distribution):
        raise _build_usage_error(name, "its distribution lies in the current folder, which is not trusted")
    return entry_point, distribution


def _is_in_current_folder(distribution: Distribution) -> bool:
    """Whether it lies in or below the current folder, and not where this Python installs."""
    folder = Path(str(distribution.locate_file(""))).resolve()
    install_folders = [*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values()]
    return folder.is_relative_to(Path.cwd()) and folder not in {Path(path).resolve() for path in install_folders}


def _list_files(distribution: Distribution) -> list[tuple[str, Path]]:
    """Return the files that were installed, by name, without metadata and what Python compiles."""
    located_files = (
        (str(path), Path(str(path.locate())))
        for path in distribution.files or ()
        if not path.parts[0].endswith((".dist-info", ".egg-info")) and path.suffix not in (".pyc", ".pth")
    )
    return sorted((name, path) for name, path in located_files if path.is_file())


def _require_own_modules(name: str, entry_point: EntryPoint, distribution: Distribution) -> None:
    """UsageError if Python would import another file than the distribution's, such as one of the current folder."""
    own_paths = {path.resolve() for _, path in _list_files(distribution)}
    parts = entry_point.module.split(".")
    for length in range(1, len(parts) + 1):
        try:
            spec = importlib.util.find_spec(
                ".".join(parts[:length])
            )  # imports the packages above it, which were looked at
        except Exception as error:  # noqa: BLE001 - a package that cannot be imported
            raise _build_usage_error(name, f"it cannot be imported ({type(error).__name__})") from None
        if spec is None:
            raise _build_usage_error(name, f"its module {entry_point.module} is missing")
        if spec.origin is not None and Path(spec.origin).resolve() not in own_paths:
            raise _build_usage_error(
                name,
                f"its module would be read from elsewhere than from {distribution.name}'s installed files "
                "(editable installs and files of the current folder are not used)",
            )


@cache
def _load_instance(code: OwnVerifierVersion) -> _LoadedVerifier:
    """Make the verifier, once in a process. UsageError where other code is installed, or it cannot be made."""
    if identify_code(code.name) != code:
        raise _build_failure("other code of it is installed on this machine")
    try:
        entry_point, _ = _find_entry_point(code.name)
        return _LoadedVerifier(entry_point.load()())
    except EvalkitError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever somebody else's module raises
        raise _build_usage_error(code.name, f"it cannot be made ({type(error).__name__})") from None


def _build_usage_error(name: str, reason: str) -> UsageError:
    return UsageError(
        f"the verifier {name} cannot be used: {reason}",
        code="VERIFIER",
        remedy="Install its distribution (not editable), or correct `verifiers` in evalkit.toml.",
    )
