"""recipes/itm_ablations.py runs without data; its page judges scores against trained results, and says what it rests on."""

import sys

import numpy as np
import pytest

from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.scores import itm
from crossgraft.statistics import weighted_kendall


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("itm_ablations")


@pytest.mark.slow
def test_without_data_it_scores_once_and_the_page_says_that_nothing_is_trained(recipe, tmp_path, monkeypatch):
    asked = ["--smoke", "--rows", str(tmp_path / "rows"), "--truth", str(tmp_path), "--work", str(tmp_path / "work")]
    recipe.main(asked)
    monkeypatch.setattr(recipe, "itm", lambda **_: pytest.fail("scored again"))
    recipe.main([*asked, "--out", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "Nothing is scored yet" in text
    assert "is 0.609 on average, that of a static prior, which never looks at the set, 0.646" in text


def test_every_variant_tells_itm_what_its_name_says(recipe):
    page = sys.modules["itm_ablations_page"]
    assert len(list(page.table_variants())) == 16
    rng = np.random.default_rng(0)
    train = dataset_from_arrays(rng.integers(0, 256, (40, 4, 4), dtype=np.uint8), np.arange(40) % 2)
    features = {name: rng.normal(size=(40, 6)).astype(np.float32) * np.arange(1, 7) for name in ("a", "b", "c")}
    variant = page.Variant(standardized=0, adaptive=1, iterations=100, batch_size=16, centres="pca")
    rows = list(recipe.scores(features, train, [variant]))
    assert [(row.model, row.seed) for row in rows] == [(name, seed) for name in features for seed in recipe.SEEDS]
    row = rows[4]
    alone = itm(
        features=features["b"], labels=train.targets, eta=row.eta, standardize=False, iterations=100, batch_size=16,
        centres="pca", seed=1,
    )  # fmt: skip
    assert row.score == float(alone)
    assert len({row.eta for row in rows}) == 3


def test_the_page_compares_scores_with_trained_results(recipe, tmp_path):
    page, rows, sets = (sys.modules[name] for name in ("itm_ablations_page", "ground_truth_rows", "ground_truth_sets"))
    target = sets.SETS[0]
    areas = {"a": 0.9, "b": 0.8, "c": 0.6, "d": 0.5}
    known = {"family": "f", "side": 64, "epochs": 15, "settings": "s", "versions": "v", "val_auc": 0.8, "seed": 0}
    cells = [
        rows.CellRow(model=name, fidelity="full", learning_rate=rate, auc=area, **known)
        for name, area in areas.items()
        for rate in rows.LEARNING_RATES
    ]
    rows.write_cells(tmp_path / "truth", target.name, {row.key: row for row in cells})
    given = {
        page.BASE: {0: (4, 3, 2, 1), 1: (4, 3, 1, 2)},
        page.Variant(0, 1, 500, 256, "one-hot"): {0: (1, 2, 3, 4), 1: (1, 1, 1, 1)},
    }
    found = [
        page.ScoreRow(**vars(variant), model=name, seed=seed, score=score, eta=0.5, cpu_seconds=2.0)
        for variant, by_seed in given.items()
        for seed, scores in by_seed.items()
        for name, score in zip(areas, scores, strict=True)
    ]
    page.write_scores(tmp_path / "rows", target.name, found)
    text = page.page_of(tmp_path / "rows", tmp_path / "truth", sets.SETS)
    best = (1 + weighted_kendall(np.array([4.0, 3, 1, 2]), np.array(list(areas.values())))) / 2
    worst = weighted_kendall(np.array([1.0, 2, 3, 4]), np.array(list(areas.values()))) / 2  # and 0 where all scores are equal
    assert f"| 256 | {best:.3f} | 2.00 |" in text
    assert "ahead on 1 of 1 sets" in text
    assert f"{worst:.3f} / 0.508".replace("-", "−") in text
    assert "It rests on 1 of 9 sets (BreastMNIST) in 1 groups. **So few" in text
