"""Command that learns the built-in model's ``weights.json`` from labelled texts.

    python -m evalkit.classification.training PATH… --to weights.json

A PATH is a file of JSON Lines or TOML with a labelled text in each row, or a folder with one sub-folder of .txt files for
each type. Records of one patient or one source form a ``group``; a text is always judged by weights learned without its
group. Only terms that several groups share are kept, letters only and no names, so that the file has no patient's data.
The weights of boundaries are learned by ``tests/benchmarks/join_weights.py``.
"""

import argparse
from pathlib import Path

import numpy as np

from evalkit.classification.offline.model_weights import load_embedded_weights, parse_weights_json
from evalkit.classification.training.fitting import (
    compute_probabilities,
    format_weights_json,
    train_model_with_held_out_sums,
)
from evalkit.classification.training.labelled_texts import read_labelled_texts
from evalkit.errors import UsageError


def main() -> None:
    """Learn type weights from labelled texts; keep the shipped weights of boundaries."""
    parser = argparse.ArgumentParser(prog="python -m evalkit.classification.training", description=main.__doc__)
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="JSON Lines or TOML file with labelled texts, or folder with a subfolder for each type",
    )
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="file to write, such as weights.json")
    arguments = parser.parse_args()
    shipped_weights = load_embedded_weights()
    try:
        examples = read_labelled_texts(arguments.paths)
    except UsageError as error:
        parser.error(str(error))
    data, type_sums, training_set = train_model_with_held_out_sums(
        examples, {**shipped_weights.transition_weights, "types": shipped_weights.page_type_influence}
    )
    parse_weights_json(data)
    arguments.to.write_text(format_weights_json(data), "utf-8")
    is_whole_text = np.array([variant.name == "whole" for variant in training_set.variants])
    probability_rows = compute_probabilities(type_sums, data["temperature"])[is_whole_text]
    is_right = probability_rows.argmax(axis=1) == training_set.true_types[is_whole_text]
    is_decided = probability_rows.max(axis=1) >= data["least"]
    print(  # noqa: T201 - what the command is asked for
        f"{arguments.to}: {len(data['terms'])} terms, version {data['version']}. Of {len(is_right)} texts, judged without their "
        f"groups: {int((is_right & is_decided).sum())} right, {int((~is_right & is_decided).sum())} wrong, {int((~is_decided).sum())} undecided"
    )


if __name__ == "__main__":
    main()
