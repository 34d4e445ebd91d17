"""``crossgraft distil``: fine-tuned networks of several kinds of images become one backbone."""

import json

import numpy as np
import pandas as pd
import pytest

import crossgraft as package
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.distil import student
from crossgraft.distil.domains import seen_elsewhere
from crossgraft.distil.record import DistillationRecord
from crossgraft.errors import DataError, OtherRunError, UsageError
from crossgraft.models import load_backbone, read_zoo
from support.tiny import make_images

CODE = ("--code", "tiny_models.py", "--workers", "1")
TUNED = ("--model", "zoo.yaml:narrow", *CODE, "--epochs", "1")
FLAGS = ("--model", "zoo.yaml:wide", *CODE, "--steps", "6", "--batch-size", "6", "--checkpoint-every", "2")
DISTIL = ("distil", "first", "second", "--data", "images,others", *FLAGS)


@pytest.fixture
def teachers(workspace, run_once):
    """Two finished runs of other images."""
    make_images(workspace / "others", {"cat": 14, "dog": 12, "fox": 12}, size=20)  # of another size: no image is in both
    run_once("tune", "images", *TUNED, out="first")
    run_once("tune", "others", *TUNED, out="second")
    return workspace


def record_of(folder):
    return DistillationRecord.model_validate_json((folder / "report.json").read_bytes())


def test_the_run_directory_holds_the_student_and_what_it_is_worth(teachers, crossgraft):
    done = crossgraft(*DISTIL, "--out", "run")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "wide learned from 2 networks. Its balanced accuracy on held-out images is" in said
    assert "--model run/universal.safetensors" in said and "Distilling 2 networks into wide" in done.err
    record = record_of(teachers / "run")
    assert [domain.name for domain in record.domains] == ["images", "others"]
    assert [domain.weight for domain in record.domains] == [1.0, 4.0]
    assert record.history[-1].last_step == 6 and len(record.history[0].cross_entropy) == 2
    tuned = json.loads((teachers / "second" / "report.json").read_text())
    (kept,) = [row for row in tuned["metrics"] if row["metric"] == "balanced_accuracy" and row["split"] == "test"][:1]
    assert record.domains[1].taught.value == pytest.approx(kept["value"])
    assert record.domains[1].taught.low == pytest.approx(kept["low"])
    frame = pd.read_csv(teachers / "run" / "metrics.csv")
    assert set(frame["network"]) == {"teacher", "student"}
    assert len(pd.read_csv(teachers / "run" / "history.csv")) == 12
    html = (teachers / "run" / "report.html").read_text()
    assert str(teachers) not in html and "Learning curves" in html
    run = json.loads((teachers / "run" / "run.json").read_text())
    assert run["command_line"].startswith("crossgraft distil first second --model zoo.yaml:wide --data images,others")


def test_the_student_is_what_model_reads(teachers, crossgraft):
    assert crossgraft(*DISTIL, "--out", "run").code == 0
    (spec,) = read_zoo("run/universal.safetensors", allow_code="tiny_models.py")
    assert load_backbone(spec).weights_fingerprint == record_of(teachers / "run").weights_fingerprint
    one_task = ("--support", "images", "--query", "others", "--model", "run/universal.safetensors", "--head", "ncc")
    assert crossgraft("fewshot", *one_task, *CODE).code == 0
    refused = crossgraft("fewshot", *one_task, "--workers", "1")
    assert refused.code == 2 and "--code tiny_models.py" in refused.err


def test_a_stopped_run_goes_on_with_the_same_bits(teachers, crossgraft, monkeypatch):
    assert crossgraft(*DISTIL, "--out", "whole").code == 0
    with monkeypatch.context() as stopping:
        stopping.setattr(student, "batch_rbf_cka", _stops_after(9))
        assert crossgraft(*DISTIL, "--out", "run").code == 130
    done = crossgraft(*DISTIL, "--out", "run")
    assert done.code == 0, done.err
    one, other = (record_of(teachers / name) for name in ("whole", "run"))
    assert one.weights_fingerprint == other.weights_fingerprint and one.history == other.history


def _stops_after(number):
    from crossgraft.similarity import batch_rbf_cka

    calls = iter(range(number))

    def cka(x, y):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return batch_rbf_cka(x, y)

    return cka


def test_python_gives_the_same_and_takes_open_data(teachers):
    options = {"model": "zoo.yaml:wide", "allow_code": "tiny_models.py", "steps": 6, "batch_size": 6, "workers": 1}
    found = package.distil(["first", "second"], data=["images", "others"], out="one", **options)
    opened = [package.open_dataset(name) for name in ("images", "others")]
    kept = package.distil(["first", "second"], data=opened, out="open", **options)
    assert kept.record.weights_fingerprint == found.record.weights_fingerprint
    assert "data=['images', 'others']" in json.loads((teachers / "open" / "run.json").read_text())["command_line"]
    again = package.distil(["first", "second"], data=opened, names=["a", "b"], **options)
    assert found.record.weights_fingerprint != "" and [each.name for each in again.record.domains] == ["a", "b"]
    assert found.weights.is_file() and again.weights is None
    assert found.summary().startswith("wide learned from 2 networks.")
    assert np.isfinite(found.to_frame()["value"].dropna()).all()
    with pytest.raises(OtherRunError):
        package.distil(["first", "second"], data=["images", "others"], out="one", **{**options, "steps": 7})


def test_images_that_the_student_knows_from_another_run_are_left_out(teachers, crossgraft):
    """Two runs on the same table with other splits: test images of the one trained the other."""
    make_images(teachers / "pool", {"cat": 60, "dog": 60})
    for seed in ("0", "1", "2"):
        assert crossgraft("tune", "pool", *TUNED, "--seed", seed, "--out", f"t{seed}").code == 0
    flags = ("--data", "pool,pool", "--names", "a,b", *FLAGS)
    done = crossgraft("distil", "t0", "t1", *flags, "--out", "run")
    assert done.code == 0, done.err
    record = record_of(teachers / "run")
    for domain, run in zip(record.domains, ("t0", "t1"), strict=True):
        tuned = json.loads((teachers / run / "report.json").read_text())
        whole = next(row["num_images"] for row in tuned["metrics"] if row["split"] == "test")
        assert domain.num_left_out > 0 and domain.num_test == domain.student.num_images == whole - domain.num_left_out
    assert "are training images of another run" in " ".join(done.out.split())
    steps = crossgraft("distil", "t0", "t0", *flags, "--out", "same")
    assert steps.code == 0 and record_of(teachers / "same").domains[0].num_left_out == 0


def test_patients_that_the_student_knows_are_left_out():
    images = np.random.default_rng(0).integers(0, 255, (8, 12, 12), dtype=np.uint8)
    test = dataset_from_arrays(images[:4], [0, 1] * 2, groups=list("abcd"))
    other = dataset_from_arrays(images[3:], [0, 1, 0, 1, 0], groups=list("xbyzw"))
    assert seen_elsewhere(test, [other]).tolist() == [False, True, False, True]
    assert seen_elsewhere(test, []).tolist() == [False] * 4
    plain = dataset_from_arrays(images[4:], [0, 1] * 2)
    assert not seen_elsewhere(test, [plain]).any()


def test_absolute_paths_stay_behind(teachers, crossgraft):
    data = f"{teachers / 'images'},{teachers / 'others'}"
    assert crossgraft("distil", "first", "second", "--data", data, *FLAGS, "--out", "run").code == 0
    for file in (teachers / "run").glob("*.*"):
        assert str(teachers).encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"data": "images"}, UsageError, "data must have one entry per run: 2 runs, 1 entries"),
        ({"names": "one"}, UsageError, "names must have one entry per run"),
        ({"names": "one,one"}, UsageError, "names of their own"),
        ({"names": ",one"}, UsageError, "names of their own"),
        ({"data": "others,images"}, DataError, "was made for 24 other images than the 38 of others"),
        ({"batch_size": 60}, DataError, "fewer than a batch of 60"),
        ({"learning_rate": -1.0}, UsageError, "learning_rate of a distillation"),
        ({"model": "zoo.yaml"}, UsageError, "distil takes one model"),
    ],
)
def test_bad_input(teachers, options, error, said):
    usual = {"data": "images,others", "model": "zoo.yaml:wide", "allow_code": "tiny_models.py", "workers": 1, "steps": 2}
    with pytest.raises(error, match=said):
        package.distil(["first", "second"], **(usual | {"batch_size": 6} | options))
