"""Mails, articles, series and text that repeats itself are nobody's record, whatever words they have."""

from __future__ import annotations

import pytest
from builders import OTHER, PATHOLOGY, answer, compose_single_type, document, page, parse_answer, segment

from evalkit.classification.offline.acts import NO_ACT_CODE, find_act_issues
from evalkit.classification.offline.text_genres import find_text_genre
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.identity.page_identity import find_patient_identifiers

REPORT = (
    "FINAL DIAGNOSIS: Skin, left forearm, shave: basal cell carcinoma, nodular. Margins negative.\n"
    "GROSS DESCRIPTION: Received in formalin is a piece of skin of 0.9 x 0.6 x 0.2 cm, trisected, all in A1.\n"
    "MICROSCOPIC DESCRIPTION: Sections show nests of basaloid cells with peripheral palisading."
)
PATIENT = "Patient: Ruth Example   DOB: 02/03/1950   MRN: 448812\n"


def build_bundle(*texts: str) -> DocumentBundle:
    return document(
        *(
            page(number, text).model_copy(update={"identifiers": find_patient_identifiers(text, ())})
            for number, text in enumerate(texts, 1)
        )
    )


@pytest.mark.parametrize(
    ("pages", "sign"),
    [
        ([f"From: T. Example\nTo: Skin Clinic\nSubject: is this good news?\nIt says: {REPORT}"], "begins like a mail"),
        ([f"From: Desk   To: Ward   Sent: Monday 9:40   Subject: result\n\n{REPORT}"], "begins like a mail"),
        ([f"Ward in-box 12\nfrom: reception   to: Dr. Sample\nShe read me this:\n{REPORT}"], "begins like a mail"),
        ([f"Please see below.\n-----Original Message-----\n{REPORT}"], "forwards or answers a mail"),
        ([f"Thanks!\nOn 3 May 2024 at 08:12, the desk wrote:\n{REPORT}"], "forwards or answers a mail"),
        ([f"Can somebody explain what they wrote about my father's arm?\n{REPORT}"], "is written by a patient or a relative"),
        (["Abstract. We looked at skin.\nMethods: shaves.\nDiscussion: more work is needed."], "has the parts of an article"),
        (["Case report. A man of 50 had a nodule.\nDiscussion. Rare.", "References\n1. Somebody, 2011."], "has the parts of an article"),
        (["Of 1,310 consecutive patients 14 (1.1%) had a second tumour (p = 0.03)."], "counts many patients or samples"),
        (["We describe 12 of 46 sarcomas with a fusion. All tumours were stable."], "counts many patients or samples"),
        (["Laboratory handbook, revision 7\n4.1 Staff must mark each block in pencil.\n4.2 Blocks older than two days are not "
          "allowed."], "sets rules for many"),
        (["Liver: [normal/{size} cm lesion] Spleen: [normal/large]\n" + "Node ____ measures *** mm at level [ ].\n" * 3],
         "is a form that was hardly filled in"),
        (["Scribe 2 of 2", *["Patient feels well today. Chest is quite clear. Return in a year. " * 3] * 2], "repeats the same sentences"),
        (["Sections show skin. No tumour is seen. All margins are clear. " * 4], "repeats the same sentences"),
    ],
)  # fmt: skip
def test_nobodys_record_is_told(pages: list[str], sign: str) -> None:
    bundle = build_bundle(*pages)
    genre = find_text_genre(bundle.pages)
    assert genre is not None
    assert genre.description == sign


@pytest.mark.parametrize(
    "text",
    [
        REPORT,
        f"FROM: 555 0100  TO: 555 0199  PAGE 1 OF 2\n{PATIENT}{REPORT}",
        f"To: Dr. Sample\nFrom: Dr. Example\nDate: 3 May 2024\nRe: Ruth Example\n\nThank you for asking me to see her.\n{REPORT}",
        'She says "my mother had the same thing on her nose and nobody cared" and asks for an early date.',
        f"{PATIENT}{REPORT}\nCOMMENT: in 1,204 consecutive patients the median time was 9 months (p = 0.02).",
        f"{PATIENT}{REPORT}\n3.2 Section 4 patients must not drive, which is not allowed.",
        REPORT + "".join(f"\n{part}: [x] clear [ ] near [ ] involved" for part in ("Medial", "Lateral", "Deep", "Upper", "Lower", "Ink")),
        f"{PATIENT}Background: palpitations.\nMethods: 24-hour recording.\nReferences\n1. Guideline 2020.\n{REPORT}",
        "\n".join(f"{part}. COLON, BIOPSY: Benign mucosa. No dysplasia is seen. Site {part} measures {number} mm, pale, soft."
                  for number, part in enumerate("ABCDEF")),
    ],
)  # fmt: skip
def test_records_are_of_no_such_genre(text: str) -> None:
    assert find_text_genre(build_bundle(text).pages) is None


def test_a_mail_that_is_called_a_report_goes_to_a_person() -> None:
    bundle = build_bundle(f"From: T. Example\nTo: Skin Clinic\nSubject: is this good news?\n{REPORT}")
    for kind, codes in ((PATHOLOGY, [NO_ACT_CODE]), (OTHER, [])):
        called = answer(segment(1, 1, 1, kind, compose_single_type(kind)), overall=kind, shares={kind: 1.0})
        issues = [issue for issue in find_act_issues(parse_answer(called), bundle) if "mail" in issue.message]
        assert [issue.code for issue in issues] == codes
