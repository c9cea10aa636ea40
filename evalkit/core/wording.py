"""Page numbers and lists in words, for sentences that people read."""

from collections.abc import Iterable, Sequence


def join_with_and(words: Sequence[str]) -> str:
    """Join words: ``1``, ``1 and 2``, ``1, 2 and 3``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def format_page_range(first_page: int, last_page: int) -> str:
    """Format a page range: ``page 3``, ``pages 3–5``."""
    return format_page_ranges([(first_page, last_page)])


def format_page_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Format page ranges: ``page 4``, ``pages 4–6``, ``pages 1, 4–6 and 8``."""
    is_single_page = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    words = [
        f"{first_page}" if first_page == last_page else f"{first_page}–{last_page}" for first_page, last_page in ranges
    ]
    return f"page{'' if is_single_page else 's'} {join_with_and(words)}"


def format_page_numbers(pages: Iterable[int]) -> str:
    """Format page numbers: ``page 4``, ``pages 1 and 8``."""
    return format_page_ranges([(page, page) for page in pages])


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun: ``1 file``, ``2 files``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def count_names(names: Sequence[str]) -> str:
    """Count equal names, sorted: ``2 AUTO_ACCEPT, 1 ESCALATE_TO_SME``."""
    return ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))
