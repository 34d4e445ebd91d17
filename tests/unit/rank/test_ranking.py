"""What a notebook and a prompt show of a ranking."""

from types import SimpleNamespace

from crossgraft.models.record import ModelRecord
from crossgraft.rank import Ranking
from crossgraft.rank.record import RankingByScore, RankingRecord, RankRow, ScoreCell


def test_a_prompt_shows_one_line_and_not_every_number():
    record = RankingRecord.model_construct(
        dataset=SimpleNamespace(name="breast"), primary_score="logme", advice="Start with a.", cells=[0.5] * 1000
    )
    assert repr(Ranking(record)) == "Ranking('breast by logme: Start with a.')"


def test_a_notebook_shows_the_advice_and_one_row_a_model():
    cell = {"score": "logme", "value": 0.5, "low": 0.4, "high": 0.6, "above_shuffled": True}
    cells = [ScoreCell(model="a", **cell), ScoreCell(model="a · random", **{**cell, "value": 0.25, "score": "logme"})]
    rows = [RankRow(model="a", role="candidate", rank=1, not_separable_from=[])]
    rows += [RankRow(model="a · random", role="random weights", rank=None, not_separable_from=[])]
    record = RankingRecord.model_construct(
        dataset=SimpleNamespace(name="breast"), primary_score="logme", advice="Start with a <b>.", cells=cells,
        rankings=[RankingByScore(score="logme", rows=rows, pairs=[], best_shuffled=None, num_shuffled=0)],
        models=[ModelRecord.model_construct(name="a", role="candidate"),
                ModelRecord.model_construct(name="a · random", role="random weights")],
    )  # fmt: skip
    page = Ranking(record)._repr_html_()
    assert "breast by logme: Start with a &lt;b&gt;." in page
    assert "<td>0.500</td>" in page and "peak_bytes" not in page and "NA" not in page
    assert page.count("<tr") == 3
