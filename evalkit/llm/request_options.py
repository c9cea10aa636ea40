"""Optional parts of requests, limited to what a model's family accepts.

They are left out once a server refuses them. A refusal costs one call. What was refused is remembered as long as the
provider lives, and logged once.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any, NamedTuple

from evalkit.llm.model import ModelCallError, Provider, Reply, Request, Usage
from evalkit.llm.model_families import AnswerMode, ModelFacts, estimate_input_tokens, load_model_family_table
from evalkit.llm.prompts import dump_compact_json, fill_prompt_template
from evalkit.llm.provider_family import create_call_error

log = logging.getLogger(__name__)

_OPTION_CODE = "LLM-OPTION"
#: Longer error messages are not read for names of options: they quote the request.
_MAX_REFUSAL_CHARACTERS = 2_000
#: An error message with so much of the prompt's beginning quotes the whole request, other options included.
_QUOTE_CHARACTERS = 50
_WORD_PATTERN = re.compile(r"(?:\\[nrt])?(\w+)")
_CONTEXT_WORDS = re.compile(
    r"context[ _](length|size|window)|exceed_context|n_ctx|prompt is too long|token count .*exceeds", re.IGNORECASE
)
_SCHEMA_WORDS = (
    r"response_?(format|mime_?type|json_?schema|schema)|json[ _](schema|mode|object)|output_(config|format)|grammar"
)


class RequestOptions(NamedTuple):
    """The optional parts of a model's requests."""

    answer_modes: tuple[AnswerMode, ...]
    """Ways to ask for JSON, the best first; the first is used."""
    has_temperature: bool
    has_thinking: bool
    has_system_instruction: bool
    has_probabilities: bool

    @property
    def answer_mode(self) -> AnswerMode:
        """The way to ask for JSON."""
        return self.answer_modes[0]

    def find_refused_option(self, refusal: str) -> tuple[str, RequestOptions] | None:
        """Return the refused option, and the options without it.

        None if it names none.
        """
        candidates: tuple[tuple[str, str, bool, dict[str, Any]], ...] = (
            ("temperature", "temperature", self.has_temperature, {"has_temperature": False}),
            ("thinking level", "thinking|reasoning|effort", self.has_thinking, {"has_thinking": False}),
            (
                "system instruction",
                "(system|developer)[ _]?(instruction|message|role)",
                self.has_system_instruction,
                {"has_system_instruction": False},
            ),
            ("token probabilities", "log_?probs", self.has_probabilities, {"has_probabilities": False}),
            ("schema", _SCHEMA_WORDS, len(self.answer_modes) > 1, {"answer_modes": self.answer_modes[1:]}),
        )
        return next(
            (
                (name, self._replace(**reduced))
                for name, words, is_sent, reduced in candidates
                if is_sent and re.search(words, refusal, re.IGNORECASE)
            ),
            None,
        )


class RequestFitter:
    """Adapts requests to a model, by known facts and by its server's refusals."""

    def __init__(self, model_name: str, facts: ModelFacts) -> None:
        """Start with everything that the facts allow."""
        self._model_name = model_name
        self._facts = facts
        self._is_self_hostable = load_model_family_table().providers[model_name.partition(":")[0]].self_hostable
        self.options = RequestOptions(
            facts.answers.value if facts.answers else ("prompt",),
            facts.temperature is not None and facts.temperature.value,
            facts.thinking is not None,
            facts.system is None or facts.system.value,
            facts.logprobs is not None and facts.logprobs.value,
        )

    def require_readable(self, request: Request) -> None:
        """Raise ModelCallError if the model cannot read the request.

        The code is LLM-CONTEXT, or LLM-REQUEST for pictures. Some servers would cut a long prompt off without saying
        so.
        """
        if request.images and self._facts.has_vision is False:
            raise create_call_error(self._model_name, "LLM-REQUEST", note="it sees no pictures", usage=Usage())
        input_tokens = estimate_input_tokens(
            request.prompt, request.system_instruction, request.answer_schema, request.images
        )
        context_tokens = self._facts.context_tokens
        if context_tokens is not None and input_tokens > context_tokens:
            raise create_call_error(
                self._model_name,
                "LLM-CONTEXT",
                note=f"{input_tokens:,} tokens by estimate, {context_tokens:,} are read",
                usage=Usage(),
            )

    def explain_refusal(
        self, request: Request, sent_options: RequestOptions, error_body: object, *, usage: Usage | None = None
    ) -> ModelCallError | None:
        """Return the error for a refusal that states its cause; None if it does not.

        LLM-OPTION if an option was refused: it is left out from now on, and the call may be repeated. LLM-CONTEXT if
        the prompt is too long. ``error_body``: the response's body, parsed if it is JSON.
        """
        refusal, parameter_name = _read_refusal(error_body, request)
        if refused_option := sent_options.find_refused_option(parameter_name or refusal):
            option_name, reduced_options = refused_option
            return self._drop_option(option_name, sent_options, reduced_options, usage)
        if _CONTEXT_WORDS.search(refusal):
            return create_call_error(self._model_name, "LLM-CONTEXT", usage=usage)
        return None

    def require_schema(self, request: Request, sent_options: RequestOptions, reply: Reply) -> None:
        """Raise ModelCallError LLM-OPTION if a site's own server ignored the schema.

        Then no field is in the reply.
        """
        can_ignore_schema = (
            self._is_self_hostable and sent_options.answer_mode == "schema" and len(sent_options.answer_modes) > 1
        )
        fields = request.answer_schema.get("properties", {})
        if can_ignore_schema and fields and not any(f'"{field}"' in reply.text for field in fields):
            reduced_options = sent_options._replace(answer_modes=sent_options.answer_modes[1:])
            raise self._drop_option("schema", sent_options, reduced_options, reply.usage)

    def _drop_option(
        self, option_name: str, sent_options: RequestOptions, reduced_options: RequestOptions, usage: Usage | None
    ) -> ModelCallError:
        # Of calls that run at the same time, only the first refusal changes the options.
        if self.options == sent_options:
            self.options = reduced_options
            log.warning(
                "%s does not take the %s; %s",
                self._model_name,
                option_name,
                f"from now on it is asked by {_MODE_DESCRIPTIONS[reduced_options.answer_mode]}"
                if option_name == "schema"
                else "it is left out from now on",
            )
        return create_call_error(self._model_name, _OPTION_CODE, note=option_name, usage=usage)


_MODE_DESCRIPTIONS = {"json": "JSON mode, with the schema in the prompt", "prompt": "the schema in the prompt alone"}


def _read_refusal(error_body: object, request: Request) -> tuple[str, str | None]:
    """Return the words of an error response, and the parameter that it names.

    Words that it quotes of the request are left out, and all if it quotes the prompt's beginning: they may name anything.
    """
    if isinstance(error_body, dict):
        error_body = error_body.get("error", error_body)
    parameter_name = error_body.get("param") if isinstance(error_body, dict) else None
    refusal = error_body if isinstance(error_body, str) else json.dumps(error_body, ensure_ascii=False, default=str)
    is_quoting = len(refusal) > _MAX_REFUSAL_CHARACTERS or request.prompt[:_QUOTE_CHARACTERS] in refusal
    own_words = "" if is_quoting else _leave_out_quotes(refusal, f"{request.system_instruction} {request.prompt}")
    return own_words, parameter_name if isinstance(parameter_name, str) else None


def _leave_out_quotes(text: str, quoted_text: str) -> str:
    """Return a text's words without each three in a row that another text has too.

    >>> _leave_out_quotes("temperature: unexpected near 'Temperature 38.4 C'", "Pulse 80, temperature 38.4 C")
    'temperature unexpected near'
    """
    words, sent_words = _WORD_PATTERN.findall(text), _WORD_PATTERN.findall(quoted_text.casefold())
    sent_triples = {*zip(sent_words, sent_words[1:], sent_words[2:], strict=False)}
    triples = [tuple(map(str.casefold, words[index : index + 3])) for index in range(len(words))]
    return " ".join(
        word for index, word in enumerate(words) if sent_triples.isdisjoint(triples[max(index - 2, 0) : index + 1])
    )


def build_prompt(request: Request, options: RequestOptions) -> str:
    """Build the prompt, with parts at its end that the model takes only there."""
    system_instruction = "" if options.has_system_instruction else request.system_instruction
    prompt = "\n\n".join(filter(None, (request.prompt, system_instruction)))
    if options.answer_mode == "schema":
        return prompt
    return fill_prompt_template("Answer_Schema", question=prompt, schema=dump_compact_json(request.answer_schema))


async def send_with_all_options(provider: Provider, request: Request) -> Reply:
    """Send a request; repeat it without options that the server refuses."""
    while True:
        try:
            return await provider.send(request)
        except ModelCallError as error:
            if error.code != _OPTION_CODE:
                raise
