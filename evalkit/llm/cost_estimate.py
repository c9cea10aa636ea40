"""Estimate of what language models would cost, without any call."""

from dataclasses import replace
from typing import Any

from evalkit.llm.client import LanguageModel, ParsedAnswer, PendingQuestion
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.ledger import Ledger, add_list_price
from evalkit.llm.model import AnswerT, Reply, Request, Usage
from evalkit.llm.model_families import estimate_answer_tokens


class _SilentProvider:
    def __init__(self, name: str) -> None:
        self.name = name

    async def send(self, request: Request) -> Reply:
        raise NotImplementedError("a cost estimate must not call a model")

    async def close(self) -> None:
        pass


class EstimatingModel(LanguageModel):
    """A model that makes no calls: it counts the cost and answers offline.

    Answers in the journal cost nothing. Later questions are built from the offline answers.
    """

    def __init__(self, name: str, ledger: Ledger, base_url: str | None) -> None:
        super().__init__(_SilentProvider(name), ledger, AimdLimiter(1), base_url=base_url)
        self.usage_by_role: dict[str, Usage] = {}
        self.images_by_role: dict[str, int] = {}

    async def _call_while_service_works(self, pending_question: PendingQuestion[AnswerT]) -> ParsedAnswer[AnswerT]:
        question = pending_question.question
        answer = question.offline()
        output_tokens = estimate_answer_tokens(answer.model_dump_json())
        usage = add_list_price(self.name, replace(pending_question.estimate_usage(), output_tokens=output_tokens))
        self.usage_by_role[question.role] = self.usage_by_role.get(question.role, Usage()) + usage
        self.images_by_role[question.role] = self.images_by_role.get(question.role, 0) + len(question.images)
        return ParsedAnswer(answer, ())

    async def probe(self, *_options: Any) -> None:
        """Send no test question."""
