"""Route each role's questions to its model."""

from __future__ import annotations

from collections.abc import Mapping

from evalkit.llm.model import Answer, AnswerT, Model, Question


class ModelRouter:
    """Answers with the model of the question's role."""

    def __init__(self, default_model: Model, model_by_role: Mapping[str, Model]) -> None:
        """Set the models by role, in small letters; other roles have the default model."""
        self._default_model = default_model
        self._model_by_role = model_by_role

    @property
    def name(self) -> str:
        """The default model's name."""
        return self._default_model.name

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        """Answer with the role's model."""
        return await self.get_model(question.role).ask(question)

    def get_model(self, role: str) -> Model:
        """Return the model that answers a role's questions."""
        return self._model_by_role.get(role.lower(), self._default_model)
