"""Measure how damaged shapes of a model's answer are read or refused.

    cd tests && python -m benchmarks.answer_shapes --half open|sealed [--function MODULE:NAME] [--wrong]

Each shape of ``first_contact/answer_shapes/{half}.py`` writes each right answer as a text. The function gets the text, and
the JSON schema too if it has a parameter whose name contains "schema"; it returns the answer (or a tuple whose first
field is the answer) or raises ValueError or EvalkitError. A lossless shape is right if the answer is the same, 1.0 and 1
being the same and 1 and true different; a shape with a name is right if the error's message names what is wrong. Shapes
that only the schema can judge are counted apart: a function without the schema leaves their answers outside the schema,
for a later check to refuse.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jsonschema  # type: ignore[import-untyped]
from benchmarks.first_contact.answer_shapes.making import RIGHT_ANSWERS, AnswerShape, Json, RightAnswer
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest

from evalkit.errors import EvalkitError

Half = Literal["open", "sealed"]
Outcome = Literal[
    "same answer", "another answer", "outside the schema", "refused by name", "refused without name", "crashed"
]
DEFAULT_FUNCTION = "evalkit.llm.answer_normalisation:normalise_answer"


@dataclass(frozen=True)
class Trial:
    """What the function makes of an answer in a shape."""

    shape: AnswerShape
    answer_name: str
    outcome: Outcome
    message: str
    """The error's message, or the first fault that the schema has found in the answer."""

    @property
    def is_accepted_wrongly(self) -> bool:
        """Return whether an answer was read, by the schema, that was not sent."""
        return self.outcome == "another answer" or (self.outcome, self.shape.verdict) == ("same answer", "named")

    @property
    def is_right(self) -> bool:
        """Return whether the outcome is the one that the shape asks for."""
        return self.outcome == ("same answer" if self.shape.verdict == "lossless" else "refused by name")


def read_shapes(half: Half) -> Sequence[AnswerShape]:
    """Return the shapes of a half."""
    module = importlib.import_module(f"benchmarks.first_contact.answer_shapes.{half}")
    shapes: Sequence[AnswerShape] = module.SHAPES
    return shapes


def load_parser(name: str) -> Callable[[str, Json], Any]:
    """Import ``module:name`` and return it as a function of text and schema."""
    module_name, _, function_name = name.partition(":")
    function = getattr(importlib.import_module(module_name), function_name)
    schema_names = [parameter for parameter in inspect.signature(function).parameters if "schema" in parameter]

    def parse(text: str, schema: Json) -> Any:
        parsed = function(text, **dict.fromkeys(schema_names[:1], schema))
        return parsed[0] if isinstance(parsed, tuple) else parsed

    return parse


def is_same(left: Any, right: Any) -> bool:
    """Return whether two JSON trees are equal; 1.0 equals 1, but true does not."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def try_shape(shape: AnswerShape, right: RightAnswer, parse: Callable[[str, Json], Any]) -> Trial:
    """Write an answer in a shape and parse the text."""
    text = shape.write(right.answer, right.schema)
    try:
        parsed = parse(text, right.schema)
    except (ValueError, EvalkitError) as error:
        is_named = bool(shape.reason) and re.search(shape.reason, str(error), re.IGNORECASE)
        return Trial(shape, right.name, "refused by name" if is_named else "refused without name", str(error))
    except Exception as error:  # noqa: BLE001 - a crash is an outcome that is counted
        return Trial(shape, right.name, "crashed", repr(error))
    if is_same(parsed, right.answer):
        return Trial(shape, right.name, "same answer", "")
    fault = next(jsonschema.Draft202012Validator(right.schema).iter_errors(parsed), None)
    if fault is None:
        return Trial(shape, right.name, "another answer", "")
    return Trial(shape, right.name, "outside the schema", f"{fault.json_path}: {fault.validator}")


def format_limits(right_count: int, total: int) -> str:
    """Return the Wilson limits (95 %) of a share as a cell of a table."""
    if not total:
        return ""
    interval = binomtest(right_count, total).proportion_ci(method="wilson")
    return f"{interval.low:.0%} to {interval.high:.0%}"


def print_trials(trials: Sequence[Trial]) -> None:
    """Print how many shapes are right with every answer, by verdict and level."""
    table = Table("shapes", "right", "Wilson, 95 %", "trials right", "outside schema", "wrongly accepted")
    for verdict in ("lossless", "named"):
        for level in ("text", "schema"):
            group = [trial for trial in trials if (trial.shape.verdict, trial.shape.level) == (verdict, level)]
            names = {trial.shape.name for trial in group}
            right_trial_count = sum(trial.is_right for trial in group)
            wrong_names = {trial.shape.name for trial in group if not trial.is_right}
            table.add_row(
                f"{verdict}, {level}",
                f"{len(names - wrong_names)} of {len(names)}",
                format_limits(len(names - wrong_names), len(names)),
                f"{right_trial_count} of {len(group)}",
                str(sum(trial.outcome == "outside the schema" for trial in group)),
                str(sum(trial.is_accepted_wrongly for trial in group)),
            )
    Console().print(table)


def main() -> None:
    """Measure a half and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--half", choices=get_args(Half), default="open")
    parser.add_argument("--function", default=DEFAULT_FUNCTION, help="parser as MODULE:NAME")
    parser.add_argument("--wrong", action="store_true", help="list the trials that are not right")
    options = parser.parse_args()
    parse = load_parser(options.function)
    trials = [try_shape(shape, right, parse) for shape in read_shapes(options.half) for right in RIGHT_ANSWERS]
    print_trials(trials)
    for trial in trials:
        if options.wrong and not trial.is_right:
            print(f"{trial.shape.verdict}: {trial.shape.name}, {trial.answer_name}: {trial.outcome} ({trial.message})")


if __name__ == "__main__":
    main()
