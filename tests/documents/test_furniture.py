"""Stamps, notices and patient strips by their words, and where on a page they count."""

from __future__ import annotations

import pytest
from builders import page

from evalkit.documents.furniture import (
    blank_web_and_mail_addresses,
    find_stamp_line_indices,
    has_page_furniture,
    is_stamp_line,
    load_furniture,
    strip_stamp_lines,
)

BODY = [
    f"The {organ} is of ordinary size and shows no focal change on these images." for organ in ("liver", "spleen")
] * 4
TITLE = "ULTRASOUND OF THE ABDOMEN"


@pytest.mark.parametrize(
    "line",
    [
        "06/11/2023 08:04 FROM: HARBOR CLINIC TO: 555-0190 P.02/09",
        "JUN-11-2023 08:04 FAX 5550198877 HARBOR RECORDS Pg 2/9",
        "5550198877 -> 5550112233 11.06.2023",
        "Facsimile transmission: Harbor Clinic",
        "Printed on 06/11/2023 08:04 for J. Doe, HIM",
        "Print date: 11 Jun 2023  Workstation 7",
        "Run Date: 06/11/23  Run User: JD",
        "Downloaded 6/11/2023 08:04",
        "Copy of the medical record, printed 06/11/2023",
        "** SCANNED 06/11/2023 batch 12 **",
        "Harbor Clinic  Page 2 of 9",
    ],
)
def test_stamps_of_faxes_and_print_outs(line: str) -> None:
    assert is_stamp_line(line)
    assert find_stamp_line_indices([line, TITLE, *BODY]) == {0}
    assert find_stamp_line_indices([TITLE, *BODY, line]) == {len(BODY) + 1}


@pytest.mark.parametrize(
    "line",
    [
        "Findings called to Dr. Doe at 555-0190 on 06/11/2023 08:04 from the reading room, page 2",
        "Seen on 06/11/2023 at 08:04",
        "Received: 06/11/2023  Reported: 06/12/2023",
        "Received 06/11/2023 fresh, labeled left breast",
        "Print name: ______ Date: 06/11/2023",
        "Exam date: 06/11/2023 08:04",
        "of the axilla are free of tumor. page 2 / 2",
        "BP 120/80 at 08:04, 118/76 at 09:10",
        "6 of 9 nodes, 2.3 cm",
        "Electronically signed by J. Doe, MD 06/11/2023 08:04",
    ],
)
def test_lines_of_the_body_are_no_stamps(line: str) -> None:
    assert not is_stamp_line(line)
    assert find_stamp_line_indices([TITLE, *BODY, line]) == set()


def test_a_stamp_amid_the_body_is_left_alone() -> None:
    assert find_stamp_line_indices([TITLE, *BODY, "Printed on 06/11/2023 08:04", *BODY, *BODY]) == set()


@pytest.mark.parametrize(
    "notice",
    [
        ["CONFIDENTIAL"],
        ["NOTICE: these pages are intended only for the clinic named above and are", "privileged and confidential."],
        ["If these pages reached you by mistake, please shred every page and", "call us."],
        ["This document contains protected health information.", "Unauthorized disclosure of it is prohibited by law."],
        ["Protected by federal rules of confidentiality; it may not be redisclosed", "to anybody."],
    ],
)
def test_a_notice_of_confidentiality_with_its_wrapped_lines(notice: list[str]) -> None:
    lines = [TITLE, *BODY, "Signed: J. Doe, MD", *notice]
    assert find_stamp_line_indices(lines) == set(range(len(lines) - len(notice), len(lines)))
    assert find_stamp_line_indices([*notice, TITLE, *BODY]) == set(range(len(notice)))


@pytest.mark.parametrize(
    "line",
    [
        "Authorization for release of protected health information",
        "I understand that what is disclosed may be redisclosed by the recipient.",
        "Confidentiality was discussed with the parents.",
        "The use of oxygen at night is recommended.",
    ],
)
def test_words_of_consent_and_of_care_are_no_notice(line: str) -> None:
    assert find_stamp_line_indices([TITLE, *BODY, line]) == set()


def test_patient_strips_count_outside_of_all_else() -> None:
    strip = "DOE, JANE  DOB: 03/04/1961  MRN 70021  Room: 4"
    stamp = "Printed on 06/11/2023 08:04"
    assert find_stamp_line_indices([stamp, strip, TITLE, *BODY, strip, stamp]) == {0, 1, len(BODY) + 3, len(BODY) + 4}
    assert find_stamp_line_indices([TITLE, strip, *BODY, strip, "Signed: J. Doe, MD"]) == set()


def test_a_line_of_telephones_is_a_stamp_below_a_stamp_alone() -> None:
    line = "Tel (555) 019-8877 / Fax (555) 019-8878"
    assert find_stamp_line_indices(["Facsimile transmission: Harbor Clinic", line, TITLE, *BODY]) == {0, 1}
    assert find_stamp_line_indices(["Harbor Clinic", line, TITLE, *BODY]) == set()


def test_a_cover_sheet_and_an_empty_page_keep_their_stamps() -> None:
    stamp = "06/11/2023 08:04 FROM: HARBOR CLINIC TO: 555-0190 P.01/09"
    assert find_stamp_line_indices([stamp, "FAX COVER SHEET", *BODY]) == set()
    assert find_stamp_line_indices([stamp, TITLE, "See the next page.", "CONFIDENTIAL"]) == set()


def test_text_without_stamps_keeps_a_repeated_letterhead() -> None:
    stamp = "06/11/2023 08:04 FROM: HARBOR CLINIC TO: 555-0190 P.02/09"
    lines = [stamp, "Harbor Laboratory", TITLE, *BODY]
    stamped = page(1, "\n".join(lines), furniture=lines[:2])
    assert strip_stamp_lines(stamped).split("\n") == lines[1:]
    assert strip_stamp_lines(page(1, "\n".join(lines))).split("\n") == lines


@pytest.mark.parametrize(
    ("text", "is_furniture"),
    [
        ("Pg 3/8", True),
        ("D.O.B. 4 March 1961", True),
        ("Medical Record Number: 70021", True),
        ("Facsimile no. 555 019 8877", True),
        ("ER 3/8, PR 6/8", False),
        ("the medical record shows a fall", False),
    ],
)
def test_spellings_of_what_is_no_evidence(text: str, is_furniture: bool) -> None:
    assert has_page_furniture(text) is is_furniture


@pytest.mark.parametrize("address", ["https://lab.example/a?b=1", "www.lab.com/requisition", "desk@lab.org", "lab.com"])
def test_addresses_become_spaces_of_the_same_length(address: str) -> None:
    text = f"Ask {address} today"
    assert blank_web_and_mail_addresses(text) == f"Ask {' ' * len(address)} today"


def test_abbreviations_are_no_addresses() -> None:
    for text in ("No. 5. Com. Net weight", "Dr. Lee, M.D. of St. Mary", "c.68_69del p.Glu23Valfs"):
        assert blank_web_and_mail_addresses(text) == text


def test_stamps_name_parts_that_exist() -> None:
    table = load_furniture()
    for stamp in (*table.stamp, *table.outer_stamp):
        assert {*stamp.all, *stamp.any} <= table.stamp_part_patterns_by_id.keys()
