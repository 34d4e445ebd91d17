"""What the record says of BatchNorm and of what was to be kept."""

import json

import numpy as np
import pandas as pd
import pytest

from crossgraft import fine_tune
from crossgraft.data import dataset_from_arrays

pytestmark = pytest.mark.usefixtures("tiny_models", "normed_models")
NORMED = "normed_models:normed"
FAST = {"epochs": 2, "workers": 1, "device": "cpu", "store": False, "no_images": True}


@pytest.fixture
def squares():
    of_row = np.arange(60) % 2
    pixels = np.random.default_rng(0).integers(0, 90, (60, 16, 16, 3)) + 80 * of_row[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), of_row)


def test_a_similarity_that_was_asked_for_is_in_every_place(squares, tmp_path):
    tuned = fine_tune(squares, model=NORMED, **FAST, regularizer="hcs", keep=0.97, batch_norm="train", out=tmp_path / "run")
    record = tuned.record
    assert (record.batch_norm.mode, record.batch_norm.num_layers, record.batch_norm.num_moving) == ("train", 2, 2)
    (picked,) = [row for row in record.grid if row.picked]
    kept = next(row for row in record.history if row.is_best and row.job == picked.job)
    assert (record.keep.target, record.keep.found) == (0.97, [kept.val_cka_debiased])
    assert record.keep.factors == [picked.values["keep_factor"]]
    assert "the debiased CKA on val stayed within 0.03 of 0.97" in record.selection_rule
    table = pd.read_csv(tmp_path / "run" / "history.csv")
    assert table.val_cka_debiased_adapted.tolist() == pytest.approx([row.val_cka_debiased_adapted for row in record.history])
    saved = json.loads((tmp_path / "run" / "model" / "model.json").read_text())
    assert saved["keep"] == json.loads(record.keep.model_dump_json())
    assert saved["batch_norm"]["mode"] == "train"


def test_without_one_moved_statistics_are_counted(squares):
    full = fine_tune(squares, model=NORMED, **FAST)
    assert (full.record.batch_norm.effective_mode, full.record.batch_norm.num_moving) == ("train", 2)
    assert full.record.keep is None
    assert {"val_cka_adapted", "val_cka_debiased_adapted"} <= set(full.history())
    assert full.record.selection_rule.startswith("Of all epochs the one")


def test_a_method_that_moves_no_statistics_and_a_network_without_any_say_so(squares):
    linear = fine_tune(squares, model=NORMED, **FAST, method="linear").record.batch_norm
    assert (linear.mode, linear.num_moving, linear.effective_mode) == ("train", 0, "frozen")
    bare = fine_tune(squares, model="tiny_models:tiny", **FAST)
    assert bare.record.batch_norm.num_layers == 0
    assert not {"val_cka_adapted", "val_cka_debiased_adapted"} & set(bare.history())
    assert set(bare.record.similarity) == {"cka", "cka_debiased"}
