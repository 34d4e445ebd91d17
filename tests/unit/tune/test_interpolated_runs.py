"""The curve between two run directories: the ends are the runs themselves, and runs that do not belong together are named."""

import json
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

from crossgraft import fine_tune, interpolate
from crossgraft.data import dataset_from_arrays, open_dataset
from crossgraft.errors import DataError, RunDirectoryError, UsageError, WeightsMismatchError
from crossgraft.interpolate.record import InterpolationRecord
from support.tiny import TINY_MODELS, make_images

OWN = {"allow_code": "tiny_models:tiny,other_models:wide"}
FAST = {"model": "tiny_models:tiny", "epochs": 2, "workers": 1, "device": "cpu", "store": False}
REFUSED = {**FAST, "epochs": 1}  # of these runs no number is looked at


def squares(n=60, *, level=80):
    """Noise that is brighter in the second class."""
    labels = np.arange(n) % 2
    pixels = np.random.default_rng(0).integers(0, 90, (n, 16, 16, 3)) + level * labels[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), labels)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs that belong together, and some that do not."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny_models.py").write_text(textwrap.dedent(TINY_MODELS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSGRAFT_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        fine_tune(squares(), **FAST, out=folder / "full", threshold_rule="sensitivity:0.9")
        fine_tune(squares(), **FAST, out=folder / "linear", method="linear")
        yield folder
    sys.modules.pop("tiny_models", None)


def test_the_ends_are_the_runs_with_their_own_numbers(folder):
    found = interpolate(folder / "full", squares(), linear=folder / "linear", **OWN, alphas=[0, 0.5, 1], workers=1)
    for point, run in ((found.record.points[0], "linear"), (found.record.points[-1], "full")):
        table = pd.read_csv(folder / run / "metrics.csv")
        table = table[table.class_name.isna() & (table.split == "test")].set_index("metric")
        for metric in ("auc", "calibration_error", *(["balanced_accuracy"] if run == "full" else [])):
            assert point.metric(metric).value == pytest.approx(table.value[metric]), metric
        report = json.loads((folder / run / "report.json").read_text())
        assert point.similarity == pytest.approx(report["similarity"])
    assert found.record.points[0].parameter_distance == 0
    assert found.record.start == "the pretrained network with the head of the linear probe"
    assert InterpolationRecord.model_validate_json(found.to_json()) == found.record
    frame = found.to_frame()
    assert set(frame.split) == {"test", "val"}
    assert frame.groupby("split").alpha.unique().map(list).tolist() == [[0, 0.5, 1]] * 2
    assert frame[frame.picked].alpha.unique().tolist() == [found.record.picked_alpha]
    assert f"alpha {found.record.picked_alpha:g} picked on val" in repr(found)
    assert "<table" in found._repr_html_()


def test_without_a_probe_the_tuned_head_stays(folder):
    with pytest.raises(UsageError, match="not known: add --model tiny_models:tiny, as the run was told; or --linear"):
        interpolate(folder / "full", squares(), **OWN)
    found = interpolate(folder / "full", squares(), model="tiny_models:tiny", alphas=[0, 1], workers=1)
    ends = interpolate(folder / "full", squares(), linear=folder / "linear", **OWN, alphas=[0, 1], workers=1).record.points
    assert found.record.points[1] == ends[1]
    assert found.record.points[0].similarity == pytest.approx(ends[0].similarity)
    assert found.record.points[0].metrics != ends[0].metrics
    assert found.record.start == "the pretrained network with the head of the fine-tuned one"


def test_other_weights_are_refused(folder):
    from dataclasses import replace

    from crossgraft.tune.planning.fold_networks import find_model

    other = replace(find_model("tiny_models:tiny", None), kwargs={"width": 12}, name="wide")
    with pytest.raises(WeightsMismatchError, match="wide has other pretrained weights than the run"):
        interpolate(folder / "full", squares(), model=other)


def test_runs_that_do_not_belong_together_are_named(folder):
    with pytest.raises(UsageError, match=r"full has the method full; the start must be one of linear"):
        interpolate(folder / "full", squares(), linear=folder / "full", **OWN)
    with pytest.raises(DataError, match=r"is not what the run in .*full was made on"):
        interpolate(folder / "full", squares(level=81), linear=folder / "linear", **OWN)
    fine_tune(squares(), **REFUSED, out=folder / "other rows", method="linear", val_fraction=0.3)
    with pytest.raises(UsageError, match="have other rows in train, val or test"):
        interpolate(folder / "full", squares(), linear=folder / "other rows", **OWN)
    fine_tune(squares(level=81), **REFUSED, out=folder / "other data", method="linear")
    with pytest.raises(UsageError, match="The runs were made on different data"):
        interpolate(folder / "full", squares(), linear=folder / "other data", **OWN)
    fine_tune(squares(), **REFUSED, out=folder / "larger", method="linear", image_size=20)
    with pytest.raises(UsageError, match="prepare images differently"):
        interpolate(folder / "full", squares(), linear=folder / "larger", **OWN)


def test_other_networks_folds_and_random_starts_are_refused(folder):
    (folder / "other_models.py").write_text("from tiny_models import tiny\n\n\ndef wide():\n    return tiny(12)\n")
    fine_tune(squares(), **{**REFUSED, "model": "other_models:wide"}, out=folder / "wide", method="linear")
    with pytest.raises(UsageError, match=r"start from different networks: .*tiny.* in .*full, .*wide.* in"):
        interpolate(folder / "full", squares(), linear=folder / "wide", **OWN)
    fine_tune(squares(), **REFUSED, out=folder / "folds", folds=2)
    with pytest.raises(RunDirectoryError, match="left no model: with folds there is one model a fold"):
        interpolate(folder / "folds", squares(), linear=folder / "linear", **OWN)
    fine_tune(squares(), **REFUSED, out=folder / "scratch", method="scratch")
    with pytest.raises(UsageError, match="started from random weights"):
        interpolate(folder / "scratch", squares(), linear=folder / "linear", **OWN)


def test_data_are_opened_as_the_run_did(folder):
    make_images(folder / "images", {"dark": 40, "light": 40})
    options = {"limit": 60, "class_names": ["light", "dark"], "seed": 3}
    for name in ("full", "linear"):
        fine_tune(folder / "images", **FAST, **options, method=name, out=folder / f"limited {name}")
    found = interpolate(
        folder / "limited full", folder / "images", linear=folder / "limited linear" / "model", alphas=[1], workers=1, **OWN
    )
    opened = open_dataset(folder / "images", class_names=["light", "dark"])
    same = interpolate(folder / "limited full", opened, linear=folder / "limited linear", **OWN, alphas=[1], workers=1)
    assert same.record.points == found.record.points
    table = pd.read_csv(folder / "limited full" / "metrics.csv").set_index(["split", "metric"])
    assert found.record.points[0].metric("auc").num_images == table.num_images["test", "auc"].max() == 12
