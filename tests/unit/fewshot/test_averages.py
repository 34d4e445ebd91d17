"""Heads over data sets: means over seen, unseen and all of them, and ranks."""

import math

import numpy as np
import pytest
from scipy.stats import t as student_t

from crossgraft.errors import RunDirectoryError, UsageError
from crossgraft.fewshot.averages import Averages, averages_in_words, averages_of
from crossgraft.fewshot.averages_page import AVERAGES_CAVEATS, averages_section, averages_verdict_section, sets_section
from crossgraft.report.verdict import caveats_of
from support.fewshot_records import fewshot_record, head

ACCURACIES = {"ImageNet": (0.5, 0.48, True), "Omniglot": (0.9, 0.92, True), "MNIST": (0.8, 0.7, False), "COCO": (0.4, 0.4, False)}


@pytest.fixture
def record(examples):
    ranking = examples.ranking_record()

    def make(name, heads, *, seen=False, **changed):
        dataset = ranking.dataset.model_copy(update={"name": name, "fingerprint": name})
        return fewshot_record(dataset, ranking.models[0], heads=heads, seen=seen, **changed)

    return make


@pytest.fixture
def records(record):
    return [
        record(name, [head("copa", copa, 0.0), head("url", url)], seen=seen, baseline="url")
        for name, (copa, url, seen) in ACCURACIES.items()
    ]


def test_averages_are_those_of_the_published_tables(records):
    found = averages_of(records)
    row = {each.head: each for each in found.heads}
    assert [each.head for each in found.heads] == ["copa", "url"]
    assert (row["copa"].seen, row["copa"].unseen, row["copa"].average) == pytest.approx((0.7, 0.6, 0.65))
    assert (row["url"].seen, row["url"].unseen, row["url"].average) == pytest.approx((0.7, 0.55, 0.625))
    values = [0.5, 0.9, 0.8, 0.4]
    assert row["copa"].half_width == pytest.approx(student_t.ppf(0.975, 3) * np.std(values, ddof=1) / 2)
    assert row["copa"].seen_half_width is None
    # intervals of ± 0.01: ahead, behind, ahead, tied
    assert (row["copa"].rank, row["url"].rank) == ((1 + 2 + 1 + 1.5) / 4, (2 + 1 + 2 + 1.5) / 4)
    assert [each.name for each in found.sets] == ["ImageNet", "Omniglot", "MNIST", "COCO"]


def test_runs_of_one_data_set_count_once(records, record):
    again = record("COCO", [head("copa", 0.2, 0.0), head("url", 0.4)], baseline="url", num_seeds=2)
    of_set = averages_of([*records, again]).sets[-1]
    assert (of_set.accuracies["copa"], of_set.num_episodes) == (pytest.approx(0.3), 600 * 3)
    assert of_set.half_widths["copa"] == pytest.approx(math.hypot(0.01, 0.01) / 2)


def test_a_run_that_is_there_twice_does_not_make_its_interval_narrower(records):
    copied = records[-1].model_copy(update={"heads": [row.model_copy(update={"seconds": 9.0}) for row in records[-1].heads]})
    with pytest.raises(UsageError, match=r"Two runs of COCO have the same tasks and results.* another --seed"):
        averages_of([*records, copied])


def test_settings_that_differ_from_set_to_set_are_one_head_by_its_title(records, record):
    changed = record("Signs", [head("copa:learning_rate=0.005", 0.6, 0.0, title="COPA"), head("url", 0.5)], baseline="url")
    assert [each.head for each in averages_of([*records, changed]).heads] == ["COPA", "URL"]


def test_what_cannot_be_averaged_is_named(records, record):
    with pytest.raises(UsageError, match=r"COCO is marked as seen in one run and not in another. Run one of them again"):
        averages_of([*records, records[-1].model_copy(update={"seen": True})])
    with pytest.raises(UsageError, match=r"ImageNet and Signs have different heads: ncc is in one alone"):
        averages_of([*records, record("Signs", [head("copa", 0.5), head("url", 0.5), head("ncc", 0.4)])])
    other = records[0].model.model_copy(update={"weights_fingerprint": "0123456789"})
    with pytest.raises(UsageError, match=r"different networks: .* \(weights 01234567\)"):
        averages_of([*records, records[0].model_copy(update={"model": other})])


def test_the_page_says_which_sets_are_seen_and_what_limits_it(records, source_of):
    source = source_of(averages_of(records))
    table, sets = averages_section(source).blocks[0], sets_section(source).blocks[0]
    assert [column.title for column in table.columns] == ["Head", "Seen", "Unseen", "All", "±", "Rank"]
    assert table.caption == "Averages over 2 seen and 2 unseen data sets"
    assert [row[1].text for row in sets.rows] == ["yes", "yes", "no", "no"]
    assert "copa has the best average" in str(averages_verdict_section(source).blocks[0])
    assert [each.text[:16] for each in caveats_of(source, AVERAGES_CAVEATS)] == ["4 data sets are "]
    unmarked = source_of(averages_of([each.model_copy(update={"seen": False}) for each in records]))
    assert "run that one again with --seen" in caveats_of(unmarked, AVERAGES_CAVEATS)[1].text
    result = Averages(averages_of(records))
    assert (len(result.to_frame()), len(result.sets())) == (2, 8)


def test_the_best_average_is_called_ahead_only_where_the_paired_interval_says_so(record):
    def answer(differences):
        of_sets = [record(f"set {i}", [head("copa", 0.5 + d), head("url", 0.5)]) for i, d in enumerate(differences)]
        return averages_in_words(averages_of(of_sets))

    assert "copa has the best average" in answer([0.1, 0.2, 0.3])
    half = 4.302653 * 0.1 / 3**0.5  # Student's t of two degrees of freedom
    assert f", not separable from url (paired difference +0.200 ± {half:.3f}, 95\N{NO-BREAK SPACE}% interval)." in answer(
        [0.1, 0.2, 0.3]
    )
    assert ", surely ahead of url (paired difference +0.200 ± 0.025, 95\N{NO-BREAK SPACE}% interval)." in answer(
        [0.19, 0.2, 0.21]
    )
    assert "; whether that of url is surely lower, only three data sets or more can tell." in answer([0.1, 0.1])


def test_folders_without_runs_are_named(tmp_path):
    from crossgraft import average_runs

    with pytest.raises(RunDirectoryError, match="No such folder"):
        average_runs(tmp_path / "none")
    with pytest.raises(RunDirectoryError, match="holds no finished run of tasks drawn from images"):
        average_runs(str(tmp_path))
