"""Values that hold less than their place prints, and values within another one."""

from __future__ import annotations

import pytest
from extraction.reports import page_of
from extraction.scripted import found_value

from evalkit.extraction.partial_values import find_partial_values, find_skipped_rows


def list_partial(values: dict[str, tuple[str, str, str]]) -> list[str]:
    """``values``: by name, the page's words, the value and the words around it."""
    return [issue.field for issue in find_partial_values({name: found_value(*row) for name, row in values.items()})]


@pytest.mark.parametrize(
    ("raw", "value", "quote"),
    [
        ("96\tL", "96 L /uL (140-400)", "Platelets\t96\tL\tx10(3)/uL\t140-400"),
        ("52", "52 HIGH (26-33)", "Platelets\t26 - 33\ts\t52\thigh"),
        ("640", "640 (40-440)", "Platelets: 640 /cumm (40-440), which is high"),
        ("1", "1", "Platelets\t134 - 170\t\t1*2"),
        ("97", "97 (80-120)", "Platelets\t80 - 120\t%\t97"),
        ("0.41 ug/mL", "0.41 ug/mL (<0.50)", "Platelets 0.41 ug/mL FEU (<0.50)"),
        ("Negative", "negative", "Platelets\tLarge\tA\tNegative"),
    ],
)
def test_a_result_without_a_word_of_its_row_is_doubted(raw: str, value: str, quote: str) -> None:
    assert list_partial({"labValues.Platelets": (raw, value, quote)}) == ["labValues.Platelets"]


@pytest.mark.parametrize(
    ("raw", "value", "quote"),
    [
        ("96 L", "96 L x10^3/uL (140-400)", "Platelets\t96\tL\tx10(3)/\u00b5L\t140-400"),
        ("5.8", "5.8 x10^3/uL (4.0-11.0)", "Platelets\t5.8\t\t4.0-11.0\tx10E3/uL"),
        ("35.0%", "35.0 % (36.0-45.0)", "Platelets\t35.0%\t36.0%-45.0%"),
        ("2.4", "2.4", "AMENDED. Platelets 2.4 (corrected; first issued as 4.2); Quick 32 %"),
        ("8", "8 g/L", "Early report: Platelets 8 g/L. Repeat in a week"),
        ("Large", "Large", "Platelets\tLarge\tA\tNegative"),
        ("Large\nNegative", "Large", "Platelets\tLarge\t\tNegative"),
        ("58.2\n%\nnot established", "58.2 %", "Platelets\t58.2\t\tnot established\t%"),
        ("4.1", "4.1 g/L", "Platelets\t4.1\tg/L\t3.9\t4.4"),
    ],
)
def test_a_whole_result_is_not_doubted(raw: str, value: str, quote: str) -> None:
    assert list_partial({"labValues.Platelets": (raw, value, quote)}) == []


def test_two_tests_in_a_row_lack_nothing_of_each_other() -> None:
    quote = "Sodium\t139\tmmol/L\tGlucose\t112\tmg/dL"
    values = {"labValues.Sodium": ("139", "139 mmol/L", quote), "labValues.Glucose": ("112", "112 mg/dL", quote)}
    assert list_partial(values) == []


def test_a_second_share_of_one_stain_is_doubted() -> None:
    raw = "Positive, 95%\tNegative, 0%"
    assert list_partial({"ihcMarkers.ER": (raw, "positive, 95%", raw)}) == ["ihcMarkers.ER"]
    raw = "Positive (of >10%), 95 %"
    assert list_partial({"ihcMarkers.ER": (raw, "positive, 95%", raw)}) == []


@pytest.mark.parametrize(
    ("raw", "value", "doubted"),
    [("pT1b2 pN0", "pT1b", True), ("pT3 N0 (2/14)", "pT3 pN0", False), ("PT2 PN1A", "T2", True)],
)
def test_a_cut_stage_is_doubted(raw: str, value: str, *, doubted: bool) -> None:
    assert list_partial({"stage": (raw, value, raw)}) == ["stage"] * doubted


def test_a_variant_told_twice_is_doubted() -> None:
    values = {"mutations.1": "EML4::ALK fusion", "mutations.2": "TP53 p.R175H", "mutations.3": "ALK fusion"}
    assert list_partial({name: (value, value, value) for name, value in values.items()}) == ["mutations.3"]


@pytest.mark.parametrize(
    ("between", "skipped"),
    [
        ("Specific gravity|1.018", ["1.018"]),
        ("Clarity|Cloudy", ["Cloudy"]),
        ("URINE\nSpecific gravity 1.018", ["1.018"]),
        ("URINE\nTest|Result", []),
        ("Coagulation Test|10/12/2025 1", []),
        ("SEROLOGY, 03/04/2025", []),
    ],
)
def test_a_row_between_results_is_not_skipped(between: str, skipped: list[str]) -> None:
    text = f"Test|10/12/2025 1\nGlucose|7.2\n{between}\nSodium|139\nSample 12"
    page = page_of([("table", text.replace("|", "\t"))])
    values = {
        f"labValues.{words}": found_value(words).model_copy(
            update={
                "boxes": tuple(
                    (1, *(edge / 10_000 for edge in word[2:6]))
                    for word in page.words
                    if page.text[word[0] : word[1]] == words
                )
            }
        )
        for words in ("7.2", "139")
    }
    issues = list(find_skipped_rows([page], values))
    assert [page.text[issue.place[1] : issue.place[2]].split()[-1] for issue in issues if issue.place] == skipped
