"""Which of the packets with drawn identities are named rightly: ``python -m benchmarks.identity PACKETS OUTPUT``.

``PACKETS`` is what ``benchmarks.identity_packets.build`` wrote, ``OUTPUT`` the output folder of a run over some of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path


def is_named_rightly(expected: str, codes: set[str]) -> bool:
    """Whether V2 says what a packet's truth expects: nothing, any of its codes, or a foreign page."""
    if expected == "mixed":
        return "V2-PATIENT-MIXED" in codes
    return bool(codes) is (expected == "several")


def main(packets: Path, output: Path) -> None:
    """Print for each kind of packet, text and fax, how many of how many are named rightly."""
    packet_counts: Counter[tuple[str, bool]] = Counter()
    right_counts: Counter[tuple[str, bool]] = Counter()
    for line in (packets / "truth.jsonl").read_text("utf-8").splitlines():
        truth = json.loads(line)
        result_file = output / "results" / f"{Path(truth['file']).stem}.json"
        if not result_file.exists():
            continue
        issues = json.loads(result_file.read_text("utf-8")).get("issues", [])
        codes = {issue["code"] for issue in issues if issue["code"].startswith("V2-PATIENT-")}
        key = truth["kind"], truth["fax"]
        packet_counts[key] += 1
        right_counts[key] += is_named_rightly(truth["expected"], codes)
    for (kind, is_fax), count in sorted(packet_counts.items()):
        print(f"{kind} {'fax' if is_fax else 'text'}: {right_counts[kind, is_fax]} of {count}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
