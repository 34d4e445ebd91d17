"""What a notebook and a prompt show of a ranking."""

from types import SimpleNamespace

from crossgraft.rank import Ranking
from crossgraft.records import RankingRecord


def test_a_prompt_shows_one_line_and_not_every_number():
    record = RankingRecord.model_construct(
        dataset=SimpleNamespace(name="breast"), primary_score="logme", advice="Start with a.", cells=[0.5] * 1000
    )
    assert repr(Ranking(record)) == "Ranking('breast by logme: Start with a.')"
