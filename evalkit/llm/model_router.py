"""Choose the model that answers a question by the question's role."""

from collections.abc import Mapping

from evalkit.llm.model import Answer, AnswerT, Model, Question


class ModelRouter:
    """A model that passes each question to the model of the question's role."""

    def __init__(self, default_model: Model, model_by_role: Mapping[str, Model]) -> None:
        """Set the models.

        ``model_by_role``: by role in small letters. ``default_model``: answers all other roles.
        """
        self._default_model = default_model
        self._model_by_role = model_by_role

    @property
    def name(self) -> str:
        """Name of the default model."""
        return self._default_model.name

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        """Pass a question to the model of its role, and return the answer."""
        return await self.get_model(question.role).ask(question)

    def get_model(self, role: str) -> Model:
        """Return the role's model, or the default model; upper and lower case are equal."""
        return self._model_by_role.get(role.lower(), self._default_model)
