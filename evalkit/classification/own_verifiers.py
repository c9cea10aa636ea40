"""A site's own verifiers: installed as plug-ins and named in ``evalkit.toml``.

Source: contract ruling 33. A distribution offers a verifier as an entry point of the group ``evalkit.verifiers``. The
verifier's code runs in a separate process (``verifier_process``) with a time limit, so that it cannot change, slow down
or end a run. The verifier can only add issues under its own name; any failure becomes ``{AGENT}-AGENT-FAILED``.
"""

import atexit
import base64
import hashlib
import json
import os
import re
import site
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any, get_args

from pydantic import ConfigDict, RootModel, ValidationError

from evalkit.classification.findings import PageRange
from evalkit.classification.schema import ClassificationOutput
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import UsageError
from evalkit.issue import Issue, ShippedAgent
from evalkit.llm.answer_normalisation import normalise_answer
from evalkit.llm.answer_text import NormalisedAnswer
from evalkit.llm.model import Answer, DocumentQuestion, Question

ENTRY_POINT_GROUP = "evalkit.verifiers"
METHODS = ("validate", "questions", "read")
_AGENT_PATTERN = re.compile(r"[A-Z][A-Z0-9]{1,15}")
_TAKEN_AGENTS = {agent.upper() for agent in get_args(ShippedAgent)} | {"V5", "VERIFIER"}
#: Time limit for starting the process and importing the verifier.
_START_SECONDS = 60


@dataclass(frozen=True)
class OwnVerifierVersion:
    """Identity of a verifier's installed code."""

    name: str
    """Name of the entry point."""
    version: str
    """Version of the distribution."""
    sha256: str
    """Hash of the names and contents of the distribution's code files."""


class _JsonAnswer(RootModel[dict[str, Any]]):
    """Model's answer as a JSON object; the verifier's process converts it to its type."""

    model_config = ConfigDict(hide_input_in_errors=True)


@dataclass(frozen=True)
class _OwnQuestion(DocumentQuestion[_JsonAnswer]):
    """Question of a site's verifier with all parts computed in the verifier's process."""

    role: str
    bundle: DocumentBundle
    prompt_text: str
    answer_schema: Mapping[str, Any]
    full_schema: Mapping[str, Any]
    """The JSON Schema of the verifier's answer type, by which an answer is read."""
    offline_answer: Mapping[str, Any]
    pickled_question: str
    """The verifier's question object, pickled; only the verifier's process unpickles it."""
    images: tuple[bytes, ...] = ()
    temperature: float = 0.0
    answer_type: type[_JsonAnswer] = _JsonAnswer

    def render_prompt(self) -> str:
        return self.prompt_text

    def offline(self) -> _JsonAnswer:
        return _JsonAnswer(dict(self.offline_answer))

    def get_answer_schema(self) -> Mapping[str, Any]:
        return self.answer_schema

    def normalise_answer(self, text: str) -> NormalisedAnswer:
        return normalise_answer(text, self.full_schema)


@dataclass(frozen=True)
class OwnVerifier:
    """A site's own verifier, whose methods run in a separate process.

    Each call may block until ``time_limit_seconds``: do not call it on an event loop.
    """

    agent: str
    code: OwnVerifierVersion
    time_limit_seconds: float

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """Return the issues that the verifier computes. UsageError if it failed."""
        return self._convert_reply_to_issues(
            self._call_verifier_process("validate", classification, bundle), origin="rule"
        )

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: PageRange | None = None
    ) -> list[Question[Any]]:
        """Return the verifier's questions to a model, with their offline answers.

        ``pages`` None: about the whole document. UsageError if the verifier failed.
        """
        reply = self._call_verifier_process("questions", classification, bundle, pages)
        return [self._convert_description_to_question(description, bundle) for description in reply["questions"]]

    def read(self, answers: Sequence[Answer[Any]]) -> list[Issue]:
        """Let the verifier convert the models' answers to issues.

        UsageError if the verifier failed, or if a question has no answer.
        """
        if not answers:
            return []
        if failed_answer := next((answer for answer in answers if answer.value is None), None):
            raise _build_verifier_error(failed_answer.failure or "no reason was given")
        told_answers = [
            (answer.question.pickled_question, answer.value.root)
            for answer in answers
            if isinstance(answer.question, _OwnQuestion) and answer.value is not None
        ]
        return self._convert_reply_to_issues(self._call_verifier_process("read", told_answers), origin="model")

    def _call_verifier_process(self, method: str, *arguments: Any) -> dict[str, Any]:
        return _get_or_create_process(self.code.name).call(method, arguments, self.time_limit_seconds)

    def _convert_reply_to_issues(self, reply: Mapping[str, Any], origin: str) -> list[Issue]:
        """Convert the verifier's reply to open issues without repairs and facts.

        UsageError if an issue has another agent's name or code, or a wrong shape.
        """
        issues = []
        code_pattern = re.compile(rf"{self.agent}(-[A-Z0-9]+)+")
        for stored in reply["issues"]:
            code = stored.get("code", "")
            if stored.get("agent") != self.agent or not code_pattern.fullmatch(code) or len(code) > 60:
                raise _build_verifier_error(
                    f"each issue of the verifier must have the agent {self.agent} and a code {self.agent}-…"
                )
            if code.endswith("-AGENT-FAILED"):
                raise _build_verifier_error(
                    f"the verifier must not use the code {code}, which evalkit reserves for its failure"
                )
            unnumbered = Issue.create(self.agent, code, stored["severity"], stored["message"])
            kept_fields = unnumbered.model_dump(include={"ig_id", "issue_id", "auto_fixable", "status"})
            try:
                issues.append(Issue(**stored | kept_fields | {"origin": origin, "facts": {}}))
            except ValidationError:
                raise _build_verifier_error("the verifier returned an issue with a field of the wrong type") from None
        return issues

    def _convert_description_to_question(self, description: Mapping[str, Any], bundle: DocumentBundle) -> _OwnQuestion:
        if description["role"] != self.agent:
            raise _build_verifier_error(
                f"each question that the verifier asks a model must have the role {self.agent!r}"
            )
        if not isinstance(description["prompt"], str):
            raise _build_verifier_error("the prompt of a question is not a string")
        return _OwnQuestion(
            role=self.agent,
            bundle=bundle,
            prompt_text=description["prompt"],
            answer_schema=description["answer_schema"],
            full_schema=description["full_schema"],
            offline_answer=description["offline_answer"],
            pickled_question=description["pickled"],
            images=tuple(base64.b64decode(image) for image in description["images"]),
            temperature=float(description["temperature"]),
        )


class _VerifierProcess:
    """Process of one verifier, which answers one call at a time.

    The first call starts the process; a call that exceeds its time limit ends it, and the next one starts it again.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection
        self._lock = Lock()

    def call(self, method: str, arguments: Sequence[Any], time_limit_seconds: float) -> dict[str, Any]:
        """Call a method of the verifier and return its reply.

        UsageError if the method failed, took too long or ended the process; its text never quotes the verifier.
        """
        with self._lock:
            if self._process is None:
                self._start()
                self._exchange_or_end_process(
                    "describe", (), _START_SECONDS
                )  # importing does not count towards the time limit
            return self._exchange_or_end_process(method, arguments, time_limit_seconds)

    def end(self) -> None:
        """End the process if it is running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if Path(path).is_absolute())}
        self._connection, child_connection = Pipe()
        with child_connection:
            descriptor = child_connection.fileno()
            self._process = subprocess.Popen(  # noqa: S603 - our own module; -P and / keep the current folder's files out
                [sys.executable, "-P", "-m", "evalkit.classification.verifier_process", self._name, str(descriptor)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[descriptor], cwd="/", env=environment, start_new_session=True,
            )  # fmt: skip

    def _exchange_or_end_process(
        self, method: str, arguments: Sequence[Any], time_limit_seconds: float
    ) -> dict[str, Any]:
        try:
            self._connection.send((time_limit_seconds, method, arguments))
            if not self._connection.poll(time_limit_seconds):
                self.end()
                raise _build_verifier_error(f"the verifier took longer than {time_limit_seconds:g} s")
            reply: dict[str, Any] = json.loads(self._connection.recv_bytes())
        except (OSError, EOFError, ValueError):
            self.end()
            raise _build_verifier_error("the verifier's process ended unexpectedly") from None
        if "failure" in reply:
            raise _build_verifier_error(reply["failure"])
        return reply


@cache
def _get_or_create_process(entry_point_name: str) -> _VerifierProcess:
    process = _VerifierProcess(entry_point_name)
    atexit.register(process.end)
    return process


def _build_verifier_error(reason: str) -> UsageError:
    return UsageError(
        reason, code="VERIFIER", remedy="Correct the verifier, or remove its name from `verifiers` in evalkit.toml."
    )


def load_own_verifiers(entry_point_names: Sequence[str], time_limit_seconds: float) -> tuple[OwnVerifier, ...]:
    """Start the verifiers of these entry points and check their names and methods.

    UsageError that names the verifier that cannot be used.
    """
    verifiers: list[OwnVerifier] = []
    for name in dict.fromkeys(entry_point_names):
        code = compute_verifier_version(name)
        try:
            description = _get_or_create_process(name).call("describe", (), _START_SECONDS)
        except UsageError as error:
            raise _build_entry_point_error(name, error.message) from None
        agent = description["agent"]
        if not isinstance(agent, str) or not _AGENT_PATTERN.fullmatch(agent) or agent in _TAKEN_AGENTS:
            raise _build_entry_point_error(
                name,
                "its `agent` must be 2 to 16 capital letters and digits, begin with a letter, and differ from evalkit's own verifiers, such as V1",
            )
        if description["missing_methods"]:
            raise _build_entry_point_error(name, f"the verifier has no method {description['missing_methods'][0]}")
        if any(verifier.agent == agent for verifier in verifiers):
            raise _build_entry_point_error(name, f"another verifier in evalkit.toml has the same `agent`, {agent}")
        verifiers.append(OwnVerifier(agent, code, time_limit_seconds))
    return tuple(verifiers)


@cache
def compute_verifier_version(entry_point_name: str) -> OwnVerifierVersion:
    """Compute name, version and hash of a verifier's code without running it.

    UsageError if no trusted installed distribution offers the verifier.
    """
    _, distribution = require_trusted_verifier_entry_point(entry_point_name)
    digest = hashlib.sha256()
    for path, content_path in list_installed_code_files(distribution):
        content = content_path.read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    return OwnVerifierVersion(entry_point_name, distribution.version, digest.hexdigest())


def require_trusted_verifier_entry_point(entry_point_name: str) -> tuple[EntryPoint, Distribution]:
    """Return a verifier's entry point and the package that provides it.

    UsageError if no distribution or more than one offers it, or if the distribution is in the current folder.
    """
    offered = entry_points(group=ENTRY_POINT_GROUP)
    matches = {
        entry_point.dist.name: (entry_point, entry_point.dist)
        for entry_point in offered
        if entry_point.name == entry_point_name and entry_point.dist is not None
    }
    if len(matches) > 1:
        raise _build_entry_point_error(
            entry_point_name, f"{' and '.join(sorted(matches))} both provide a verifier of this name"
        )
    if not matches:
        other_names = ", ".join(sorted({entry_point.name for entry_point in offered})) or "none"
        raise _build_entry_point_error(
            entry_point_name,
            f"no installed distribution offers it in the group {ENTRY_POINT_GROUP} (offered: {other_names})",
        )
    ((entry_point, distribution),) = matches.values()
    if _is_in_current_folder(distribution):
        raise _build_entry_point_error(
            entry_point_name,
            "its package is in the current folder, from which evalkit loads no verifiers, for security",
        )
    return entry_point, distribution


def _is_in_current_folder(distribution: Distribution) -> bool:
    folder = Path(str(distribution.locate_file(""))).resolve()
    install_folders = [*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values()]
    is_installed = folder in {Path(path).resolve() for path in install_folders}
    return Path.cwd() != Path("/") and folder.is_relative_to(Path.cwd()) and not is_installed


def list_installed_code_files(distribution: Distribution) -> list[tuple[str, Path]]:
    """List name and path of a package's code files, sorted by name.

    Without metadata, commands and compiled files.
    """
    located_files = (
        (str(path), Path(str(path.locate())))
        for path in distribution.files or ()
        if not path.parts[0].endswith((".dist-info", ".egg-info"))
        and path.parts[0] not in ("..", "bin")  # scripts differ between environments in their first line
        and path.suffix not in (".pyc", ".pth")
    )
    return sorted((name, path) for name, path in located_files if path.is_file())


def _build_entry_point_error(entry_point_name: str, reason: str) -> UsageError:
    return UsageError(
        f"the verifier {entry_point_name} cannot be used: {reason}",
        code="VERIFIER",
        remedy="Install the verifier's package (not in editable mode), or correct `verifiers` in evalkit.toml.",
    )
