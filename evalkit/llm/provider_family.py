"""Description of a family of language models: access, keys, capabilities, prices.

Each file in ``providers/`` defines one :class:`ProviderFamily`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from evalkit.core.remote_services import is_local_host
from evalkit.errors import UsageError
from evalkit.llm.model import Provider

#: Function that creates the provider of a model from its name, the base URL (None: the default) and the environment
#: variables.
CreateProvider: TypeAlias = Callable[[str, str | None, Mapping[str, str]], Provider]


class ModelCapabilities(NamedTuple):
    """Capabilities that the provider states for its models."""

    name_pattern: str
    """A regular expression that matches the beginning of the models' names."""
    has_vision: bool
    """True if the models accept pictures."""
    context_tokens: int | None
    """Tokens that the models can read in one call; None if the server decides."""


@dataclass(frozen=True)
class ProviderFamily:
    """A family of language models with the same access, such as ``gemini``."""

    create_provider: CreateProvider
    """Creates the provider of a model; raises UsageError MODEL-KEY, MODEL-ADDRESS or MODEL-EXTRA."""
    environment_variables: tuple[str, ...]
    """Environment variables with keys, projects and addresses; the provider gets only these."""
    capabilities: tuple[ModelCapabilities, ...]
    """Rows of capabilities; the first row whose pattern fits a model's name counts."""
    price_list: str | None = None
    """The provider's name in genai-prices; None: the prices are unknown."""
    is_free: bool = False
    """True if the models run on the site's own hardware and cost nothing."""
    is_self_hostable: bool = False
    """True if sites run such servers themselves: plain http is then allowed in a private network."""


def read_credential(environment: Mapping[str, str], variable_name: str) -> str:
    """Return a key or project name from the environment; empty if it is not set.

    UsageError MODEL-KEY if it contains characters that no key has.
    """
    credential = environment.get(variable_name, "").strip()
    if not (credential.isascii() and credential.isprintable()):
        raise UsageError(
            f"{variable_name} contains characters that no key has",
            code="MODEL-KEY",
            remedy="Copy the key into the variable again.",
        )
    return credential


def create_key_error(reason: str, variable_names: str) -> UsageError:
    """Create the error that credentials are missing; the remedy names the variables."""
    return UsageError(reason, code="MODEL-KEY", remedy=f"Set {variable_names}.")


def require_confidential_base_url(base_url: str, *, allow_private_network: bool) -> str:
    """Return a base URL unchanged if data sent to it cannot be read on the way.

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
            remedy="Write it as https://HOST/PATH; keys belong in the environment.",
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
