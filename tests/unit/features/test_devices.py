"""What extraction does beside an accelerator that is full or lost, and in bf16."""

import numpy as np
import pytest
import torch

from crossgraft.data.transforms import prepare_resized
from crossgraft.errors import DeviceLostError
from crossgraft.features import passes
from crossgraft.features.passes import BatchLoader
from crossgraft.progress import Reporter

from .conftest import ROWS, Images, Net, make_backbone
from .test_extract import direct, extract_into, shortest_timing  # noqa: F401  (a fixture)


def on_an_accelerator(monkeypatch, net):
    """A backbone whose device is called ``cuda`` and is the CPU."""
    backbone = make_backbone(net)
    backbone.device = "cuda"
    monkeypatch.setattr(BatchLoader, "_stream", None)
    monkeypatch.setattr(passes, "prepare_resized", lambda images, how, device: prepare_resized(images, how))
    monkeypatch.setattr(type(backbone), "_accept", lambda self, images: images)
    return backbone


def test_where_the_card_is_full_the_host_goes_on(tmp_path, monkeypatch, capsys):
    class Card(Net):
        def forward_features(self, images):
            if len(self.calls) > 5 and backbone.device == "cuda":
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return super().forward_features(images)

    net = Card()
    backbone = on_an_accelerator(monkeypatch, net)
    images = Images()
    found = extract_into(tmp_path, images, backbone, reporter=Reporter())
    assert "Warning: The memory of cuda is full; net goes on on the CPU, which takes longer." in capsys.readouterr().err
    assert backbone.device == "cpu"
    np.testing.assert_allclose(found.features, direct(images, backbone)[0], rtol=1e-6, atol=1e-6)


def test_a_device_that_is_lost_is_a_named_error_and_the_same_call_goes_on(tmp_path, monkeypatch):
    class Card(Net):
        def forward_features(self, images):
            if self.lost and len(self.calls) > 7:
                raise RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later.")
            return super().forward_features(images)

    net = Card()
    net.lost = False
    backbone = on_an_accelerator(monkeypatch, net)
    net.lost = True
    with pytest.raises(
        DeviceLostError, match=r"^The device cuda failed in mid-run: CUDA error: unspecified launch failure\. "
    ) as caught:
        extract_into(tmp_path, backbone=backbone)
    assert str(caught.value).endswith("or now with --device cpu.")
    images, net.lost = Images(), False
    found = extract_into(tmp_path, images, backbone)
    assert min(images.reads) == 2 * ROWS  # two shards were kept
    np.testing.assert_array_equal(found.features, direct(images, make_backbone())[0])


def test_features_in_bf16_are_other_ones_with_a_key_of_their_own(tmp_path):
    backbone, coarse = make_backbone(), make_backbone()
    coarse.precision = "bf16"
    exact, found = extract_into(tmp_path, backbone=backbone), extract_into(tmp_path, backbone=coarse)
    assert found.features.dtype == found.source_logits.dtype == np.float32 and not found.from_cache
    np.testing.assert_allclose(found.features, exact.features, atol=0.01)
    assert (found.features != exact.features).any()
    assert extract_into(tmp_path, backbone=backbone).from_cache and extract_into(tmp_path, backbone=coarse).from_cache
