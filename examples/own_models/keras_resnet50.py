"""ResNet-50 as Keras builds it (``keras.applications.ResNet50``), and the way of its weights into PyTorch.

It is not torchvision's ResNet-50: a stage halves the size in its first 1×1 convolution and not in the 3×3 one,
every convolution has a bias, and batch normalisation adds 1.001e-5 to the variance. Weights of the one, forced
into the other, would give other features without a word.

Two steps. Where Keras is installed, write the arrays of the network into one file:

    import keras, numpy as np  # TensorFlow before 2.16: from tensorflow import keras
    model = keras.models.load_model("resnet50.h5", compile=False)
    named = {f"{layer.name}/{w.name.split('/')[-1].split(':')[0]}": w for layer in model.layers for w in layer.weights}
    np.savez("resnet50_arrays.npz", **{name: w.numpy() for name, w in named.items()})

Then, here, with the mean and standard deviation that the network was trained with:

    python examples/own_models/keras_resnet50.py resnet50_arrays.npz weights/keras_resnet50.safetensors \
        --mean 0.5 0.5 0.5 --std 0.5 0.5 0.5

and a zoo file beside this one can write ``source: keras_resnet50:keras_resnet50``.

Reference: He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016 (arXiv 1512.03385); the
stride stands where that paper has it.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

CHANNELS_AND_BLOCKS = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Of the stages conv2 to conv5: channels of the 3×3 convolutions, number of blocks."""
EPSILON = 1.001e-5

_ARRAYS: dict[type[nn.Module], dict[str, str]] = {
    nn.Conv2d: {"kernel": "weight", "bias": "bias"},
    nn.BatchNorm2d: {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"},
}
"""What Keras and PyTorch call the arrays of a layer."""


class Block(nn.Module):
    """1×1, 3×3 and 1×1 convolution beside a shortcut, which is a convolution in the first block of a stage.

    Its layers have Keras' numbers: 0 is the shortcut.
    """

    def __init__(self, in_channels: int, channels: int, *, stride: int, convolve_shortcut: bool) -> None:
        super().__init__()
        if convolve_shortcut:
            self.conv0 = nn.Conv2d(in_channels, 4 * channels, 1, stride)
            self.bn0 = nn.BatchNorm2d(4 * channels, eps=EPSILON)
        self.convolve_shortcut = convolve_shortcut
        self.conv1 = nn.Conv2d(in_channels, channels, 1, stride)
        self.bn1 = nn.BatchNorm2d(channels, eps=EPSILON)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)  # stride 1: Keras' "same" is one pixel a side
        self.bn2 = nn.BatchNorm2d(channels, eps=EPSILON)
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1)
        self.bn3 = nn.BatchNorm2d(4 * channels, eps=EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = self.bn0(self.conv0(x)) if self.convolve_shortcut else x
        x = self.bn1(self.conv1(x)).relu()
        x = self.bn2(self.conv2(x)).relu()
        x = self.bn3(self.conv3(x))
        return (x + shortcut).relu()


class KerasResNet50(nn.Module):
    """Version 1, without the classifier ("notop"); the layers and blocks have Keras' names.

    Keras counts 23 587 712 parameters: 23 534 592 that are trained and 53 120 running means and variances.
    """

    def __init__(self) -> None:
        super().__init__()
        # Keras pads by layers of their own, evenly. The zeros around the pooling are smaller than any ReLU.
        self.conv1_conv = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.conv1_bn = nn.BatchNorm2d(64, eps=EPSILON)
        self.pool1_pool = nn.MaxPool2d(3, stride=2, padding=1)
        in_channels = 64
        for stage, (channels, num_blocks) in enumerate(CHANNELS_AND_BLOCKS, start=2):
            for block in range(1, num_blocks + 1):
                stride = 2 if block == 1 and stage > 2 else 1
                layer = Block(in_channels, channels, stride=stride, convolve_shortcut=block == 1)
                self.add_module(f"conv{stage}_block{block}", layer)
                in_channels = 4 * channels

    def forward_features(self, x: Tensor) -> Tensor:
        """Feature map (n, 2048, height / 32, width / 32); crossgraft averages it over its positions."""
        x = self.pool1_pool(self.conv1_bn(self.conv1_conv(x)).relu())
        for block in self.children():
            if isinstance(block, Block):
                x = block(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_features(x)


def keras_resnet50() -> KerasResNet50:
    """With random weights; a zoo entry names the file that the converter wrote."""
    return KerasResNet50()


def convert_arrays(arrays: Mapping[str, np.ndarray], *, channel_order: str = "rgb") -> dict[str, Tensor]:
    """Keras' arrays as the state dict of ``KerasResNet50``.

    Args:
        arrays: ``layer/array`` → values, for example ``conv2_block1_0_conv/kernel`` (height, width, in, out).
        channel_order: ``bgr`` where the network was trained on images with blue first, as Keras' own ImageNet
            weights were; the first kernel is turned round, so that the result takes images with red first.

    Raises:
        ValueError: Arrays are missing, left over, mis-shaped or not finite; the message names all of them.
    """
    state = KerasResNet50().state_dict()
    names = keras_names()
    problems = [f"missing: {keras}" for keras in names if keras not in arrays]
    problems += [f"not part of ResNet-50 without its classifier: {keras}" for keras in arrays if keras not in names]
    for keras in names.keys() & arrays.keys():
        values = _as_in_torch(arrays[keras])
        if values.shape != state[names[keras]].shape:
            expected = _shape_in_keras(state[names[keras]])
            problems.append(f"mis-shaped: {keras} is {arrays[keras].shape}, expected {expected}")
        elif not values.isfinite().all():
            problems.append(f"not finite: {keras}")
        else:
            state[names[keras]] = values
    if problems:
        raise ValueError("These are not the arrays of Keras' ResNet-50:\n  " + "\n  ".join(sorted(problems)))
    if channel_order == "bgr":
        state["conv1_conv.weight"] = state["conv1_conv.weight"].flip(1).contiguous()
    return state


def keras_names() -> dict[str, str]:
    """Keras' name of every array → its name in the state dict: conv2_block1_0_conv/kernel → conv2_block1.conv0.weight."""
    names: dict[str, str] = {}
    for layer, module in KerasResNet50().named_modules():
        for array, parameter in _ARRAYS.get(type(module), {}).items():
            block, _, kind = layer.rpartition(".")
            in_keras = f"{block}_{kind[-1]}_{kind[:-1]}" if block else layer
            names[f"{in_keras}/{array}"] = f"{layer}.{parameter}"
    return names


def _as_in_torch(array: np.ndarray) -> Tensor:
    """Kernels from (height, width, in, out) to (out, in, height, width); vectors stay."""
    values = torch.from_numpy(np.array(array, dtype=np.float32))
    return values.permute(3, 2, 0, 1).contiguous() if values.ndim == 4 else values


def _shape_in_keras(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.permute(2, 3, 1, 0).shape) if tensor.ndim == 4 else tuple(tensor.shape)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the .npz file of the arrays, write the .safetensors file with a header that says how to use it."""
    parser = argparse.ArgumentParser(description="Arrays of Keras' ResNet-50 (.npz) into weights for PyTorch.")
    parser.add_argument("arrays", type=Path, help="the .npz file that was written where Keras is installed")
    parser.add_argument("weights", type=Path, help="the .safetensors file to write")
    parser.add_argument("--input-size", type=int, default=224, help="pixels a side that the network was trained with")
    parser.add_argument("--mean", type=float, nargs=3, required=True, help="red, green, blue, of values in [0, 1]")
    parser.add_argument("--std", type=float, nargs=3, required=True, help="red, green, blue, of values in [0, 1]")
    parser.add_argument("--channel-order", choices=("rgb", "bgr"), default="rgb", help="of the training images")
    parser.add_argument("--licence", default="not stated", help="of the weights, shown in reports")
    options = parser.parse_args(arguments)
    with np.load(options.arrays, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    try:
        state = convert_arrays(arrays, channel_order=options.channel_order)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 3
    header = {
        "architecture": "keras_resnet50",
        "num_classes": "0",
        "input_size": json.dumps([3, options.input_size, options.input_size]),
        "mean": json.dumps(options.mean),
        "std": json.dumps(options.std),
        "licence": options.licence,
        "origin": options.arrays.name,
    }
    save_file(state, options.weights, metadata=header)
    print(f"{len(arrays)} arrays, {sum(array.size for array in arrays.values())} numbers, written to {options.weights}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
