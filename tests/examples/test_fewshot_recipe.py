"""recipes/fewshot.py runs without data and does nothing twice; its page says what its rows say."""

import gzip
import sys

import numpy as np
import pytest
from PIL import Image

from crossgraft.fewshot import EpisodeTable
from crossgraft.fewshot.heads import _in_backbone


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("fewshot")


def take_few_steps(monkeypatch):
    """Heads that change the network take dozens of steps in each episode; that they do is tested beside them."""
    whole = _in_backbone.descend
    for head in ("tsa", "copa_tsa", "fine_tuning"):
        monkeypatch.setattr(f"crossgraft.fewshot.heads.{head}.descend", lambda *asked: whole(*asked[:-1], steps=3))


@pytest.mark.slow
def test_without_data_it_runs_and_does_nothing_twice(recipe, tmp_path, capsys, monkeypatch):
    take_few_steps(monkeypatch)
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "cache"))
    common = ["--smoke", "--rows", str(tmp_path / "rows"), "--out", str(tmp_path / "page.md")]
    recipe.main([*common, "--kinds", "heads"])
    assert capsys.readouterr().out.count("noise resnet20") == 3
    recipe.main(common)
    told = capsys.readouterr().out
    assert told.count("noise resnet20") == 2 and "42 rows are there" in told
    with_kept = gzip.decompress((tmp_path / "rows" / "noise-episodes.csv.gz").read_bytes()).decode().splitlines()
    assert len(with_kept) == 43 and len(with_kept[-1].rsplit(",", 1)[1].split(" ")) == 2
    file = tmp_path / "rows" / "noise.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if ",fine_tuning," not in line))
    recipe.main([*common, "--kinds", "inside"])  # what is missing, and no other head
    again = file.read_text().splitlines(keepends=True)
    assert len(again) == len(lines) and again[:-1] == [line for line in lines if ",fine_tuning," not in line]
    page = (tmp_path / "page.md").read_text()
    assert "### 5 shots" in page and "| TSA, unseen |" in page and "{" not in page


def row(recipe, head, less, **fields):
    known = {
        "network": "one",
        "kind": "heads",
        "sampler": "n_way_k_shot:ways=5,shots=1",
        "episodes": 600,
        "ways": 5.0,
        "support": 5.0,
        "accuracy": 0.5,
        "half_width": 0.01,
        "milliseconds": 3.0,
    }
    of = {f"less_{name}": less for name in ("logistic", "ridge")}
    halves = {f"less_{name}_half": None if less is None else 0.005 for name in ("logistic", "ridge")}
    return sys.modules["fewshot_rows"].HeadResult(**{**known, **of, **halves, "head": head, **fields})


def test_the_page_tells_what_is_above_both_baselines(recipe):
    tables = {
        f"set {number}": [
            row(recipe, "url", 0.02 + 0.001 * number, accuracy=0.6),
            row(recipe, "copa", 0.002 * (-1) ** number),
            row(recipe, "ncc", -0.03 + 0.001 * number),
            row(recipe, "logistic", None),
        ]
        for number in range(4)
    }
    module = sys.modules["fewshot_tables"]
    told = module.told(tables)
    assert told == (
        "**On frozen features**, above both baselines: URL, rate 0.1 (1 shot). Below at least one of them: NCC (1 shot)."
    )
    line = next(each for each in module.gains_table(tables, "heads", list(module.SHOTS)).splitlines() if "URL" in each)
    assert "| +0.021 [" in line and "| 4 / 0 |" in line and line.endswith("| 4 | 4 |")
    accuracies = module.accuracies_table(tables, {name: name.upper() for name in tables}, "n_way_k_shot:ways=5,shots=1")
    assert "| SET 3 | one | 0.500 | **0.600** | 0.500 | 0.500 |" in accuracies
    assert module.accuracies_table(tables, {}, "meta_dataset") == ""
    assert "| NCC | one | 3.0 | – | – | – |" in module.costs_table(tables)


def test_costs_are_medians_of_the_time_of_the_thread(recipe):
    table = EpisodeTable(
        ("logistic", "ridge"), np.ones((3, 2)), np.array([9.0, 9.0]), *np.full((3, 3), 5),
        thread_seconds=np.array([[0.001, 0.002], [0.001, 0.002], [7.0, 7.0]]),
    )  # fmt: skip
    found = list(sys.modules["fewshot_rows"].results("one", "heads", "n_way_k_shot:ways=5,shots=1", table))
    assert [each.milliseconds for each in found] == [1.0, 2.0]


def test_heads_on_a_gpu_are_named_and_have_no_cost(recipe):
    """A thread that waits for a GPU is busy, too."""
    table = EpisodeTable(("logistic", "ridge"), np.ones((2, 2)), np.ones(2), *np.full((3, 2), 5))
    rows, module = (sys.modules[name] for name in ("fewshot_rows", "fewshot_tables"))
    found = list(rows.results("one", "inside", module.FIVE, table, "NVIDIA H200"))
    assert [each.milliseconds for each in found] == [None, None]
    assert module.on_gpus({"some": found}) == "Lines computed on an NVIDIA H200: 1."
    assert module.on_gpus({"some": list(rows.results("one", "inside", module.FIVE, table))}) == "All of it was computed on CPUs."
    assert "logistic" not in module.costs_table({"some": found})


def test_what_a_head_gains_without_depthwise_networks(recipe):
    module = sys.modules["fewshot_tables"]
    inside = {"kind": "inside", "sampler": module.FIVE}
    tables = {
        f"set {number}": [
            row(recipe, "tsa", 0.02 + 0.001 * number, network="conv4 · some", **inside),
            row(recipe, "tsa", -0.5, network="mobilenetv1_050 · ImageNet", **inside),
        ]
        for number in range(3)
    }
    assert module.without_depthwise(tables, "tsa").startswith("+0.021 [+0.019, +0.023] over logistic (ahead on 3 of 3 sets) and")
    assert module.without_depthwise({}, "tsa") == "not measured yet"


def test_inside_the_network_only_what_tells_something_is_measured(recipe, monkeypatch):
    """The distilled network on one set, and the rate for seen domains where a domain was seen."""
    names = ["resnet20 · CIFAR-10", recipe.STUDENT, recipe.SEEN]
    specs = [recipe.ModelSpec(name, "test_resnet", weights="random") for name in names]
    arguments = recipe.parse_arguments(["--smoke", "--kinds", "inside"])
    asked = list(recipe.pieces(recipe.SETS, specs, arguments))
    assert [each.of.name for each in asked if each.spec.name == recipe.STUDENT] == ["spoken_digits"]
    seen = {(each.of.name, each.spec.name) for each in asked if "tsa" in recipe.heads_of_piece(each, None)}
    assert seen == {("omniglot", recipe.SEEN)}


def test_networks_on_the_same_images_are_one_set(recipe):
    """Nine networks that agree on one set are no evidence against one on another; the cost is that of most sets."""
    module = sys.modules["fewshot_tables"]
    tables = {
        "one": [row(recipe, "url", 0.02, network=f"{number}", milliseconds=9000.0) for number in range(9)],
        "two": [row(recipe, "url", -0.01, network="0")],
        "three": [row(recipe, "url", -0.01, network="0")],
    }
    found = module.gain(tables, "heads", "n_way_k_shot:ways=5,shots=1", "url", "logistic")
    assert found.over_sets.mean == pytest.approx(0) and found.over_sets.low < 0 < found.over_sets.high
    assert (found.over_sets.pairs, found.pairs, found.above, found.below) == (3, 11, 9, 2)
    assert "| URL, rate 0.1 | 0 | 3.0 |" in module.costs_table(tables)


def test_the_answer_tells_of_heads_inside_the_network(recipe):
    module = sys.modules["fewshot_tables"]
    five = {"kind": "inside", "sampler": module.FIVE}
    tables = {
        f"set {number}": [
            *(row(recipe, head, None) for head in ("ncc", "logistic", "ridge")),
            row(recipe, "ncc", -0.1, **five),
            row(recipe, "tsa", 0.03 + 0.001 * number, **five),
            row(recipe, "fine_tuning", -0.03 + 0.001 * number, **five),
        ]
        for number in range(3)
    }
    assert module.told(tables).endswith(
        "**Inside the network, on 3 sets**, above both baselines: TSA, seen (5 shots). "
        "Below at least one of them: fine-tuning (5 shots)."
    )


def test_under_uneven_rules_the_balanced_baselines_count(recipe):
    """What is above the plain ones alone is no gain."""
    module = sys.modules["fewshot_tables"]
    tables = {
        f"set {number}": [
            row(recipe, "url", 0.1 + 0.001 * number, sampler="meta_dataset"),
            row(recipe, "logistic", None, sampler="meta_dataset"),
            *(
                row(recipe, head, less, sampler="meta_dataset", kind="balanced")
                for head, less in (
                    ("url", 0.001 * (-1) ** number),
                    ("logistic", -0.09 + 0.001 * number),
                    ("logistic:balanced=True", None),
                    ("ridge:balanced=True", None),
                )
            ),
        ]
        for number in range(4)
    }
    assert module.told(tables) == ("**On frozen features**, above both baselines: none. Below at least one of them: none.")
    table = module.gains_table(tables, "balanced", ["meta_dataset"])
    assert "less logistic, balanced" in table and "| logistic | Meta-Dataset | -0.088 [" in table
    assert "| URL, rate 0.1 | Meta-Dataset | +0.1" in module.gains_table(tables, "heads", ["meta_dataset"])
    assert "| set 0 | one |" in module.balanced_table(tables, {name: name for name in tables})


def test_set_by_set_a_gain_is_a_mean_over_networks(recipe):
    """Bold is what every network of a set gains; what is not measured is a dash, and heads without rows have no line."""
    module = sys.modules["fewshot_tables"]
    rules = list(module.SHOTS)
    tables = {
        "one": [
            *(row(recipe, "copa", less, network=f"{less}", sampler=rules[0]) for less in (0.02, 0.04)),
            *(row(recipe, "copa", less, network=f"{less}", sampler=rules[1]) for less in (0.02, -0.04)),
            row(recipe, "url", 0.5, sampler=rules[0]),
            row(recipe, "tsa:learning_rate=unseen", 0.001, kind="inside", sampler=rules[1]),
        ],
        "two": [],
    }
    assert module.sets_table(tables, {"one": "First", "two": "Second"}).splitlines()[2:] == [
        "| First | CoPA | **+0.030 (2 / 0 of 2)** | -0.010 (1 / 1 of 2) | – |",
        "| First | TSA, unseen | – | +0.001 (0 / 0 of 1) | – |",
    ]


def test_rows_are_read_as_they_were_written(recipe, tmp_path):
    rows = sys.modules["fewshot_rows"]
    made = [row(recipe, "url", -0.5), row(recipe, "logistic", None)]
    rows.write_rows(tmp_path, "some", made)
    assert rows.read_rows(tmp_path, "some") == made and rows.read_rows(tmp_path, "none") == []


def test_frames_that_look_alike_are_one_group_and_sounds_are_pictures(recipe):
    sets = sys.modules["fewshot_sets"]
    random = np.random.default_rng(0)
    coarse = random.integers(0, 256, (3, 8, 8), dtype=np.uint8)
    frames = [np.asarray(Image.fromarray(each).resize((64, 64))) for each in coarse]
    groups = sets.alike([frames[0], frames[1], np.clip(frames[0].astype(int) + 3, 0, 255).astype(np.uint8), frames[2]])
    assert groups[0] == groups[2] and len(set(groups.tolist())) == 3
    seconds = np.arange(4000) / 8000
    low, high = (sets.spectrogram(np.sin(2 * np.pi * hertz * seconds), 8000) for hertz in (300, 2500))
    assert low.shape == (64, 64) and low.dtype == np.uint8
    assert low.mean(axis=1).argmax() > high.mean(axis=1).argmax()  # high tones stand above
