"""``python -m evalkit.samples SAMPLES OUTPUT``: were the demo's documents decided as they should be?"""

import json
import sys
from pathlib import Path

from evalkit.samples.check import differences


def main(folder: Path, output: Path) -> int:
    """Print one line per difference, or that there is none; the number to exit with."""
    wrong = differences(folder, output)
    total = len(json.loads((folder / "expected.json").read_text("utf-8"))["documents"])
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{total - len(wrong)} of {total} documents decided as {folder / 'expected.json'} says\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
