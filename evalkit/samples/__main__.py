"""``python -m evalkit.samples SAMPLES OUTPUT``: check a run of the demo."""

import json
import sys
from pathlib import Path

from evalkit.samples.expected_decisions import describe_wrong_decisions


def main(samples_folder: Path, output_path: Path) -> int:
    """Print the documents decided otherwise than expected, and their number.

    Return the exit status: 1 if any decision differs, else 0.
    """
    wrong_decisions = describe_wrong_decisions(samples_folder, output_path)
    total = len(json.loads((samples_folder / "expected.json").read_text("utf-8"))["documents"])
    sys.stdout.write("".join(f"{line}\n" for line in wrong_decisions))
    sys.stdout.write(
        f"{total - len(wrong_decisions)} of {total} documents decided as {samples_folder / 'expected.json'} says\n"
    )
    return 1 if wrong_decisions else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
