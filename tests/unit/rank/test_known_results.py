"""Known results are added whole, replaced by key, and never lost to a second writer."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from crossgraft.errors import DataError, StorageError
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import add_known_results, known_results_file, read_known_results
from crossgraft.running import json_lines as module


def row(model="resnet18", target="mine", value=0.9, **changes):
    fields = {"weights": "abc", "source": "imagenet", "protocol": "full", "metric": "auc", "origin": "tune"}
    return KnownResult(model=model, target=target, value=value, **(fields | changes))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "store" / "known.jsonl"


def test_rows_come_back_in_order(file):
    rows = [row(), row("vit"), row(target="other", low=0.8, high=0.95)]
    assert add_known_results(rows[:2], file) == 2
    assert add_known_results(rows[2:], file) == 3
    assert read_known_results(file) == rows


def test_the_same_measurement_is_replaced(file):
    add_known_results([row(value=0.8), row("vit")], file)
    assert add_known_results([row(value=0.9)], file) == 2
    assert [r.value for r in read_known_results(file)] == [0.9, 0.9]
    assert add_known_results([row(protocol="linear"), row(target_fingerprint="f")], file) == 4


def test_no_file_is_no_result(file):
    assert read_known_results(file) == []


def test_two_writers_lose_nothing(file):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: add_known_results([row(f"m{i}")], file), range(16)))
    assert {r.model for r in read_known_results(file)} == {f"m{i}" for i in range(16)}


def test_a_damaged_line_is_named_and_nothing_is_written(file):
    add_known_results([row()], file)
    before = file.read_text() + '{"model": 3}\n'
    file.write_text(before)
    with pytest.raises(DataError, match="line 2 is not a known result"):
        add_known_results([row("vit")], file)
    assert file.read_text() == before


def test_a_result_that_is_no_number_is_refused(file):
    with pytest.raises(DataError, match="must be a finite number"):
        add_known_results([row(value=float("nan"))], file)
    assert not file.exists()


def test_a_failed_write_leaves_the_old_file(file, monkeypatch):
    add_known_results([row()], file)

    def full(path, content, *, advice):
        raise StorageError("Cannot write: no space left on device.")

    monkeypatch.setattr(module, "write_atomically", full)
    with pytest.raises(StorageError, match="no space"):
        add_known_results([row("vit")], file)
    assert read_known_results(file) == [row()]


def test_the_file_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path))
    assert known_results_file() == tmp_path / "known_results.jsonl"
    monkeypatch.delenv("CROSSGRAFT_CACHE")
    assert known_results_file().name == "known_results.jsonl"
