"""recipes/shortcut_sources.py runs without data and does nothing twice; its differences of sources are those of SRI itself."""

import csv
import json
import sys

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays

SHARES, FOLDS = (0.0, 0.5, 1.0), (0, 1)
TAG, BLUR = "tag:size=0.125", "low_pass:cutoff=0.244"


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("shortcut_sources")


@pytest.fixture
def part(recipe):
    """A module of the recipe by the end of its name."""
    return lambda name: sys.modules[f"shortcut_sources_{name}"]


@pytest.mark.slow
def test_without_data_it_runs_and_does_nothing_twice(recipe, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recipe, "SHARES", (0.0, 0.5, 1.0))
    monkeypatch.setattr(recipe, "FOLDS", 2)
    common = ["--smoke", "--confounders", "nlm_denoising", "--rows", str(tmp_path / "rows"), "--work", str(tmp_path / "work")]
    common += ["--out", str(tmp_path / "page.md")]
    recipe.main([*common, "--only", "medical"])
    told = capsys.readouterr().out
    assert "medical: pretrained in" in told and "medical: 1 audits in" in told
    assert not (tmp_path / "rows" / "differences.csv").exists()
    monkeypatch.setattr(recipe, "pretrain", lambda *_, **__: pytest.fail("a source was pretrained again"))
    recipe.main([*common, "--only", "medical", "random"])
    told = capsys.readouterr().out
    assert "medical: 1 audits" not in told and "random: 1 audits" in told and "2 audits are there" in told
    with (tmp_path / "rows" / "differences.csv").open(encoding="utf-8") as opened:
        assert [row["metric"] for row in csv.DictReader(opened)] == ["sri", "sri", "clean_auc"]
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "2 of 5 sources" in page and "| random weights − medical | SRI, nlm_denoising |" in page and "{" not in page
    assert (tmp_path / "page" / "reliance.svg").read_text(encoding="utf-8").startswith("<?xml")
    monkeypatch.setattr(recipe, "target", lambda *_: pytest.fail("images were read for the page alone"))
    recipe.main([*common, "--only", "none"])
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page


def test_smoke_numbers_stay_out_of_the_tables_of_the_study(recipe, capsys):
    with pytest.raises(SystemExit):
        recipe.parse_arguments(["--smoke"])
    assert "another --rows" in capsys.readouterr().err


def test_sources_are_drawn_evenly_and_as_large(part):
    images = part("images")
    drawn = images.evenly({"a": 5856, "b": 253, "c": 1600, "d": 2400, "e": 2075}, 5000)
    assert drawn == {"b": 253, "c": 1186, "d": 1187, "e": 1187, "a": 1187}
    assert images.evenly({"a": 3, "b": 3}, 6) == {"a": 3, "b": 3}
    with pytest.raises(ValueError, match="6 images in all, 7"):
        images.evenly({"a": 3, "b": 3}, 7)


def test_images_become_means_of_areas(part):
    pixels = np.arange(16, dtype=np.uint8).reshape(4, 4, 1) * 4
    small = part("images").resized(pixels, 2)
    assert small.shape == (2, 2, 1)
    assert small[..., 0].tolist() == pixels[..., 0].reshape(2, 2, 2, 2).mean(axis=(1, 3)).round().tolist()
    assert part("images").resized(np.zeros((3, 5, 3), np.uint8), 8).shape == (8, 8, 3)


def test_animals_and_vehicles_are_all_ten_classes(part):
    coarse = part("images").COARSE
    assert len(coarse) == 10
    assert sorted(set(coarse.values())) == ["animal", "vehicle"]


def test_the_first_convolution_has_a_stride_of_two(part):
    import torch

    network = part("network").resnet20_stride2(3)
    assert sum(each.numel() for each in network.parameters()) == 269_722 - 7 * 65
    assert network(torch.zeros(1, 3, 64, 64)).shape == (1, 3)
    assert network.layer1(network.conv1(torch.zeros(1, 3, 64, 64))).shape == (1, 16, 32, 32)


@pytest.fixture
def runs(tmp_path):
    """Two run directories with random scores of the same test images, and these images."""
    rng = np.random.default_rng(0)
    images = dataset_from_arrays(rng.integers(0, 256, (40, 8, 8), dtype=np.uint8), np.arange(40) % 2, groups=np.arange(40) // 2)
    for source in ("one", "two"):
        folder = tmp_path / source / "trainings"
        folder.mkdir(parents=True)
        config = {"confounders": [TAG, BLUR], "shares": list(SHARES), "audit_folds": len(FOLDS)}
        (tmp_path / source / "run.json").write_text(json.dumps({"config": config}))
        for fold in FOLDS:
            for share in SHARES:
                for names in [(TAG, BLUR)] if share == 0 else [(TAG,), (BLUR,)]:
                    record = {
                        "key": "", "realised": share, "threshold": 0.5, "best_epoch": fold + 1, "clean": rng.random(20).tolist(),
                        "edited": {name: rng.random(20).tolist() for name in names},
                    }  # fmt: skip
                    carried = names[0] if share else "clean"
                    file = f"{source}-{carried.replace(':', '-')}-fold{fold}-share{share:g}.json"
                    (folder / file).write_text(json.dumps(record))
        rows = [["row", "fold", "part", "positive"]]
        rows += [
            [str(row), str(fold), "test" if row > 20 else "train", str(row % 2 == 0)] for fold in FOLDS for row in range(1, 41)
        ]
        (tmp_path / source / "manifest.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    return tmp_path, images


def test_differences_are_those_of_the_index_itself(part, runs):
    folder, images = runs
    one, two = (part("differences").read_trainings(folder / name, images) for name in ("one", "two"))
    assert one.groups.tolist() == (np.arange(20, 40) // 2).tolist()
    found = {(row["metric"], row["confounder"]): row for row in part("differences").difference_rows("one", one, {"two": two})}
    assert set(found) == {("sri", BLUR), ("sri", TAG), ("sri", "mean"), ("clean_auc", "")}
    expected = {name: literal_sri(two, name) - literal_sri(one, name) for name in (TAG, BLUR)}
    for name, value in expected.items():
        row = found["sri", name]
        assert float(row["difference"]) == pytest.approx(value, abs=1e-5)
        assert float(row["patients_low"]) < value < float(row["patients_high"])
    assert float(found["sri", "mean"]["difference"]) == pytest.approx(np.mean(list(expected.values())), abs=1e-5)
    rows = part("differences").training_rows("one", one)
    assert len(rows) == len(SHARES) * len(FOLDS) * 2
    assert {row["best_epoch"] for row in rows if row["fold"] == "1"} == {"2"}


def literal_sri(trainings, name):
    """Mean over folds of the area of (i.i.d. − o.o.d.) less that at share 0, with i.i.d. test images drawn one by one."""

    def area(positives, negatives):
        return np.mean([(p > n) + (p == n) / 2 for p in positives for n in negatives])

    values = []
    for fold in FOLDS:
        gaps = []
        for share in SHARES:
            record = trainings.found[name, share, fold]
            clean, edited, positive = np.array(record.clean), np.array(record.edited[name]), trainings.is_positive
            carrying = round(share * positive.sum()) / positive.sum()
            aligned, nobody = area(edited[positive], clean[~positive]), area(clean[positive], clean[~positive])
            gaps.append(carrying * aligned + (1 - carrying) * nobody - area(clean[positive], edited[~positive]))
        gaps = np.array(gaps) - gaps[0]
        values.append(sum((b - a) * (x + y) / 2 for a, b, x, y in zip(SHARES, SHARES[1:], gaps, gaps[1:], strict=False)))
    return np.mean(values)


def test_other_test_images_are_refused(part, runs):
    folder, images = runs
    one, two = (part("differences").read_trainings(folder / name, images) for name in ("one", "two"))
    with pytest.raises(ValueError, match="different images"):
        part("differences").difference_rows("one", one, {"two": two._replace(is_positive=~two.is_positive)})


def claim_rows(difference, low, high, patients_low, patients_high):
    numbers = {"difference": difference, "low": low, "high": high, "patients_low": patients_low, "patients_high": patients_high}
    texts = {name: str(value) for name, value in numbers.items()}
    return [{"source": "natural", "other": "medical", "metric": "sri", "confounder": TAG, **texts}]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((-0.2, -0.3, -0.1, -0.25, -0.15), "[-0.250, -0.150]: as claimed."),
        ((-0.2, -0.9, 0.5, -0.25, -0.15), "as claimed over patients, not decided over folds."),
        ((0.2, 0.1, 0.3, 0.15, 0.25), "the opposite."),
        ((0.2, 0.1, 0.3, -0.15, 0.55), "not decided."),
    ],
)
def test_a_claim_stands_beside_what_the_rows_show(part, numbers, expected):
    told = part("claims").claims([], claim_rows(*numbers))
    assert "medical less CIFAR-10: SRI, tag" in told and expected in told
    assert told.count("Here,") == 1  # of the others there are no rows


def test_epochs_are_compared_training_by_training(part):
    rows = [
        {"source": source, "confounder": name, "share": share, "fold": fold, "best_epoch": str(epoch), "ood": "0.5"}
        for source, epoch in (("natural", 4), ("medical", 7))
        for name in (TAG, BLUR)
        for share in ("0", "1")
        for fold in ("0", "1")
    ]
    assert "medical less CIFAR-10 +3.00 [+3.00, +3.00], 6 pairs: more" in part("claims").epochs(rows)
    assert len(part("page").distinct(rows)) == 12  # a training of share 0 stands under both artefacts


def test_the_page_says_the_numbers_of_the_recipe(recipe, part):
    said = part("page").HEAD
    assert f"{part('network').PRETRAINING_EPOCHS} epochs" in said and f"for {recipe.EPOCHS} epochs" in said
    assert f"{part('images').NUM_IMAGES} images" in said and part("images").LOW_PASS.partition(":")[2] in said
    assert set(part("page").TITLES) == {source.name for source in recipe.SOURCES}
