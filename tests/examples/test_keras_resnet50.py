"""Keras' ResNet-50 in PyTorch: against a literal NumPy version, and against numbers that Keras printed."""

import math

import numpy as np
import pytest
import torch
from safetensors import safe_open

from crossgraft.models import ModelSpec, load_backbone
from crossgraft.seeding import generator

from .conftest import EXAMPLES

STAGES = ((2, 64, 3), (3, 128, 4), (4, 256, 6), (5, 512, 3))


def shapes():
    """Names and shapes of the arrays as ``keras.applications.ResNet50(include_top=False)`` lists them."""
    yield from convolution("conv1", (7, 7, 3, 64))
    width = 64
    for stage, channels, blocks in STAGES:
        for block in range(1, blocks + 1):
            prefix = f"conv{stage}_block{block}"
            if block == 1:
                yield from convolution(f"{prefix}_0", (1, 1, width, 4 * channels))
            yield from convolution(f"{prefix}_1", (1, 1, width, channels))
            yield from convolution(f"{prefix}_2", (3, 3, channels, channels))
            yield from convolution(f"{prefix}_3", (1, 1, channels, 4 * channels))
            width = 4 * channels


def convolution(prefix, kernel):
    yield f"{prefix}_conv/kernel", kernel
    for name in ("_conv/bias", "_bn/gamma", "_bn/beta", "_bn/moving_mean", "_bn/moving_variance"):
        yield prefix + name, kernel[-1:]


def draw(name, shape):
    rng, array = generator(0, name), name.rpartition("/")[2]
    if array == "kernel":
        return rng.normal(0, np.sqrt(2 / np.prod(shape[:3])), shape).astype(np.float32)
    if array in ("gamma", "moving_variance"):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    return rng.normal(0, 0.1, shape).astype(np.float32)


@pytest.fixture(scope="module")
def arrays():
    return {name: draw(name, shape) for name, shape in shapes()}


@pytest.fixture
def keras_resnet50(example):
    return example("keras_resnet50")


@pytest.fixture
def network(keras_resnet50, arrays):
    module = keras_resnet50.keras_resnet50().eval()
    module.load_state_dict(keras_resnet50.convert_arrays(arrays), strict=True)
    return module


def ramp(height, width):
    """An image (height, width, 3) with every value between −1 and 1."""
    return np.linspace(-1, 1, height * width * 3, dtype=np.float32).reshape(height, width, 3)


def run(network, image):
    with torch.no_grad():
        return network.forward_features(torch.from_numpy(image).permute(2, 0, 1)[None])[0].permute(1, 2, 0).numpy()


def zero_padding(x, before, after):
    return np.pad(x, ((before, after), (before, after), (0, 0)))


def same_padding(x, kernel, stride):
    """Keras' "same": as many zeros as are needed, the odd one below and at the right."""
    sizes = [max((math.ceil(n / stride) - 1) * stride + kernel - n, 0) for n in x.shape[:2]]
    return np.pad(x, [(total // 2, total - total // 2) for total in sizes] + [(0, 0)])


def convolve(x, kernel, bias, stride):
    """Keras' Conv2D with padding "valid": (height, width, in) and (k, k, in, out)."""
    size = kernel.shape[0]
    rows, columns = ((n - size) // stride + 1 for n in x.shape[:2])
    out = np.zeros((rows, columns, kernel.shape[3])) + bias
    for i in range(size):
        for j in range(size):
            seen = x[i : i + stride * rows : stride, j : j + stride * columns : stride][:rows, :columns]
            out += seen @ kernel[i, j]
    return out


def normalise(x, arrays, layer):
    scale = arrays[f"{layer}/gamma"] / np.sqrt(arrays[f"{layer}/moving_variance"].astype(np.float64) + 1.001e-5)
    return (x - arrays[f"{layer}/moving_mean"]) * scale + arrays[f"{layer}/beta"]


def pool(x):
    """MaxPooling2D(3, strides=2), padding "valid"."""
    rows, columns = ((n - 3) // 2 + 1 for n in x.shape[:2])
    windows = [x[i : i + 2 * rows : 2, j : j + 2 * columns : 2][:rows, :columns] for i in range(3) for j in range(3)]
    return np.max(windows, axis=0)


def literal_forward(arrays, image):
    """Layer after layer as Keras' source lists them, in float64."""

    def conv_bn(x, prefix, stride=1):
        x = convolve(x, arrays[f"{prefix}_conv/kernel"], arrays[f"{prefix}_conv/bias"], stride)
        return normalise(x, arrays, f"{prefix}_bn")

    x = conv_bn(zero_padding(image.astype(np.float64), 3, 3), "conv1", stride=2)
    x = pool(zero_padding(np.maximum(x, 0), 1, 1))
    for stage, _, blocks in STAGES:
        for block in range(1, blocks + 1):
            prefix, stride = f"conv{stage}_block{block}", 2 if block == 1 and stage > 2 else 1
            shortcut = conv_bn(x, f"{prefix}_0", stride) if block == 1 else x
            x = np.maximum(conv_bn(x, f"{prefix}_1", stride), 0)
            x = np.maximum(conv_bn(same_padding(x, 3, 1), f"{prefix}_2"), 0)
            x = np.maximum(conv_bn(x, f"{prefix}_3") + shortcut, 0)
    return x


@pytest.mark.parametrize("size", [(64, 64), (75, 50), (33, 47)])
def test_equals_a_literal_version(network, arrays, size):
    image = ramp(*size)
    expected = literal_forward(arrays, image)
    np.testing.assert_allclose(run(network, image), expected, rtol=0, atol=1e-5 * expected.max())


# Printed by Keras 3.15.1 with its PyTorch backend for these arrays and images: the mean over positions of the
# first channels of keras.applications.ResNet50(weights=None, include_top=False, input_shape=(None, None, 3)).
PRINTED_BY_KERAS = {
    (64, 64): [351.7808532714844, 92.29150390625, 1771.55615234375, 188.337890625, 704.056884765625, 0.0],
    (75, 50): [218.49034118652344, 21.955322265625, 1727.2269287109375, 294.72698974609375, 680.1500854492188,
               48.277618408203125],
}  # fmt: skip


@pytest.mark.parametrize("size", PRINTED_BY_KERAS)
def test_equals_what_keras_computed(network, size):
    features = run(network, ramp(*size)).mean(axis=(0, 1))
    np.testing.assert_allclose(features[:6], PRINTED_BY_KERAS[size], rtol=1e-5, atol=1e-3)


def test_the_tests_above_would_notice_a_stride_in_the_wrong_place(network, arrays):
    """torchvision's place of the stride: all weights still fit."""
    for stage in (3, 4, 5):
        block = network.get_submodule(f"conv{stage}_block1")
        block.conv1.stride, block.conv2.stride = (1, 1), (2, 2)
    expected = literal_forward(arrays, ramp(64, 64))
    assert np.abs(run(network, ramp(64, 64)) - expected).max() > 0.05 * expected.max()


def test_keras_counts_the_same_number_of_parameters(network, arrays):
    assert sum(array.size for array in arrays.values()) == 23_587_712
    assert sum(parameter.numel() for parameter in network.parameters()) == 23_534_592
    counted = [value.numel() for name, value in network.state_dict().items() if "num_batches" not in name]
    assert sum(counted) == 23_587_712


def test_what_does_not_fit_is_named(keras_resnet50, arrays):
    wrong = dict(arrays)
    wrong["res2a_branch2a/kernel"] = wrong.pop("conv2_block1_1_conv/kernel")
    wrong["conv1_conv/bias"] = np.zeros(63, np.float32)
    wrong["conv3_block1_2_conv/kernel"] = wrong["conv3_block1_2_conv/kernel"][..., :5]
    wrong["conv5_block3_3_bn/beta"] = np.full(2048, np.nan, np.float32)
    with pytest.raises(ValueError, match="not the arrays of Keras' ResNet-50") as caught:
        keras_resnet50.convert_arrays(wrong)
    assert str(caught.value).splitlines()[1:] == [
        "  mis-shaped: conv1_conv/bias is (63,), expected (64,)",
        "  mis-shaped: conv3_block1_2_conv/kernel is (3, 3, 128, 5), expected (3, 3, 128, 128)",
        "  missing: conv2_block1_1_conv/kernel",
        "  not finite: conv5_block3_3_bn/beta",
        "  not part of ResNet-50 without its classifier: res2a_branch2a/kernel",
    ]


def test_a_network_of_bgr_images_takes_rgb_images_after_conversion(keras_resnet50, network, arrays):
    turned = keras_resnet50.keras_resnet50().eval()
    turned.load_state_dict(keras_resnet50.convert_arrays(arrays, channel_order="bgr"))
    image = ramp(32, 32)
    np.testing.assert_allclose(run(turned, image[..., ::-1].copy()), run(network, image), rtol=1e-4, atol=1e-2)


def test_from_the_file_of_arrays_to_a_backbone(keras_resnet50, arrays, tmp_path, capsys):
    np.savez(tmp_path / "arrays.npz", **arrays)
    out = tmp_path / "keras_resnet50.safetensors"
    flags = ["--input-size", "64", "--mean", "0.5", "0.5", "0.5", "--std", "0.25", "0.25", "0.25", "--licence", "mine"]
    assert keras_resnet50.main([str(tmp_path / "arrays.npz"), str(out), *flags]) == 0
    assert "318 arrays, 23587712 numbers" in capsys.readouterr().out
    with safe_open(out, "pt") as file:
        assert file.metadata()["architecture"] == "keras_resnet50"
    backbone = load_backbone(ModelSpec("rad", "keras_resnet50:keras_resnet50", str(out), folder=EXAMPLES))
    size = backbone.preprocessing
    assert (size.height_pixels, size.mean, size.std) == (64, (0.5,) * 3, (0.25,) * 3)
    assert (backbone.num_features, backbone.num_source_classes, backbone.licence) == (2048, None, "mine")
    image = ramp(64, 64)
    features = backbone(torch.from_numpy(image).permute(2, 0, 1)[None]).features[0]
    np.testing.assert_allclose(features[:6], PRINTED_BY_KERAS[(64, 64)], rtol=1e-5, atol=1e-3)


def test_a_file_of_something_else_is_refused(keras_resnet50, tmp_path, capsys):
    np.savez(tmp_path / "arrays.npz", weights=np.zeros(3))
    out = tmp_path / "out.safetensors"
    flags = ["--mean", "0", "0", "0", "--std", "1", "1", "1"]
    assert keras_resnet50.main([str(tmp_path / "arrays.npz"), str(out), *flags]) == 3
    assert "missing: conv1_conv/kernel" in capsys.readouterr().err
    assert not out.exists()
