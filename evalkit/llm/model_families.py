"""Facts about models, by family, from ``model_families.toml``.

Every fact names the page that states it. What no page states is unknown (None), and then the most harmless request is
sent.
"""

import json
import re
import struct
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from math import prod
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord

FactT = TypeVar("FactT")
#: Ways to ask for JSON: by a schema of the protocol, as any valid JSON, or by words in the prompt alone.
AnswerMode: TypeAlias = Literal["schema", "json", "prompt"]

#: Output limit that is sufficient for every role's answer; a model that has gone astray stops there.
_SUFFICIENT_OUTPUT_TOKENS = 16_384
#: Characters per token, few enough that no text has more tokens than computed by it.
_CHARACTERS_PER_TOKEN = 3
#: Pixels of a picture per token, and the place of width and height in a PNG file. By Anthropic's page on vision, 1.15
#: megapixels are some 1,600 tokens, 720 pixels each; fewer here, to be on the safe side.
_PIXELS_PER_TOKEN, _PNG_SIZE_OFFSET = 500, 16
#: For estimates of a call's cost: tokens of an answer, unless it is known to be longer. Enough for three segments.
EXPECTED_ANSWER_TOKENS = 1_000
#: Tokens kept free beside the document: instructions, an earlier answer to check, the new answer; at most half of all.
_RESERVED_TOKENS = 32_000
#: Characters of a document in one question if the context is unknown.
_DEFAULT_WINDOW_CHARACTERS = 400_000
#: No more of a large context is filled: beyond, several providers ask double the price, and answers get worse.
_MAX_FILLED_TOKENS = 200_000


def estimate_input_tokens(
    prompt: str, system_instruction: str, answer_schema: Mapping[str, Any], images: Iterable[bytes]
) -> int:
    """Estimate the tokens of all that a call sends, rather too many than too few."""
    sent_characters = len(prompt) + len(system_instruction) + len(json.dumps(dict(answer_schema)))
    sizes = (struct.unpack_from(">II", png.ljust(_PNG_SIZE_OFFSET + 8, b"\0"), _PNG_SIZE_OFFSET) for png in images)
    return sent_characters // _CHARACTERS_PER_TOKEN + sum(int(prod(size)) // _PIXELS_PER_TOKEN for size in sizes)


def estimate_answer_tokens(answer_json: str) -> int:
    """Estimate the tokens of an answer, rather too many than too few."""
    return max(EXPECTED_ANSWER_TOKENS, len(answer_json) // _CHARACTERS_PER_TOKEN)


class PageSource(StrictRecord):
    """A web page that is the source of facts."""

    address: str
    as_of: date
    """Date of the page, or of reading it."""


class Fact(StrictRecord, Generic[FactT]):
    """A fact about models, and the name of its source."""

    value: FactT
    source: str


class ModelFacts(StrictRecord):
    """Known facts about a model; ``model_families.toml`` explains the fields."""

    temperature: Fact[bool] | None = None
    thinking: Fact[int | str] | None = None
    system: Fact[bool] | None = None
    images: Fact[bool] | None = None
    context: Fact[int] | None = None
    output: Fact[int] | None = None
    answers: Fact[tuple[AnswerMode, ...]] | None = None
    logprobs: Fact[bool] | None = None
    caching: Fact[int] | None = None
    batch: Fact[bool] | None = None
    safety: Fact[tuple[str, ...]] | None = None

    @property
    def has_vision(self) -> bool | None:
        """True if the model accepts images; None if unknown."""
        return None if self.images is None else self.images.value

    @property
    def context_tokens(self) -> int | None:
        """The maximum number of tokens in a prompt; None if unknown."""
        return None if self.context is None else self.context.value

    def list_values(self) -> dict[str, object]:
        """Return the values of the known facts by their names."""
        return {name: fact.value for name in ModelFacts.model_fields if (fact := getattr(self, name)) is not None}

    def limit_output_tokens(self, wanted_tokens: int | None) -> int | None:
        """Return the limit of output tokens to send; None for no limit.

        ``wanted_tokens``: a limit that is wanted instead of the usual one. The model's own limit is never exceeded.
        """
        if self.output is None:
            return wanted_tokens
        return min(wanted_tokens or _SUFFICIENT_OUTPUT_TOKENS, self.output.value)

    def compute_window_characters(self) -> int:
        """Compute how many characters of a document one question may have."""
        if self.context_tokens is None:
            return _DEFAULT_WINDOW_CHARACTERS
        filled_tokens = min(self.context_tokens, _MAX_FILLED_TOKENS)
        return (filled_tokens - min(_RESERVED_TOKENS, filled_tokens // 2)) * _CHARACTERS_PER_TOKEN


class ModelFamily(ModelFacts):
    """A row of the table: models of one kind, and facts about them."""

    name: str
    providers: tuple[str, ...]
    models: str = ""
    """A regular expression for the beginning of the models' names; empty: all models of the providers."""
    example: str | None = None
    """Name of a model of this row."""


class ModelProvider(StrictRecord):
    """A service or server, named before the colon in ``--model``."""

    title: str
    prices: str | None = None
    """The provider's name in genai-prices; None: the prices are unknown, or there are none."""
    free: bool = False
    """True if the models run on a site's own hardware and cost nothing."""
    self_hostable: bool = False
    """True if sites run such servers themselves: plain http is then allowed in a private network."""
    address: Fact[str] | None = None
    """Base URL of a server with OpenAI's protocol; None: the provider has a protocol of its own."""
    key: str = ""
    """Environment variable of the key."""


class ModelFamilyTable(StrictRecord):
    """The content of ``model_families.toml``."""

    sources: Mapping[str, PageSource]
    providers: Mapping[str, ModelProvider]
    families: tuple[ModelFamily, ...]


@cache
def load_model_family_table() -> ModelFamilyTable:
    """Load and check ``model_families.toml``."""
    return ModelFamilyTable.model_validate(load_package_table("evalkit.llm", "model_families.toml"))


def find_model_facts(provider_and_model: str, context_tokens: int | None = None) -> ModelFacts:
    """Return the known facts about a model.

    Of each fact, the first row that fits and states it counts.

    ``context_tokens``: the context that the site's own server is set to; None: what the table says.

    >>> find_model_facts("gemini:models/gemini-3-flash-preview").temperature
    Fact[bool](value=False, source='gemini-3-prompting')
    >>> find_model_facts("vllm:house-model").has_vision
    """
    provider, _, model_name = provider_and_model.partition(":")
    rows = [
        row
        for row in load_model_family_table().families
        if provider in row.providers and re.match(row.models, model_name.removeprefix("models/"), re.IGNORECASE)
    ]
    facts = {
        name: next((fact for row in rows if (fact := getattr(row, name)) is not None), None)
        for name in ModelFacts.model_fields
    }
    if context_tokens is not None and (row := load_model_family_table().providers.get(provider)) and row.self_hostable:
        facts["context"] = Fact[int](value=context_tokens, source="context_tokens")
    return ModelFacts.model_construct(**facts)
