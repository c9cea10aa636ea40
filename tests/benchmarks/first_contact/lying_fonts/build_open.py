"""The open half of the fonts that lie and of their honest look-alikes."""

from __future__ import annotations

from pathlib import Path

from benchmarks.first_contact.lying_fonts.making import Face, Layout, LyingFont, Made

BREAST = """Northgate Breast Centre - Surgical pathology
Patient: Imelda Crane    Born: 14.02.1961    Case: S26-04417
Specimen: left breast, wide local excision
Tumor size: {size} cm in greatest dimension
Histologic grade: 2 of 3 (Nottingham score 6)
Margins: clear, closest 0.4 cm (medial)
ER {er}, PR 60 %, HER2 score 1+
pT2 pN0 (sn) (0/3)"""

CHEST = """Radiology - Harlan County Hospital
CT chest with contrast, 03/11/2026
Clinical question: staging, known melanoma
Right upper lobe nodule measuring {size} mm, previously 6 mm.
Mediastinal lymph nodes: {nodes} enlarged.
Liver: no focal lesion. Adrenals: unremarkable.
Impression: {word} disease.
Dr. Oskar Tillman, radiologist"""

LABS = """Laboratory Medicine, Sankt Brigitta Klinik
Name: Bohumil Raffay   Sample: 88-1203   08:15
Potassium          {k} mmol/l      3.5 - 5.1
Creatinine         88 {unit}mol/l      62 - 106
CRP                {crp} mg/l        < 5.0
Troponin T         14 ng/l       < 14
Haemoglobin        13.2 g/dl     13.5 - 17.5"""

GENE = """Molecular Pathology Unit, Veldhoven
Requested by: Dr. T. Abegg    Received: 2026-01-19
Gene panel of 52 genes, lung adenocarcinoma
EGFR exon 19 deletion: {egfr}
KRAS {kras}: detected, allele fraction {vaf} %
PD-L1 tumor proportion score: {pdl} %
MSI: stable. TMB: 7 mutations per megabase"""

DISCHARGE = """Discharge summary - Ward 7B
Mrs. Adaeze Lindqvist, admitted 2 May, discharged 9 May
Diagnosis: community acquired pneumonia, left lower lobe
Allergies: {allergy}
Warfarin {dose} mg once daily, next INR on Friday
Bisoprolol 2.5 mg in the morning
Follow-up at the clinic in {weeks} weeks"""

COLON = """GASTROINTESTINAL PATHOLOGY
Case 26-H-9912   Sigmoid resection
Adenocarcinoma, moderately differentiated
Depth of invasion: muscularis propria
Lymph nodes: {nodes} of 18 with metastasis
Stage: {stage}
Resection margins: {margin}
Mismatch repair proteins: retained"""

EYE = """Eye Clinic Dr. Halvorsen
Letter to the family doctor, 21 March
Visual acuity right 0.8, left {acuity}
Intraocular pressure {pressure} mmHg on both sides
Refraction right {dioptre} dpt
Next visit in six months"""

NARROW = Layout(size=9.5, left=72, top=700, leading=1.5, width=612, height=792)
WIDE = Layout(size=13, left=40, top=540, leading=1.9, width=842, height=595, rule=True)
STEPS = Layout(size=10.5, indent=14, leading=1.8, big_first=False)


def breast(size: str = "1.8", er: str = "90 %") -> str:
    return BREAST.format(size=size, er=er)


def chest(size: str = "11", nodes: str = "not", word: str = "progressive") -> str:
    return CHEST.format(size=size, nodes=nodes, word=word)


def labs(k: str = "4.4", unit: str = "µ", crp: str = "2.1") -> str:
    return LABS.format(k=k, unit=unit, crp=crp)


def gene(egfr: str = "negative", kras: str = "G12C", vaf: str = "31", pdl: str = "40") -> str:
    return GENE.format(egfr=egfr, kras=kras, vaf=vaf, pdl=pdl)


def discharge(allergy: str = "penicillin (rash)", dose: str = "2.5", weeks: str = "four") -> str:
    return DISCHARGE.format(allergy=allergy, dose=dose, weeks=weeks)


def colon(nodes: str = "2", stage: str = "pT2 pN1b", margin: str = "free") -> str:
    return COLON.format(nodes=nodes, stage=stage, margin=margin)


def eye(acuity: str = "0.5", pressure: str = "16", dioptre: str = "-1.25") -> str:
    return EYE.format(acuity=acuity, pressure=pressure, dioptre=dioptre)


def _lies(made: Made) -> None:
    def add(
        stem: str, what: str, pages: str | list[str], face: Face, *rest: Face, layout: Layout | None = None
    ) -> None:
        made.add(stem, what, pages, face, *rest, lies=True, layout=layout)

    add("breast_size", "composite font: one size's digits changed in ToUnicode", breast("{5.2|1.3}"), Face("type0"))
    add(
        "chest_digits",
        "composite font without a cmap: 1 and 7 change places everywhere",
        chest("17"),
        Face("type0", "DejaVuSerif", swap={"1": "7", "7": "1"}),
        layout=NARROW,
    )
    add("labs_point", "a decimal point said to be nothing", labs("{.|}".join("44")), Face("type0cff"))
    add("labs_micro", "milli said where micro is drawn", labs(unit="{µ|m}"), Face("type1c", "DejaVuSansMono"))
    add(
        "gene_negative",
        "negative drawn, positive said",
        gene(egfr="{negative|positive}"),
        Face("truetype", names="shown"),
    )
    add(
        "gene_moved",
        "glyphs moved inside the TrueType file; its cmap and the map agree with each other",
        gene(vaf="58"),
        Face("truetype", "DejaVuSans-Bold", to_unicode=False, swap={"5": "1", "8": "2", "1": "5", "2": "8"}),
    )
    add(
        "gene_cmap",
        "the cmap of the font file is right, ToUnicode is not",
        gene(pdl="{80|10}"),
        Face("type0", "STIXGeneral", cmap="shown"),
        layout=WIDE,
    )
    add(
        "discharge_cmap_told",
        "composite font: the cmap of the font file and ToUnicode tell the same lie",
        discharge(dose="7.5"),
        Face("type0", swap={"7": "2", "2": "7"}, cmap="told"),
    )
    add("discharge_type1", "Type 1 with its own encoding; names of the glyphs lie", discharge(allergy="{none|eggs}"),
        Face("type1", "DejaVuSerif", builtin=True, to_unicode=False))  # fmt: skip
    add("colon_type1", "Type 1 with an honest encoding and a lying ToUnicode", colon(nodes="{7|0}"),
        Face("type1", names="shown", ascii_codes=False))  # fmt: skip
    add("colon_type3", "drawn procedures (Type 3): stage changed", colon(stage="{pT4 pN2|pT1 pN0}"), Face("type3"))
    add(
        "eye_minus",
        "plus said where minus is drawn, Type 3 pictures",
        eye(dioptre="{-|+}1.25"),
        Face("type3bitmap", "cmr10", names="a"),
        layout=STEPS,
    )
    add("labs_less", "greater drawn, less said", labs(crp="{>|<} 2.1"), Face("type0", "DejaVuSansMono", ranges=True))
    add(
        "rotated_letters",
        "the whole alphabet moved on by one",
        chest(),
        Face("type0", swap={chr(c): chr(97 + (c - 96) % 26) for c in range(97, 123)}),
    )
    add("rotated_digits", "every digit is one higher than drawn; letters right", breast("2.7"),
        Face("type1c", swap={str(d): str((d + 1) % 10) for d in range(10)}), layout=NARROW)  # fmt: skip
    add(
        "second_font",
        "only the bold of two fonts lies",
        colon().replace("Lymph nodes", "§Lymph nodes"),
        Face("type0"),
        Face("type0", "DejaVuSans-Bold", "GHIJKL+Bold", swap={"2": "0"}),
    )
    made.add(
        "second_page",
        "only the font of the second page lies",
        [discharge(), labs("{6.9|3.9}"), eye()],
        Face("type0"),
        lies=True,
        page_faces=[
            Face("type0"),
            Face("type0", "DejaVuSansMono", "MNOPQR+Lab"),
            Face("type0", "DejaVuSerif", "STUVWX+Eye"),
        ],
    )
    add("actual_word", "an /ActualText that says another margin", colon(margin="[involved|free]"), Face("type0"))
    add("actual_size", "an /ActualText that says another size, standard font", breast("[3.6|0.6]"),
        Face("base14", to_unicode=False), layout=STEPS)  # fmt: skip
    add("pasted_word", "a picture of another word over the text", gene(egfr="«positive|negative»"), Face("type0"))
    add("pasted_dose", "a picture of another dose over the text", discharge(dose="«5.0|2.5»"),
        Face("truetype", "DejaVuSerif"), layout=NARROW)  # fmt: skip
    add(
        "helvetica_map",
        "a font that is not embedded, with a map that lies",
        eye(acuity="0.1"),
        Face("base14", swap={"1": "9", "9": "1"}),
    )
    add("weeks_word", "a word's letters changed, CFF", discharge(weeks="{four|nine}"),
        Face("type0cff", "DejaVuSerif-Bold"), layout=WIDE)  # fmt: skip
    add("kras_letter", "one letter of a variant changed", gene(kras="{G12D|G12C}"), Face("type1c", names="g"))


def _honest(made: Made) -> None:
    def add(
        stem: str, what: str, pages: str | list[str], face: Face, *rest: Face, layout: Layout | None = None
    ) -> None:
        made.add(stem, what, pages, face, *rest, lies=False, layout=layout)

    add(
        "subset_names", "numbered glyph names and an honest map", breast(), Face("type1c", names="g", ascii_codes=False)
    )
    add("subset_truetype", "codes in order of use, symbolic TrueType", labs(),
        Face("truetype", cmap="codes", ascii_codes=False, first=1))  # fmt: skip
    add("ligature", "a ligature said as two letters", discharge().replace("Diagnosis:", "De{ﬁ|fi}nite diagnosis:"),
        Face("type0", "DejaVuSerif"))  # fmt: skip
    add("ligature_sign", "ligatures said by their own sign", colon().replace("differentiated", "diﬀerentiated"),
        Face("type0cff", "DejaVuSans"))  # fmt: skip
    capitals = dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", (0.78, 0.75, 0.0))
    add(
        "small_capitals",
        "small capitals said as small letters",
        chest().replace("Impression", "§{IMPRESSION|impression}"),
        Face("type0"),
        Face("type0", "DejaVuSerif", "SMALLC+Caps", shape=capitals),
    )
    add("accents", "accented letters made of two glyphs", eye().replace("Dr. Halvorsen", "Dr. Hélène Müller-Sørå"),
        Face("type0", composite=True))  # fmt: skip
    add("greek_mu", "the micro sign said as a Greek letter", labs(unit="{µ|μ}"), Face("type0"))
    add("greek_words", "Greek letters among others", gene().replace("MSI: stable", "β-catenin: normal. α-fetoprotein: 3 ng/ml. Δ 0"),
        Face("type0", "DejaVuSans", cmap="shown"), layout=NARROW)  # fmt: skip
    add("symbol", "the standard Symbol font for signs", breast().replace("1+", "1+\n§abgm"),
        Face("base14", to_unicode=False),
        Face("base14", base14="Symbol", swap={"a": "α", "b": "β", "g": "γ", "m": "μ"}, to_unicode=False))  # fmt: skip
    add("dingbats", "ticks of the standard Dingbats font", discharge() + "\n§4 4 8",
        Face("base14", to_unicode=False),
        Face("base14", base14="ZapfDingbats", swap={"4": "✔", "8": "✘"}, to_unicode=False))  # fmt: skip
    add("no_map_names", "no ToUnicode; the names of the glyphs say it", chest(), Face("type1c", to_unicode=False))
    add("no_map_truetype", "no ToUnicode; WinAnsi with the font's cmap", discharge(),
        Face("truetype", "DejaVuSerif", names="shown", win_ansi=True, to_unicode=False), layout=WIDE)  # fmt: skip
    add("icons", "icons with codes for private use", discharge() + "\n§{★|\ue0a1}{♥|\ue0b2}",
        Face("type0"), Face("type0", "DejaVuSans", "ICONSA+Awesome"))  # fmt: skip
    add("tex_pictures", "fonts of pictures as TeX makes them, with no map", colon(),
        Face("type3bitmap", "cmr10", names="a", to_unicode=False), layout=STEPS)  # fmt: skip
    add("two_codes", "two codes for one glyph", labs(), Face("type1c", "DejaVuSansMono", duplicate=True))
    add("no_break", "spaces that may not break", breast("1.8{ |\u00a0}cm and 0.6"), Face("type0"))
    add("soft_hyphen", "a hyphen at the end of a line said as a soft one",
        colon().replace("Adenocarcinoma", "Adenocarci{-|\u00ad}\nnoma"), Face("type0", "DejaVuSerif"))  # fmt: skip
    add(
        "no_cmap",
        "composite font whose file has no cmap, codes by a table",
        gene(),
        Face("type0", "STIXGeneral", cid_map=True),
    )
    old = dict.fromkeys("34579", (1.0, 1.0, -190.0)) | dict.fromkeys("012", (0.95, 0.7, 0.0))
    add("old_digits", "old-style digits", breast("3.4"), Face("type0cff", "DejaVuSerif", shape=old))
    add("same_name", "two fonts of one name with codes of their own",
        chest().replace("Liver", "§Liver"), Face("type0"), Face("type0", "DejaVuSerif"))  # fmt: skip
    add("tex_outlines", "a Type 1 font of TeX with ligatures low in the encoding",
        discharge().replace("Diagnosis", "Con{ﬁ|ﬁ}rmed diagnosis"),
        Face("type1", "cmr10", "CMRAAA+CMR10", builtin=True, to_unicode=False, codes={"ﬁ": 12}))  # fmt: skip
    add("actual_equal", "an /ActualText that says what is drawn", gene(egfr="[negative|negative]"), Face("type0"))
    add(
        "actual_ligature",
        "an /ActualText for a ligature",
        discharge(allergy="[ﬁsh|fish]"),
        Face("type0", to_unicode=True),
    )
    add(
        "picture_beside", "a picture of the same word over the text", labs("«4.4|4.4»"), Face("type0", "DejaVuSansMono")
    )


def build(folder: Path) -> list[LyingFont]:
    """Write the files of this half into a folder."""
    made = Made(folder)
    _lies(made)
    _honest(made)
    return made.files
