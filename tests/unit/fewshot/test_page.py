"""The page of few-shot episodes: the answer, what limits it, and the table of heads."""

import pytest

from crossgraft.fewshot.page import FEWSHOT_CAVEATS, fewshot_verdict_section, heads_section
from crossgraft.fewshot.record import answer_in_words
from crossgraft.records.base import CheckRecord
from crossgraft.report.kinds import KINDS
from crossgraft.report.verdict import caveats_of
from support.fewshot_records import fewshot_record, head


@pytest.fixture
def record(examples):
    ranking = examples.ranking_record()
    dataset = ranking.dataset.model_copy(update={"num_skipped_unreadable": 0})
    return lambda **changed: fewshot_record(dataset, ranking.models[0], **changed)


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([head("copa", 0.81, 0.02), head("logistic", 0.79)], "above logistic (0.790 ± 0.010; paired difference +0.020 ± 0.004)"),
        ([head("copa", 0.80, 0.002), head("logistic", 0.79)], "not separable from logistic"),
        ([head("logistic", 0.8), head("ncc", 0.79, -0.003)], "no head is above the baseline. Not separable from it: ncc."),
        ([head("logistic", 0.8), head("ncc", 0.7, -0.1)], "episodes: no head is above the baseline."),
        (
            [head("logistic", 0.8)],
            "logistic is right on 0.800 ± 0.010 (95\N{NO-BREAK SPACE}% interval) of images that it did not learn "
            "from, mean of 600 episodes.",
        ),
    ],
)
def test_the_answer_is_the_best_head_and_how_it_stands_to_the_baseline(record, heads, said):
    assert said in answer_in_words(record(heads=heads))


def test_query_images_are_not_called_new_where_some_are_copies(record):
    copies = CheckRecord(title="Identical images", severity="warning", text="Two images are copies of another.")
    said = answer_in_words(record(heads=[head("logistic", 0.8)], checks=[copies]))
    assert "interval) of query images, mean of 600 episodes." in said


def test_caveats_are_few_episodes_and_patients_that_are_not_known(record, source_of):
    assert caveats_of(source_of(record()), FEWSHOT_CAVEATS) == []
    found = caveats_of(source_of(record(num_episodes=12, groups_apart=False)), FEWSHOT_CAVEATS)
    assert found[0].text.startswith("12 episodes are few") and "--group-column" in found[1].text


def test_a_gain_over_a_baseline_that_favours_large_classes_is_qualified(record, source_of):
    """Where there is no gain over it nothing needs to be said."""
    (found,) = caveats_of(source_of(record(baseline_leans=True)), FEWSHOT_CAVEATS)
    assert "Add a fair baseline: logistic:balanced=true to --heads" in found.text
    heads = [head("logistic", 0.8), head("ncc", 0.79, -0.003), head("copa", 0.801, 0.001)]
    assert caveats_of(source_of(record(baseline_leans=True, heads=heads)), FEWSHOT_CAVEATS) == []
    with_options = record(baseline_leans=True, baseline="ridge:penalty=2", heads=[head("copa", 0.9, 0.1)])
    assert "ridge:penalty=2,balanced=true" in caveats_of(source_of(with_options), FEWSHOT_CAVEATS)[0].text


def test_the_verdict_ends_with_what_to_type_and_a_figure(record, source_of):
    verdict, figure = fewshot_verdict_section(source_of(record())).blocks
    assert verdict.following.startswith("crossgraft tune")
    assert "copa" in str(figure.drawings[0])


def test_the_table_has_every_head_and_what_they_warned_of(record, source_of):
    table, warned = heads_section(source_of(record())).blocks
    assert [row[0].text for row in table.rows] == ["copa", "logistic", "ncc"]
    assert [row[5].text for row in table.rows] == ["yes", "baseline", "yes"]
    assert warned.summary == "1 warning"
    assert "fewshot" in KINDS
