"""The offline default: each question brings its own computed answer.

It is deterministic and needs no key, network or download. It is no language model: all it knows are the lexicon and the
rules of the questions. It is no provider either: nothing is sent.
"""

from __future__ import annotations

import logging

from evalkit.llm.model import Answer, AnswerT, Question, Usage

log = logging.getLogger(__name__)


class EmbeddedModel:
    """Answers by ``question.offline()``."""

    name = "embedded"

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        """Compute the question's own answer."""
        usage = Usage(calls=1)
        try:
            return Answer(question, question.offline(), usage=usage)
        except Exception as error:  # noqa: BLE001 - a defect here must escalate the case, not end the run
            # Without the traceback: its message could quote the document.
            log.error("the offline answer of %s failed with %s", question.role, type(error).__name__)  # noqa: TRY400
            return Answer(question, None, failure=f"the offline answer failed ({type(error).__name__})", usage=usage)
