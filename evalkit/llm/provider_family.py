"""Describe families of language models.

A file in ``providers/`` holds one :class:`ProviderFamily`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from evalkit.core.remote_services import is_local_host
from evalkit.errors import UsageError
from evalkit.llm.model import Provider

#: Create the provider of a model from its name, the base URL that is set, and the environment's credentials.
CreateProvider: TypeAlias = Callable[[str, str | None, Mapping[str, str]], Provider]


class ModelCapabilities(NamedTuple):
    """What the provider says that its models can do."""

    name_pattern: str
    """A regular expression for the beginning of the models' names."""
    has_vision: bool
    """They accept pictures."""
    context_tokens: int | None
    """Tokens that they read at once; None if the server decides."""


@dataclass(frozen=True)
class ProviderFamily:
    """A family of language models that is asked in one way."""

    create_provider: CreateProvider
    """UsageError MODEL-KEY, MODEL-ADDRESS, MODEL-EXTRA."""
    environment_variables: tuple[str, ...]
    """Keys, projects and addresses, by the provider's own names. It sees no others."""
    capabilities: tuple[ModelCapabilities, ...]
    """The first row that fits a model's name counts; a name that no row fits is unknown."""
    price_list: str | None = None
    """The provider's name in genai-prices; None: its prices are unknown."""
    is_free: bool = False
    """Its models run on a site's own hardware and cost nothing."""
    is_self_hostable: bool = False
    """Sites run such servers themselves, often without a key, and without TLS in a private network."""


def read_credential(environment: Mapping[str, str], variable_name: str) -> str:
    """Read a key or project name; empty if it is not set. UsageError MODEL-KEY."""
    credential = environment.get(variable_name, "").strip()
    if not (credential.isascii() and credential.isprintable()):
        raise UsageError(
            f"{variable_name} contains characters that no key has", code="MODEL-KEY", remedy="Copy the key once more."
        )
    return credential


def create_key_error(reason: str, variable_names: str) -> UsageError:
    """Create the error of a key that is missing."""
    return UsageError(reason, code="MODEL-KEY", remedy=f"Set {variable_names}.")


def require_confidential_base_url(base_url: str, *, allow_private_network: bool) -> str:
    """Return a base URL if nobody on the way can read what is sent to it.

    UsageError MODEL-ADDRESS.
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
        # Not quoted: it may hold a password.
        raise UsageError(
            "the base URL of the model is not valid, or contains a user name, password or query",
            code="MODEL-ADDRESS",
            remedy="Write it as https://HOST/PATH; keys belong in the environment.",
        )
    if url_parts.scheme == "http" and not is_local_host(host, allow_private_network=allow_private_network):
        allowed_hosts = (
            "this computer or, by its number, one in a private network" if allow_private_network else "this computer"
        )
        raise UsageError(
            f"documents would be sent to {host} without encryption",
            code="MODEL-ADDRESS",
            remedy=f"Use https, or {allowed_hosts}.",
        )
    return base_url
