"""Short summaries for notebook cells."""

from evalkit.core.notebook_cards import format_card

PAYLOAD = "<script>window.__xss=1</script>"


def test_everything_is_escaped() -> None:
    card = format_card(PAYLOAD, [PAYLOAD], [(PAYLOAD, PAYLOAD)])
    assert "<script" not in card
    assert card.count("&lt;script&gt;") == 4


def test_many_lines_are_counted() -> None:
    card = format_card("headline", map(str, range(30)), [])
    assert "and 22 more" in card
    assert "<li>8</li>" not in card
    assert "Next" not in card
