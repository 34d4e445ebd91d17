"""Looks at test images: counted once each, in the order in which they came, by several processes at once."""

import io
import multiprocessing

import numpy as np
import pytest

from crossgraft.errors import DataError
from crossgraft.metrics.words import looks_in_words
from crossgraft.progress import Reporter
from crossgraft.records.base import Look, LooksRecord
from crossgraft.running.ledger import add_look, count_looks
from crossgraft.statistics.selection_quality import expected_maximum


@pytest.fixture
def reporter():
    return Reporter(stream=io.StringIO())


def look(number, test="a" * 64, command="tune", is_result=True):
    return Look(test=test, measured=f"{number:064d}", command=command, is_result=is_result)


def test_the_same_training_is_one_look_with_one_place(tmp_path):
    file = tmp_path / "looks.jsonl"
    assert [len(add_look(look(n), file)) for n in (0, 1, 2, 1, 0)] == [1, 2, 3, 2, 1]
    assert len(add_look(look(0, test="b" * 64), file)) == 1
    assert len(file.read_text().splitlines()) == 4


def test_the_first_command_that_looked_is_the_one_that_is_named(tmp_path):
    file = tmp_path / "looks.jsonl"
    add_look(look(0), file)
    assert [each.command for each in add_look(look(0, command="predict"), file)] == ["tune"]
    assert [each.command for each in add_look(look(1, command="predict"), file)] == ["tune", "predict"]


def test_the_place_is_said_with_what_it_costs(tmp_path):
    quiet, file = Reporter(quiet=True), tmp_path / "looks.jsonl"
    first = count_looks(look(0), low=0.8, high=0.9, reporter=quiet, file=file)
    second = count_looks(look(1, command="interpolate"), low=0.8, high=0.9, reporter=quiet, file=file)
    assert (first.number, first.optimism) == (1, 0)
    assert (second.number, second.by_command) == (2, {"tune": 1, "interpolate": 1})
    assert second.optimism == pytest.approx(0.1 / (2 * 1.959964) / np.sqrt(np.pi), rel=1e-6)
    assert count_looks(look(2), low=None, high=None, reporter=quiet, file=file).optimism is None


def test_only_results_compete_for_being_the_best(tmp_path):
    quiet, file = Reporter(quiet=True), tmp_path / "looks.jsonl"
    for number in (0, 1):
        add_look(look(number), file)
    add_look(look(2, command="audit", is_result=False), file)
    found = count_looks(look(3), low=0.8, high=0.9, reporter=quiet, file=file)
    assert (found.number, found.num_results) == (4, 3)
    assert found.optimism == pytest.approx(0.1 / (2 * 1.959964) * expected_maximum(3), rel=1e-6)
    assert "(3 × tune, 1 × audit): the best of 3 equally good results is too high by about" in looks_in_words(found, "auc")
    alone = LooksRecord(number=2, by_command={"audit": 1, "tune": 1}, num_results=1, optimism=0.0)
    assert "(1 × audit, 1 × tune). Confirm a choice" in looks_in_words(alone, "auc")


def test_a_damaged_ledger_is_left_as_it_is_and_warned_of(tmp_path, reporter):
    file = tmp_path / "looks.jsonl"
    add_look(look(0), file)
    damaged = file.read_text() + '{"test": 3}\n'
    file.write_text(damaged)
    with pytest.raises(DataError, match=r"line 2 is not a look at test images"):
        add_look(look(1), file)
    assert count_looks(look(1), low=0.1, high=0.2, reporter=reporter, file=file) is None
    assert "not counted" in reporter.stream.getvalue()
    assert "--no-ledger" in reporter.stream.getvalue()
    assert file.read_text() == damaged


def test_a_ledger_that_cannot_be_written_is_a_warning(tmp_path, reporter):
    (tmp_path / "file").write_text("")
    assert count_looks(look(0), low=0, high=1, reporter=reporter, file=tmp_path / "file" / "looks.jsonl") is None
    assert "not counted" in reporter.stream.getvalue()


def add_many(file, start):
    for number in range(start, start + 10):
        add_look(look(number), file)


def test_two_users_at_once_lose_nothing(tmp_path):
    file = tmp_path / "looks.jsonl"
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=add_many, args=(file, start)) for start in (0, 100)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert len(add_look(look(999), file)) == 21


@pytest.mark.parametrize("k", [1, 2, 3, 8, 50])
def test_the_expected_maximum_is_that_of_draws(k):
    draws = np.random.default_rng(0).standard_normal((200_000 // k, k)).max(axis=1)
    assert expected_maximum(k) == pytest.approx(draws.mean(), abs=4 * draws.std() / np.sqrt(len(draws)) + 1e-9)
