"""The networks of examples/own_models are those that their weights were trained in."""

import pytest
import torch
import yaml
from safetensors import safe_open
from torch.nn.functional import conv2d

from crossgraft.data.transforms import prepare_batch
from crossgraft.models import load_backbone, random_weights_control, read_zoo
from crossgraft.models.spec import spec_from_entry
from crossgraft.models.trusted_code import trusted_code

from .conftest import EXAMPLES

CIFAR = {20: (3, 269_722), 32: (5, 464_154), 44: (7, 658_586), 56: (9, 853_018)}


def keys_of_block(prefix):
    names = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    return {f"{prefix}.conv{i}.weight" for i in (1, 2)} | {f"{prefix}.bn{i}.{name}" for i in (1, 2) for name in names}


@pytest.mark.parametrize("depth", CIFAR)
def test_cifar_resnet(build, depth):
    blocks, num_parameters = CIFAR[depth]
    backbone = build(f"cifar_resnet:resnet{depth}")
    expected = {"conv1.weight", "linear.weight", "linear.bias"}
    expected |= {f"bn1.{name}" for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")}
    expected |= {key for s in (1, 2, 3) for k in range(blocks) for key in keys_of_block(f"layer{s}.{k}")}
    assert set(backbone.module.state_dict()) == expected
    assert backbone.num_parameters == num_parameters
    assert (backbone.num_features, backbone.num_source_classes) == (64, 10)
    shapes = backbone.activations(torch.rand(2, 3, 32, 32), ["layer1.0", "layer2.0", f"layer3.{blocks - 1}"])
    assert [tuple(a.shape) for a in shapes.values()] == [(2, 16, 32, 32), (2, 32, 16, 16), (2, 64, 8, 8)]


def test_the_shortcut_of_a_stage_is_the_papers_option_a(example):
    """Pixel by pixel: every second row and column; a quarter of the new width of zeros in front, and one behind."""
    block = example("cifar_resnet").BasicBlock(16, 32, stride=2)
    x = torch.rand(2, 16, 6, 8)
    expected = torch.zeros(2, 32, 3, 4)
    for channel in range(16):
        for row in range(3):
            for column in range(4):
                expected[:, 8 + channel, row, column] = x[:, channel, 2 * row, 2 * column]
    assert torch.equal(block.shortcut(x), expected)
    same = example("cifar_resnet").BasicBlock(16, 16, stride=1)
    assert torch.equal(same.shortcut(x), x)


def test_a_block_of_a_cifar_resnet_adds_before_the_last_relu(example):
    block = example("cifar_resnet").BasicBlock(16, 32, stride=2).eval()
    x = torch.randn(2, 16, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        inner = conv2d(x, block.conv1.weight, stride=2, padding=1).div((1 + 1e-5) ** 0.5).clamp(min=0)
        inner = conv2d(inner, block.conv2.weight, padding=1).div((1 + 1e-5) ** 0.5)
        torch.testing.assert_close(block(x), (inner + block.shortcut(x)).clamp(min=0))


@pytest.mark.parametrize(("in_chans", "num_parameters", "pixels", "side"), [(3, 113_088, 84, 19), (1, 111_936, 28, 5)])
def test_conv4(build, in_chans, num_parameters, pixels, side):
    backbone = build("conv4:conv4", in_chans=in_chans)
    layers = {f"layer{k}.0.{n}" for k in (1, 2, 3, 4) for n in ("weight", "bias")}
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    assert set(backbone.module.state_dict()) == layers | {f"layer{k}.1.{n}" for k in (1, 2, 3, 4) for n in norm}
    assert backbone.num_parameters == num_parameters
    assert (backbone.num_features, backbone.num_source_classes) == (64, None)
    assert (backbone.preprocessing.channels, backbone.preprocessing.height_pixels) == (in_chans, pixels)
    images = torch.rand(2, in_chans, pixels, pixels)
    (feature_map,) = backbone.activations(images, ["layer4.2"]).values()
    assert feature_map.shape == (2, 64, side, side)
    torch.testing.assert_close(backbone(images).features, feature_map.mean(dim=(2, 3)))
    assert all(layer.momentum == 1 for layer in backbone.module.modules() if isinstance(layer, torch.nn.BatchNorm2d))


def test_pneumonia_cnn(build):
    backbone = build("pneumonia_cnn:pneumonia_cnn")
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    expected = {f"features.{i}.{n}" for i in (0, 4, 8, 12) for n in ("weight", "bias")} | {"fc.weight", "fc.bias"}
    expected |= {f"features.{i}.{n}" for i in (1, 5, 9, 13) for n in norm}
    assert set(backbone.module.state_dict()) == expected
    assert backbone.num_parameters == 98_178
    assert (backbone.num_features, backbone.num_source_classes) == (128, 2)
    (last,) = backbone.activations(torch.rand(2, 3, 128, 128), ["features.14"]).values()
    assert last.shape == (2, 128, 16, 16)


def test_radimagenet_resnet50_is_torchvisions_without_its_head(example):
    import torchvision

    net = example("radimagenet_resnet50").resnet50().eval()
    whole = torchvision.models.resnet50(weights=None).eval()
    positions = {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3", "7": "layer4"}
    renamed = {
        f"backbone.{position}.{key.removeprefix(name + '.')}": value
        for position, name in positions.items()
        for key, value in whole.state_dict().items()
        if key.startswith(name + ".")
    }
    net.load_state_dict(renamed, strict=True)
    assert sum(p.numel() for p in net.parameters()) == 23_508_032
    images = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    whole.fc = torch.nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(net.forward_features(images).mean(dim=(2, 3)), whole(images))


def test_a_control_of_every_entry_of_the_zoo_is_random():
    entries = yaml.safe_load((EXAMPLES / "small_networks.yaml").read_text(encoding="utf-8"))
    assert len(entries) == 8
    for entry in entries:
        spec = spec_from_entry({**entry, "weights": None}, folder=EXAMPLES, trusted=trusted_code(EXAMPLES), where="the zoo")
        first, again, other = (load_backbone(random_weights_control(spec), seed=seed, image_size=32) for seed in (0, 0, 1))
        assert first.weights_fingerprint == again.weights_fingerprint != other.weights_fingerprint


def test_colour_images_on_the_grey_encoder_and_grey_images_on_the_others(build):
    import numpy as np

    colour, grey = np.full((28, 28, 3), (200, 30, 90), np.uint8), np.full((28, 28, 1), 77, np.uint8)
    for source, kwargs in (("conv4:conv4", {"in_chans": 1}), ("cifar_resnet:resnet20", {})):
        backbone = build(source, **kwargs)
        features = backbone(prepare_batch([colour, grey], backbone.preprocessing)).features
        assert features.shape == (2, 64)
        assert bool(features.isfinite().all())
        assert not torch.equal(features[0], features[1])


@pytest.mark.real_data
def test_the_files_load_completely_and_say_what_the_zoo_relies_on(real_data):
    weights = real_data / "weights"
    for spec in read_zoo(EXAMPLES / "small_networks.yaml", weights_dir=weights, allow_code=EXAMPLES):
        backbone = load_backbone(spec)  # strict: every key of the file has its place, and the other way round
        assert backbone.licence
        with safe_open(spec.weights, "pt") as file:
            stated = file.metadata()
        assert str(list(backbone.preprocessing.mean)) == stated["mean"]
        size = backbone.preprocessing
        assert str([size.channels, size.height_pixels, size.width_pixels]) == stated["input_size"]
