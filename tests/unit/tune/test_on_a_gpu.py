"""On a GPU, where there is one: the same training gives the same bits, and numbers are those of the CPU.

Without one the same tests run on the CPU, so that at least they are right.
"""

import numpy as np
import pytest
import torch

from crossgraft.compute import limit_threads
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.features import extract_features
from crossgraft.models.backbone import Backbone
from crossgraft.tune.augmentations import Light
from crossgraft.tune.batch_transforms import Mixup
from crossgraft.tune.regularizers import RepSim, SelfIdentityMapping
from crossgraft.tune.verb import fine_tune
from support.training import PREPROCESSING, SIZE, PullToStart, build_feed, build_network, same_bits, train_one, with_lora

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

WAYS = {
    "plain": {},
    "bf16": {"precision": "bf16-mixed"},
    "clipped, in parts": {"clip_norm": 1.0, "accumulate": 2},
    "repsim": {"regularizers": RepSim},
    "rho_sim": {"regularizers": lambda: SelfIdentityMapping(blocks="stem+block")},
    "lora": {"network": "vit", "selection": with_lora},
}


def trained(way, **changes):
    said = {"network": "cnn", **WAYS[way], **changes}
    regularizers = [said.pop("regularizers")()] if "regularizers" in said else []
    feed = build_feed(augmentation=Light(), transforms=(Mixup(),))
    feed.device = DEVICE
    with limit_threads(1):
        return train_one(said.pop("network"), feed=feed, device=DEVICE, regularizers=regularizers, **{"epochs": 2, **said})


@pytest.mark.parametrize("way", WAYS)
def test_the_same_training_ends_with_the_same_bits(way):
    (one, first), (two, second) = (trained(way) for _ in range(2))
    assert same_bits(one, two)
    assert [row.terms for row in first.history] == [row.terms for row in second.history]


class Killed(PullToStart):
    """Ends the process, as far as training can see, in its fifth step."""

    dies = True

    def loss(self, context):
        if self.dies and context.step == 4:
            raise KeyboardInterrupt
        return super().loss(context)

    def __repr__(self):
        return "Killed()"


class Survived(Killed):
    dies = False


def test_what_was_killed_and_goes_on_ends_with_the_same_bits(tmp_path):
    whole, _ = trained("plain", regularizers=Survived)
    with pytest.raises(KeyboardInterrupt):
        trained("plain", regularizers=Killed, checkpoint_folder=tmp_path)
    resumed, result = trained("plain", regularizers=Survived, checkpoint_folder=tmp_path)
    assert result.resumed and same_bits(whole, resumed)


def test_features_are_those_of_the_cpu(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (40, SIZE, SIZE, 3), dtype=np.uint8)
    data = dataset_from_arrays(noise, np.arange(40) % 2)
    found = {}
    for name, device in (("here", "cpu"), ("there", DEVICE)):
        backbone = Backbone(
            build_network("convnext"), name="convnext", architecture="convnext", source="factory", family="convnext",
            preprocessing=PREPROCESSING, device=device,
        )  # fmt: skip
        found[name] = extract_features(data, backbone, cache_dir=tmp_path / name).features
    np.testing.assert_allclose(found["there"], found["here"], rtol=0, atol=1e-5 * np.abs(found["here"]).max())


@pytest.mark.usefixtures("tiny_models")
def test_folds_are_trained_one_after_the_other():
    labels = np.arange(60) % 2
    pixels = np.random.default_rng(0).integers(0, 90, (60, 16, 16, 3)) + 80 * labels[:, None, None, None]
    data = dataset_from_arrays(pixels.astype(np.uint8), labels)
    said = {"model": "tiny_models:tiny", "epochs": 1, "workers": 1, "device": DEVICE, "folds": 3}
    one, two = (fine_tune(data, **said).record for _ in range(2))
    assert [row.value for row in one.metrics] == [row.value for row in two.metrics]
    assert len({row.fold for row in one.grid}) == 3
