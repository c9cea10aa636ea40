"""What de-identified exports miss and mask needlessly: ``python -m benchmarks.deidentifying`` (from tests/).

Invented identifiers are planted into invented sentences, 200 of each kind; a table says how many of them are left.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from evalkit.evaluation.deidentify import (
    MEDICAL_TERM_PATTERNS,
    find_labelled_identifiers,
    find_mask_spans,
    mask_text,
)
from evalkit.evaluation.intervals import estimate_proportion

COUNT_PER_KIND, SEED = 200, 0


@cache
def load_planted() -> dict[str, Any]:
    """Load the identifiers, the sentences and the words that fill both."""
    return tomllib.loads(Path(__file__).with_name("planted.toml").read_text("utf-8"))


def measure_missed_planted_identifiers(seed: int, count_per_kind: int) -> pd.DataFrame:
    """Insert invented identifiers into sentences and count those not masked.

    Columns: ``kind``; ``planted`` (``count_per_kind``); ``missed``: identifiers of which at least one word or number is
    left after masking; ``share``: missed / planted; ``high``, the upper end of the share's exact 95 % interval (Clopper
    and Pearson, 1934). Names and sentences come from ``planted.toml``. The same seed gives the same table.
    """
    rows = []
    for kind in load_planted()["sentences"]:
        rng = random.Random(f"{seed}:{kind}")
        missed_count = sum(_is_any_word_left_after_masking(*_create_example(kind, rng)) for _ in range(count_per_kind))
        rows.append(
            (
                kind,
                count_per_kind,
                missed_count,
                missed_count / count_per_kind,
                estimate_proportion(missed_count, count_per_kind).high,
            )
        )
    return pd.DataFrame(rows, columns=["kind", "planted", "missed", "share", "high"])


def _create_example(kind: str, rng: random.Random) -> tuple[list[str], str]:
    """Create page texts, and the planted identifier as written on the last page."""
    planted = load_planted()
    identifier = _fill_template(rng.choice(planted["values"][kind]), planted["words"], rng)
    sentence = rng.choice(planted["sentences"][kind])
    *_, last_part = identifier.split(" ", 1)
    substitutions = {"value": identifier, "other": last_part, "OTHER": last_part.upper()}
    pages = [page.format(**substitutions) for page in sentence.split("|")]
    return pages, identifier if len(pages) == 1 else substitutions["OTHER"] if "{OTHER}" in sentence else last_part


def _fill_template(template: str, words: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    chosen_words = {name: rng.choice(values) for name, values in words.items()}
    year, month, day = rng.randint(1930, 2025), rng.randint(1, 12), rng.randint(1, 28)
    ascii_names = {name: re.sub(r"[^a-z]", "", chosen_words[name].casefold()) for name in ("given", "family")}
    filled_text = template.format(
        **chosen_words | {"month": words["month"][month - 1], "mon": words["month"][month - 1][:3]},
        MON=words["month"][month - 1][:3].upper(),
        GIVEN=chosen_words["given"].upper(),
        FAMILY=chosen_words["family"].upper(),
        initial=chosen_words["given"][0],
        INITIAL=chosen_words["street"][0],
        family_ascii=ascii_names["family"],
        given_small=chosen_words["given"].casefold(),
        family_small=chosen_words["family"].casefold(),
        GIVEN_ASCII=ascii_names["given"].upper(),
        m=month,
        d=day,
        mm=f"{month:02d}",
        dd=f"{day:02d}",
        year=year,
        yy=f"{year % 100:02d}",
    )
    characters_by_sign = {"#": "0123456789", "@": "ABCDEFGHJKLMNPRSTUVWXYZ"}
    # In an e-mail address, "@" is not a placeholder.
    letter_sign = "@" if "{mail}" not in template else ""
    return "".join(rng.choice(characters_by_sign[sign]) if sign in ("#", letter_sign) else sign for sign in filled_text)


def _is_any_word_left_after_masking(pages: list[str], identifier: str) -> bool:
    remaining_words = set(
        re.findall(r"\w+", re.sub(r"\[[A-Z]+\]", " ", mask_text(pages[-1], find_labelled_identifiers(pages))))
    )
    text_around = pages[-1].replace(identifier, " ", 1)
    identifier_words = set(re.findall(r"\w+", identifier)) - set(re.findall(r"\w+", text_around))
    return any(word in remaining_words for word in identifier_words if len(word) > 1 or word.isdigit())


def measure_masked_medical_terms(texts: Iterable[str], folder_words: frozenset[str] = frozenset()) -> pd.DataFrame:
    """Count the medical terms that are masked needlessly, by kind.

    Each text is one document; ``folder_words`` are masked as well (``PseudonymMap.folder_words``). Columns: ``kind``;
    ``words``: number of medical terms found; ``masked``: how many of them were masked; ``share``: masked / words, null
    if none was found.
    """
    counts_by_kind = {kind: [0, 0] for kind in MEDICAL_TERM_PATTERNS}
    for text in texts:
        mask_spans = find_mask_spans(text, replace(find_labelled_identifiers([text]), folder_words=folder_words))
        for kind, pattern in MEDICAL_TERM_PATTERNS.items():
            for match in pattern.finditer(text):
                counts_by_kind[kind][0] += 1
                counts_by_kind[kind][1] += any(
                    start < match.end() and match.start() < end for start, end, _ in mask_spans
                )
    rows = [
        (kind, word_count, masked_count, masked_count / word_count if word_count else None)
        for kind, (word_count, masked_count) in counts_by_kind.items()
    ]
    return pd.DataFrame(rows, columns=["kind", "words", "masked", "share"]).astype({"share": "Float64"})


if __name__ == "__main__":
    print(measure_missed_planted_identifiers(SEED, COUNT_PER_KIND).to_string(index=False))
