"""Errors of failed calls to language models: one table of texts and remedies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evalkit.llm.model import ModelCallError, Usage


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
_QUOTA_REMEDY = "Lower calls_in_flight in the settings, or raise the quota of the account or project."
_KIND_BY_CODE = {
    "LLM-KEY":         _FailureKind("does not accept the key", "Check the key, and that its account may use this model."),
    "LLM-MODEL":       _FailureKind("is unknown to its server", "Check the model's name, its location and the base URL."),
    "LLM-REQUEST":     _FailureKind("rejects the request", _REPORT_REMEDY),
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
