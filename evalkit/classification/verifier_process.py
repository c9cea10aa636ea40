"""The process of a site's own verifier.

``python -P -m evalkit.classification.verifier_process NAME``.

It reads pickled requests from standard input, one after the other, and answers each with a line of JSON. Only here is the
verifier's code imported; what it prints or logs goes nowhere, since it could quote the document.
"""

from __future__ import annotations

import base64
import importlib.util
import os
import pickle
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from evalkit.classification.own_verifiers import (
    METHODS,
    list_installed_code_files,
    require_trusted_verifier_entry_point,
)
from evalkit.errors import UsageError
from evalkit.issue import Issue
from evalkit.llm.model import Answer, Question
from evalkit.store import encode_canonical_json

_MAX_REPLY_BYTES = 16 * 1024**2
_GRACE_SECONDS = 5
"""The process that asks ends this one at the time limit; so much later, if that is gone, this one ends by itself."""


class _InvalidVerifierResultError(Exception):
    """A result that a verifier must not give; the words are ours."""


def import_verifier_class(entry_point_name: str) -> Any:
    """Import a verifier from its distribution's installed files.

    UsageError if Python would read it from elsewhere.
    """
    entry_point, distribution = require_trusted_verifier_entry_point(entry_point_name)
    own_paths = {path.resolve() for _, path in list_installed_code_files(distribution)}
    parts = entry_point.module.split(".")
    for length in range(1, len(parts) + 1):
        spec = importlib.util.find_spec(".".join(parts[:length]))  # imports the packages above, which were looked at
        if spec is None:
            raise _build_error(distribution, f"the module {entry_point.module} is missing")
        if spec.origin is not None and Path(spec.origin).resolve() not in own_paths:
            raise _build_error(
                distribution,
                "Python would read it from outside of its installed files (editable installs are not used)",
            )
    return entry_point.load()


def _build_error(distribution: Distribution, reason: str) -> UsageError:
    return UsageError(f"{distribution.name}: {reason}", code="VERIFIER", remedy="Reinstall it, not editable.")


def run_verifier_method(verifier_class: Any, method: str, arguments: Sequence[Any]) -> dict[str, Any]:
    """Run a method on a new instance, so that documents cannot mix."""
    instance = verifier_class()
    if method == "describe":
        missing_methods = [name for name in METHODS if not callable(getattr(instance, name, None))]
        return {"agent": instance.agent, "missing_methods": missing_methods}
    if method == "questions":
        return {"questions": [_serialise_question(question) for question in instance.questions(*arguments)]}
    if method == "read":
        return {"issues": _dump_issues(instance.read([_rebuild_answer(*parts) for parts in arguments[0]]))}
    return {"issues": _dump_issues(instance.validate(*arguments))}


def _dump_issues(issues: Sequence[Issue]) -> list[dict[str, Any]]:
    if not all(isinstance(issue, Issue) for issue in issues):
        raise _InvalidVerifierResultError("it returned something that is no issue")
    return [issue.model_dump(mode="json") for issue in issues]


def _serialise_question(question: Any) -> dict[str, Any]:
    if not isinstance(question, Question) or not issubclass(question.answer_type, BaseModel):
        raise _InvalidVerifierResultError("it asked something that is no question")
    offline_answer = question.offline()
    if not isinstance(offline_answer, question.answer_type):
        raise _InvalidVerifierResultError("an offline answer has another type than its question says")
    return {
        "role": question.role,
        "prompt": question.prompt(),
        "answer_schema": question.get_answer_schema(),
        "offline_answer": offline_answer.model_dump(mode="json"),
        "images": [base64.b64encode(image).decode() for image in question.images],
        "temperature": question.temperature,
        "pickled": base64.b64encode(pickle.dumps(question)).decode(),
    }


def _rebuild_answer(pickled_question: str, answer: dict[str, Any]) -> Answer[Any]:
    question = pickle.loads(base64.b64decode(pickled_question))  # noqa: S301 - by the verifier itself
    return Answer(question, question.answer_type.model_validate(answer))


def main(name: str) -> None:
    """Answer requests until there are no more."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard_stream in (0, 1, 2):
        os.dup2(nowhere, standard_stream)
    verifier_class = None
    while True:
        try:
            limit_seconds, method, arguments = pickle.load(requests)  # noqa: S301 - by the process that started this one
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, limit_seconds + _GRACE_SECONDS)
        try:
            verifier_class = verifier_class or import_verifier_class(name)
            reply = encode_canonical_json(run_verifier_method(verifier_class, method, arguments))
            if len(reply) > _MAX_REPLY_BYTES:
                raise _InvalidVerifierResultError("it returned too much")  # noqa: TRY301 - one way to say so
        except BaseException as error:  # noqa: BLE001 - not even an exit is its to make
            words = error.message if isinstance(error, UsageError) else str(error)
            is_ours = isinstance(error, UsageError | _InvalidVerifierResultError)
            reply = encode_canonical_json({"failure": words if is_ours else f"{type(error).__name__} was raised"})
        signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write(reply + b"\n")
        replies.flush()


if __name__ == "__main__":
    main(sys.argv[1])
