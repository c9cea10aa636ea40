"""The progress bar: what is done, and what the calls of models cost."""

from typing import NamedTuple

import pytest

from evalkit.pipeline import show_progress_bar


class Outcome(NamedTuple):
    cost_usd: str | None
    doc_id: str = "doc2_6"
    calls: int = 3
    tokens: int = 1200


@pytest.mark.parametrize(
    ("costs", "spent"),
    [(["0.10", "0.25"], "6 calls, 2,400 tokens, $0.35"), (["0.10", None], "6 calls, 2,400 tokens, price unknown")],
    ids=["known", "unknown"],
)
def test_bar_adds_up_calls_tokens_and_dollars(
    costs: list[str | None], spent: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    with show_progress_bar(stderr=True) as on_progress:
        for number, cost in enumerate(costs, 1):
            on_progress(Outcome(cost), number, len(costs))
    shown = capsys.readouterr().err
    assert "2/2" in shown
    assert spent in shown
    assert "left" not in shown, "the time of a finished run is the time that it took"


def test_bar_of_a_stopped_run_shows_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), show_progress_bar(stderr=True) as on_progress:  # noqa: PT012
        on_progress(Outcome("0"), 1, 5)
        raise KeyboardInterrupt
    assert "1/5" in capsys.readouterr().err
