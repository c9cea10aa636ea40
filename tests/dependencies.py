"""What the list of known holes says of the locked packages, for `make check`; a list that cannot be had is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path


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


if __name__ == "__main__":
    lines, status = summarise_audit(Path(sys.argv[1]))
    print("\n".join(lines))
    sys.exit(status)
