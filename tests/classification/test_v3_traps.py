"""V3: slide 5's three traps, and what only the context shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import (
    EMBEDDED_RAW,
    GENOMIC,
    MENTION_ONLY,
    NO_EVIDENCE,
    NOTE,
    OTHER,
    PATHOLOGY,
    PRIMARY,
    RADIOLOGY,
    Json,
    answer,
    codes,
    compose_single_type,
    copy_with,
    doc2_6,
    doc2_6_answer,
    document,
    evidence,
    finding,
    mixture,
    one_segment,
    page,
    parse_answer,
    segment,
)

from evalkit.classification.findings import Findings
from evalkit.classification.trap_examples import describe_failing_examples, describe_weakened_traps
from evalkit.classification.traps import (
    Trap,
    Traps,
    load_shipped_and_site_traps,
    load_shipped_traps,
    parse_traps,
    require_fast_pattern,
)
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.verifiers import find_offline_issues
from evalkit.documents.bundle import Block, DocumentBundle
from evalkit.errors import UsageError
from evalkit.issue import Issue
from evalkit.llm.model import Answer

BODY = "The variant was detected in a heterozygous state."


def caught(value: Json, bundle: DocumentBundle, traps: Traps | None = None) -> list[Issue]:
    return V3TrapDetector(traps).validate(parse_answer(value), bundle)


def test_nothing_is_a_trap_in_the_slides_own_document() -> None:
    assert caught(doc2_6_answer(), doc2_6()) == []


# --------------------------------------------------------------------------------------------- trap 1: vendor


@pytest.mark.parametrize(
    ("vendor", "is_routine"),
    [
        ("Quest Diagnostics", True),
        ("QUEST DIAGNOSTICS", True),
        ("Quest  Diagnostics, Inc.", True),
        ("LabCorp", True),
        ("Lab Corp", True),
        ("Labcorp Holdings", True),
        ("Myriad Genetics", False),
        ("Foundation Medicine", False),
        ("Community Lab", False),
    ],
)
def test_a_routine_vendor_and_genomic_primary(vendor: str, is_routine: bool) -> None:
    issues = caught(one_segment(GENOMIC, 1, vendor_signals=["Acme", vendor]), document(BODY))
    assert [(issue.code, issue.severity, issue.ig_id) for issue in issues] == (
        [("V3-TRAP-VENDOR", "BLOCKER", "IG-4")] if is_routine else []
    )
    assert all(vendor in issue.message for issue in issues)


@pytest.mark.parametrize(
    ("kind", "level", "fires"),
    [
        (GENOMIC, PRIMARY, True),
        (GENOMIC, EMBEDDED_RAW, False),
        (GENOMIC, MENTION_ONLY, False),
        (PATHOLOGY, PRIMARY, False),
        (OTHER, PRIMARY, False),
    ],
)
def test_the_vendor_trap_is_about_genomic_primary_alone(kind: str, level: str, fires: bool) -> None:
    value = one_segment(kind, 1, level=level, vendor_signals=["Quest Diagnostics"])
    assert bool(caught(value, document(BODY))) is fires


def test_genomic_primary_in_one_segment_is_enough() -> None:
    value = one_segment(GENOMIC, 1, vendor_signals=["LabCorp"])
    value["document_mixture"] = mixture({GENOMIC: 1.0}, {})
    assert codes(caught(value, document(BODY))) == ["V3-TRAP-VENDOR"]


@pytest.mark.parametrize(
    ("vendor", "text", "severity"),
    [
        ("Quest Diagnostics", "BRCAvantage, comprehensive", "MAJOR"),
        ("Quest Diagnostics", "BRCA vantage®", "MAJOR"),
        ("LabCorp", "BRCAssure analysis", "MAJOR"),
        ("LabCorp", "BRCAvantage, comprehensive", "BLOCKER"),
        ("Quest Diagnostics", "BRCA1 and BRCA2", "BLOCKER"),
        ("Quest Diagnostics", "BRCAvantages of this test", "BLOCKER"),
    ],
)
def test_the_vendors_own_genomic_assay_makes_it_a_question(vendor: str, text: str, severity: str) -> None:
    """Ruling 9."""
    (issue,) = caught(one_segment(GENOMIC, 1, vendor_signals=[vendor]), document(text))
    assert (issue.severity, issue.auto_fixable) == (severity, False)
    assert ("genomic assay" in issue.message) is (severity == "MAJOR")


def test_assay_named_in_another_segment_excuses_nothing() -> None:
    parts = (segment(1, 1, 1, GENOMIC, compose_single_type(GENOMIC)), segment(2, 2, 2, NOTE, compose_single_type(NOTE)))
    value = answer(*parts, overall=GENOMIC, shares={GENOMIC: 0.5, NOTE: 0.5}, vendor_signals=["Quest Diagnostics"])
    (issue,) = caught(value, document("WBC 8.2", "BRCAvantage was recommended."))
    assert issue.severity == "BLOCKER"


@pytest.mark.parametrize(
    ("genomic_page", "other_page", "raised"),
    [
        (f"Quest Diagnostics\n{BODY}", "Quest Diagnostics\nWBC 8.2", [("BLOCKER", 1)]),
        (BODY, "Quest Diagnostics\nWBC 8.2", []),
        (BODY, "WBC 8.2", [("BLOCKER", None)]),
        (f"{BODY}\nResults at www.questdiagnostics.com", "Quest Diagnostics\nWBC 8.2", []),
        (f"{BODY}\nShe had blood drawn at Quest.", "Quest Diagnostics\nWBC 8.2", []),
        (f"{BODY}\nPerforming site: Quest, Teterboro", "WBC 8.2", [("BLOCKER", 1)]),
    ],
)
def test_the_vendor_counts_where_it_is_named(
    genomic_page: str, other_page: str, raised: list[tuple[str, int | None]]
) -> None:
    """Ruling 24."""
    parts = (
        segment(1, 1, 1, GENOMIC, compose_single_type(GENOMIC)),
        segment(2, 2, 2, OTHER, compose_single_type(OTHER)),
    )
    shares = {GENOMIC: 0.5, OTHER: 0.5}
    value = answer(*parts, overall=GENOMIC, shares=shares, vendor_signals=["Quest Diagnostics"])
    issues = caught(value, document(genomic_page, other_page))
    assert [(issue.severity, issue.page) for issue in issues] == raised


@pytest.mark.parametrize(("is_stamp", "fires"), [(True, False), (False, True)])
def test_a_fax_stamp_is_no_place_of_vendor_or_form(is_stamp: bool, fires: bool) -> None:
    stamp = "06/11/2023 08:04 FROM: TEST REQUEST DESK, QUEST DIAGNOSTICS TO: 555-0190 P.02/09"
    text = f"{stamp}\n{BODY} It is classified as pathogenic, and her relatives may be tested for it as well."
    pages = [page(1, text, furniture=[stamp] * is_stamp), page(2, "Quest Diagnostics\nWBC 8.2")]
    parts = (
        segment(1, 1, 1, GENOMIC, compose_single_type(GENOMIC)),
        segment(2, 2, 2, OTHER, compose_single_type(OTHER)),
    )
    shares = {GENOMIC: 0.5, OTHER: 0.5}
    value = answer(*parts, overall=GENOMIC, shares=shares, vendor_signals=["Quest Diagnostics"])
    issues = caught(value, document(*pages))
    assert codes(issues) == (["V3-TRAP-ADMINISTRATIVE", "V3-TRAP-VENDOR"] if fires else [])


# ------------------------------------------------------------------------------------- trap 2: administrative

RESULT = (
    "FINAL DIAGNOSIS: Adenocarcinoma of the colon, moderately differentiated. Margins are negative.\n"
    "GROSS DESCRIPTION: Received in formalin is a segment of colon."
)


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        (f"Accession: C25-114\nRequisition No.: 88-120\nCollected: 01/02/2025\n{RESULT}", False),
        (f"Accession: C25-114   Authorization No.: A5520\n{RESULT}", False),
        (f"Requisition no. 88-120\nSURGICAL PATHOLOGY\n{RESULT}", True),
        (f"REQUISITION\nAccession: C25-114   Requisition No.: 88-120\n{RESULT}", True),
        ("Accession: C25-114\nRequisition No.: 88-120\nCollected: 01/02/2025\nColon, biopsy", True),
    ],
)
def test_a_label_in_a_reports_header_is_no_form(text: str, fires: bool) -> None:
    assert codes(caught(one_segment(PATHOLOGY, 1), document(text))) == ["V3-TRAP-ADMINISTRATIVE"] * fires


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("LABORATORY REQUISITION", "requisition"),
        ("Authorization Number: 4821", "authorization number"),
        ("FAX COVER", "fax cover"),
        ("please see the fax\ncover sheet", "fax cover"),
        ("Test requests are enclosed", "test request"),
        ("Specimen Receipt", "specimen receipt"),
        ("Authorization No. 4821", "authorization number"),
        ("Fax-cover", "fax cover"),
        ("Write to requisition@lab.example.com", None),
        ("prerequisitions of the study", None),
        ("the kit was requisitioned", None),
        ("the faxes cover two weeks", None),
        ("Surgical pathology final diagnosis", None),
    ],
)
def test_administrative_words_on_the_pages_of_a_report(text: str, keyword: str | None) -> None:
    issues = caught(one_segment(PATHOLOGY, 1), document(text))
    assert [(issue.code, issue.severity) for issue in issues] == (
        [("V3-TRAP-ADMINISTRATIVE", "BLOCKER")] if keyword else []
    )
    assert all(f"'{keyword}'" in issue.message for issue in issues)


@pytest.mark.parametrize(
    ("kind", "level", "fires"),
    [
        (PATHOLOGY, PRIMARY, True),
        (GENOMIC, EMBEDDED_RAW, True),
        (RADIOLOGY, MENTION_ONLY, True),
        (RADIOLOGY, NO_EVIDENCE, False),
        (NOTE, PRIMARY, False),
        (OTHER, PRIMARY, False),
    ],
)
def test_only_claimed_reports_are_guarded(kind: str, level: str, fires: bool) -> None:
    issues = caught(one_segment(kind, 1, level=level), document("Test request form"))
    assert bool(issues) is fires
    assert all(kind in issue.message and level in issue.message for issue in issues)


def test_fax_cover_is_a_trap_only_in_document_scope() -> None:
    """Ruling 9: the pages of the segment that claims the report; ``scope = "document"`` restores the slides."""
    parts = (
        segment(1, 1, 1, OTHER, compose_single_type(OTHER)),
        segment(2, 2, 2, PATHOLOGY, compose_single_type(PATHOLOGY)),
    )
    value = answer(*parts, overall=PATHOLOGY, shares={OTHER: 0.5, PATHOLOGY: 0.5})
    bundle = document("FAX COVER\nPages: 2", "Invasive ductal carcinoma, margins negative.")
    assert caught(value, bundle) == []
    shipped = load_shipped_traps()
    rows = tuple(row.model_copy(update={"scope": "document"}) for row in shipped.administrative)
    by_document = shipped.model_copy(update={"administrative": rows})
    assert codes(caught(value, bundle, by_document)) == ["V3-TRAP-ADMINISTRATIVE"]


# ------------------------------------------------------------------------------------------ trap 3: furniture


@pytest.mark.parametrize(
    ("snippet", "fires"),
    [
        ("Page 3 of 8", True),
        ("page 10 of 12 continued", True),
        ("Fax: (555) 123-4567", True),
        ("FAX 555-123-4567", True),
        ("MRN 0012345", True),
        ("Date of Birth: 01/15/1970", True),
        ("date of birth 15/01/1970", True),
        ("Pg 3/8", True),
        ("Medical Record Number: 12345", True),
        ("D.O.B.: 15-Jan-1970", True),
        ("BRCA1 c.5266dupC was detected", False),
        ("the second page of the report", False),
        ("12 of 20 nodes", False),
    ],
)
def test_headers_and_footers_are_no_evidence(snippet: str, fires: bool) -> None:
    issues = caught(one_segment(GENOMIC, 1, evidence(snippet, 1)), document(snippet))
    assert [(issue.code, issue.severity, issue.quote) for issue in issues] == (
        [("V3-TRAP-FURNITURE", "MINOR", snippet)] if fires else []
    )


@pytest.mark.parametrize(("also_in_the_body", "fires"), [(False, True), (True, False)])
def test_what_the_reader_marked_as_header_is_no_evidence(also_in_the_body: bool, fires: bool) -> None:
    header = "St. Mary Regional Medical Center"
    text = f"{header}\n{BODY}" + (f"\nSeen at {header} today." if also_in_the_body else "")
    bundle = document(page(1, text, furniture=[header]))
    issues = caught(one_segment(GENOMIC, 1, evidence("st. mary regional medical center", 1)), bundle)
    assert bool(issues) is fires


# ------------------------------------------------------------------------------------------- the model's part


def test_prompt_holds_the_document_beyond_4000_characters() -> None:
    """Ruling 10."""
    long = document("word " * 3000, "The very last sentence of the record.")
    (question,) = V3TrapDetector().questions(parse_answer(one_segment(GENOMIC, 2)), long)
    assert "The very last sentence of the record." in question.prompt()
    assert question.role == "V3"


@pytest.mark.parametrize(
    ("letterhead", "signals", "suspected"),
    [
        ("Quest Diagnostics Nichols Institute", [], True),
        ("Quest Diagnostics Nichols Institute", ["Quest Diagnostics"], False),  # trap 1 has it already
        ("Myriad Genetics", [], False),
        ("Quest Diagnostics\nBRCAvantage", [], False),
    ],
)
def test_offline_letterhead_missing_in_vendor_signals_is_found(
    letterhead: str, signals: list[str], suspected: bool
) -> None:
    value = one_segment(GENOMIC, 1, vendor_signals=signals)
    (question,) = V3TrapDetector().questions(parse_answer(value), document(f"{letterhead}\nWBC 8.2\nRBC 4.5"))
    issues = V3TrapDetector().read([Answer(question, question.offline())])
    assert [(issue.code, issue.severity, issue.origin) for issue in issues] == (
        [("V3-CONTEXT", "MAJOR", "model")] if suspected else []
    )


@pytest.mark.parametrize(
    ("text", "suspected"),
    [
        ("Ordering physician: Dr. Lee\nTests ordered: BRCA1/2\nBill to: insurance\nICD-10: Z80.3", True),
        ("Ordering physician: Dr. Lee\nTests ordered: BRCA1/2", False),
        (
            "Ordering physician: Dr. Lee\nTests ordered: BRCA1\nICD-10: Z80.3\nc.5266dupC heterozygous, pathogenic",
            False,
        ),
    ],
)
def test_offline_an_order_claimed_as_its_report_is_seen(text: str, suspected: bool) -> None:
    (question,) = V3TrapDetector().questions(parse_answer(one_segment(GENOMIC, 1)), document(text))
    assert bool(question.offline().findings) is suspected


def test_a_missing_answer_is_a_blocker_and_an_empty_one_is_not() -> None:
    (question,) = V3TrapDetector().questions(parse_answer(doc2_6_answer()), doc2_6())
    (issue,) = V3TrapDetector().read([Answer(question, None, failure="refused")])
    assert (issue.code, issue.severity) == ("V3-AGENT-FAILED", "BLOCKER")
    assert V3TrapDetector().read([Answer(question, Findings(findings=()))]) == []
    (said,) = V3TrapDetector().read([Answer(question, Findings(findings=(finding("BLOCKER"),)))])
    assert (said.code, said.severity, said.origin) == ("V3-CONTEXT", "BLOCKER", "model")


# -------------------------------------------------------------------------------------------------- the table


TABLE = """
version = "9"

[[routine_vendor]]
id = "bio-reference"
owner = "the laboratory committee"
date = "2026-10-01"
scope = "segment"
severity = "BLOCKER"
name = "BioReference"
names = ["BioReference"]
genomic_assays = []
fires = ["BioReference"]
silent = ["Other Laboratory"]

[[addressed_to_model]]
id = "sesame"
owner = "security"
date = "2026-10-01"
scope = "page"
severity = "MINOR"
message = "Page {page} says {found}"
remedy = "Call security about page {page}"
name = "a password"
pattern = "open sesame"
fires = ["Open Sesame!"]
silent = ["sesame oil"]
"""


def test_a_new_vendor_is_a_row() -> None:
    value = one_segment(GENOMIC, 1, vendor_signals=["BioReference Laboratories"])
    assert codes(caught(value, document(BODY), parse_traps(TABLE))) == ["V3-TRAP-VENDOR"]
    assert caught(value, document(BODY)) == []
    assert caught(copy_with(value, {"vendor_signals": ["Quest Diagnostics"]}), document(BODY), parse_traps(TABLE)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ('version = "9"', "version = 9", "version"),
        ('version = "9"', 'version = "9"\nrogue = 2', "rogue"),
        ('scope = "segment"', 'scope = "page"', r"routine_vendor → 0 \(bio-reference\): scope must be segment"),
        ('names = ["BioReference"]', "names = []", r"0 \(bio-reference\) → names"),
        (
            'pattern = "open sesame"',
            'pattern = "("',
            r"addressed_to_model → 0 \(sesame\) → pattern: the pattern is not a valid regular",
        ),
        ('pattern = "open sesame"', 'pattern = "x*"', r"\(sesame\) → pattern: the pattern matches empty text"),
        ('pattern = "open sesame"', "pattern = '\\b'", r"\(sesame\) → pattern: the pattern matches empty text"),
        (
            'names = ["BioReference"]',
            'names = ["BioReference", ""]',
            r"\(bio-reference\) → names → 1: the name has no letter",
        ),
        ('names = ["BioReference"]', 'names = ["--"]', r"\(bio-reference\) → names → 0: the name has no letter"),
        ("genomic_assays = []", 'genomic_assays = ["®"]', r"genomic_assays → 0: the name has no letter"),
        ('fires = ["BioReference"]', "fires = []", "fires"),
        ('date = "2026-10-01"', 'date = "last week"', "date"),
        ('owner = "security"', 'owner = ""', "owner"),
        ("{page} says {found}", "{page} says {what}", r"\(sesame\) → message: what is no known placeholder"),
        (
            "{page} says {found}",
            "{page} says {found:d}",
            r"\(sesame\) → message: a placeholder in braces must be a name alone",
        ),
        (
            "{page} says {found}",
            "{page:>999999999}",
            r"\(sesame\) → message: a placeholder in braces must be a name alone",
        ),
        (
            "about page {page}",
            "about page {page!x}",
            r"\(sesame\) → remedy: a placeholder in braces must be a name alone",
        ),
        ('id = "sesame"', 'id = "bio-reference"', "several rows have the id bio-reference"),
        ("silent = [", "silent = ", "traps"),
    ],
)
def test_a_wrong_row_is_named(right: str, wrong: str, named: str) -> None:
    assert parse_traps(TABLE).version == "9"
    with pytest.raises(UsageError, match=named) as refused:
        parse_traps(TABLE.replace(right, wrong, 1))
    assert refused.value.code == "TRAPS"
    assert refused.value.remedy


COUNTING = """
version = "9"
[[order_form]]
id = "orders"
owner = "security"
date = "2026-10-01"
scope = "page"
severity = "MAJOR"
at_least = 2
words = ["specimen", "ship to"]
fires = ["Ship to: the laboratory. Specimen: blood."]
silent = ["specimen"]
[[boilerplate]]
id = "methods"
owner = "security"
date = "2026-10-01"
scope = "segment"
severity = "MAJOR"
type = "Genomic Report"
at_least = 2
phrases = ["we sequence", "exons"]
results = ["detected"]
fires = ["We sequence all exons."]
silent = ["exons"]
"""


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        (
            '["specimen", "ship to"]',
            '["specimen"]',
            r"\(orders\): at_least is 2, but the row has only 1 different words",
        ),
        ('["specimen", "ship to"]', '["Specimen", "specimen "]', r"\(orders\): at_least is 2, but the row has only 1"),
        (
            '["we sequence", "exons"]',
            '["exons", "exons"]',
            r"\(methods\): at_least is 2, but the row has only 1 different p",
        ),
        ('["specimen", "ship to"]', '["specimen", "…"]', r"\(orders\) → words → 1: the name has no letter"),
    ],
)
def test_a_row_that_could_never_fire_or_always_would_is_named(right: str, wrong: str, named: str) -> None:
    assert describe_failing_examples(parse_traps(COUNTING)) == []
    with pytest.raises(UsageError, match=named):
        parse_traps(COUNTING.replace(right, wrong, 1))


def test_a_sites_pattern_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(TABLE.replace("open sesame", "(a+)+$", 1))
    with pytest.raises(UsageError, match=r"own\.toml: sesame: the expression '\(a\+\)\+\$' takes more than 2 s"):
        load_shipped_and_site_traps(str(own))


def test_a_pattern_that_a_document_keeps_busy_escalates_it() -> None:
    """No trial foresees every text."""
    traps = parse_traps(TABLE.replace("open sesame", "(x+x+)+y", 1))
    busy = document(f"{BODY} {'x' * 3000}")
    (issue,) = [one for one in caught(one_segment("Other", 1), busy, traps) if one.code == "V3-AGENT-FAILED"]
    assert issue.severity == "BLOCKER"
    assert "takes more than 2 s on a page" in issue.message


@pytest.mark.parametrize("row", load_shipped_traps().rows, ids=lambda row: row.id)
def test_shipped_patterns_are_quick_on_any_text(row: Trap) -> None:
    for pattern in row.patterns:
        require_fast_pattern(pattern, [one.page for one in row.fires], timeout_seconds=0.5)


@pytest.mark.parametrize("row", load_shipped_traps().rows, ids=lambda row: row.id)
def test_every_row_does_what_its_examples_say(row: Trap) -> None:
    assert describe_failing_examples(load_shipped_traps().restrict_to_trap(row)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ('["Open Sesame!"]', '["Open the door!"]', "sesame: example 1 of `fires` raises nothing, not MINOR"),
        ('["sesame oil"]', '["oil", "do open sesame"]', "sesame: example 2 of `silent` raises MINOR"),
        ('severity = "BLOCKER"', 'severity = "MAJOR"', None),
        (
            'fires = ["BioReference"]',
            'fires = [{ vendor = "BioReference", severity = "MINOR" }]',
            "bio-reference: example 1 of `fires` raises BLOCKER, not MINOR",
        ),
    ],
)
def test_an_example_that_is_treated_otherwise_is_named(right: str, wrong: str, fault: str | None) -> None:
    assert describe_failing_examples(parse_traps(TABLE)) == []
    assert describe_failing_examples(parse_traps(TABLE.replace(right, wrong, 1))) == ([fault] if fault else [])


def test_site_traps_extend_or_replace_shipped_traps(tmp_path: Path) -> None:
    own = tmp_path / "traps.toml"
    replacing = 'severity = "MAJOR"\nreplaces = true'
    own.write_text(TABLE.replace("bio-reference", "labcorp").replace('severity = "BLOCKER"', replacing))
    traps = load_shipped_and_site_traps(str(own))
    assert traps.version == f"{load_shipped_traps().version}+9"
    assert [row.name for row in traps.routine_vendor] == ["Quest Diagnostics", "BioReference"]
    bundle = document(BODY, "Please open sesame.")
    value = one_segment(GENOMIC, 2, vendor_signals=["BioReference", "LabCorp"])
    issues = caught(value, bundle, traps)
    assert [(one.code, one.severity, one.message, one.suggested_fix) for one in issues if one.page == 2] == [
        ("V3-TRAP-INSTRUCTION", "MINOR", "Page 2 says open sesame", "Call security about page 2")
    ]
    assert [one.severity for one in issues if one.code == "V3-TRAP-VENDOR"] == ["MAJOR"]


@pytest.mark.parametrize(
    ("row_id", "said", "named"),
    [
        ("labcorp", "", "labcorp: a shipped row has this id"),
        ("bio-reference", "replaces = true", "bio-reference: replaces is true, but no shipped row has this id"),
    ],
)
def test_no_shipped_row_is_replaced_unsaid(tmp_path: Path, row_id: str, said: str, named: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        TABLE.replace("bio-reference", row_id).replace('severity = "BLOCKER"', f'severity = "BLOCKER"\n{said}')
    )
    with pytest.raises(UsageError, match=f"own.toml: {named}"):
        load_shipped_and_site_traps(str(own))


@pytest.mark.parametrize(
    ("severity", "names", "lost"),
    [
        ("BLOCKER", '["LabCorp", "Laboratory Corporation of America", "Laboratory Corp of America"]', []),
        (
            "MAJOR",
            '["LabCorp", "Laboratory Corporation of America", "Laboratory Corp of America"]',
            ["labcorp gives up BLOCKER for MAJOR"],
        ),
        (
            "BLOCKER",
            '["Laboratory Corporation of America"]',
            ["labcorp gives up 4 of 5 texts that the shipped row raises"],
        ),
    ],
)
def test_what_a_replaced_row_gives_up_is_said(severity: str, names: str, lost: list[str]) -> None:
    own = parse_traps(
        TABLE.replace("bio-reference", "labcorp")
        .replace('severity = "BLOCKER"', f'severity = "{severity}"')
        .replace('["BioReference"]', names, 1)
    )
    assert describe_weakened_traps(load_shipped_traps(), own) == lost


@pytest.mark.parametrize(
    ("text", "named"), [(None, "cannot be read"), (b"\xff", "not UTF-8 text"), (b"version = ", "Invalid value")]
)
def test_a_sites_file_that_cannot_be_read_is_named(tmp_path: Path, text: bytes | None, named: str) -> None:
    own = tmp_path / "own.toml"
    if text is not None:
        own.write_bytes(text)
    with pytest.raises(UsageError, match=f"own.toml.*{named}"):
        load_shipped_and_site_traps(str(own))


# ---------------------------------------------------------------------------------------------- words for a machine


def test_a_sites_words_for_a_machine_are_found_when_hidden() -> None:
    traps = parse_traps(TABLE)
    answer = parse_answer(one_segment(OTHER, 1))
    (issue,) = V3TrapDetector(traps).validate(answer, with_hidden("Open sesame."))
    assert (issue.code, issue.severity, issue.quote) == ("V3-TRAP-INSTRUCTION", "MINOR", None)
    assert not V3TrapDetector(traps).validate(answer, with_hidden("sesame oil"))


# ------------------------------------------------------------------------------------------------------ what is hidden


def with_hidden(text: str, shown: str = "An ordinary page about nothing.") -> DocumentBundle:
    whole = document(shown)
    block = Block(type="paragraph", text=text, box=(0, 0, 1, 1), hidden=True)
    pages = (whole.page(1).model_copy(update={"blocks": (*whole.page(1).blocks, block)}),)
    return whole.model_copy(update={"pages": pages})


REPORT = "The biopsy of the left breast shows invasive ductal carcinoma with positive margins and two nodes."


@pytest.mark.parametrize(
    ("hidden", "shown", "severity"),
    [
        (REPORT, "An ordinary page.", "MAJOR"),
        ("biopsy shows invasive carcinoma there", "An ordinary page.", "MINOR"),
        ("see page two", "An ordinary page.", None),
        (REPORT, REPORT, None),  # the text layer of a scan that was read
        (REPORT.upper(), REPORT, None),
        ("\ufffd \ufffd 12 34 56 78 90 11 12 13 14 15 16", "An ordinary page.", None),
    ],
)
def test_hidden_text_that_says_something_else_goes_to_a_person(hidden: str, shown: str, severity: str | None) -> None:
    issues = V3TrapDetector().validate(parse_answer(one_segment(OTHER, 1)), with_hidden(hidden, shown))
    assert [(one.code, one.severity, one.page, one.quote) for one in issues] == (
        [("V3-TRAP-HIDDEN", severity, 1, None)] if severity else []
    )


# --------------------------------------------------------------------------------------------- what only context shows


NOTE_QUOTING = (
    "He comes in because of back pain and denies fever. Blood pressure 128/76. We discussed the plan. "
    'MRI from outside: "Broad-based disc bulge at L4-5 without canal stenosis." Follow up in two weeks.'
)
BOILERPLATE = "All coding exons are examined. Turnaround time is two weeks. Samples are kept for sixty days."


@pytest.mark.parametrize(
    ("kind", "text", "quote"),
    [
        (RADIOLOGY, NOTE_QUOTING, "Broad-based disc bulge at L4-5 without canal stenosis."),
        (NOTE, NOTE_QUOTING, None),
        (RADIOLOGY, 'CT without contrast, axial images. The liver is unremarkable. "No acute fracture."', None),
        (GENOMIC, BOILERPLATE, "coding exons"),
        (GENOMIC, f"BRCA1 c.5266dupC, heterozygous. {BOILERPLATE}", None),
        (PATHOLOGY, BOILERPLATE, None),
    ],
)
def test_offline_quoted_reports_and_boilerplate_are_quoted(kind: str, text: str, quote: str | None) -> None:
    (question,) = V3TrapDetector().questions(parse_answer(one_segment(kind, 1)), document(text))
    found = question.offline().findings
    assert [one.quote for one in found] == ([quote] if quote else [])
    assert all((one.severity, one.page, one.segment_index) == ("MAJOR", 1, 1) and quote in text for one in found)


SCAN = (
    "EXAM: CT of the chest with contrast.\nTECHNIQUE: Axial images of 5 mm.\nFINDINGS: A nodule of 9 mm, unchanged from 2023. "
    "No effusion. Atelectasis at the left base.\nIMPRESSION: Stable nodule."
)
FRAMED = (
    f"She comes in with her daughter. She denies fever.\n{SCAN}\nShe was told of it. We will see her in May.",
    f"Therapy session, mood low, affect flat.\n{SCAN}\nHomework: a diary. She agreed to come again.",
    f"Metoprolol 50 mg twice daily, BP 130/80.\n{SCAN}\nPlan: follow up in 6 weeks.",
)
NOT_FRAMED = (
    SCAN,
    f"HISTORY: A 54-year-old woman. Patient presents with cough.\n{SCAN}\nI discussed this with the ward.",
    f"A 54-year-old woman, an 80-year-old mother.\n{SCAN}\nRecommendation: follow-up CT in 6 months.",
    f"Dear Dr. Reed,\nThank you for referring this lady.\n{SCAN}\nSincerely,\nThank you for seeing her.",
    f"She comes in with her daughter. She denies fever. She was told of it. We will see her in May.\n{SCAN}",
    f"{SCAN}\nShe comes in with her daughter. She denies fever. She was told of it. We will see her in May.",
)


@pytest.mark.parametrize("as_pages", [False, True])
@pytest.mark.parametrize(("text", "is_note"), [*((one, True) for one in FRAMED), *((one, False) for one in NOT_FRAMED)])
def test_a_report_with_a_note_on_both_sides_is_quoted_there(text: str, is_note: bool, as_pages: bool) -> None:
    pages = text.split(f"\n{SCAN}\n") if as_pages else []
    bundle = document(pages[0], SCAN, pages[1]) if len(pages) == 2 else document(text)
    claimed = parse_answer(one_segment(RADIOLOGY, bundle.total_pages))
    (question,) = V3TrapDetector().questions(claimed, bundle)
    found = [one for one in question.offline().findings if "a note that quotes" in one.message]
    assert [(one.severity, one.page) for one in found] == [("MAJOR", bundle.total_pages)] * is_note
    assert all(one.quote in text.rpartition(SCAN)[2] for one in found)
    (question,) = V3TrapDetector().questions(parse_answer(one_segment(NOTE, bundle.total_pages)), bundle)
    assert question.offline().findings == ()


LEAFLETS = (
    "Understanding your genetic test\nWhat does a positive result mean?\nA pathogenic variant raises the risk of cancer.\n"
    "Your doctor can explain what the result means for you.",
    "Preparing for your scan\nYou may be given contrast. You should not eat for four hours. A radiologist reads the images.",
    "What is a biopsy?\nA pathologist looks at tissue under a microscope.\nHow long does it take?\nAbout a week. Ask your surgeon.",
)
LEAFLETS += (
    *(
        f"{LEAFLETS[0]}\n{end}"
        for end in ("Last reviewed: 12/05/2023", "Leaflet 7, version of 2023-05-12", "Next review date: 1/26")
    ),
    f"{LEAFLETS[1]}\nName: ____________  Date: ________",
)
NO_LEAFLETS = (
    "Name:\nAda Brook\nWhat this means for you: your risk is raised. Ask your doctor.",
    "Reviewed by Dr. Moss 03/04/2025\nYour doctor has your result. You may call us. Your variant is c.68_69del.",
    "Patient: Ada Brook  Accession: G25-11\nA pathogenic variant was found. What this means for you: your risk is raised. Ask your doctor.",
    "BRCA2 c.5946delT, pathogenic. Thank you for sending this specimen. Thank you for your trust. Thank you.",
    "Report of 03/04/2025\nYour doctor has your result. You may call us. Your variant is c.68_69del.",
    "The margins are negative. Gleason 3 + 4. If you have questions, call the laboratory.",
)


@pytest.mark.parametrize(
    ("text", "fires"), [*((one, True) for one in LEAFLETS), *((one, False) for one in NO_LEAFLETS)]
)
@pytest.mark.parametrize("kind", [GENOMIC, PATHOLOGY, RADIOLOGY])
def test_a_leaflet_is_nobodys_report(text: str, fires: bool, kind: str) -> None:
    bundle = document(text)
    said = [one.message for one in observed(one_segment(kind, 1, evidence(text[:40], 1)), bundle)]
    assert any("explain a test or an illness" in one for one in said) is fires
    for other in (OTHER, NOTE):
        assert not any("explain" in one.message for one in observed(one_segment(other, 1), bundle))


def observed(value: Json, bundle: DocumentBundle) -> list[Issue]:
    detector = V3TrapDetector()
    return find_offline_issues(detector, detector.questions(parse_answer(value), bundle))
