"""The expert's screen, as an expert uses it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patience import SECONDS
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Request, Route

_ANSWERS = """() => {
    const [editor, pane] = [".ek-editor", ".ek-pane"].map((name) => document.querySelector(name));
    if (!editor?.querySelector("[data-key=n]") || document.querySelector(".ek[data-busy]")) return false;
    return "fault" in pane.dataset || pane.dataset.asked === editor.dataset.page;
}"""

_NEXT_FRAME = "() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))"

#: Before the page is in sight, keys that decide are ignored; in a tab that is behind another it never is.
_IN_SIGHT = """() => {
    if (document.hidden) return true;
    const { painted, told } = document.querySelector(".ek-pane").dataset;
    return (painted || told || "").startsWith(`${document.querySelector(".ek-editor").dataset.token}:`);
}"""


class Screen:
    """One browser with its own cookies; every request that would leave the machine is refused and counted."""

    def __init__(self, browser: Browser, address: str, width: int, height: int) -> None:
        self.address = address
        self.context = browser.new_context(viewport={"width": width, "height": height})
        self.context.set_default_timeout(1000 * SECONDS)
        self.page = self.context.new_page()
        self.outside: list[str] = []
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.context.route("**/*", self._route)
        self._watch(self.page)

    def _watch(self, page) -> None:
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._console)
        page.on("request", self._requested)

    def _route(self, route: Route) -> None:
        if route.request.url.startswith((self.address, "blob:", "data:")):
            route.continue_()
        else:
            self.outside.append(route.request.url)
            route.abort()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Content Security Policy" in message.text:
            self.faults.append(message.text)

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)

    def log_in(self, code: str) -> None:
        self.page.goto(self.address)
        self.page.fill("input[name=code]", code)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(".ek-queue-head")

    def second_tab(self) -> "Screen":
        """The same expert, another tab."""
        twin = object.__new__(Screen)
        twin.__dict__ = dict(self.__dict__)
        twin.page = self.context.new_page()
        twin._watch(twin.page)
        twin.page.goto(self.address)
        twin.page.wait_for_selector(".ek-queue-head")
        return twin

    def cases(self) -> list[str]:
        return [card.get_attribute("data-case") for card in self.page.query_selector_all(".ek-case")]

    def row(self, case_id: str) -> Locator:
        return self.page.locator(f'.ek-case[data-case="{case_id}"]')

    def open(self, case_id: str, by: str = "Open") -> None:
        self.row(case_id).get_by_role("button", name=by).click()
        self.wait_for_case()

    def wait_for_case(self) -> None:
        self.page.wait_for_selector(".ek-page-image[src^='blob:']")
        self.page.wait_for_selector(".ek-why")
        # Before all three panels are there and answer, keys do nothing, or wait.
        self.page.wait_for_function(_ANSWERS)
        self.page.wait_for_function(_IN_SIGHT)

    def settle(self) -> None:
        """Wait until the last press is answered and drawn."""
        self.page.wait_for_function(_ANSWERS)
        self.page.evaluate(_NEXT_FRAME)

    def resize(self, width: int, height: int) -> None:
        """Another size of the window; waits until the page knows it and is laid out anew."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_function(
            "([width, height]) => innerWidth === width && innerHeight === height", arg=[width, height]
        )
        self.page.evaluate(_NEXT_FRAME)

    def queue(self) -> None:
        self.page.get_by_role("button", name="Queue").click()
        self.page.wait_for_selector(".ek-queue-head")

    def turn_to(self, number: int) -> None:
        self.page.locator(f'.ek-thumb[data-page="{number}"]').click()
        self.page.wait_for_selector(f'.ek-pane[data-page="{number}"]')

    def see_everything(self) -> None:
        """Look at every issue and every page long enough to count."""
        for issue in self.page.query_selector_all(".ek-issue"):
            name = issue.get_attribute("data-issue")
            self.page.locator(f'.ek-issue[data-issue="{name}"] .ek-message').click()
            self.page.wait_for_selector(f'.ek-issue[data-issue="{name}"] .ek-seen')
        for thumb in self.page.query_selector_all(".ek-thumb"):
            number = int(thumb.get_attribute("data-page"))
            self.turn_to(number)
            self.page.wait_for_selector(f'.ek-pane[data-painted$=":{number}"]')

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def note(self, words: str) -> None:
        """Type notes for the record, which are among the rare controls."""
        if not self.page.locator(".ek-rare").is_visible():
            self.button("More").click()
        self.page.get_by_label("notes for the record").fill(words)

    def problem(self) -> str:
        return self.page.locator(".ek-problem, .ek-queue-notice").first.inner_text()

    @contextmanager
    def asked_on_leaving(self, *, stays: bool = False) -> Iterator[list[str]]:
        """What the browser asks meanwhile before it leaves the page; each time it goes on, or stays."""
        asked: list[str] = []

        def answer(dialog: Dialog) -> None:
            asked.append(dialog.type)
            dialog.dismiss() if stays else dialog.accept()

        self.page.on("dialog", answer)
        try:
            yield asked
        finally:
            self.page.remove_listener("dialog", answer)

    def shot(self, folder: Path | None, name: str) -> None:
        if folder:
            self.page.screenshot(path=folder / f"{name}.png")

    def is_alive(self) -> bool:
        """Whether the workbench is on screen, and its kernel answers."""
        return self._has(".ek-why, .ek-queue-head") and not self._has(".ek-lost:not([hidden])")

    def _has(self, selector: str) -> bool:
        return self.page.locator(selector).count() > 0

    def rest(self) -> None:
        """Leave what is open, as after a login: all of the queue is shown."""
        self._leave()
        self.page.wait_for_selector(".ek-queue-head")
        clear = self.button("Clear all")
        if clear.is_visible():
            clear.click()
            clear.wait_for(state="hidden")
        order, finished = self.page.get_by_label("Order", exact=True), self.page.get_by_label("show finished")
        if order.input_value() != "errors":
            order.select_option("errors")
        if finished.is_checked():
            finished.uncheck()
            self.page.wait_for_selector(".ek-case-completed", state="detached")
        self.requests.clear()

    def close(self) -> None:
        """Log out, which ends the kernels of all tabs."""
        if self.is_alive():
            self._leave()
        token = next((cookie["value"] for cookie in self.context.cookies() if cookie["name"] == "_xsrf"), "")
        self.context.request.post(f"{self.address}/logout", form={"_xsrf": token})
        self.context.close()

    def _leave(self) -> None:
        """The open case goes back to the queue. The bar is the first to say that it has gone there by itself."""
        if self._has(".ek-crumbs [data-key=h]"):
            self.queue()

    def assert_clean(self) -> None:
        assert self.outside == [], "the page asked for something outside this machine"
        assert self.faults == [], self.faults


def find_highlights(screen: Screen) -> list[list[float]]:
    """What is marked on the page on screen, in fractions of it."""
    return screen.page.evaluate(
        """() => {
            const sheet = document.querySelector(".ek-page-image").getBoundingClientRect();
            return [...document.querySelectorAll(".ek-mark")].map((mark) => {
                const box = mark.getBoundingClientRect();
                return [(box.left - sheet.left) / sheet.width, (box.top - sheet.top) / sheet.height,
                        (box.right - sheet.left) / sheet.width, (box.bottom - sheet.top) / sheet.height];
            });
        }"""
    )
