"""Check the locked packages' known holes and the installed ones' licences, for `make check`."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent


def summarise_audit(report: Path) -> tuple[list[str], int]:
    """Lines for a person and an exit status, from pip-audit's JSON; a package without an answer is never called sound."""
    try:
        packages = json.loads(report.read_text("utf-8"))["dependencies"]
    except (OSError, ValueError, LookupError, TypeError):
        return ["dependencies: not looked up, because the list of known holes cannot be had here"], 0
    holes = [(one["name"], one["version"], hole) for one in packages for hole in one.get("vulns", ())]
    unknown = [one["name"] for one in packages if "skip_reason" in one]
    lines = [
        f"{name} {version}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version yet'}"
        for name, version, hole in holes
    ]
    looked = len(packages) - len(unknown)
    lines.append(f"dependencies: {looked} looked up, {len(unknown)} could not be; {len(holes)} known holes")
    return lines, 1 if holes else 0


def summarise_licenses(licenses: Iterable[tuple[str, str]], rules: dict[str, Any]) -> tuple[list[str], int]:
    """Return lines for a person and an exit status, for packages and their licence texts.

    ``rules`` is the content of licenses.toml.
    """
    license_by_name = dict(licenses)
    exceptions = {
        name: exception
        for name, exception in rules["exceptions"].items()
        if license_by_name.get(name) == exception["license"]
    }
    refused = {
        name: text
        for name, text in license_by_name.items()
        if name not in exceptions and not is_allowed(text, rules["allowed"])
    }
    lines = [
        f"{name}: {exception['license'] or 'no licence is named'}: {exception['reason']}"
        for name, exception in exceptions.items()
    ]
    lines += [
        f"{name}: {text or 'no licence is named'}: not in tests/licenses.toml: remove the package, or enter its licence"
        for name, text in refused.items()
    ]
    lines.append(
        f"licences: {len(license_by_name)} packages; {len(exceptions)} exceptions; {len(refused)} unknown or forbidden"
    )
    return lines, 1 if refused else 0


def is_allowed(expression: str, allowed: Iterable[str]) -> bool:
    """Return True if an SPDX expression can be followed with allowed licences alone.

    Of an expression with brackets every licence must be allowed.

    >>> is_allowed("MIT OR GPL-3.0-only", ["MIT"]), is_allowed("MIT AND GPL-3.0-only", ["MIT"]), is_allowed("", ["MIT"])
    (True, False, False)
    """
    text = re.sub(r"^\(([^()]*)\)$", r"\1", expression)
    alternatives = [text] if "(" in text else text.split(" OR ")
    return any(
        {part for part in re.split(r" AND | OR |[()]", alternative) if part.strip()} <= {*allowed}
        for alternative in alternatives
        if alternative
    )


def read_installed_licenses(
    spdx_by_text: dict[str, str], installed: Iterable[Distribution] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield each installed package's normalised name and licence as an SPDX expression.

    Its expression counts, else its classifiers, else the first line of its field License; of several all must be followed.
    """
    for package in distributions() if installed is None else installed:
        metadata = package.metadata
        classifiers = [
            value.split(" :: ")[-1] for value in metadata.get_all("Classifier") or () if "License ::" in value
        ]
        texts = [value for value in classifiers if value not in ("OSI Approved", "DFSG approved")]
        texts = texts or [line for line in (metadata.get("License") or "").splitlines()[:1] if line != "UNKNOWN"]
        expression = metadata.get("License-Expression") or " AND ".join(spdx_by_text.get(text, text) for text in texts)
        yield re.sub(r"[-_.]+", "-", metadata["Name"]).lower(), expression


def read_npm_licenses(lock: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and licence of each package in npm's lock file."""
    for name, package in json.loads(lock.read_text("utf-8"))["packages"].items():
        if name:  # the first entry is the project itself
            yield f"npm:{name.rpartition('node_modules/')[2]}", package.get("license", "")


if __name__ == "__main__":
    license_rules = tomllib.loads((TESTS / "licenses.toml").read_text("utf-8"))
    all_licenses = [
        *read_installed_licenses(license_rules["spdx"]),
        *(entry for lock in sorted(TESTS.rglob("package-lock.json")) for entry in read_npm_licenses(lock)),
    ]
    summaries = [summarise_audit(Path(sys.argv[1])), summarise_licenses(all_licenses, license_rules)]
    print("\n".join(line for lines, _ in summaries for line in lines))
    sys.exit(max(status for _, status in summaries))
