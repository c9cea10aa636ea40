"""Why a language model gave no whole reply: one table for all providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evalkit.llm.model import CallFailed, Usage


class _Kind(NamedTuple):
    what: str
    """Follows the provider's name."""
    remedy: str
    may_pass: bool = False


_LATER = "It is tried again; if that does not help, run the same command later."
_NETWORK = "Check the network, the proxy (HTTPS_PROXY), the certificates of this computer and the address that is set."
_PERSON = "A person must look at the document; another model may answer."
_REPORT = "Take another model, or check the account (credit, size limits); else report this."
_QUOTA = "Ask less at once (calls_in_flight), or raise the quota of the account or project."
_KINDS = {
    "LLM-KEY":         _Kind("does not accept the key", "Check the key, and that its account may use this model."),
    "LLM-MODEL":       _Kind("is not known to its server", "Check the model's name, its location and the base URL."),
    "LLM-REQUEST":     _Kind("does not take the request", _REPORT),
    "LLM-RATE":        _Kind("is out of quota", _QUOTA, may_pass=True),
    "LLM-SERVER":      _Kind("has a fault or is overloaded", _LATER, may_pass=True),
    "LLM-UNREACHABLE": _Kind("cannot be reached, or the connection broke", _NETWORK, may_pass=True),
    "LLM-TIMEOUT":     _Kind("gave no answer in time", _LATER, may_pass=True),
    "LLM-MALFORMED":   _Kind("sent back what is no answer of its protocol", "Check the base URL.", may_pass=True),
    "LLM-EMPTY":       _Kind("sent back an empty answer", _LATER, may_pass=True),
    "LLM-TRUNCATED":   _Kind("was cut off at its longest answer", _PERSON),
    "LLM-REFUSED":     _Kind("declined to answer", _PERSON),
    "LLM-UNKNOWN":     _Kind("stopped or failed for a reason that is not known", _LATER, may_pass=True),
}  # fmt: skip
_STATUS = {401: "LLM-KEY", 403: "LLM-KEY", 404: "LLM-MODEL", 408: "LLM-TIMEOUT", 429: "LLM-RATE"}
_STATUS_CLASS = {4: "LLM-REQUEST", 5: "LLM-SERVER"}


def code_of(status: int) -> str:
    """The code of an HTTP status that is not 200.

    >>> [code_of(status) for status in (401, 402, 429, 503, 302)]
    ['LLM-KEY', 'LLM-REQUEST', 'LLM-RATE', 'LLM-SERVER', 'LLM-MALFORMED']
    """
    return _STATUS.get(status) or _STATUS_CLASS.get(status // 100, "LLM-MALFORMED")


def failed(
    name: str,
    code: str,
    *,
    note: str = "",
    remedies: Mapping[str, str] | None = None,
    final: bool = False,
    retry_after: float | None = None,
    usage: Usage | None = None,
) -> CallFailed:
    """The failure of the model ``name``; ``note`` stands in brackets and quotes neither prompt nor reply.

    ``remedies`` are a provider's own, by code; ``final``: this one does not pass, though its kind may.
    """
    kind = _KINDS[code]
    may_pass = kind.may_pass and not final
    said = f"{name} {kind.what}"
    return CallFailed(
        f"{said} ({note})" if note else said,
        code=code,
        remedy=(remedies or {}).get(code, kind.remedy),
        may_pass=may_pass,
        retry_after=retry_after if may_pass else None,
        usage=usage,
    )
