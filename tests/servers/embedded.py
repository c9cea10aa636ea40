"""What the embedded model would say, for servers: the document is known by the marks of its prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from builders import compose_model_answer

from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.classification.verifiers import MergedVerifier
from evalkit.documents.bundle import DocumentBundle
from evalkit.llm.model import Question
from evalkit.llm.prompts import fence_document

_MARK = re.compile(r"<document-[0-9a-f]+")
_VERIFIERS = {"V2": V2ConsistencyChecker(), "V3": V3TrapDetector(), "V4": V4EvidenceQualityAssessor()}


class EmbeddedAnswers:
    """Answers prompts about documents that were read: ``answers(role, prompt)`` is JSON."""

    def __init__(self, bundles: Callable[[], Iterable[DocumentBundle]]) -> None:
        """``bundles`` gives those that there are by now."""
        self._bundles = bundles
        self._known: dict[str, DocumentBundle] = {}
        self._classified: dict[str, ClassificationOutput] = {}

    def __call__(self, role: str, prompt: str) -> str:
        """The answer."""
        bundle = self._bundle(prompt)
        if bundle.sha256 not in self._classified:
            self._classified[bundle.sha256] = ClassifierQuestion(bundle).offline()
        answer = self._classified[bundle.sha256]
        if role == "classifier":
            return json.dumps(compose_model_answer(answer, bundle))
        question: Question[object] = (
            MergedVerifier(list(_VERIFIERS.values())).build_question(answer, bundle)
            if role == "verifier"
            else _VERIFIERS[role].questions(answer, bundle)[0]
        )
        return question.offline().model_dump_json()

    def _bundle(self, prompt: str) -> DocumentBundle:
        found = _MARK.match(prompt)
        assert found, "a prompt begins with its document"
        if found[0] not in self._known:
            self._known |= {_MARK.match(fence_document(one, []))[0]: one for one in self._bundles()}
        return self._known[found[0]]


def stored(output: Path) -> Callable[[], Iterable[DocumentBundle]]:
    """The bundles that a run has written so far."""

    def bundles() -> Iterable[DocumentBundle]:
        for path in sorted(output.glob("document_bundles/*.json")):
            yield DocumentBundle.model_validate_json(path.read_bytes())

    return bundles
