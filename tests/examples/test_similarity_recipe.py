"""recipes/similarity.py runs without data and does nothing twice; its page says what its rows say."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from crossgraft.data import dataset_from_arrays
from crossgraft.geometry import centre_quality, parameter_distance, sharpness
from support.small_classifiers import SIZE, small_classifier

PAGE = Path(__file__).parents[2] / "docs" / "results" / "similarity.md"


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("similarity")


@pytest.fixture
def numbers(recipe):
    return sys.modules["similarity_numbers"]


@pytest.fixture
def rows(recipe):
    return sys.modules["similarity_rows"]


def without_figures(monkeypatch):
    for name in ("write_layers", "write_mistakes", "write_gains", "write_planes"):
        monkeypatch.setattr(sys.modules["similarity_page"], name, lambda *_, **__: None)


@pytest.mark.slow
def test_without_data_it_runs_resumes_and_writes_a_page(recipe, tmp_path, capsys, monkeypatch):
    out = tmp_path / "page.md"
    command = ["--smoke", "--rows", str(tmp_path / "rows"), "--results", str(tmp_path / "runs"), "--out", str(out)]
    command += ["--variants", "scratch", "full", "--networks", "mobilenetv2_035"]
    recipe.main(command)
    told = capsys.readouterr().out
    assert told.count("layers") == 3 and "noise resnet20 geometry, seed 0: 5 networks" in told
    first = out.read_text(encoding="utf-8")
    assert "The study is not finished: there are 3 of" in first and "{" not in first
    assert (tmp_path / "page" / "layers.svg").read_text(encoding="utf-8").startswith("<?xml")
    found = recipe.read_all(tmp_path / "rows", "noise", recipe.LayerRow)
    assert {(row.of, row.variant) for row in found} == {
        ("change", "full"), ("models", "full"), ("random", "full"), ("before", "before"), ("random before", "before"),
    }  # fmt: skip
    same = [row.value for row in found if row.of == "before" and row.measure == "cka"]
    assert same == pytest.approx([1.0] * len(same))  # without weights of any source both are the network as built
    without_figures(monkeypatch)
    for module in (recipe, sys.modules["similarity_kept"], sys.modules["study_trainings"]):
        monkeypatch.setattr(module, "tune", lambda *_, **__: pytest.fail("a finished training was made again"))
    recipe.main(command)
    assert out.read_text(encoding="utf-8") == first


def test_the_page_is_that_of_its_rows(recipe, tmp_path, monkeypatch):
    without_figures(monkeypatch)
    sys.modules["similarity_page"].write_page(tmp_path / "similarity.md", PAGE.with_suffix(""), recipe.TARGETS, seeds=3)
    assert (tmp_path / "similarity.md").read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def made_up_study(numbers, rows):
    """Two sets, three seeds and two layers; two sources are 0.9 alike before and 0.8 − seed / 10 − place / 10 after."""
    layers = {}
    for name in ("a", "b"):
        known = {"measure": "cka", "first": "imagenet", "second": "birds"}
        layers[name] = [
            rows.LayerRow(
                **known, seed=seed, of=of, variant=variant, place=place, layer=f"layer{place}", untrained=0.5,
                value=0.9 if of == "before" else 0.8 - 0.1 * seed - 0.1 * place,
            )
            for seed in range(3)
            for of, variant in (("before", "before"), ("models", "full"))
            for place in (-1, 0, 1)
        ]  # fmt: skip
    return numbers.Study({}, layers, {}, {}, {}, {})


def test_claims_are_means_over_layers_and_intervals_over_sets_and_seeds(recipe, numbers, rows):
    study, page = made_up_study(numbers, rows), sys.modules["similarity_page"]
    gaps = numbers.after_minus_before(study, "cka", "full", "all")
    assert sorted(gaps) == [(name, seed) for name in "ab" for seed in range(3)]
    assert [gaps["a", seed] for seed in range(3)] == pytest.approx([-0.15, -0.25, -0.35])
    interval = stats.ttest_1samp(list(gaps.values()), 0).confidence_interval(0.95)
    assert page.in_numbers(page.difference_of(list(gaps.values()))) == (f"-0.250 [{interval.low:+.3f}, {interval.high:+.3f}]")
    halves = [numbers.after_minus_untrained(study, "cka", "full", f"{part} half")["a", 2] for part in ("first", "second")]
    assert halves == pytest.approx([0.1, 0.0])
    line = next(line for line in page._layers(study).splitlines() if line.startswith("| After") and "| all |" in line)
    assert "| holds |" in line


@pytest.mark.parametrize(
    ("gaps", "sign", "verdict"),
    [
        ([0.1, 0.11, 0.12], 1, "holds"),
        ([0.1, 0.11, 0.12], -1, "the opposite"),
        ([0.1, 0.11, 0.12], 0, "higher"),
        ([-0.1, 0.11, 0.12], 1, "not decided"),
        ([-0.1, 0.11, 0.12], 0, "not told apart"),
        ([0.1], 1, "–"),
    ],
)
def test_a_verdict_needs_an_interval_that_excludes_0(recipe, gaps, sign, verdict):
    found = sys.modules["similarity_methods"].said({("a", seed): gap for seed, gap in enumerate(gaps)}, sign)
    assert found == verdict


def test_the_interval_of_shares_ends_within_them(recipe):
    of_shares = sys.modules["study_tables"].share_and_interval
    assert of_shares([0.5]) == "0.500" and of_shares([]) == "–"
    interval = stats.ttest_1samp(np.arcsin(np.sqrt([0.2, 0.3, 0.25])), 0).confidence_interval(0.95)
    assert of_shares([0.2, 0.3, 0.25]) == f"0.250 [{np.sin(interval.low) ** 2:.3f}, {np.sin(interval.high) ** 2:.3f}]"
    for near in ([0.93, 0.97], [1.0, 1.0, 0.8], [0.0, 0.4]):
        low, high = map(float, of_shares(near).split("[")[1].strip("]").split(", "))
        assert 0 <= low <= high <= 1


def test_correlations_are_spearmans_and_sets_can_be_taken_out(numbers):
    random = np.random.default_rng(0)
    units = [(name, seed) for name in "ab" for seed in range(3) for _ in range(2)]
    x, y = random.normal(size=(2, 12))
    y += 10 * (np.arange(12) >= 6)
    x += 10 * (np.arange(12) >= 6)
    points = numbers.Points(units, list(x), list(y))
    value, low, high = numbers.correlation(points)
    assert value == pytest.approx(stats.spearmanr(x, y)[0])
    z, error = np.arctanh(value), np.sqrt((1 + value**2 / 2) / (6 - 3))
    assert (low, high) == pytest.approx((np.tanh(z - 1.959964 * error), np.tanh(z + 1.959964 * error)), rel=1e-5)
    inside = numbers.within_sets(points)
    centred = [np.concatenate([part - part.mean() for part in np.split(column, 2)]) for column in (x, y)]
    assert numbers.correlation(inside)[0] == pytest.approx(stats.spearmanr(*centred)[0])
    same = numbers.Points(units, list(x), list(x))
    assert numbers.correlation(same) == (
        pytest.approx(1),
        pytest.approx(np.tanh(np.arctanh(0.999) - 1.385929)),
        pytest.approx(1, abs=1e-3),
    )
    assert numbers.correlation(numbers.Points(units[:6], list(x[:6]), list(y[:6]))) is None


def test_what_tells_classes_apart_is_taken_out_of_the_similarity(recipe):
    random, classes = np.random.default_rng(0), np.arange(300) % 2
    axis = 4.0 * classes[:, None] * np.ones(5)
    one, other = axis + random.normal(size=(300, 5)), axis + random.normal(size=(300, 5))
    found = sys.modules["similarity_classes"].pairs_of({"a": one, "b": other}, classes, variant="full", seed=0)
    (row,) = found
    assert (row.first, row.second, row.variant) == ("a", "b", "full")
    assert row.cka > 0.8 and abs(row.cka_within) < 0.05
    means = np.stack([one[classes == each].mean(axis=0) for each in classes])
    assert row.share == pytest.approx(1 - ((one - means) ** 2).sum() / ((one - one.mean(axis=0)) ** 2).sum(), abs=1e-5)


def moved(seed):
    network, draw = small_classifier("vit"), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=draw))
    return network


def test_methods_are_measured_against_linear_and_centres_over_sets(recipe, rows, tmp_path, monkeypatch):
    kept, labels = sys.modules["similarity_kept"], np.arange(40) % 3
    images = np.random.default_rng(0).integers(0, 255, (40, SIZE, SIZE, 3), dtype=np.uint8)
    test = dataset_from_arrays(images, labels, name="x")
    made = {
        name: {"linear": small_classifier("vit"), **{key: moved(at) for at, key in enumerate(("full", "repsim", "l2_sp"), start)}}
        for start, name in ((1, "a"), (11, "b"))
    }
    monkeypatch.setattr(kept, "networks", lambda _: [SimpleNamespace(name=f"{kept.VIT_NAME} · x")])
    monkeypatch.setattr(kept, "trained_networks", lambda job, _: made[job.target.name])
    monkeypatch.setattr(kept.Images, "of", lambda *_: kept.Images(test, test, None))
    targets = [sys.modules["studies"].Target(name, name, "") for name in "ab"]
    asked = SimpleNamespace(smoke=True, rows=tmp_path)
    assert kept.measure_all(targets, asked) == 0
    kept.measure_centres(targets, asked)
    found = {row.variant: row for row in rows.read_all(tmp_path, "a", rows.GeometryRow)}
    assert set(found) == set(kept.SHOWN)
    linear, full, between = (found[name] for name in ("linear", "full", "interpolated"))
    own = made["a"]
    assert full.to_start == pytest.approx(parameter_distance(own["full"], own["linear"]).l2, rel=1e-4)
    assert between.to_start == pytest.approx(full.to_start / 2, rel=1e-4)
    assert full.one_step == pytest.approx(sharpness(own["full"], test, batch_size=64).value, rel=1e-4)
    apart = parameter_distance(own["full"], made["b"]["full"]).l2
    assert (linear.to_centre, full.to_centre) == (0, pytest.approx(apart / 2, rel=1e-4))
    quality = centre_quality({name: each["full"] for name, each in made.items()}, {"a": test, "b": test})["a"]
    assert full.accuracy_at_centre == pytest.approx(full.accuracy + quality.accuracy_change.value, abs=1e-4)
    assert (linear.cka_debiased, linear.distance, linear.attention) == (pytest.approx(1), 0, 1)
    assert full.attention < 1 and full.source_attention is None
    numbers, of_sets = (
        sys.modules["similarity_numbers"],
        {name: rows.read_all(tmp_path, name, rows.GeometryRow) for name in "ab"},
    )
    study = numbers.Study({}, {}, {}, of_sets, {}, {})
    assert set(numbers.of_method(study, kept.VIT_NAME, "full", "to_start")) == {("a", 0), ("b", 0)}
    assert numbers.of_method(study, kept.VIT_NAME, "full", "to_centre") == {("", 0): full.to_centre}  # one number of both
    monkeypatch.setattr(kept, "trained_networks", lambda *_: pytest.fail("a finished piece was done again"))
    assert kept.measure_all(targets, asked) == 0
    kept.measure_centres(targets, asked)


def test_rows_come_back_and_replace_their_own(rows, tmp_path):
    old = rows.GeometryRow(model="net", variant="full", seed=0, one_step=0.5)
    new = rows.GeometryRow(model="net", variant="full", seed=0, one_step=0.25, overlap=None)
    rows.add_rows(tmp_path, "set", [old])
    rows.add_rows(tmp_path, "set", [new, rows.GeometryRow(model="a", variant="full", seed=0)])
    assert [row.one_step for row in rows.read_all(tmp_path, "set", rows.GeometryRow)] == [None, 0.25]
