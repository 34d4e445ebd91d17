"""Norms of the gradient of each block: what they are, and that reading them changes nothing."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from crossgraft.errors import DataError, RunDirectoryError
from crossgraft.losses import CrossEntropy
from crossgraft.tune.engine.gradient_norms import (
    SMOOTHING,
    GradientLog,
    GradientNorms,
    moving_average,
    read_gradient_norms,
    trained_blocks,
)
from support import forked
from support.training import (
    CLASSES,
    DoubleFeed,
    PullToStart,
    build_classifier,
    build_feed,
    everything,
    only_head,
    same_bits,
    train_one,
    with_lora,
)

LOGGED = {"log_gradient_norms": True}
BLOCKS = {"cnn": ("stem", "block"), "vit": ("blocks.0", "blocks.1", "blocks.2")}


def norms_of(name="cnn", **changes):
    return train_one(name, **{**LOGGED, **changes})[1].gradient_norms


def last_block(classifier):
    """Everything but what lies in front of the last block is trained."""
    whole = everything(classifier)
    frozen = {name for name in whole.trained if name.startswith(("body.stem", "body.norm"))}
    trained = {name: why for name, why in whole.trained.items() if name not in frozen}
    return type(whole)(trained, {**whole.frozen, **dict.fromkeys(frozen, "frozen")}, ("body.block", "head"))


def gradient_of_the_first_step(name, regularizer=None):
    """Norms of each block, by hand: mean loss of the whole batch and the term."""
    classifier, batch = build_classifier(name), next(build_feed().batches(0))
    classifier.train()
    loss = CrossEntropy()(classifier(batch.images), batch.targets).mean()
    if regularizer is not None:
        regularizer.attach(classifier)
        loss = loss + sum(regularizer.loss(SimpleNamespace(classifier=classifier)).values())
    loss.backward()
    of_block = {
        block: [p.grad for name, p in classifier.named_parameters() if name.startswith(f"body.{block}.")]
        for block in BLOCKS[name]
    }
    return [float(torch.cat([grad.flatten() for grad in grads]).norm()) for grads in of_block.values()]


class Farther(PullToStart):
    """A term whose gradient is not 0 at the start."""

    def loss(self, context):
        return {"size": 3 * sum(p.square().sum() for _, p in context.classifier.named_parameters() if p.requires_grad)}


@pytest.mark.parametrize("regularizer", [None, Farther()])
def test_they_are_the_norms_of_task_and_terms_of_the_whole_step(regularizer):
    norms = norms_of(regularizers=[] if regularizer is None else [regularizer])
    assert norms.blocks == BLOCKS["cnn"] and norms.values.shape == (6, 2)
    assert norms.values[0] == pytest.approx(gradient_of_the_first_step("cnn", regularizer), rel=1e-5)


def test_reading_them_changes_no_bit():
    common = {"regularizers": [PullToStart()], "clip_norm": 0.1, "accumulate": 2}
    plain, with_norms = (train_one("dropout", **common, **more)[0] for more in ({}, LOGGED))
    assert same_bits(plain, with_norms)
    assert train_one("dropout")[1].gradient_norms is None


def test_they_are_read_before_clipping():
    free, clipped = (norms_of(clip_norm=clip, epochs=1).values for clip in (None, 1e-3))
    assert np.array_equal(free[0], clipped[0]) and np.linalg.norm(free[0]) > 1e-3
    assert not np.array_equal(free[1], clipped[1])


def test_parts_of_a_batch_have_the_gradient_of_the_whole():
    common = {"feed": DoubleFeed(7), "precision": "64-true", "regularizers": [PullToStart()]}
    whole, parts = (norms_of("plain", **common, accumulate=number).values for number in (1, 3))
    assert np.allclose(whole, parts, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
def test_two_processes_have_the_gradient_of_one():
    common = {"feed": DoubleFeed(7), "precision": "64-true", "regularizers": [PullToStart()]}
    one, two = (norms_of("plain", **common, num_processes=number) for number in (1, 2))
    assert one.blocks == two.blocks and np.allclose(one.values, two.values, rtol=1e-9)


def test_frozen_blocks_are_absent():
    assert norms_of(selection=last_block).blocks == ("block",)
    assert not trained_blocks(build_classifier(), only_head(build_classifier()))


def test_of_an_adapted_block_only_the_adapter_counts():
    norms = norms_of("vit", selection=with_lora, epochs=1)
    assert norms.blocks == BLOCKS["vit"]
    classifier = build_classifier("vit")
    found = trained_blocks(classifier, with_lora(classifier))
    assert {name.split(".")[-1] for names in found.values() for name in names} <= {"A", "B", "weight"}
    assert all("lora" in name for names in found.values() for name in names)
    # one factor of the product is 0 at first, so that the other has no gradient
    assert (norms.values > 0).all()


def test_the_head_alone_has_no_rows():
    _, result = train_one(**LOGGED, head_first=True, head_epochs=1, epochs=2)
    assert [row.phase for row in result.history] == ["head", "all", "all"]
    assert len(result.gradient_norms.values) == 6


def test_scaled_gradients_are_brought_back_and_an_overflow_does_not_count():
    classifier = build_classifier()
    log = GradientLog(classifier, everything(classifier))
    for factor, scale in ((1.0, 1.0), (1024.0, 1024.0), (float("inf"), 1024.0)):
        for parameter in classifier.parameters():
            parameter.grad = torch.full_like(parameter, factor)
        log.add(scale)
    norms = log.norms
    assert np.array_equal(norms.values[0], norms.values[1]) and np.isinf(norms.values[2]).all()
    counts = [sum(p.numel() for n, p in classifier.named_parameters() if f"body.{block}." in n) for block in norms.blocks]
    assert norms.values[0] == pytest.approx(np.sqrt(counts))
    assert norms.averages[2] == pytest.approx(norms.values[0])


def test_a_phase_asks_the_scaler_of_float16(monkeypatch):
    from lightning_fabric.plugins.precision.precision import Precision

    plain = norms_of(epochs=1).values
    monkeypatch.setattr(Precision, "scaler", SimpleNamespace(_get_scale_async=lambda: torch.tensor(4.0)), raising=False)
    assert np.array_equal(norms_of(epochs=1).values, plain / 4)


def test_the_average_is_that_of_pandas():
    values = np.random.default_rng(0).lognormal(size=(50, 3))
    values[7, 1] = np.inf
    there = pd.DataFrame(np.where(np.isfinite(values), values, np.nan))
    expected = there.ewm(alpha=1 - SMOOTHING, adjust=True).mean().ffill()
    assert moving_average(values) == pytest.approx(expected.to_numpy())
    assert np.isnan(moving_average(np.array([[np.inf]]))).all()


def test_a_file_gives_back_every_bit(tmp_path):
    values = np.random.default_rng(0).lognormal(size=(4, 2))
    values[1, 0] = np.inf
    path = tmp_path / "norms.csv"
    path.write_text(GradientNorms(("first", "=second"), values).csv)
    found = read_gradient_norms(path)
    assert found.blocks == ("first", "=second") and np.array_equal(found.values, values)
    assert path.read_text().splitlines()[:2] == ["step,block,norm,ema", f"1,first,{values[0, 0]},{values[0, 0]}"]
    path.write_text(path.read_text().replace("inf", "large"))
    with pytest.raises(DataError, match="--overwrite"):
        read_gradient_norms(path)


class StopError(Exception):
    """Raised where a run is to end."""


@pytest.mark.parametrize("last_step", [3, 5])
def test_a_stopped_run_goes_on_to_the_same_file(tmp_path, last_step):
    def stop(report):
        if report.step == last_step:
            raise StopError

    common = {**LOGGED, "checkpoint_every_steps": 2}
    files = tmp_path / "whole.csv", tmp_path / "stopped.csv"
    train_one(**common, gradient_norms_file=files[0])
    with pytest.raises(StopError):
        train_one(**common, gradient_norms_file=files[1], checkpoint_folder=tmp_path, on_step=stop)
    assert files[1].is_file() == (last_step > 3)  # written when the first epoch has ended
    _, result = train_one(**common, gradient_norms_file=files[1], checkpoint_folder=tmp_path)
    assert result.resumed
    assert files[0].read_bytes() == files[1].read_bytes() == result.gradient_norms.csv.encode()


def test_a_checkpoint_whose_norms_do_not_fit_is_damaged(tmp_path, monkeypatch):
    train_one(**LOGGED, checkpoint_folder=tmp_path, epochs=1)
    monkeypatch.setattr(GradientLog, "load_state", lambda *_: (_ for _ in ()).throw(TypeError("other blocks")))
    with pytest.raises(RunDirectoryError, match="other blocks"):
        train_one(**LOGGED, checkpoint_folder=tmp_path, epochs=1)
    log = GradientLog(classifier := build_classifier(), everything(classifier))
    monkeypatch.undo()
    with pytest.raises(TypeError, match="after step 3"):
        log.load_state(torch.zeros(2, CLASSES), 3)
