"""What a notebook and a prompt show of a ranking."""

from types import SimpleNamespace

from crossgraft.rank import Ranking
from crossgraft.rank.record import RankingRecord


def test_a_prompt_shows_one_line_and_not_every_number():
    record = RankingRecord.model_construct(
        dataset=SimpleNamespace(name="breast"), primary_score="logme", advice="Start with a.", cells=[0.5] * 1000
    )
    assert repr(Ranking(record)) == "Ranking('breast by logme: Start with a.')"


def test_a_notebook_shows_the_answer_and_one_row_a_model(ranking):
    page = Ranking(ranking)._repr_html_()
    assert ">Start with " in page
    assert "peak_bytes" not in page and "NA" not in page
    assert page.count("<tr") == 11 and f"… and {len(ranking.models) - 10} more" in page
