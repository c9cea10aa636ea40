"""The packet of 39 pages, and every other decision, without the mouse; what a key must never do."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from documents.scanning import needs_tesseract
from playwright.sync_api import Browser, expect
from system.browser import fax_packet
from system.browser.fax_packet import DOC_ID, TOTAL_PAGES, TRUTH
from system.browser.screen import Screen
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue, wait_until

TURNS = frozenset({"ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End"})
#: The page on which each fault of the agent is corrected, and the key that does it there.
CORRECTIONS = (
    (15, "]"),  # the genomic report ends here: page 16 is the radiology report's
    (19, "s"),  # the other patient's discharge summary starts here
    (19, "Shift+P"),
    (23, "5"),  # a consent form is no note
    (26, "Shift+D"),
)
#: From the queue to the stored truth, opening and submitting included.
MAX_KEYS, MAX_TURNS = 7, 10


class Keys:
    """An expert's keyboard; every press is counted, letters that are typed apart."""

    def __init__(self, screen: Screen, waiting: CaseQueue) -> None:
        self.screen, self.page, self._waiting = screen, screen.page, waiting
        self.pressed: Counter[str] = Counter()

    @property
    def deciding(self) -> int:
        """How many presses were no page turns."""
        return sum(count for key, count in self.pressed.items() if key not in TURNS)

    @property
    def turning(self) -> int:
        return sum(count for key, count in self.pressed.items() if key in TURNS)

    def press(self, key: str) -> None:
        self.pressed[key] += 1
        self.page.keyboard.press(key)

    def log_in(self, code: str) -> None:
        self.page.goto(self.screen.address)
        self.page.wait_for_selector("input[name=code]:focus")
        self.page.keyboard.type(code)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(".ek-queue-head")

    def open_next(self, case_id: str) -> None:
        """Enter on the button that has the focus when the queue opens."""
        self.page.wait_for_selector("button:has-text('Next case'):focus")
        self.press("Enter")
        self.screen.wait_for_case()
        self.painted(case_id)

    def painted(self, case_id: str) -> None:
        """Wait until what the case opens on was on screen long enough to count."""
        wait_until(self.screen, lambda: bool(self.draft(case_id)["evidence_seen"]), f"the evidence of {case_id} seen")
        self.page.wait_for_selector(".ek-issue .ek-seen")  # and the answer of the write is on the page

    def decided(self, case_id: str, *outcomes: str) -> None:
        """Wait until that was decided, and the case has left the screen."""
        wait_until(self.screen, lambda: self._waiting.outcomes(case_id) == list(outcomes), f"{case_id} {outcomes}")
        self.page.wait_for_selector(f".ek-crumbs:not(:has-text('{case_id}.pdf'))")

    def draft(self, case_id: str) -> dict:
        return self._waiting.draft(case_id) or {"evidence_seen": [], "pages_seen": [], "segments": []}

    def go_to(self, case_id: str, page: int) -> None:
        """Turn to a page, by the fewest presses."""
        here = int(self.page.locator(".ek-pane").get_attribute("data-page"))
        starts = [one["start_page"] for one in self.draft(case_id)["segments"]]
        for key, on in _way(here, page, starts, TOTAL_PAGES):
            self.press(key)
            self.page.wait_for_selector(f'.ek-pane[data-page="{on}"]')
        wait_until(self.screen, lambda: page in self.draft(case_id)["pages_seen"], f"page {page} seen")

    def change(self, case_id: str, key: str) -> None:
        """Press what changes the draft, and wait until it is on disk."""
        before = _said(self.draft(case_id))
        self.press(key)
        wait_until(self.screen, lambda: _said(self.draft(case_id)) != before, f"{key} has changed the draft")


def _said(draft: dict) -> dict:
    return {name: draft.get(name) for name in ("segments", "flags", "issue_verdicts")}


def _way(here: int, there: int, starts: list[int], last: int) -> list[tuple[str, int]]:
    """The shortest run of keys, each with the page that it leads to."""
    came: dict[int, tuple[int, str]] = {here: (here, "")}
    waiting = deque([here])
    while there not in came:
        page = waiting.popleft()
        moves = {
            "ArrowLeft": max(page - 1, 1),
            "ArrowRight": min(page + 1, last),
            "PageUp": max((start for start in starts if start < page), default=page),
            "PageDown": min((start for start in starts if start > page), default=page),
            "Home": 1,
            "End": last,
        }
        for key, on in moves.items():
            if on not in came:
                came[on] = (page, key)
                waiting.append(on)
    keys: list[tuple[str, int]] = []
    while there != here:
        before, key = came[there]
        keys.insert(0, (key, there))
        there = before
    return keys


@pytest.fixture(scope="module")
def fax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fax")
    fax_packet.run(folder)
    return folder / "output"


@pytest.fixture(scope="module")
def review_server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    output = tmp_path_factory.mktemp("keyboard") / "output"
    with serve(output, ["dr_lee"]) as server:
        yield server


@pytest.fixture
def case_queue(case_queue: CaseQueue) -> CaseQueue:
    """With nothing in the queue that a test left."""
    case_queue.clear()
    return case_queue


@pytest.fixture
def stranger(review_server: Served, chromium: Browser, case_queue: CaseQueue) -> Iterator[Keys]:
    """The keyboard of who has not logged in yet."""
    screen = Screen(chromium, review_server.address, 1440, 900)
    yield Keys(screen, case_queue)
    screen.assert_clean()
    screen.close()


@pytest.fixture
def keys(login: Callable[..., Screen], case_queue: CaseQueue) -> Keys:
    return Keys(login(), case_queue)


@pytest.fixture
def start(keys: Keys, case_queue: CaseQueue, small_run_output: Path) -> Callable[..., None]:
    """Put small cases into the queue, the first of them to be opened first, and open that one."""

    def begin(*names: str, document: str = "one_document") -> None:
        for name in names:
            case_queue.put(small_run_output, document, name)
        keys.screen.button("Refresh").click()
        keys.screen.row(names[-1]).wait_for()
        keys.page.keyboard.press("n")
        keys.screen.wait_for_case()
        keys.painted(names[0])

    return begin


# --- the packet -----------------------------------------------------------------------------------------------------


@needs_tesseract
def test_fax_packet_escalates_with_its_own_faults_only(fax: Path) -> None:
    assert [one.start_page for one in TRUTH] == [1, *(one.end_page + 1 for one in TRUTH[:-1])]
    assert TRUTH[-1].end_page == TOTAL_PAGES
    result = json.loads((fax / f"results/{DOC_ID}.json").read_text())
    assert (result["decision"], result["decision_rule"]) == ("ESCALATE_TO_SME", "1")
    raised = sorted((one["code"], one["page"]) for one in result["issues"] if one["code"] != "V2-NO-ACT")
    assert raised == [
        ("READER-NO-TEXT", fax_packet.BY_HAND),
        ("V2-BOUNDARY-DOUBT", 16),  # the first page of a report, in the one before
        ("V2-BOUNDARY-DOUBT", 17),
        ("V2-BOUNDARY-DOUBT", 19),  # the other patient's pages in a note
        ("V2-PAGES-REPEATED", 26),  # what was sent twice: pages 26 to 28
        ("V2-PATIENT-SEVERAL", 19),
        ("V2-SECOND-READING", 23),  # a consent form as a note
        ("V2-SEMANTIC", 23),
        ("V4-EVIDENCE-WEAK", 23),
    ]
    (no_act,) = (one for one in result["issues"] if one["code"] == "V2-NO-ACT")
    assert result["classification"]["segments"][no_act["segment_index"] - 1]["start_page"] == 23


@needs_tesseract
def test_39_page_packet_is_corrected_by_keyboard_alone(
    stranger: Keys, review_server: Served, case_queue: CaseQueue, fax: Path, shots: Path | None
) -> None:
    keys, case_id = stranger, case_queue.put(fax, DOC_ID, DOC_ID)
    keys.log_in(review_server.codes["dr_lee"])
    keys.open_next(case_id)
    stops = sorted({page for page, _ in CORRECTIONS})
    for stop in stops:
        keys.go_to(case_id, stop)
        for key in (key for page, key in CORRECTIONS if page == stop):
            keys.change(case_id, key)
    keys.page.wait_for_selector(".ek-record .ek-line-change")
    changes = " | ".join(keys.page.locator(".ek-record .ek-line-change").all_inner_texts())
    for words in ("page 16", "page 19", "Pages 23–25: Clinical Note → Other"):
        assert words in changes, changes
    keys.screen.shot(shots, "fax-packet-1440")
    keys.press("Control+Enter")
    keys.decided(case_id, "corrected")
    review = json.loads((review_server.output / f"reviews/{case_id}/0001.json").read_text())
    assert (review["outcome"], review["reviewer"]) == ("corrected", "dr_lee")
    after = [(one["start_page"], one["end_page"], one["dominant_type"]) for one in review["after"]["segments"]]
    assert after == [(one.start_page, one.end_page, one.document_type) for one in TRUTH]
    truth = json.loads((review_server.output / f"ground_truth/gt_{case_id}.json").read_text())
    stored = truth["ground_truth_classification"]["segments"]
    assert [(one["start_page"], one["end_page"], one["dominant_type"]) for one in stored] == after
    flagged = {(one["start_page"], one["end_page"], one["flag"]) for one in review["segment_flags"]}
    assert flagged == {(one.start_page, one.end_page, flag) for one in TRUTH for flag in one.flags}
    assert set(review["pages_seen"]) >= set(stops)
    print(f"\n{keys.deciding} keys for {len(CORRECTIONS)} corrections, {keys.turning} page turns: {dict(keys.pressed)}")
    assert keys.deciding <= MAX_KEYS
    assert keys.turning <= MAX_TURNS


# --- how few keys ---------------------------------------------------------------------------------------------------


def test_one_key_validates_and_opens_the_next_case(
    keys: Keys, start: Callable[..., None], case_queue: CaseQueue
) -> None:
    start("v_one", "v_two")
    keys.press("v")
    keys.decided("v_one", "validated")
    keys.painted("v_two")
    assert keys.deciding + keys.turning == 1
    assert case_queue.outcomes("v_two") == []


@pytest.mark.parametrize(("document", "key"), [("one_document", "5"), ("two_documents", "]")])
def test_a_correction_is_submitted_with_three_keys_at_most(
    keys: Keys, start: Callable[..., None], review_server: Served, case_queue: CaseQueue, document: str, key: str
) -> None:
    case_id = f"corrected_{document}"
    start(case_id, document=document)
    keys.change(case_id, key)
    keys.page.wait_for_selector(".ek-record .ek-line-change")  # what was changed is shown, so it may be submitted
    keys.press("Control+Enter")
    keys.decided(case_id, "corrected")
    after = json.loads((review_server.output / f"reviews/{case_id}/0001.json").read_text())["after"]["segments"]
    expected = {
        "5": [(1, 3, "Other")],
        "]": [(1, 1, "Clinical Note"), (2, 3, "Pathology Report")],
    }[key]
    assert [(one["start_page"], one["end_page"], one["dominant_type"]) for one in after] == expected
    assert keys.deciding + keys.turning <= 3


# --- what a key must never do ---------------------------------------------------------------------------------------


def test_a_key_that_is_held_down_decides_once(keys: Keys, start: Callable[..., None], case_queue: CaseQueue) -> None:
    start("held_one", "held_two")
    keys.page.keyboard.down("v")
    keys.decided("held_one", "validated")
    keys.painted("held_two")
    for _ in range(5):
        keys.page.keyboard.down("v")  # the browser says that these are repeats
        keys.page.wait_for_timeout(100)
    keys.page.keyboard.up("v")
    keys.page.wait_for_timeout(1000)
    assert case_queue.outcomes("held_two") == []
    keys.press("v")
    keys.decided("held_two", "validated")


def test_a_held_change_key_does_not_submit_again_and_again(
    keys: Keys, start: Callable[..., None], case_queue: CaseQueue
) -> None:
    start("sent_one", "sent_two")
    keys.change("sent_one", "5")
    keys.page.wait_for_selector(".ek-record .ek-line-change")
    keys.page.keyboard.down("Control")
    keys.page.keyboard.down("Enter")
    keys.decided("sent_one", "corrected")
    keys.painted("sent_two")
    for _ in range(5):
        keys.page.keyboard.down("Enter")
        keys.page.wait_for_timeout(100)
    keys.page.keyboard.up("Enter")
    keys.page.keyboard.up("Control")
    keys.page.wait_for_timeout(1000)
    assert case_queue.outcomes("sent_two") == []


HOLD = """() => {
    const decode = HTMLImageElement.prototype.decode;
    window.letGo = new Promise((resolve) => {
        window.paint = () => { HTMLImageElement.prototype.decode = decode; resolve(); };
    });
    HTMLImageElement.prototype.decode = async function () { await window.letGo; return decode.call(this); };
}"""


def test_validating_before_the_page_is_painted_does_nothing(
    keys: Keys, start: Callable[..., None], case_queue: CaseQueue
) -> None:
    start("unpainted")  # all that must be seen was on screen
    keys.page.evaluate(HOLD)
    keys.press("ArrowRight")
    keys.press("v")
    expect(keys.page.locator(".ek-slow")).to_have_text("The page was still loading: press again.")
    keys.page.wait_for_timeout(1500)
    assert case_queue.outcomes("unpainted") == []
    keys.page.evaluate("window.paint()")
    keys.page.wait_for_selector('.ek-pane[data-page="2"]')
    wait_until(keys.screen, lambda: 2 in keys.draft("unpainted")["pages_seen"], "page 2 seen")
    keys.page.wait_for_timeout(1000)
    assert case_queue.outcomes("unpainted") == [], "an early press must not wait for its page either"
    keys.press("v")
    keys.decided("unpainted", "validated")


def test_a_press_that_began_in_one_case_does_nothing_to_the_next(
    keys: Keys, start: Callable[..., None], case_queue: CaseQueue
) -> None:
    start("first", "second")
    keys.screen.button("Other").hover()
    keys.page.mouse.down()
    keys.press("q")
    keys.page.keyboard.type("illegible")
    keys.press("Enter")
    keys.decided("first", "undeterminable")
    keys.page.wait_for_selector(".ek-crumbs:has-text('second.pdf')")
    keys.page.mouse.up()
    keys.painted("second")
    assert {one["dominant_type"] for one in keys.draft("second")["segments"]} == {"Clinical Note"}
    assert keys.page.locator(".ek-types .ek-chosen").inner_text().startswith("Clinical Note")


def test_space_bar_on_a_button_survives_a_screen_update(keys: Keys, start: Callable[..., None]) -> None:
    start("spaced")
    keys.screen.button("Other").focus()
    keys.page.keyboard.down("Space")
    keys.page.keyboard.press("ArrowRight")
    keys.page.wait_for_selector('.ek-pane[data-page="2"]')
    keys.page.wait_for_timeout(500)  # the kernel's answer has arrived
    keys.page.keyboard.up("Space")
    keys.page.wait_for_selector(".ek-types .ek-chosen:has-text('Other')")


def test_two_quick_presses_validate_one_case(keys: Keys, start: Callable[..., None], case_queue: CaseQueue) -> None:
    start("quick_one", "quick_two")
    keys.press("v")
    keys.press("v")
    keys.decided("quick_one", "validated")
    keys.painted("quick_two")
    keys.page.wait_for_timeout(1000)
    assert case_queue.outcomes("quick_two") == []


def test_a_key_acts_on_what_the_key_just_before_it_has_made(
    keys: Keys, start: Callable[..., None], case_queue: CaseQueue
) -> None:
    start("fast")
    keys.press("ArrowRight")
    wait_until(keys.screen, lambda: 2 in keys.draft("fast")["pages_seen"], "page 2 seen")
    for key in ("s", "5", "Shift+P"):  # faster than the page is drawn again
        keys.press(key)
    wait_until(keys.screen, lambda: bool(keys.draft("fast")["flags"]), "flagged")
    draft = keys.draft("fast")
    documents = [(one["start_page"], one["end_page"], one["dominant_type"]) for one in draft["segments"]]
    assert documents == [(1, 1, "Clinical Note"), (2, 3, "Other")]
    assert [(one["start_page"], one["flag"]) for one in draft["flags"]] == [(2, "other_patient")]
    keys.press("Control+Enter")
    keys.decided("fast", "corrected")


def test_a_click_on_another_page_does_not_overtake_a_key(keys: Keys, start: Callable[..., None]) -> None:
    start("overtaken")
    keys.press("ArrowRight")
    wait_until(keys.screen, lambda: 2 in keys.draft("overtaken")["pages_seen"], "page 2 seen")
    thumb = keys.page.locator('.ek-thumb[data-page="1"]').bounding_box()
    for key in ("s", "5"):  # the second waits for the answer to the first
        keys.press(key)
    keys.page.mouse.click(thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2)
    keys.page.wait_for_selector('.ek-pane[data-page="1"]')
    wait_until(keys.screen, lambda: "Other" in str(keys.draft("overtaken")["segments"]), "the type is set")
    documents = [(one["start_page"], one["dominant_type"]) for one in keys.draft("overtaken")["segments"]]
    assert documents == [(1, "Clinical Note"), (2, "Other")]


def test_letters_of_a_note_do_nothing_else(keys: Keys, start: Callable[..., None], case_queue: CaseQueue) -> None:
    start("noted", "noted_next")
    before = keys.draft("noted")["segments"]
    keys.press("n")
    keys.page.wait_for_selector("textarea:focus, input[type=text]:focus")
    note = "5 vials sent; vague, see x-ray? [1] juice, no hope"
    keys.page.keyboard.type(note, delay=10)
    keys.page.keyboard.press("Escape")
    wait_until(keys.screen, lambda: note in json.dumps(keys.draft("noted")), "the note is on disk")
    draft = keys.draft("noted")
    assert note in [*draft["issue_notes"].values(), *draft["segment_notes"].values()]
    assert (draft["segments"], draft["flags"], draft["issue_verdicts"], draft["page"]) == (before, [], [], 1)
    assert case_queue.outcomes("noted") == []
    keys.press("c")  # the keys are keys again
    wait_until(keys.screen, lambda: bool(keys.draft("noted")["issue_verdicts"]), "confirmed")


# --- undo -----------------------------------------------------------------------------------------------------------


def test_undo_in_an_unchanged_case_reopens_the_previous_one(
    keys: Keys, start: Callable[..., None], review_server: Served, case_queue: CaseQueue
) -> None:
    start("undone", "untouched")
    keys.press("v")
    keys.painted("untouched")
    keys.press("u")
    wait_until(keys.screen, lambda: case_queue.outcomes("undone") == ["validated", "reopened"], "reopened")
    keys.page.wait_for_selector(".ek-crumbs:has-text('undone.pdf')")
    again = json.loads((review_server.output / "reviews/undone/0002.json").read_text())
    assert (again["reviewer"], again["correction_notes"]) == ("dr_lee", "undone by the reviewer")
    assert not (review_server.output / "ground_truth/gt_undone.json").exists()
    assert case_queue.outcomes("untouched") == []


def test_undo_in_a_changed_case_reverts_only_that_change(
    keys: Keys, start: Callable[..., None], case_queue: CaseQueue
) -> None:
    start("kept", "touched")
    keys.press("v")
    keys.painted("touched")
    before = keys.draft("touched")["segments"]
    keys.change("touched", "5")
    keys.change("touched", "u")
    assert keys.draft("touched")["segments"] == before
    assert case_queue.outcomes("kept") == ["validated"]
