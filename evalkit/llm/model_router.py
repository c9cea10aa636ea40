"""Another model for another role."""

from __future__ import annotations

from collections.abc import Mapping

from evalkit.llm.model import Answer, AnswerT, Model, Question


class ModelRouter:
    """Answers as whichever model has the question's role."""

    def __init__(self, default_model: Model, model_by_role: Mapping[str, Model]) -> None:
        """``model_by_role``: models by role in small letters; roles that it leaves out have the default."""
        self._default_model = default_model
        self._model_by_role = model_by_role

    @property
    def name(self) -> str:
        """The default's."""
        return self._default_model.name

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        """The answer of the role's model."""
        return await self.get_model(question.role).ask(question)

    def get_model(self, role: str) -> Model:
        """The model that answers what this role asks."""
        return self._model_by_role.get(role.lower(), self._default_model)
