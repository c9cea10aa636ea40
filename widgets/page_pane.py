"""The packet as a ribbon of pages, and one page large, with what is lit on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from evalkit.errors import DocumentError
from widgets.assets import css, esm

Pictures = Callable[[int], bytes]
"""A page's number to its picture as JPEG."""


class PagePane(anywidget.AnyWidget):
    """Shows pages; says which page was asked for and which was painted (custom messages ``page``, ``painted``)."""

    _esm = esm("page_pane")
    _css = css("page_pane")

    version = traitlets.Unicode().tag(sync=True)
    """Changes with the document: pictures of another one are forgotten."""
    total = traitlets.Int(0).tag(sync=True)
    """Pages of the document."""
    page = traitlets.Int(0).tag(sync=True)
    """The page on screen, from 1."""
    segments = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{start, end, type}`` in order, all pages covered."""
    marks = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{page, x0, y0, x1, y1, style}``: fractions of the page; style ``found`` or ``near``."""
    issue_id = traitlets.Unicode().tag(sync=True)
    """The issue whose place is lit; empty for none."""
    note = traitlets.Unicode().tag(sync=True)
    """One line beside the page's tools."""

    def begin(self, version: str, total: int, segments: list[dict[str, Any]]) -> None:
        """Begin with another document."""
        with self.hold_sync():
            self.version, self.total, self.segments = version, total, segments
            self.page, self.marks, self.issue_id, self.note = 0, [], "", ""

    def turn(self, page: int, pictures: Pictures, marks: list[dict[str, Any]], issue_id: str, *, cached: bool) -> None:
        """Show a page; its neighbours follow, so that turning further does not wait."""
        if not cached:
            self._send_picture("page", page, pictures)
        with self.hold_sync():
            self.page, self.marks, self.issue_id = page, marks, issue_id
        for neighbour in (page + 1, page - 1):
            if 1 <= neighbour <= self.total:
                self._send_picture("page", neighbour, pictures)

    def send_thumbnails(self, pages: list[int], pictures: Pictures) -> None:
        """Send small pictures of these pages."""
        for page in pages:
            if 1 <= page <= self.total:
                self._send_picture("thumbnail", page, pictures)

    def _send_picture(self, kind: str, page: int, pictures: Pictures) -> None:
        try:
            picture = pictures(page)
        except DocumentError as error:  # one broken page must not keep the others from the screen
            self.note = str(error)
            return
        self.send({"kind": kind, "page": page, "version": self.version}, buffers=[picture])
