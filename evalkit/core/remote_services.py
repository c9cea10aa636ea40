"""Helpers for remote services: retry delays, private hosts, loggers, HTTP clients."""

from __future__ import annotations

import ipaddress
import logging
import math
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

_PRIVATE_NETWORKS = [ipaddress.ip_network(net) for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")]


def parse_retry_after(text: str) -> float | None:
    """Parse ``Retry-After`` or Google's ``retryDelay`` to seconds; None if malformed.

    The text is ``12``, ``1.5s``, or an HTTP date.

    >>> parse_retry_after("12"), parse_retry_after("1.5s"), parse_retry_after("-5"), parse_retry_after("soon")
    (12.0, 1.5, 0.0, None)
    >>> parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT")
    0.0
    """
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):  # not a date, a date without a time zone, or a year out of range
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def is_local_host(host: str, *, allow_private_network: bool) -> bool:
    """Return True if a host is this computer or, if allowed, in a private network.

    >>> [is_local_host(host, allow_private_network=True) for host in ("localhost", "::1", "10.1.2.3", "8.8.8.8", "ollama.example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a host name: DNS decides which address it means
        return False
    return address.is_loopback or (allow_private_network and any(address in network for network in _PRIVATE_NETWORKS))


def mute_loggers(package_names: Collection[str]) -> None:
    """Disable the loggers of these packages and of their submodules for good.

    Some libraries log requests and answers, but document text and keys must not be logged.
    """
    for logger_name in (*package_names, *logging.getLogger().manager.loggerDict):
        if any(f"{logger_name}.".startswith(f"{library}.") for library in package_names):
            logger = logging.getLogger(logger_name)
            logger.disabled = True
            # Loggers of submodules that are created later inherit this level.
            logger.setLevel(logging.CRITICAL + 1)


def create_no_redirect_http_client(
    destination_url: str, *, on_response: Callable[[Response], Awaitable[None]] | None = None
) -> AsyncClient:
    """Create an HTTP client for ``destination_url`` that never follows redirects.

    ``on_response`` is called with every response.
    """
    from httpx2 import AsyncClient, Limits

    return AsyncClient(
        # The caller limits concurrency; a call that waits for a connection here would time out.
        limits=Limits(max_connections=None, max_keepalive_connections=None),
        # A redirect could send the document to any host.
        follow_redirects=False,
        event_hooks={"response": [on_response] if on_response else []},
        # Proxies of the environment are used only with TLS: without TLS they could read the documents.
        trust_env=destination_url.startswith("https:"),
    )
