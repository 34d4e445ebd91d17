"""recipes/sources.py runs without data and does nothing twice; no source has images of its target."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import sqrtm

from crossgraft.statistics import spearman


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("sources")


@pytest.mark.slow
def test_without_data_it_pretrains_and_tunes_once(recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "cache"))
    every = recipe.do_all
    monkeypatch.setattr(recipe, "do_all", lambda cells, work: every(itertools.islice(cells, 1), work))
    monkeypatch.setattr(recipe, "sources", lambda target, study: dict(itertools.islice(study_sources(target, study), 1)))
    found = sys.modules["sources_images"].sources_of
    study_sources = lambda target, study: found(target, study.targets).items()  # noqa: E731
    folders = ["--smoke", "--rows", str(tmp_path / "rows"), "--work", str(tmp_path / "work")]
    recipe.main(folders)
    page = sys.modules["sources_page"]
    assert [row.source for row in page.read_sources(tmp_path / "rows")] == ["more_noise", "noise"]
    pairs = page.read_pairs(tmp_path / "rows")
    assert [(row.source, row.target) for row in pairs] == [("more_noise", "noise"), ("noise", "more_noise")]
    assert all(0 < row.spectral_similarity <= 1 and row.feature_similarity <= 0 and row.logme is not None for row in pairs)
    monkeypatch.setattr(recipe, "pretrain", lambda *_, **__: pytest.fail("a source was pretrained again"))
    monkeypatch.setattr(recipe, "scores_on", lambda *_, **__: pytest.fail("a pair was described again"))
    monkeypatch.setattr(sys.modules["ground_truth"], "tune", lambda *_, **__: pytest.fail("trained again"))
    recipe.main([*folders, "--out", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "**The study is not finished.** 2 fine-tunings" in text
    assert "| more_noise | 60 | 2 | 1 |" in text


def test_no_source_has_images_of_its_target(recipe):
    images = sys.modules["sources_images"]
    by_name = {target.name: target for target in images.MEDICAL}
    assert len(by_name) == 7
    for name, target in by_name.items():
        found = images.sources_of(target)
        assert name not in found
        assert {"cifar10", "random", f"all but {name}"} < set(found)
    assert "breastmnist" not in images.sources_of(by_name["busi"])
    assert len(images.sources_of(by_name["ham10000"])) == 9


def test_pooled_classes_are_those_of_each_set_and_related_sets_come_once(recipe):
    images, sets = sys.modules["sources_images"], sys.modules["ground_truth_sets"]
    one, two = (sets.TargetSet(name, name, sets.smoke_noise, group="a") for name in ("one", "two"))
    other = sets.TargetSet("other", "other", sets.smoke_noise)
    pooled = images.pooled("all", [one, two, other])(None)
    assert pooled.class_names == ("one 0", "one 1", "other 0", "other 1")
    assert pooled.class_counts == (30, 30, 30, 30)
    assert len(np.unique(pooled.groups)) == 120


def test_measures_of_a_source_are_what_they_say(recipe):
    images = sys.modules["sources_images"]
    rng = np.random.default_rng(0)
    assert images.effective_rank(rng.normal(size=(4000, 5))) == pytest.approx(5, abs=0.05)
    assert images.effective_rank(np.outer(np.arange(9.0), [1.0, 2.0])) == pytest.approx(1)
    first, second = rng.normal(size=(500, 3)), rng.normal(size=(500, 3)) + 2
    assert images.frechet_distance(first, first) == pytest.approx(0, abs=1e-8)
    roots = sqrtm(np.cov(first, rowvar=False) @ np.cov(second, rowvar=False))
    gap = first.mean(axis=0) - second.mean(axis=0)
    literal = gap @ gap + np.trace(np.cov(first, rowvar=False) + np.cov(second, rowvar=False) - 2 * np.real(roots))
    assert images.frechet_distance(first, second) == pytest.approx(literal)
    assert literal == pytest.approx(12, rel=0.15)  # three coordinates, 2² each


def test_the_page_ranks_sources_by_what_was_known_of_them(recipe, tmp_path):
    page, rows = sys.modules["sources_page"], sys.modules["ground_truth_rows"]
    areas = {"breastmnist": 0.7, "busi": 0.8, "cifar10": 0.75, "all but t": 0.9, "random": 0.5}
    known = {"family": "f", "side": 64, "epochs": 15, "settings": "s", "versions": "v", "val_loss": 0.1, "cpu_seconds": 36.0}
    cells = {}
    for source, area in areas.items():
        for rate in rows.LEARNING_RATES:
            for seed in page.SEEDS:
                row = rows.CellRow(
                    model=source, fidelity="full", learning_rate=rate, seed=seed, auc=area, val_auc=area - rate, **known
                )
                cells[row.key] = row
    rows.write_cells(tmp_path, "t", cells)
    sizes = {"breastmnist": 5, "busi": 30, "cifar10": 20, "all but t": 10}
    page.write_sources(
        tmp_path, [page.SourceRow(source=s, images=n, classes=2, epochs=1, diversity=1.0) for s, n in sizes.items()]
    )
    page.write_pairs(tmp_path, [page.PairRow(source=source, target="t", logme=area) for source, area in areas.items()])
    text = page.page_of(tmp_path, [SimpleNamespace(name="t", title="T", group="")])
    assert "not finished" not in text
    assert "| all but the target | **90.0** |" in text
    expected = spearman(np.array([5.0, 30.0, 20.0, 10.0]), np.array([0.7, 0.8, 0.75, 0.9]))
    assert f"| Size | 1 | {expected:+.2f} " in text.replace("−", "-")
    assert "| logme | 1 | +1.00 [+1.00, +1.00] |" in text
    assert "| Diversity | 1 |" not in text  # the same of all: nothing is ordered
    assert "the best single medical set: ahead on 1 of 1 targets, +10.00" in text
    assert "CIFAR-10 against random weights: ahead on 1 of 1 targets, +25.00" in text
