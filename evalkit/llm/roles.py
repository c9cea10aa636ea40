"""Another model for another role."""

from __future__ import annotations

from collections.abc import Mapping

from evalkit.llm.model import A, Answer, Model, Question


class ByRole:
    """Answers as whichever model has the question's role."""

    def __init__(self, default: Model, others: Mapping[str, Model]) -> None:
        """``others``: models by role in small letters; roles that it leaves out have the default."""
        self._default = default
        self._others = others

    @property
    def name(self) -> str:
        """The default's."""
        return self._default.name

    async def ask(self, question: Question[A]) -> Answer[A]:
        """The answer of the role's model."""
        return await self.of(question.role).ask(question)

    def of(self, role: str) -> Model:
        """The model that answers what this role asks."""
        return self._others.get(role.lower(), self._default)
