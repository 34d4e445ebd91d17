"""Meta-Dataset's converted folders: one folder a class, and a JSON file of the classes of each part."""

import json

import numpy as np
import pytest
from PIL import Image

import crossgraft as package
from crossgraft.errors import DataError, UsageError

FLAGS = ("--model", "zoo.yaml:narrow", "--code", "tiny_models.py", "--episodes", "5", "--workers", "1")
SAMPLER = ("--sampler", "n_way_k_shot:ways=2,shots=2,queries=2")
COMMON = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "episodes": 5, "workers": 1}
COMMON["sampler"] = "n_way_k_shot:ways=2,shots=2,queries=2"
PARTS = {"train": ["aa", "bb"], "valid": ["cc"], "test": ["dd", "ee", "ff"]}


def pictures(folder, names):
    random = np.random.default_rng(0)
    for name in names:
        (folder / name).mkdir(parents=True)
        for number in range(6):
            Image.fromarray(random.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(folder / name / f"{number}.png")


@pytest.fixture
def converted(workspace, monkeypatch):
    monkeypatch.chdir(workspace)
    pictures(workspace / "omniglot", [name for names in PARTS.values() for name in names])
    divided(workspace, PARTS)
    return workspace


def divided(workspace, parts, name="omniglot_splits.json"):
    (workspace / "omniglot" / name).write_text(parts if isinstance(parts, str) else json.dumps(parts))


def test_episodes_are_of_the_test_classes_alone(converted, crossgraft):
    done = crossgraft("fewshot", "omniglot", *FLAGS, *SAMPLER, "--heads", "ncc,logistic", "--out", "run")
    assert done.code == 0, done.err
    assert "Classes are divided by omniglot_splits.json: 2 train, 1 val, 3 test. Episodes are drawn from test." in done.err
    record = json.loads((converted / "run" / "report.json").read_text())
    assert record["dataset"]["class_names"] == ["dd", "ee", "ff"] and record["dataset"]["class_counts"] == [6, 6, 6]
    assert record["dataset"]["rows_used"] == "3 classes by omniglot_splits.json"
    same = package.run_episodes("omniglot", heads="ncc,logistic", class_split="omniglot/omniglot_splits.json", **COMMON)
    assert same.record.heads[0].accuracy == record["heads"][0]["accuracy"]
    of_train = package.run_episodes("omniglot", heads="ncc", classes_of="train", **COMMON)
    assert of_train.record.dataset.class_names == ["aa", "bb"]


def test_a_split_of_the_images_holds_beside_that_of_the_classes(converted):
    names = [name for part in PARTS.values() for name in part]
    lines = [f"omniglot/{name}/{k}.png,{name},{'train' if k < 4 else 'test'}" for name in names for k in range(6)]
    (converted / "table.csv").write_text("\n".join(["path,label,split", *lines]) + "\n")
    divided(converted, PARTS)
    split = "omniglot/omniglot_splits.json"
    found = package.run_episodes("table.csv", heads="ncc", class_split=split, **COMMON).record.dataset
    assert (found.class_names, found.class_counts) == (["dd", "ee", "ff"], [4, 4, 4])
    assert found.rows_used == "split train, 3 classes by omniglot_splits.json"


def test_heads_learn_on_the_train_classes(converted):
    found = package.run_episodes("omniglot", heads="ncc,meta_adapter:epochs=1", **COMMON).record
    assert found.base_classes == ["aa", "bb"]
    with pytest.raises(UsageError, match=r"--base-classes and omniglot_splits\.json both say"):
        package.run_episodes("omniglot", heads="meta_adapter", base_classes="cc", **COMMON)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"train": ["aa"], "test": ["dd", "aa"]}, "the class aa is in train and in test, so that episodes would have what a"),
        ({"test": ["dd", "zz"]}, r"The class zz of omniglot_splits\.json has no folder in omniglot; there are aa, bb"),
        ({"test": ["dd", "gg"]}, "No images in the class folder gg of omniglot"),
        ({"train": ["aa"]}, r"names no test classes; it has train\. Name another part: --classes-of"),
        ({"tests": ["aa"]}, r"tests is no list of class names for train, valid or test\. It must say classes by part: \{"),
        ({"test": {"Greek": ["dd"]}}, "test is no list of class names"),
        (["dd"], "must say classes by part, such as .* and is a list"),
        ("{", "is no JSON"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(converted, parts, said):
    if "gg" in str(parts):
        (converted / "omniglot" / "gg").mkdir()
    divided(converted, parts)
    with pytest.raises(DataError, match=said):
        package.run_episodes("omniglot", heads="ncc", **COMMON)


def test_a_file_that_nobody_named_may_be_moved_away(converted):
    divided(converted, {"folds": 5})
    moved = r"If omniglot_splits\.json is about something else, move it out of omniglot\."
    with pytest.raises(DataError, match=moved):
        package.run_episodes("omniglot", heads="ncc", **COMMON)
    with pytest.raises(DataError, match=r"It must say classes by part: \{[^}]*\}\.$"):  # it was named here
        package.run_episodes("omniglot", heads="ncc", class_split="omniglot/omniglot_splits.json", **COMMON)
    divided(converted, PARTS)
    with pytest.raises(UsageError, match=r"Leave --holdout out\. " + moved):
        package.run_episodes("omniglot", heads="ncc", holdout=0.3, **COMMON)
    (converted / "omniglot" / "omniglot_splits.json").rename(converted / "elsewhere.json")
    assert len(package.run_episodes("omniglot", heads="ncc", **COMMON).record.dataset.class_names) == 6


def test_what_contradicts_a_class_split_is_refused(converted):
    with pytest.raises(UsageError, match=r"--holdout divides images, and .*omniglot_splits\.json divides classes"):
        package.run_episodes("omniglot", heads="ncc", holdout=0.3, **COMMON)
    divided(converted, PARTS, "other_splits.json")
    with pytest.raises(DataError, match=r"holds omniglot_splits\.json and other_splits\.json.* Name one: --class-split FILE"):
        package.run_episodes("omniglot", heads="ncc", **COMMON)
    with pytest.raises(DataError, match=r"There is no file of class splits at nowhere\.json"):
        package.run_episodes("omniglot", heads="ncc", class_split="nowhere.json", **COMMON)
    with pytest.raises(UsageError, match="--classes-of is a part of a class split, and there is none"):
        package.run_episodes("images", heads="ncc", classes_of="train", **COMMON)
    (converted / "records").mkdir()
    (converted / "records" / "0.tfrecords").write_bytes(b"")
    with pytest.raises(DataError, match=r"holds 1 TFRecord file of Meta-Dataset, which are not read\. Write the images of each"):
        package.run_episodes("records", heads="ncc", **COMMON)
