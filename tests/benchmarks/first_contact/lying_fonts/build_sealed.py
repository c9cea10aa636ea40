"""The sealed half of the fonts that lie and of their honest look-alikes."""

from __future__ import annotations

from pathlib import Path

from benchmarks.first_contact.lying_fonts.making import Face, Layout, LyingFont, Made

LUNG = """ST. ORAN UNIVERSITY HOSPITAL / DEPT. OF PATHOLOGY
Report no. P-2026/31187                 Page 1 of 1
Name  FERREIRA, Duarte     DOB  09-Sep-1954     Sex  M
A. Right lower lobe, lobectomy:
   Squamous cell carcinoma, {size} cm, G{grade}
   Visceral pleural invasion {pleura}
   Bronchial margin {margin}; vascular margin clear
B. Lymph nodes 4R, 7, 10R: {nodes} positive of 11
AJCC 8th edition: {stage}
Signed electronically: N. Okonjo, MD"""

PROSTATE = """Urology outpatient letter
14 June 2026
Dear Dr. Pemberton,
Your patient Mr. Ansgar Whitlow was seen for his biopsy result.
Gleason score {gleason}, Grade Group 2, {cores} of 12 cores involved.
The PSA is {psa} {unit}/ml (last year 4.9).
Multiparametric MRI showed a lesion, PI-RADS {pirads}.
We advise {advice} and a new test in 3 months.
Yours sincerely, Hollis Varga, consultant urologist"""

BLOOD = """Meridian Diagnostics
ACCESSION 7741-0293-B   COLLECTED 06/02/26 07:40   FASTING
WBC              {wbc} x10^9/L          4.0-11.0
HGB              {hgb} g/L             120-160
PLT              {plt} x10^9/L          150-400
TSH              {tsh} mIU/L          0.40-4.00
FERRITIN         31 {unit}g/L            15-150
HIV 1/2 Ag/Ab    {hiv}"""

HEART = """Echocardiography Laboratory, Bayview Heart Institute
Mr. Castor Nyqvist, 71 years, BSA 1.94
Left ventricle: LVEF {ef} %, no regional akinesia
Aortic valve: mean gradient {gradient} mmHg, area {area} cm2
Mitral regurgitation: {mitral}
Thrombus: {thrombus}
Compared with 2025: unchanged"""

ONCO = """Chemotherapy order sheet
Protocol: FOLFOX6      Cycle: {cycle}      Weight: 74 kg
1. Oxaliplatin {oxali} mg/m2 i.v. over 2 h
2. Leucovorin 400 mg/m2 i.v.
3. Fluorouracil {fluoro} mg/m2 bolus, then 2400 mg/m2 over 46 h
Granisetron 1 {gran} before the infusion
Dose reduction: {reduce}
Checked by pharmacy: Ines Thorvald"""

NEURO = """NEURORADIOLOGY. MR BRAIN WITHOUT AND WITH CONTRAST
Exam date 2026/04/30. Ordering: Neurology, Bed 12
Comparison: 2025/10/02.
There is {lesion} enhancing lesion in the {side} frontal lobe, {size} mm.
Midline shift {shift} mm. Ventricles normal.
IMPRESSION: Findings {fit} with progression.
Electronically approved by R. Castellane"""

LETTER = Layout(size=12, left=90, top=690, leading=1.6, width=612, height=792, big_first=False)
SMALL = Layout(size=8.5, left=48, top=800, leading=1.45)
CARD = Layout(size=10, left=24, top=390, leading=1.75, width=595, height=420, rule=True, indent=8)


def lung(
    size: str = "2.6",
    grade: str = "2",
    pleura: str = "absent",
    margin: str = "clear",
    nodes: str = "1",
    stage: str = "pT1c pN1",
) -> str:
    return LUNG.format(size=size, grade=grade, pleura=pleura, margin=margin, nodes=nodes, stage=stage)


def prostate(
    gleason: str = "3+4=7",
    cores: str = "4",
    psa: str = "6.8",
    unit: str = "ng",
    pirads: str = "4",
    advice: str = "surgery",
) -> str:
    return PROSTATE.format(gleason=gleason, cores=cores, psa=psa, unit=unit, pirads=pirads, advice=advice)


def blood(
    wbc: str = "7.2", hgb: str = "134", plt: str = "256", tsh: str = "1.85", unit: str = "µ", hiv: str = "nonreactive"
) -> str:
    return BLOOD.format(wbc=wbc, hgb=hgb, plt=plt, tsh=tsh, unit=unit, hiv=hiv)


def heart(
    ef: str = "55", gradient: str = "12", area: str = "1.8", mitral: str = "mild", thrombus: str = "none seen"
) -> str:
    return HEART.format(ef=ef, gradient=gradient, area=area, mitral=mitral, thrombus=thrombus)


def onco(cycle: str = "3", oxali: str = "85", fluoro: str = "400", gran: str = "mg", reduce: str = "no") -> str:
    return ONCO.format(cycle=cycle, oxali=oxali, fluoro=fluoro, gran=gran, reduce=reduce)


def neuro(lesion: str = "one", side: str = "left", size: str = "13", shift: str = "2", fit: str = "consistent") -> str:
    return NEURO.format(lesion=lesion, side=side, size=size, shift=shift, fit=fit)


def _lies(made: Made) -> None:
    def add(
        stem: str, what: str, pages: str | list[str], face: Face, *rest: Face, layout: Layout | None = None
    ) -> None:
        made.add(stem, what, pages, face, *rest, lies=True, layout=layout, producer="ClinDoc PDF Engine 11")

    add(
        "lobe_size",
        "digits of one size changed, CFF in a composite font",
        lung("{6.1|2.6}"),
        Face("type0cff", "STIXGeneral"),
    )
    add("nodes_count", "one digit changed, codes by a table", lung(nodes="{5|0}"), Face("type0", "cmss10", cid_map=True),
        layout=SMALL)  # fmt: skip
    add("stage_letter", "a stage changed, Type 1 with numbered names", lung(stage="{pT3 pN2|pT1 pN0}"),
        Face("type1", "STIXGeneral", names="g", ascii_codes=False), layout=LETTER)  # fmt: skip
    add("pleura_word", "a word changed, symbolic TrueType", lung(pleura="{present|missing}"),
        Face("truetype", "DejaVuSerif", cmap="codes"))  # fmt: skip
    add("gleason_swap", "3 and 4 change places in the whole map", prostate("4+4=8"),
        Face("type0", "STIXGeneral", swap={"3": "4", "4": "3"}), layout=LETTER)  # fmt: skip
    add(
        "psa_point",
        "a comma drawn; the map says nothing there",
        prostate(psa="6{,|}8"),
        Face("type1c", "cmr10"),
        layout=LETTER,
    )
    add(
        "psa_unit",
        "micrograms drawn, nanograms said",
        prostate(unit="{µ|n}g"),
        Face("type0", "DejaVuSans-Oblique", ranges=True),
    )
    add("advice_word", "a treatment of the same length", prostate(advice="{surgery|waiting}"),
        Face("type3", "STIXGeneral", names="g"), layout=LETTER)  # fmt: skip
    add("moved_digits", "CFF: outlines moved under honest names, no map", blood(plt="63"),
        Face("type1c", "DejaVuSansMono", swap={"6": "2", "2": "6"}, to_unicode=False), layout=SMALL)  # fmt: skip
    add("moved_composite", "composite TrueType: outlines moved, file and map agree", blood(wbc="19.4"),
        Face("type0", "DejaVuSansMono-Bold", swap={"9": "1", "1": "9", "4": "0", "0": "4"}, cmap="told"))  # fmt: skip
    add("cmap_against_map", "the cmap of the file is right and the map is not", blood(tsh="{9.10|1.10}"),
        Face("type0", "DejaVuSansMono", cmap="shown"), layout=CARD)  # fmt: skip
    add("reactive", "letters added by the map: nonreactive for reactive", blood(hiv="{reactive|nonreactive}"),
        Face("type0", "DejaVuSans"))  # fmt: skip
    add("alphabet_back", "both cases moved back by three",
        neuro(), Face("type1c", "STIXGeneral", ascii_codes=False, swap={
            **{chr(c): chr(97 + (c - 100) % 26) for c in range(97, 123)},
            **{chr(c): chr(65 + (c - 68) % 26) for c in range(65, 91)},
        }))  # fmt: skip
    add("mirror_digits", "digits counted from nine down, Type 1 names", heart("35", "44", "0.8"),
        Face("type1", "cmss10", builtin=True, to_unicode=False, swap={str(d): str(9 - d) for d in range(10)}))  # fmt: skip
    add("oblique_only", "only the oblique font lies, on two lines",
        heart().replace("Left v", "§Left v").replace("Aortic", "§Aortic"),
        Face("type0", "DejaVuSans"), Face("type0", "DejaVuSans-Oblique", "XYZABC+Oblique", swap={"5": "3", "1": "7"}),
        layout=CARD)  # fmt: skip
    made.add(
        "first_page_lies",
        "the first of two pages has a lying font of the same name as the second's",
        [onco("{8|2}", "{65|85}"), onco()],
        Face("type0cff"),
        lies=True,
        page_faces=[Face("type0cff", "cmss10"), Face("type0cff", "cmss10")],
    )
    add("actual_dose", "an /ActualText ten times as high, Type 3 pictures", onco(fluoro="[40|400]"),
        Face("type3bitmap", "DejaVuSans"))  # fmt: skip
    add("actual_side", "an /ActualText with the other side, longer than the glyphs", neuro(side="[left|right]"), Face("truetype", "STIXGeneral"),
        layout=SMALL)  # fmt: skip
    add("pasted_reduction", "a picture pasted over a word of a standard font", onco(reduce="«80|no»"),
        Face("base14", base14="Times-Roman", source="STIXGeneral"))  # fmt: skip
    add("pasted_thrombus", "a picture pasted over two words", heart(thrombus="«apical|absent»"),
        Face("type0", "DejaVuSerif"), layout=LETTER)  # fmt: skip
    add("times_map", "a standard font with a map that lies in two letters", neuro(size="31"),
        Face("base14", base14="Times-Roman", source="STIXGeneral", swap={"3": "1", "1": "3"}))  # fmt: skip
    add("consistent", "a word turned round by the map", neuro(fit="{not fitting|in agreement}"),
        Face("type0", "cmr10"), layout=LETTER)  # fmt: skip
    add("less_greater", "less and greater change places", blood(tsh="<0.01"),
        Face("truetype", "DejaVuSans", names="shown", swap={"<": ">", ">": "<"}), layout=CARD)  # fmt: skip
    add("score_sign", "plus said where a minus sign is drawn", heart().replace("unchanged", "EF {−|+}20 points"),
        Face("type1", "DejaVuSans", names="shown"), layout=SMALL)  # fmt: skip


def _honest(made: Made) -> None:
    def add(
        stem: str, what: str, pages: str | list[str], face: Face, *rest: Face, layout: Layout | None = None
    ) -> None:
        made.add(stem, what, pages, face, *rest, lies=False, layout=layout, producer="ClinDoc PDF Engine 11")

    add(
        "order_of_use",
        "Type 1 codes in order of use, numbered names",
        lung(),
        Face("type1", "STIXGeneral", names="g", ascii_codes=False, first=1),
    )
    add("order_of_use_3", "Type 3 codes in order of use, numbered names", onco(), Face("type3", "DejaVuSerif", names="g", ascii_codes=False),
        layout=CARD)  # fmt: skip
    add("ligature_tex", "TeX's ligatures, CFF, no map", prostate(advice="a de{ﬁ|ﬁ}ned plan"),
        Face("type1c", "cmr10", to_unicode=False, codes={"ﬁ": 12, "ﬀ": 11}), layout=LETTER)  # fmt: skip
    add(
        "ligature_three",
        "a ligature said as three letters",
        heart(mitral="coe{ﬃ|ffi}cient 0.3"),
        Face("truetype", "cmr10", cmap="codes"),
    )
    caps = dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", (0.8, 0.76, 0.0))
    add("letterhead_capitals", "a letterhead in small capitals said as small letters",
        blood().replace("Meridian Diagnostics", "§{MERIDIAN DIAGNOSTICS|meridian diagnostics}"),
        Face("type0", "DejaVuSansMono"), Face("type1c", "STIXGeneral", "CAPSAA+Head", shape=caps, names="g"))  # fmt: skip
    add("names_with_accents", "accented names in a simple TrueType font of composites",
        neuro().replace("R. Castellane", "Zoë Gonçalves-Peña, Jérôme Åkesson"),
        Face("truetype", "DejaVuSerif", composite=True, names="shown"))  # fmt: skip
    add("accents_cff", "Czech and Hungarian names", lung().replace("FERREIRA, Duarte", "ČERNÝ, Jiří Őry"),
        Face("type0cff", "DejaVuSans"), layout=SMALL)  # fmt: skip
    add(
        "mu_other_way",
        "a Greek letter said as the micro sign",
        blood(unit="{μ|µ}"),
        Face("type1", "DejaVuSans", names="shown"),
    )
    add("signs", "signs of mathematics", heart("≥ 55", area="1.8 ± 0.1").replace("unchanged", "Δ ≤ 3 %, ≈ equal"),
        Face("type0", "STIXGeneral"), layout=LETTER)  # fmt: skip
    add("symbol_map", "the standard Symbol font with a map", prostate() + "\n§ag", Face("base14", base14="Times-Roman", source="STIXGeneral"),
        Face("base14", base14="Symbol", swap={"a": "α", "g": "γ"}))  # fmt: skip
    add("boxes", "boxes to tick of the standard Dingbats font, with a map", onco() + "\n§noq",
        Face("base14", base14="Courier", source="DejaVuSansMono"),
        Face("base14", base14="ZapfDingbats", swap={"n": "■", "o": "❏", "q": "❑"}), layout=SMALL)  # fmt: skip
    add(
        "standard_names",
        "Type 1 with its own encoding, no map",
        neuro(),
        Face("type1", "DejaVuSerif", builtin=True, to_unicode=False),
    )
    add("win_ansi", "TrueType with WinAnsi and no map", onco(), Face("truetype", "DejaVuSans-Bold", names="shown", win_ansi=True, to_unicode=False),
        layout=CARD)  # fmt: skip
    add("icon_bullets", "bullets and telephones with codes for private use",
        prostate().replace("Urology", "§{☎|\uf095} 555-0142 {✉|\uf0e0} clinic\nUrology"),
        Face("type0", "STIXGeneral"), Face("type1c", "DejaVuSans", "GLYPHS+Icons", names="g"))  # fmt: skip
    add(
        "tex_slides", "pictures of letters with a map", heart(), Face("type3bitmap", "cmss10", names="a"), layout=LETTER
    )
    add("tex_courier", "pictures of typewriter letters without a map", blood(unit="u"),
        Face("type3bitmap", "cmtt10", names="a", to_unicode=False), layout=SMALL)  # fmt: skip
    add("turns", "a composite font with two codes for each glyph", lung(), Face("type0", "STIXGeneral", duplicate=True))
    add(
        "narrow_spaces",
        "thousands parted by spaces that may not break",
        blood(plt="256{ |\u00a0}000"),
        Face("type0cff", "DejaVuSans"),
    )
    add("soft_hyphens", "two lines that end in soft hyphens",
        neuro().replace("consistent", "con{-|\u00ad}\nsistent"), Face("type1c", "STIXGeneral"),
        layout=LETTER)  # fmt: skip
    add("minus_said_hyphen", "a minus sign said as a hyphen", heart().replace("unchanged", "gradient {−|-}3 mmHg"),
        Face("type0", "STIXGeneral"))  # fmt: skip
    tabular = dict.fromkeys("0123456789", (1.12, 1.0, 0.0))
    add("tabular_digits", "digits of one width beside old-style ones",
        onco().replace("1. Oxali", "§1. Oxali").replace("3. Fluoro", "§3. Fluoro"),
        Face("type0", "DejaVuSerif", shape=dict.fromkeys("34579", (1.0, 0.95, -180.0))),
        Face("type0", "DejaVuSerif", "TABULA+Digits", shape=tabular))  # fmt: skip
    add("slanted", "letters slanted by the maker", lung(), Face("type0cff", "cmss10", slant=0.25), layout=SMALL)
    made.add(
        "page_fonts",
        "a font on each page, all of one name, with codes of their own",
        [heart(), onco(), neuro()],
        Face("type0"),
        lies=False,
        page_faces=[
            Face("type0", "DejaVuSans", cid_map=True),
            Face("type0", "cmss10"),
            Face("type0cff", "STIXGeneral"),
        ],
    )
    add(
        "actual_abbreviation",
        "an /ActualText that spells out an abbreviation",
        onco(gran="[mg|milligram]"),
        Face("type0", "STIXGeneral"),
    )
    add("actual_hyphenation", "an /ActualText that says the word without its hyphen", neuro(fit="[con-sistent|consistent]"),
        Face("type1c", "DejaVuSans"))  # fmt: skip
    add(
        "picture_same",
        "a picture of the same word over the text",
        heart(mitral="«mild|mild»"),
        Face("type0", "STIXGeneral"),
    )


def build(folder: Path) -> list[LyingFont]:
    """Write the files of this half into a folder."""
    made = Made(folder)
    _lies(made)
    _honest(made)
    return made.files
