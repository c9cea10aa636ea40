"""Laboratory tables read by what their columns hold, in layouts that no header word gives away."""

from __future__ import annotations

import pytest
from extraction.reports import page_of
from extraction.scripted import found_value

from evalkit.extraction.clinical.clinical_reader import find_field_values
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.item_count import count_items, find_doubted_values, find_unread_items
from evalkit.extraction.printed_rows import PrintedPage, find_columns

TEMPLATE = get_field_template("lab-report")
#: Rows in which a bar ends a cell: the header first, if there is one.
LAYOUTS = [
    # The range before the result, the unit behind it.
    (
        "Examen|Valeurs usuelles|Résultat|Unité\nGlucose|3,9 - 5,8|7,2|mmol/L\nSodium|136 - 145|139|mmol/L",
        {"Glucose": "7,2 mmol/L (3,9-5,8)", "Sodium": "139 mmol/L (136-145)"},
    ),
    ("Hb|12.1|L|g/dL|13.0-17.0\nMCV|91||fL|80-100", {"Hb": "12.1 L g/dL (13.0-17.0)", "MCV": "91 fL (80-100)"}),
    # The unit in the name.
    (
        "Test|Outcome|Reference\nSodium (mmol/L)|141|135-145\npH|7.38|7.35-7.45",
        {"Sodium": "141 mmol/L (135-145)", "pH": "7.38 (7.35-7.45)"},
    ),
    # Two days side by side: the later one counts.
    (
        "Marker|10/03/2025|04/11/2024|Unit|Limit\nCEA|3.1|2.8|ug/L|< 5.0\nAFP|2.0|2.2|ug/L|< 7.0",
        {"CEA": "3.1 ug/L (< 5.0)", "AFP": "2.0 ug/L (< 7.0)"},
    ),
    (
        "Marker|Vorwert|Messwert|Einheit\nCEA|2.8|3.1|ug/L\nAFP|2.2|2.0|ug/L",
        {"CEA": "3.1 ug/L", "AFP": "2.0 ug/L"},
    ),
    # Signs before the name.
    (
        "|Parameter|Messwert|Einheit\n+|Kreatinin|1.42|mg/dL\n|Harnstoff|38|mg/dL\n-|Kalium|3.1|mmol/L",
        {"Kreatinin": "1.42 + mg/dL", "Harnstoff": "38 mg/dL", "Kalium": "3.1 - mmol/L"},
    ),
    # Two tables side by side.
    (
        "Sodium|139 mmol/L|135-145|Albumin|41 g/L|35-50\nPotassium|4.2 mmol/L|3.5-5.1|Calcium|2.31 mmol/L|2.20-2.60",
        {
            "Sodium": "139 mmol/L (135-145)",
            "Potassium": "4.2 mmol/L (3.5-5.1)",
            "Albumin": "41 g/L (35-50)",
            "Calcium": "2.31 mmol/L (2.20-2.60)",
        },
    ),
    # The result first.
    (
        "34|s|aPTT|26 - 36\n2.1|g/L|Fibrinogen|1.8 - 4.0",
        {"aPTT": "34 s (26-36)", "Fibrinogen": "2.1 g/L (1.8-4.0)"},
    ),
    # Words and numbers in one column, a method that repeats.
    (
        "Investigation|Method|Outcome|Limit\nHBs antigen|CLIA|non-reactive|< 0.9\nanti-HBs|CLIA|212 IU/L|> 10",
        {"HBs antigen": "non-reactive", "anti-HBs": "212 IU/L (> 10)"},
    ),
    # Lower and upper limits in columns of their own.
    (
        "Component|Lo|Hi|Units|Observed\nHb|130|170|g/L|118\nPLT|150|400|x10^9/L|133",
        {"Hb": "118 g/L", "PLT": "133 x10^9/L"},
    ),
    # Titles between the rows.
    (
        "Prueba|Resultado|Unidades|Intervalo\nQUÍMICA|||\nGlucosa|182|mg/dL|74 - 106\nSANGRE|||\nHb|10.2|g/dL|12.0 - 15.5",
        {"Glucosa": "182 mg/dL (74-106)", "Hb": "10.2 g/dL (12.0-15.5)"},
    ),
    (
        "Analysis|Your value|Comment\nTSH|6.8 mIU/L (0.4 - 4.0)|raised\nT4|11.2 pmol/L|",
        {"TSH": "6.8 mIU/L (0.4-4.0)", "T4": "11.2 pmol/L"},
    ),
]


def print_in_columns(table: str) -> str:
    """The rows with their cells in columns of spaces, as a page without rules has them."""
    rows = [row.split("|") for row in table.split("\n")]
    widths = [max(len(row[column]) for row in rows) + 4 for column in range(len(rows[0]))]
    return "\n".join("".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def read(text: str, kind: str) -> dict[str, str]:
    field = TEMPLATE.get_field("labValues")
    assert field is not None
    blocks = [(kind, text)] if kind == "table" else [(kind, line) for line in text.split("\n")]
    found = find_field_values(field, ClinicalReport([page_of(blocks)]))
    return {value.item: field.normalise(value.text) or value.text for value in found}


@pytest.mark.parametrize(("table", "results"), LAYOUTS)
def test_columns_with_rules_are_read(table: str, results: dict[str, str]) -> None:
    assert read(table.replace("|", "\t"), "table") == results


@pytest.mark.parametrize(("table", "results"), LAYOUTS)
def test_columns_without_rules_are_read(table: str, results: dict[str, str]) -> None:
    assert read(print_in_columns(table), "paragraph") == results


@pytest.mark.parametrize(("table", "results"), LAYOUTS)
def test_the_count_agrees_with_a_right_reading(table: str, results: dict[str, str]) -> None:
    items = count_items([page_of([("table", table.replace("|", "\t"))])])
    values = {f"labValues.{name}": found_value(value) for name, value in results.items()}
    assert [issue for issue in find_unread_items(items, values, TEMPLATE) if issue.field == "labValues"] == []
    assert find_doubted_values(items, values, TEMPLATE) == ()


def test_a_row_that_no_field_has_is_unread() -> None:
    items = count_items([page_of([("table", "Glucose\t3.9 - 5.8\t7.2\tmmol/L\nSodium\t136 - 145\t139\tmmol/L")])])
    values = {"labValues.Glucose": found_value("7.2 mmol/L"), "labValues.Sodium": found_value("136 mmol/L")}
    (issue,) = find_unread_items(items, values, TEMPLATE)
    assert "139 mmol/L" in issue.description


def test_words_under_a_heading_of_results_are_results() -> None:
    table = "Test\tResult\tFlag\tUnits\tReference\nColor\tAmber\tA\t\tYellow\nNitrite\tPositive\tA\t\tNegative\nWBC\t62\tH\t/HPF\t0-5"
    assert read(table, "table") == {"Color": "Amber", "Nitrite": "positive", "WBC": "62 H /HPF (0-5)"}


def test_an_organism_and_its_susceptibilities_are_results() -> None:
    table = "Investigation\tResult\tUnit\nColony count\t> 100,000\tCFU/mL\nOrganism\tKlebsiella pneumoniae\t"
    assert read(table, "table") == {"Colony count": ">100,000 CFU/mL", "Organism": "Klebsiella pneumoniae"}
    table = "Antibiotic\tMIC (mg/L)\tCategory\nAmpicillin\t> 16\tResistant\nGentamicin\t1\tSusceptible"
    assert read(table, "table") == {"Ampicillin": ">16 RESISTANT", "Gentamicin": "1 SUSCEPTIBLE"}
    table = "Agent\tMIC mg/L\tCategory\nAmoxicillin\t>8\tR\nCefalexin\t8\tS\nS susceptible at\tdose, R resistant."
    assert read(table, "table") == {"Amoxicillin": ">8 R", "Cefalexin": "8 S"}


def test_a_damaged_or_open_result_is_none() -> None:
    table = "Analyte\tRange\tUnit\tResult\nHb\t134 - 170\tg/L\t1*2\nMCV\t82 - 98\tfL\tresult to follow\nWBC\t3.5 - 8.8\tG/L\t5.6"
    assert read(table, "table") == {"WBC": "5.6 G/L (3.5-8.8)"}


def test_an_earlier_column_with_starred_flags_beside_is_left_out() -> None:
    table = "Analyte\tToday\tInterval\tBefore\nALP\t133 U/L *H\t[30-110]\t97\nAST\t29 U/L\t[<35]\t25"
    assert read(table, "table") == {"ALP": "133 *H U/L (30-110)", "AST": "29 U/L (<35)"}


def test_two_results_that_nothing_tells_apart_are_none() -> None:
    assert read("CEA\t3.1\t2.8\tug/L\nAFP\t2.0\t2.2\tug/L", "table") == {}


def test_a_row_of_dots_ends_a_cell() -> None:
    page = page_of([("paragraph", "ALT ......... 88 U/L .... (0 - 50)")])
    ((name, result, limits),) = PrintedPage(page).split_into_rows(0, len(page.text))
    assert (name.text, result.text, limits.text) == ("ALT", "88 U/L", "(0 - 50)")


def test_cells_stand_below_their_heading() -> None:
    page = page_of([("paragraph", line) for line in print_in_columns("Test||Value\nZinc|high|14\nIron||9").split("\n")])
    header, *rows = PrintedPage(page).split_into_rows(0, len(page.text))
    columns = [[cell and cell.text for cell in column] for column in find_columns(header, rows)]
    assert columns == [["Test", "Zinc", "Iron"], [None, "high", None], ["Value", "14", "9"]]
