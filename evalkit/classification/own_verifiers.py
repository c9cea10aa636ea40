"""A site's own verifiers, installed and named in ``evalkit.toml``.

Contract ruling 33.

A distribution offers one as an entry point of the group ``evalkit.verifiers``. Its code runs in a process of its own
(``verifier_process``), which is ended when it takes too long: it cannot change, slow down or end a run. It can only add
issues under its own name; anything else is ``{AGENT}-AGENT-FAILED``.
"""

from __future__ import annotations

import atexit
import base64
import hashlib
import json
import os
import pickle
import re
import select
import site
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from threading import Lock
from typing import Any, get_args

from pydantic import RootModel, ValidationError

from evalkit.classification.findings import PageRange, build_agent_failure_issue
from evalkit.classification.schema import ClassificationOutput
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import UsageError
from evalkit.issue import Issue, ShippedAgent
from evalkit.llm.model import Answer, DocumentQuestion, Question

ENTRY_POINT_GROUP = "evalkit.verifiers"
METHODS = ("validate", "questions", "read")
_AGENT_PATTERN = re.compile(r"[A-Z][A-Z0-9]{1,15}")
_TAKEN_AGENTS = {agent.upper() for agent in get_args(ShippedAgent)} | {"V5", "VERIFIER"}
_START_SECONDS = 60
"""Starting the process and importing the verifier may take so long."""


@dataclass(frozen=True)
class OwnVerifierVersion:
    """The exact code of a verifier."""

    name: str
    """Name of the entry point."""
    version: str
    """Version of the distribution."""
    sha256: str
    """Hash of all files of the distribution, with their names, but metadata and commands."""


class _JsonAnswer(RootModel[dict[str, Any]]):
    """A model's answer; the verifier's own process knows its type."""


@dataclass(frozen=True)
class _OwnQuestion(DocumentQuestion[_JsonAnswer]):
    """A verifier's question, computed: a model is asked without its code."""

    role: str
    bundle: DocumentBundle
    prompt_text: str
    answer_schema: Mapping[str, Any]
    offline_answer: Mapping[str, Any]
    pickled_question: str
    """The verifier's own object, for its own process."""
    images: tuple[bytes, ...] = ()
    temperature: float = 0.0
    answer_type: type[_JsonAnswer] = _JsonAnswer

    def render_prompt(self) -> str:
        return self.prompt_text

    def offline(self) -> _JsonAnswer:
        return _JsonAnswer(dict(self.offline_answer))

    def get_answer_schema(self) -> Mapping[str, Any]:
        return self.answer_schema


@dataclass(frozen=True)
class OwnVerifier:
    """A site's verifier as the orchestrator uses it.

    Each call may take as long as its limit: keep it off an event loop.
    """

    agent: str
    code: OwnVerifierVersion
    time_limit_seconds: float

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """Return its computed issues, or the issue that it could not work."""
        try:
            return self._convert_reply_to_issues(
                self._call_verifier_process("validate", classification, bundle), origin="rule"
            )
        except UsageError as error:
            return [build_agent_failure_issue(self.agent, error.message)]

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: PageRange | None = None
    ) -> list[Question[Any]]:
        """Return its questions with their offline answers.

        UsageError if it could not work.
        """
        reply = self._call_verifier_process("questions", classification, bundle, pages)
        return [self._convert_description_to_question(description, bundle) for description in reply["questions"]]

    def read(self, answers: Sequence[Answer[Any]]) -> list[Issue]:
        """Convert the answers to issues.

        UsageError if it could not work, or if a question has no answer.
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
        """Convert its reply to open issues, none auto-fixable, none with facts.

        UsageError for an issue that is not its own.
        """
        issues = []
        code_pattern = re.compile(rf"{self.agent}(-[A-Z0-9]+)+")
        for stored in reply["issues"]:
            code = stored.get("code", "")
            if stored.get("agent") != self.agent or not code_pattern.fullmatch(code) or len(code) > 60:
                raise _build_verifier_error(f"it may only raise issues of {self.agent}, with codes {self.agent}-…")
            if code.endswith("-AGENT-FAILED"):
                raise _build_verifier_error(f"it may not raise {code} itself")
            unnumbered = Issue.create(self.agent, code, stored["severity"], stored["message"])
            kept_fields = unnumbered.model_dump(include={"ig_id", "issue_id", "auto_fixable", "facts", "status"})
            try:
                issues.append(Issue(**stored | kept_fields | {"origin": origin}))
            except ValidationError:
                raise _build_verifier_error("an issue has a wrong shape") from None
        return issues

    def _convert_description_to_question(self, description: Mapping[str, Any], bundle: DocumentBundle) -> _OwnQuestion:
        if description["role"] != self.agent:
            raise _build_verifier_error(f"the role of its questions must be {self.agent}")
        if not isinstance(description["prompt"], str):
            raise _build_verifier_error("a prompt is not text")
        return _OwnQuestion(
            role=self.agent,
            bundle=bundle,
            prompt_text=description["prompt"],
            answer_schema=description["answer_schema"],
            offline_answer=description["offline_answer"],
            pickled_question=description["pickled"],
            images=tuple(base64.b64decode(image) for image in description["images"]),
            temperature=float(description["temperature"]),
        )


class _VerifierProcess:
    """A verifier's process, one call at a time.

    Started when it is needed, ended when it takes too long.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def call(self, method: str, arguments: Sequence[Any], time_limit_seconds: float) -> dict[str, Any]:
        """Call a method of the verifier and return the reply.

        UsageError without the verifier's words if there is none in time.
        """
        with self._lock:
            if self._process is None:
                self._start()
                self._exchange_or_end_process("describe", (), _START_SECONDS)  # importing does not count
            return self._exchange_or_end_process(method, arguments, time_limit_seconds)

    def end(self) -> None:
        """End the process, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with suppress(OSError):  # a request that was not read
                        stream.close()
            self._process = None

    def _start(self) -> None:
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if Path(path).is_absolute())}
        self._process = subprocess.Popen(  # noqa: S603 - our own module; -P and / keep the current folder's files out
            [sys.executable, "-P", "-m", "evalkit.classification.verifier_process", self._name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd="/", env=environment, start_new_session=True,
        )  # fmt: skip

    def _exchange_or_end_process(
        self, method: str, arguments: Sequence[Any], time_limit_seconds: float
    ) -> dict[str, Any]:
        try:
            reply = self._send_and_receive(pickle.dumps((time_limit_seconds, method, arguments)), time_limit_seconds)
        except TimeoutError:
            self.end()
            raise _build_verifier_error(f"it took longer than {time_limit_seconds:g} s") from None
        except (OSError, ValueError):
            self.end()
            raise _build_verifier_error("its process has ended") from None
        if "failure" in reply:
            raise _build_verifier_error(reply["failure"])
        return reply

    def _send_and_receive(self, request: bytes, time_limit_seconds: float) -> dict[str, Any]:
        """Return the reply. TimeoutError; OSError or ValueError if the process has ended."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - started
        deadline = time.monotonic() + time_limit_seconds
        process.stdin.write(request)
        process.stdin.flush()
        chunks: list[bytes] = []
        while not chunks or not chunks[-1].endswith(b"\n"):
            readable, _, _ = select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0))
            if not readable:
                raise TimeoutError
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise OSError
            chunks.append(chunk)
        reply: dict[str, Any] = json.loads(b"".join(chunks))
        return reply


@cache
def _get_or_create_process(entry_point_name: str) -> _VerifierProcess:
    process = _VerifierProcess(entry_point_name)
    atexit.register(process.end)
    return process


def _build_verifier_error(reason: str) -> UsageError:
    return UsageError(reason, code="VERIFIER", remedy="Correct the verifier, or take it out of evalkit.toml.")


def load_own_verifiers(entry_point_names: Sequence[str], time_limit_seconds: float) -> tuple[OwnVerifier, ...]:
    """Load the verifiers of these entry points.

    UsageError that names a verifier that cannot be used.
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
                name, "its agent must be a name of its own: 2 to 16 capitals and digits, not V1 or the like"
            )
        if description["missing_methods"]:
            raise _build_entry_point_error(name, f"it has no method {description['missing_methods'][0]}")
        if any(verifier.agent == agent for verifier in verifiers):
            raise _build_entry_point_error(name, f"another verifier is called {agent}, too")
        verifiers.append(OwnVerifier(agent, code, time_limit_seconds))
    return tuple(verifiers)


@cache
def compute_verifier_version(entry_point_name: str) -> OwnVerifierVersion:
    """Compute name, version and hash of a verifier without running it.

    UsageError if there is no installed code that may be run.
    """
    _, distribution = require_trusted_verifier_entry_point(entry_point_name)
    digest = hashlib.sha256()
    for path, content_path in list_installed_code_files(distribution):
        content = content_path.read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    return OwnVerifierVersion(entry_point_name, distribution.version, digest.hexdigest())


def require_trusted_verifier_entry_point(entry_point_name: str) -> tuple[EntryPoint, Distribution]:
    """Find the installed distribution that offers a verifier.

    UsageError if there is none, or none that is trusted.
    """
    offered = entry_points(group=ENTRY_POINT_GROUP)
    matches = {
        entry_point.dist.name: (entry_point, entry_point.dist)
        for entry_point in offered
        if entry_point.name == entry_point_name and entry_point.dist is not None
    }
    if len(matches) > 1:
        raise _build_entry_point_error(entry_point_name, f"{' and '.join(sorted(matches))} both offer it")
    if not matches:
        other_names = ", ".join(sorted({entry_point.name for entry_point in offered})) or "none"
        raise _build_entry_point_error(
            entry_point_name,
            f"no installed distribution offers it in the group {ENTRY_POINT_GROUP} (offered: {other_names})",
        )
    ((entry_point, distribution),) = matches.values()
    if _is_in_current_folder(distribution):
        raise _build_entry_point_error(
            entry_point_name, "its distribution is in the current folder, which is not trusted"
        )
    return entry_point, distribution


def _is_in_current_folder(distribution: Distribution) -> bool:
    folder = Path(str(distribution.locate_file(""))).resolve()
    install_folders = [*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values()]
    is_installed = folder in {Path(path).resolve() for path in install_folders}
    return Path.cwd() != Path("/") and folder.is_relative_to(Path.cwd()) and not is_installed


def list_installed_code_files(distribution: Distribution) -> list[tuple[str, Path]]:
    """List the installed code files by name.

    Without metadata, commands and compiled files.
    """
    located_files = (
        (str(path), Path(str(path.locate())))
        for path in distribution.files or ()
        if not path.parts[0].endswith((".dist-info", ".egg-info"))
        and path.parts[0] not in ("..", "bin")  # their first line holds the environment's path
        and path.suffix not in (".pyc", ".pth")
    )
    return sorted((name, path) for name, path in located_files if path.is_file())


def _build_entry_point_error(entry_point_name: str, reason: str) -> UsageError:
    return UsageError(
        f"the verifier {entry_point_name} cannot be used: {reason}",
        code="VERIFIER",
        remedy="Install its distribution (not editable), or correct `verifiers` in evalkit.toml.",
    )
