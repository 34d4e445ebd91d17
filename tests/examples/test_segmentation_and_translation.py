"""Segmentation and translation with ρSIM, on tiny files in the form of the published ones."""

import importlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "sim"
ALPHABETS = ("Balinese", "Latin")


@pytest.fixture(scope="module")
def example():
    """Import one example by its name; its folder is on the path meanwhile."""
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if any((ROOT / "examples" / folder / f"{name}.py").is_file() for folder in ("sim", "own_models")):
            del sys.modules[name]


@pytest.fixture(scope="module")
def files(tmp_path_factory, example):
    """Drawings of two alphabets, six cats and dogs, and a network with random weights."""
    folder = tmp_path_factory.mktemp("published") / "datasets"
    for each in (folder, folder.parent / "weights"):
        each.mkdir()
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(folder / "omniglot_images_background_small1.zip", "w") as archive:
        for alphabet in ALPHABETS:
            for drawer in (1, 2, 11, 12):
                ink = np.ones((105, 105), dtype=bool)
                ink[rng.integers(20, 80) :][:4, 10:90] = False
                png = io.BytesIO()
                Image.fromarray(ink).save(png, "png")
                archive.writestr(f"images_background_small1/{alphabet}/character01/0001_{drawer:02}.png", png.getvalue())
    images, labels = rng.integers(0, 256, (14, 32, 32, 3), dtype=np.uint8), np.array([3, 5] * 6 + [0, 1])
    parts = {"train_images": images[:8], "train_labels": labels[:8], "test_images": images[8:], "test_labels": labels[8:]}
    np.savez(folder / "cifar10_jpeg_5000_1000.npz", **parts)
    torch.manual_seed(0)
    weights = example("translation").resnet56().half().state_dict()
    save_file(weights, folder.parent / "weights" / "cifar10_resnet56.safetensors")
    return folder


@pytest.fixture
def smoke(example, files, tmp_path, monkeypatch):
    """Run one example small; the rows it leaves."""
    threads = torch.get_num_threads()

    def run(name):
        monkeypatch.setattr(sys, "argv", [name, str(files), str(tmp_path / "table.csv"), "--smoke", "--seeds", "1"])
        example(name).main()
        return pd.read_csv(tmp_path / "table.csv")

    yield run
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def vessels(example, files):
    """Made-up vessels, and what each part of them was drawn from."""
    segmentation, drawn_from = example("segmentation"), []
    draw = segmentation._with_vessels

    def noted(half, strokes, rng):
        drawn_from.append((half, strokes))
        return draw(half, strokes, rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segmentation, "_with_vessels", noted)
        return segmentation.made_up_vessels(files, 1, 1), drawn_from


ARMS = ("without", "rho_sim", "placebo")
OVERLAP = {"Dice", "IoU"}
HEADS = ("UNet+FCN", "UNet+DeepLabV3", "UNet+PSPNet")


def test_segmentation_leaves_a_row_for_each_head_arm_and_measure(smoke, tmp_path):
    rows = smoke("segmentation")
    trained = rows[rows["arm"] != "trivial"]
    for data in ("made-up vessels", "coins"):
        own = trained[trained["data"] == data]
        assert {*zip(own["network"], own["arm"], own["metric"], strict=True)} == {
            (head, arm, metric) for head in HEADS for arm in ARMS for metric in OVERLAP
        }
        assert {*rows[(rows["data"] == data) & (rows["arm"] == "trivial")]["metric"]} == OVERLAP
        assert (tmp_path / f"table-{data.replace(' ', '-')}.png").is_file()
    assert rows["value"].between(0, 100).all()


def test_translation_leaves_a_row_for_each_arm_and_measure_and_a_picture(smoke, tmp_path):
    rows = smoke("translation")
    metrics = {"Fréchet distance", "AP of dog", "grey values kept"}
    found = {arm: {*own["metric"]} for arm, own in rows.groupby("arm")}
    assert found == {
        **dict.fromkeys(("trivial", *ARMS, "patch_nce"), metrics), "floor": metrics - {"grey values kept"}
    }  # fmt: skip
    trivial = rows[rows["arm"] == "trivial"].set_index("metric")["value"]
    assert trivial["AP of dog"] == 0.5
    assert trivial["grey values kept"] == pytest.approx(1)
    assert (tmp_path / "table-features.png").is_file()


class NoSim:
    """What a training without any ρSIM has in its place."""

    weight = 0.0

    def __init__(self, *_, **__):
        pass

    def loss(self):
        return torch.zeros(())

    def detach(self):
        pass


def train_unet(example, arm, *, vessels, **_):
    return example("segmentation").train_network(vessels[0].train, "UNet+FCN", arm, 0, 2)


def train_generator(example, arm, *, files, **_):
    translation = example("translation")
    return translation.train_generator(translation.read_pets(files, 4), arm, 0, 2)


@pytest.mark.parametrize("train", [train_unet, train_generator])
def test_an_arm_without_is_a_training_without_and_no_arm_leaves_anything(example, files, vessels, train, monkeypatch):
    data = {"files": files, "vessels": vessels}
    weights = {arm: train(example, arm, **data).state_dict() for arm in ARMS}
    monkeypatch.setattr(example("arms"), "RhoSim", NoSim)
    alone = train(example, "without", **data).state_dict()
    assert alone.keys() == weights["rho_sim"].keys() == weights["placebo"].keys()
    differ = {arm: any(not torch.equal(tensor, weights[arm][name]) for name, tensor in alone.items()) for arm in ARMS}
    assert differ == {"without": False, "rho_sim": True, "placebo": True}


def test_overlap_of_masks(example):
    found, masks = torch.tensor([[True, True, False, False]]), torch.tensor([[True, False, True, False]])
    measured = example("segmentation").overlap(found, masks)
    assert measured == {"Dice": pytest.approx(50), "IoU": pytest.approx(100 / 3)}


def test_the_frechet_distance_of_shifted_and_of_wider_features(example):
    """Of commuting covariances it is |μ − ν|² + Σ (σ − τ)²."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 3))
    distance = example("translation").frechet_distance
    deviations = np.sqrt(np.linalg.eigvalsh(np.cov(features.T)))
    assert distance(features, features) == pytest.approx(0, abs=1e-6)
    moved = 2 * (features - features.mean(axis=0)) + features.mean(axis=0) + [3, 0, 4]
    assert distance(features, moved) == pytest.approx(25 + (deviations**2).sum())


def test_parts_share_no_stroke_and_no_piece_of_the_photograph(vessels):
    (left, train), (right, test) = vessels[1]
    assert left.shape == right.shape
    assert not np.shares_memory(left, right)
    assert len(train) == len(test) == 2
    assert not any(np.array_equal(one, other) for one in train for other in test)


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "recipes"))
    return importlib.import_module("drawing.sim_other_tasks")


@pytest.mark.parametrize(
    ("to_without", "to_placebo", "more_is_better", "said"),
    [
        (1, 1, True, "a gain"), (1, 1, False, "a loss"), (-1, -1, True, "a loss"), (-1, -1, False, "a gain"),
        (1, 0, True, "no effect"), (0, 1, True, "no effect"), (1, -1, True, "no effect"),
    ],
)  # fmt: skip
def test_the_rule_asks_for_both_differences(tables, to_without, to_placebo, more_is_better, said):
    wobble = (0.1, 0.0, -0.1)
    rows = [
        {
            "data": "d",
            "network": "n",
            "arm": arm,
            "seed": seed,
            "metric": "m",
            "value": 10 * seed - gap + (wobble[seed] if arm != "rho_sim" else 0),
        }
        for arm, gap in (("without", to_without), ("rho_sim", 0), ("placebo", to_placebo))
        for seed in range(3)
    ]
    told = tables.verdict(pd.DataFrame(rows), more_is_better=more_is_better)
    assert told.startswith(f"{said} ")
    assert told.count("**") == 2 * bool(to_without) + 2 * bool(to_placebo)
