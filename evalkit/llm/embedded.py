"""The default model, which works offline: each question computes its own answer.

The answers are deterministic and need no key, network or download. No language model is involved, only the lexicons and
rules of the questions.
"""

import logging

from evalkit.llm.model import Answer, AnswerT, Question, Usage

log = logging.getLogger(__name__)


class EmbeddedModel:
    """A model that returns each question's ``offline()`` answer."""

    name = "embedded"

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        """Return the question's offline answer, or a failure if computing it fails."""
        usage = Usage(calls=1)
        try:
            return Answer(question, question.offline(), usage=usage)
        except Exception as error:  # noqa: BLE001 - a defect in a question must escalate the case, not end the run
            # Logged without traceback, because the error's message could quote the document.
            log.error("the offline answer for role %s failed with %s", question.role, type(error).__name__)  # noqa: TRY400
            return Answer(question, None, failure=f"the offline answer failed ({type(error).__name__})", usage=usage)
