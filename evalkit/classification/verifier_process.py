"""Process in which a site's own verifier runs.

``python -P -m evalkit.classification.verifier_process NAME DESCRIPTOR`` gets pickled requests on the connection with this
file descriptor, one after the other, and answers each with JSON. The verifier's code is imported in this process only.
Its output and logs are discarded, because they could quote the document.
"""

import base64
import importlib.util
import pickle
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution
from multiprocessing.connection import Connection
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
from evalkit.llm.answer_normalisation import build_full_json_schema
from evalkit.llm.model import Answer, Question
from evalkit.store import encode_canonical_json

_MAX_REPLY_BYTES = 16 * 1024**2
#: The calling process ends this one at the time limit. If the caller is gone, this process ends itself so many seconds
#: later.
_GRACE_SECONDS = 5


class _InvalidVerifierResultError(Exception):
    """Result that a verifier must not return; the message never quotes the verifier."""


def import_verifier_class(entry_point_name: str) -> Any:
    """Import a verifier's class from the installed files of its package.

    UsageError if its module is missing or would be imported from other files.
    """
    entry_point, distribution = require_trusted_verifier_entry_point(entry_point_name)
    own_paths = {path.resolve() for _, path in list_installed_code_files(distribution)}
    parts = entry_point.module.split(".")
    for length in range(1, len(parts) + 1):
        spec = importlib.util.find_spec(
            ".".join(parts[:length])
        )  # imports the parent packages, which were checked before
        if spec is None:
            raise _build_error(distribution, f"the module {entry_point.module} is missing")
        if spec.origin is not None and Path(spec.origin).resolve() not in own_paths:
            raise _build_error(
                distribution,
                "Python would import it from a file outside of the installed package (editable installs are not allowed)",
            )
    return entry_point.load()


def _build_error(distribution: Distribution, reason: str) -> UsageError:
    return UsageError(
        f"{distribution.name}: {reason}", code="VERIFIER", remedy="Reinstall the package, not in editable mode."
    )


def run_verifier_method(verifier_class: Any, method: str, arguments: Sequence[Any]) -> dict[str, Any]:
    """Run a method of the verifier and return the reply as JSON values.

    ``method`` is "describe", "validate", "questions" or "read". A new instance is made for each call, so that documents
    cannot mix.
    """
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
        raise _InvalidVerifierResultError("the verifier returned an object that is not an Issue")
    return [issue.model_dump(mode="json") for issue in issues]


def _serialise_question(question: Any) -> dict[str, Any]:
    if not isinstance(question, Question) or not issubclass(question.answer_type, BaseModel):
        raise _InvalidVerifierResultError("the verifier returned a question of a wrong type")
    offline_answer = question.offline()
    if not isinstance(offline_answer, question.answer_type):
        raise _InvalidVerifierResultError("the offline answer to a question is not of the question's answer_type")
    return {
        "role": question.role,
        "prompt": question.prompt(),
        "answer_schema": question.get_answer_schema(),
        "full_schema": build_full_json_schema(question.requested_type),
        "offline_answer": offline_answer.model_dump(mode="json"),
        "images": [base64.b64encode(image).decode() for image in question.images],
        "temperature": question.temperature,
        "pickled": base64.b64encode(pickle.dumps(question)).decode(),
    }


def _rebuild_answer(pickled_question: str, answer: dict[str, Any]) -> Answer[Any]:
    question = pickle.loads(base64.b64decode(pickled_question))  # noqa: S301 - pickled by the verifier itself
    return Answer(question, question.answer_type.model_validate(answer))


def main(name: str, connection: Connection) -> None:
    """Answer requests on the connection until it is closed."""
    verifier_class = None
    while True:
        try:
            limit_seconds, method, arguments = connection.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, limit_seconds + _GRACE_SECONDS)
        try:
            verifier_class = verifier_class or import_verifier_class(name)
            reply = encode_canonical_json(run_verifier_method(verifier_class, method, arguments))
            if len(reply) > _MAX_REPLY_BYTES:
                raise _InvalidVerifierResultError(f"the answer of the verifier is larger than {_MAX_REPLY_BYTES} bytes")  # noqa: TRY301 - as above
        except BaseException as error:  # noqa: BLE001 - the verifier may not even exit
            words = error.message if isinstance(error, UsageError) else str(error)
            is_ours = isinstance(error, UsageError | _InvalidVerifierResultError)
            reply = encode_canonical_json({"failure": words if is_ours else f"{type(error).__name__} was raised"})
        connection.send_bytes(reply)
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main(sys.argv[1], Connection(int(sys.argv[2])))
