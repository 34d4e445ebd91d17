"""The DenseNet-121 of torchxrayvision for chest X-rays: one channel, pixels from -1024 to 1024.

A zoo file beside this one can write ``source: torchxrayvision_densenet:densenet121``. It is torchvision's DenseNet-121 with one
input channel, under the same names, so that the package torchxrayvision is needed once at most: its files hold whole networks,
which only running their code can open. This line writes what is in one as tensors:

    net = torchxrayvision.models.DenseNet(weights="densenet121-res224-all")
    state = {name: tensor.contiguous() for name, tensor in net.state_dict().items() if name != "op_threshs"}
    safetensors.torch.save_file(state, "densenet121-res224-all.safetensors")

``op_threshs`` shifts the probabilities of its 18 findings and is no part of the network.

Reference: Cohen et al.: TorchXRayVision: A library of chest X-ray datasets and models, MIDL 2022 (arXiv 2111.00595).
"""

from collections.abc import Sequence

from torch import nn
from torchvision.models import DenseNet


def densenet121(num_classes: int = 18, block_config: Sequence[int] = (6, 12, 24, 16)) -> nn.Module:
    """6 966 034 parameters with the 18 findings; other numbers of layers a block are other DenseNets."""
    network = DenseNet(block_config=tuple(block_config), num_classes=num_classes)
    network.features.conv0 = nn.Conv2d(1, 64, kernel_size=7, stride=2, padding=3, bias=False)
    nn.init.kaiming_normal_(network.features.conv0.weight)
    # torchxrayvision.utils.normalize gives (2 x - 1) * 1024 for x from 0 to 1, which is (x - 0.5) / (1 / 2048).
    network.default_cfg = {"input_size": (1, 224, 224), "mean": 0.5, "std": 1 / 2048, "interpolation": "bilinear"}
    return network
