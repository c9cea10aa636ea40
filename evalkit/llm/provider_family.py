"""Description of a family of language models: access, keys, prices.

The modules in ``providers/`` define :class:`ProviderFamily` objects. The errors of failed calls have one table of texts and
remedies for all families.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from evalkit.core.remote_services import is_local_host
from evalkit.errors import UsageError
from evalkit.llm.model import ModelCallError, Provider, Usage
from evalkit.llm.model_families import ModelFacts, ModelProvider

#: Function that creates the provider of a model from its name, the base URL (None: the default), the environment
#: variables, and the facts about the model.
CreateProvider: TypeAlias = Callable[[str, str | None, Mapping[str, str], ModelFacts], Provider]


@dataclass(frozen=True)
class ProviderFamily:
    """A family of language models with the same access, such as ``gemini``."""

    create_provider: CreateProvider
    """Creates the provider of a model; raises UsageError MODEL-KEY, MODEL-ADDRESS or MODEL-EXTRA."""
    environment_variables: tuple[str, ...]
    """Environment variables with keys, projects and addresses; the provider gets only these."""
    description: ModelProvider
    """The provider's row of ``model_families.toml``, with its prices."""


def read_credential(environment: Mapping[str, str], variable_name: str) -> str:
    """Return a key or project name from the environment; empty if it is not set.

    UsageError MODEL-KEY if it contains characters that do not occur in API keys.
    """
    credential = environment.get(variable_name, "").strip()
    if not (credential.isascii() and credential.isprintable()):
        raise UsageError(
            f"{variable_name} contains characters that do not occur in API keys",
            code="MODEL-KEY",
            remedy="Copy the API key into this environment variable again.",
        )
    return credential


def create_key_error(reason: str, variable_names: str) -> UsageError:
    """Create the error for missing credentials; the remedy names the variables."""
    return UsageError(reason, code="MODEL-KEY", remedy=f"Set {variable_names}.")


def require_confidential_base_url(base_url: str, *, allow_private_network: bool) -> str:
    """Return a base URL if data sent to it is encrypted or stays in the network.

    UsageError MODEL-ADDRESS if the URL is invalid, contains credentials, or uses plain http to a server other than this
    computer. ``allow_private_network``: also allow plain http to an IP address in a private network.
    """
    try:
        url_parts = urlsplit(base_url)
        host, _ = url_parts.hostname, url_parts.port
    except ValueError:
        host = None
    if (
        not host
        or url_parts.scheme not in {"http", "https"}
        or url_parts.username
        or url_parts.password
        or url_parts.query
    ):
        # The URL is not quoted, because it may contain a password.
        raise UsageError(
            "the base URL of the model is not valid, or contains a user name, password or query",
            code="MODEL-ADDRESS",
            remedy="Write the base URL as https://HOST/PATH; put keys into environment variables.",
        )
    if url_parts.scheme == "http" and not is_local_host(host, allow_private_network=allow_private_network):
        allowed_hosts = (
            "a server on this computer, or in a private network by its IP address"
            if allow_private_network
            else "a server on this computer"
        )
        raise UsageError(
            f"documents would be sent to {host} without encryption",
            code="MODEL-ADDRESS",
            remedy=f"Use https, or {allowed_hosts}.",
        )
    return base_url


class _FailureKind(NamedTuple):
    description: str
    """The predicate after the model's name in the message."""
    remedy: str
    is_transient: bool = False


_RETRY_LATER_REMEDY = "The call is retried automatically; if this error remains, run the same command later."
_NETWORK_REMEDY = (
    "Check the network, the proxy (HTTPS_PROXY), the certificates of this computer and the model's base URL."
)
_PERSON_REMEDY = "Let a person decide about this document, or choose another model."
_REPORT_REMEDY = (
    "Choose another model, or check the account's credit and size limits. If they are fine, report this error."
)
_OPTION_REMEDY = "The call is repeated without that option."
_CONTEXT_REMEDY = (
    "Choose a model with a larger context, lower window_characters, or set context_tokens to the context that your "
    "server is started with (Ollama: OLLAMA_CONTEXT_LENGTH)."
)
_QUOTA_REMEDY = "Lower calls_in_flight in the settings, or raise the quota of the account or project."
_KIND_BY_CODE = {
    "LLM-KEY":         _FailureKind("does not accept the key", "Check the key, and that its account may use this model."),
    "LLM-MODEL":       _FailureKind("is unknown to its server", "Check the model's name, its location and the base URL."),
    "LLM-REQUEST":     _FailureKind("rejects the request", _REPORT_REMEDY),
    "LLM-OPTION":      _FailureKind("does not take an option of the request", _OPTION_REMEDY, is_transient=True),
    "LLM-CONTEXT":     _FailureKind("cannot read so long a prompt at once", _CONTEXT_REMEDY),
    "LLM-RATE":        _FailureKind("is out of quota", _QUOTA_REMEDY, is_transient=True),
    "LLM-SERVER":      _FailureKind("has a server error or is overloaded", _RETRY_LATER_REMEDY, is_transient=True),
    "LLM-UNREACHABLE": _FailureKind("cannot be reached, or the connection broke", _NETWORK_REMEDY, is_transient=True),
    "LLM-TIMEOUT":     _FailureKind("did not answer in time", _RETRY_LATER_REMEDY, is_transient=True),
    "LLM-MALFORMED":   _FailureKind("sent a response that its protocol does not allow", "Check the base URL.", is_transient=True),
    "LLM-EMPTY":       _FailureKind("sent an empty answer", _RETRY_LATER_REMEDY, is_transient=True),
    "LLM-TRUNCATED":   _FailureKind("reached its output limit before the answer was complete", _PERSON_REMEDY),
    "LLM-REFUSED":     _FailureKind("declined to answer", _PERSON_REMEDY),
    "LLM-UNKNOWN":     _FailureKind("stopped or failed for an unknown reason", _RETRY_LATER_REMEDY, is_transient=True),
}  # fmt: skip
_CODE_BY_STATUS = {401: "LLM-KEY", 403: "LLM-KEY", 404: "LLM-MODEL", 408: "LLM-TIMEOUT", 429: "LLM-RATE"}
_CODE_BY_STATUS_CLASS = {4: "LLM-REQUEST", 5: "LLM-SERVER"}


def get_failure_code_for_http_status(status: int) -> str:
    """Return the failure code of an HTTP status other than 200.

    >>> [get_failure_code_for_http_status(status) for status in (401, 402, 429, 503, 302)]
    ['LLM-KEY', 'LLM-REQUEST', 'LLM-RATE', 'LLM-SERVER', 'LLM-MALFORMED']
    """
    return _CODE_BY_STATUS.get(status) or _CODE_BY_STATUS_CLASS.get(status // 100, "LLM-MALFORMED")


def create_call_error(
    model_name: str,
    code: str,
    *,
    note: str = "",
    remedy_by_code: Mapping[str, str] | None = None,
    is_final: bool = False,
    retry_after_seconds: float | None = None,
    usage: Usage | None = None,
) -> ModelCallError:
    """Create the error of a failed call from its failure code.

    ``note``: added to the message in brackets; must quote neither prompt nor reply. ``remedy_by_code``: remedies that
    replace the general remedies. ``is_final``: True if a retry is useless, even if the code is usually transient.
    """
    failure_kind = _KIND_BY_CODE[code]
    is_transient = failure_kind.is_transient and not is_final
    message = f"{model_name} {failure_kind.description}"
    return ModelCallError(
        f"{message} ({note})" if note else message,
        code=code,
        remedy=(remedy_by_code or {}).get(code, failure_kind.remedy),
        is_transient=is_transient,
        retry_after=retry_after_seconds if is_transient else None,
        usage=usage,
    )
