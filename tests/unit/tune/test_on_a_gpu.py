"""On a GPU: the same training gives the same bits, and features are those of the CPU."""

import numpy as np
import pytest
import torch

from crossgraft.compute import limit_threads
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.features import extract_features
from crossgraft.models.backbone import Backbone
from support.training import PREPROCESSING, SIZE, build_network, same_bits, train_one

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def test_the_same_training_ends_with_the_same_bits():
    with limit_threads(1):
        (one, _), (two, _) = (train_one("cnn", device="cuda", epochs=3) for _ in range(2))
    assert same_bits(one, two)


def test_features_are_those_of_the_cpu(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (40, SIZE, SIZE, 3), dtype=np.uint8)
    data = dataset_from_arrays(noise, np.arange(40) % 2)
    found = {}
    for device in ("cpu", "cuda"):
        backbone = Backbone(
            build_network("convnext"), name="convnext", architecture="convnext", source="factory", family="convnext",
            preprocessing=PREPROCESSING, device=device,
        )  # fmt: skip
        found[device] = extract_features(data, backbone, cache_dir=tmp_path / device).features
    np.testing.assert_allclose(found["cuda"], found["cpu"], rtol=0, atol=1e-5 * np.abs(found["cpu"]).max())
