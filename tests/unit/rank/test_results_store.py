import numpy as np
import pytest

from crossgraft.cli.main import main
from crossgraft.rank.published import itm_benchmark
from crossgraft.rank.published.tables import published_table
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import add_known_results, known_results, published_results, results_of


@pytest.fixture(scope="module")
def published():
    return published_results()


def own(model, target, value, **changes):
    fields = {"weights": "w", "source": "s", "protocol": "p", "metric": "auc", "origin": "tune", "target_group": ""}
    return KnownResult(model=model, target=target, value=value, **(fields | changes))


def test_every_published_result_is_a_row(published):
    older = (15 * 11 - 11) + (9 * 11) + 100 - 11  # ResNet18 from ImageNet stands in both tables of the thesis
    complete = 11 * 11 + 10 * 11 + 2 * 10 * 12 + 10 * 3
    assert len(published) == older + complete + np.isfinite(published_table("shift").results).sum()
    assert len({row.key for row in published}) == len(published)
    assert all(0 <= row.value < 1 for row in published)


def test_the_store_gives_the_benchmark_again(published):
    table = itm_benchmark()
    known = results_of([f"{model}/as published" for model in table.models], published)
    assert known.targets == list(table.targets)
    np.testing.assert_allclose(known.results * 100, table.results)


def test_the_target_at_hand_and_its_relatives_are_left_out(published):
    models = ["resnet/imagenet", "resnet/radimagenet", "vgg/imagenet"]
    known = results_of(models, published, without_target="Organ")
    assert len(known.targets) == 8 and "Organ" not in known.groups
    assert "Blood" not in results_of(models, published, without_target="Blood").targets
    assert len(results_of(models, published).targets) == 11


def test_results_on_the_same_images_are_left_out():
    rows = [own(model, "mine", 0.5, target_fingerprint="f") for model in "ab"]
    models = ["a/s", "b/s"]
    assert results_of(models, rows, fingerprint="f").targets == []
    assert results_of(models, rows, fingerprint="g").targets == ["mine"]
    assert results_of(models, rows).results.shape == (1, 2)


def test_protocols_are_not_mixed_and_single_models_say_nothing():
    rows = [own("a", "t", 0.5), own("b", "t", 0.6), own("a", "t", 0.9, protocol="q"), own("c", "u", 0.1)]
    known = results_of(["a/s", "b/s", "c/s"], rows)
    np.testing.assert_array_equal(known.results, [[0.5, 0.6, np.nan]])
    assert results_of(["x/s"], rows).results.shape == (0, 1)


def test_own_results_join_the_published_ones(tmp_path, published):
    file = tmp_path / "known.jsonl"
    replaced = published[0].model_copy(update={"value": 0.123})
    add_known_results([own("a", "t", 0.5), replaced], file)
    rows = known_results(file)
    assert len(rows) == len(published) + 1
    assert rows[0].value == 0.123


def test_the_command_lists_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")  # with all columns
    add_known_results([own("my_model", "my_target", 0.75, low=0.7, high=0.8)])
    assert main(["list", "results"]) == 0
    text = capsys.readouterr().out
    line = next(line for line in text.splitlines() if line.startswith("my_model"))
    assert "0.7500  [0.7000, 0.8000]" in line and "  tune  " in line
    assert "Table 6.4" in text


def test_filters_list_single_results_and_are_for_results_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "62")
    assert main(["list", "results", "--only-model", "RESNET34", "--only-target", "flow", "--only-from", "sfda"]) == 0
    text = capsys.readouterr().out
    assert "Flowers" in text and "0.9520" in text and len(text.splitlines()) == 3
    assert max(map(len, text.splitlines())) <= 62
    assert main(["list", "scores", "--only-model", "a"]) == 2
    assert "crossgraft list results --only-model" in capsys.readouterr().err


def test_data_sets_of_one_name_are_told_apart_by_their_images():
    rows = [own("a", "train.csv", 0.9, target_fingerprint="1"), own("b", "train.csv", 0.8, target_fingerprint="1")]
    others = [own("a", "train.csv", 0.2, target_fingerprint="2"), own("b", "train.csv", 0.6, target_fingerprint="2")]
    known = results_of(["a/s", "b/s"], [*rows, *others])
    assert known.targets == ["train.csv", "train.csv"]
    assert known.results.tolist() == [[0.9, 0.8], [0.2, 0.6]]
    assert results_of(["a/s", "b/s"], [rows[0], others[1]]).targets == []


def test_own_results_come_first_the_newest_at_the_top(tmp_path):
    file = tmp_path / "known.jsonl"
    add_known_results([own("a", "t", 0.5), own("b", "t", 0.6)], file)
    assert [row.model for row in known_results(file)[:2]] == ["b", "a"]
    assert known_results(file)[2:] == list(published_results())
