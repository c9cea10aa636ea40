"""Strata: groups of documents similar enough to share one error rate.

Documents of one type, from one source folder, read by one reader and answered by the same model and versions. A new
model, prompt or table is a new stratum, so that no proof about the old one is carried over.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from evalkit.store import hash_canonical_json

_VERSION_DIGITS = 8
#: Text between the parts of a stratum's name.
STRATUM_SEPARATOR = " | "


class StratumKey(NamedTuple):
    """The properties that all documents of a stratum share."""

    document_type: str
    """Main type of the file; ``cannot tell`` if the program could not."""
    source: str
    """Name of the folder that the files were read from; empty if unknown."""
    reader: str
    model: str
    versions: str
    """First hex digits of the hash of all versions: program, prompts, tables, weights."""

    @property
    def name(self) -> str:
        """Name of the stratum in the log and in reports.

        >>> StratumKey("Other", "inbox", "local", "embedded", "0a1b2c3d").name
        'Other | inbox | local | embedded | 0a1b2c3d'
        """
        return self._join(*self)

    @property
    def drift_name(self) -> str:
        """Name of the stratum without reader, model and versions.

        Drift compares the documents of a new reader, model or version with those of the old one.
        """
        return self._join(self.document_type, self.source)

    @staticmethod
    def _join(*parts: str) -> str:
        return STRATUM_SEPARATOR.join(part or "unknown" for part in parts)


def describe_documents(stratum_name: str) -> str:
    """Describe a stratum in words, without reader, model and versions.

    >>> describe_documents("Other | inbox | local | embedded | 0a1b2c3d"), describe_documents("")
    ('Other from inbox', 'all documents')
    """
    return " from ".join(stratum_name.split(STRATUM_SEPARATOR)[:2]) or "all documents"


def build_stratum_key(
    *, document_type: str | None, source: str, reader: str, model: str, versions: Mapping[str, Any]
) -> StratumKey:
    """Build the stratum key of a document from its stored result."""
    version = _hash_versions(json.dumps(dict(versions)))
    return StratumKey(document_type or "cannot tell", source, reader, model, version)


@lru_cache(maxsize=64)  # most documents of a run share their versions
def _hash_versions(versions_json: str) -> str:
    return hash_canonical_json(json.loads(versions_json))[:_VERSION_DIGITS]
