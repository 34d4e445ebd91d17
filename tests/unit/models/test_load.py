"""From a spec to a backbone: preprocessing, sizes, random weights, devices, global state."""

import pytest
import torch

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models import ModelSpec, load_backbone, random_weights_control, read_zoo

from .conftest import TINY, save_checkpoint, tiny_timm


def test_random_weights_depend_on_the_seed_alone():
    spec = ModelSpec("r", TINY, "random")
    first, again, other = (load_backbone(spec, seed=seed) for seed in (0, 0, 1))
    assert first.weights_fingerprint == again.weights_fingerprint != other.weights_fingerprint
    assert first.source == "timm"
    assert first.licence is None


def test_the_global_random_state_is_untouched(tmp_path):
    path = save_checkpoint(tmp_path / "a.safetensors", tiny_timm().state_dict())
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_backbone(ModelSpec("r", TINY, "random"))
    load_backbone(ModelSpec("c", TINY, str(path)))
    assert torch.equal(torch.rand(3), expected)


def test_header_entry_and_argument_decide_the_preprocessing(tmp_path):
    path = save_checkpoint(
        tmp_path / "a.safetensors",
        tiny_timm().state_dict(),
        architecture=TINY,
        input_size=[3, 48, 48],
        mean=[0.5] * 3,
    )
    header = load_backbone(str(path))
    assert (header.preprocessing.height_pixels, header.preprocessing.mean) == (48, (0.5,) * 3)
    assert header.preprocessing.interpolation == "bilinear"  # what timm says for the architecture
    entry = ModelSpec("e", "", str(path), preprocessing={"mean": 0.1, "resize_policy": "squash"})
    asked = load_backbone(entry, image_size=32)
    assert asked.preprocessing.describe() == "32×32 px, 3 channels, bilinear, squash, mean 0.1 0.1 0.1, std 0.5 0.5 0.5"
    assert load_backbone(entry, resize_policy="pad").preprocessing.resize_policy == "pad"


def test_the_control_of_a_checkpoint_differs_only_in_its_weights(tmp_path):
    path = save_checkpoint(
        tmp_path / "a.safetensors",
        tiny_timm().state_dict(),
        architecture=TINY,
        input_size=[3, 48, 48],
        licence="MIT",
    )
    (spec,) = read_zoo(str(path))
    original, control = load_backbone(spec), load_backbone(random_weights_control(spec))
    assert control.preprocessing == original.preprocessing
    assert control.structure_fingerprint == original.structure_fingerprint
    assert control.weights_fingerprint != original.weights_fingerprint
    assert (original.licence, control.licence) == ("MIT", None)


def test_grey_networks_and_classes_by_argument():
    backbone = load_backbone(ModelSpec("g", TINY, "random", kwargs={"in_chans": 1, "num_classes": 4}), image_size=32)
    assert backbone.preprocessing.channels == 1
    assert backbone(torch.zeros(1, 1, 32, 32)).source_logits.shape == (1, 4)


def test_a_vit_takes_another_image_size(tmp_path):
    kwargs = {"embed_dim": 12, "depth": 1, "num_heads": 1}
    spec = ModelSpec("v", "vit_tiny_patch16_224", "random", kwargs=kwargs)
    assert load_backbone(spec, image_size=64)(torch.zeros(1, 3, 64, 64)).features.shape == (1, 12)


def test_a_network_of_one_size_says_so():
    spec = ModelSpec("m", "coat_lite_tiny", "random")
    with pytest.raises(UsageError, match=r"images of 224×224 pixels only"):
        load_backbone(spec, image_size=64)


def test_arguments_that_the_architecture_does_not_take():
    with pytest.raises(UsageError, match=r"timm cannot build test_resnet with num_classes='red'"):
        load_backbone(ModelSpec("a", TINY, "random", kwargs={"num_classes": "red"}))
    with pytest.raises(UnknownNameError, match=r"Unknown argument in the kwargs of test_resnet: colour"):
        load_backbone(ModelSpec("a", TINY, "random", kwargs={"colour": "red"}))


def test_an_unknown_device_is_never_replaced_silently():
    with pytest.raises(UsageError, match="Unknown device"):
        load_backbone(ModelSpec("a", TINY, "random"), device="tpu9")
