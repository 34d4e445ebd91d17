import re
from pathlib import Path

import pytest

from crossgraft.rank import evidence
from crossgraft.rank.evidence import OF_KNOWN_RESULTS, OF_SCORES, OF_TRAININGS, advised_order, images_of_training, models_to_train
from crossgraft.rank.page import answer_in_words
from crossgraft.rank.record import PriorRecord, PriorRow
from crossgraft.scores import SCORES
from crossgraft.tune.planning import choices

BENCHMARK = Path(__file__).parents[3] / "docs" / "results" / "benchmark.md"
TITLES = {"linear_probe": "Linear probe", "knn_probe": "Nearest neighbours", "lead": "LEAD"}
ROW = re.compile(r"^\| (.+?) \| (\d+) \| \d+ \| ([−\d.]+) \[([−\d.]+), ([−\d.]+)\] \|", re.MULTILINE)


def replays():
    """Method → weighted Kendall, its interval and the number of targets, over all tables."""
    page = BENCHMARK.read_text(encoding="utf-8")
    table = page.partition("## All tables together")[2].partition("\n## ")[0]
    rows = ROW.findall(table)
    return {name: (*(float(text.replace("−", "-")) for text in numbers), int(targets)) for name, targets, *numbers in rows}


def test_the_constants_are_those_of_the_committed_replays():
    measured = replays()
    assert {name: measured[TITLES.get(name) or SCORES.get(name).title] for name in OF_SCORES} == OF_SCORES
    assert measured["Static prior"] == OF_KNOWN_RESULTS
    assert measured["Validation alone"] == OF_TRAININGS


def test_a_training_is_as_long_as_tune_makes_it():
    assert (evidence.STEPS_OF_A_TRAINING, evidence.FEWEST_EPOCHS) == (choices.STEPS_IN_ALL, choices.FEWEST_EPOCHS)
    assert (evidence.BATCH_SIZES, evidence.LARGEST_BATCH) == (choices._BATCH_SIZES, choices._LARGEST_BATCH)
    assert evidence.MOST_EPOCHS == choices.MOST_EPOCHS
    assert images_of_training(1000) == 1000 * choices._epochs(1000, 32)


@pytest.fixture
def ranked(examples):
    record = examples.ranking_record()
    names = [row.model for row in record.ranking(record.primary_score).rows if row.rank is not None][:2]
    return record.model_copy(update={"advised": names, "prior": None})


def with_prior(record, ranks):
    rows = [
        PriorRow(model=name, num_targets=3, mean_rank=rank, prior_rank=1)
        for name, rank in zip(record.advised, ranks, strict=True)
    ]
    prior = PriorRecord(targets=["a", "b", "c"], origins=["own"], rows=rows, summary="Known.")
    return record.model_copy(update={"prior": prior})


def test_the_answer_says_how_weak_the_guide_is_and_at_last_what_settles_it(ranked):
    said = answer_in_words(ranked)
    assert said.startswith(ranked.advice)
    assert "Frozen features are a weak guide. On 51 published targets LogME agrees with fine-tuning at 0.19, results on " in said
    assert "crossgraft select settles it: it trains both" in said


def test_results_on_other_data_say_where_to_begin_where_there_are_some_of_two(ranked):
    first, second = ranked.advised
    assert advised_order(ranked) == [first, second]
    assert advised_order(with_prior(ranked, [0.6, 0.2])) == [second, first]
    assert advised_order(with_prior(ranked, [None, 0.2])) == [first, second]
    assert f"Of the two, {second} did best on 3 other targets" in answer_in_words(with_prior(ranked, [0.6, 0.2]))


def test_a_score_that_was_not_replayed_is_no_better_a_guide(ranked, monkeypatch):
    monkeypatch.delitem(evidence.OF_SCORES, ranked.primary_score)
    assert "was not replayed on published results" in answer_in_words(ranked)


def test_where_nothing_speaks_for_a_model_all_are_trained_in_the_order_of_known_results(ranked):
    names = [row.model for row in ranked.ranking(ranked.primary_score).rows if row.rank is not None]
    bare = ranked.model_copy(update={"advised": []})
    assert advised_order(bare) == [] and models_to_train(bare) == names
    assert answer_in_words(bare).startswith(f"{bare.advice} crossgraft select settles it: it trains ")
    known = with_prior(ranked, [0.9, 0.1]).model_copy(update={"advised": []})
    assert models_to_train(known)[0] == names[1] and models_to_train(known)[-1] == names[0]
    shuffled = bare.model_copy(update={"cells": [cell.model_copy(update={"above_shuffled": False}) for cell in bare.cells]})
    assert models_to_train(shuffled) == []
    assert answer_in_words(shuffled) == bare.advice
