"""ResNet-20, -32, -44 and -56 for 32×32 images: the networks of section 4.2 of the ResNet paper.

A zoo file beside this one can write ``source: cifar_resnet:resnet20``. Names of the layers are those of
https://github.com/akamaster/pytorch_resnet_cifar10, so that its checkpoints load.

Reference: He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016 (arXiv 1512.03385).
"""

from torch import Tensor, nn
from torch.nn.functional import pad


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut without parameters."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.new_channels = out_channels - in_channels
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)

    def shortcut(self, x: Tensor) -> Tensor:
        """The paper's option A: every second row and column; the new channels are zeros, half of them on each side."""
        x = x[:, :, :: self.stride, :: self.stride]
        return pad(x, (0, 0, 0, 0, self.new_channels // 2, self.new_channels // 2))

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn1(self.conv1(x)).relu()
        out = self.bn2(self.conv2(out))
        return (out + self.shortcut(x)).relu()


class CifarResNet(nn.Module):
    """6n + 2 layers: one convolution, three stages of n blocks with 16, 32 and 64 channels, one linear layer.

    ``dropout`` is the share of the 64 features that is dropped in front of the linear layer; the paper has none.
    """

    # What the weights were trained with; a zoo entry or the header of a checkpoint may say otherwise.
    default_cfg = {  # noqa: RUF012 - read only
        "input_size": (3, 32, 32),
        "mean": (0.485, 0.456, 0.406),
        "std": (0.229, 0.224, 0.225),
    }

    def __init__(self, blocks_per_stage: int, num_classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(blocks_per_stage, 16, 16, stride=1)
        self.layer2 = _stage(blocks_per_stage, 16, 32, stride=2)
        self.layer3 = _stage(blocks_per_stage, 32, 64, stride=2)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.linear = nn.Linear(64, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):  # as the paper does; the random-weight control depends on it
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x)).relu()
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(self.dropout(x.mean(dim=(2, 3))))


def _stage(num_blocks: int, in_channels: int, out_channels: int, *, stride: int) -> nn.Sequential:
    first = BasicBlock(in_channels, out_channels, stride)
    return nn.Sequential(first, *(BasicBlock(out_channels, out_channels, 1) for _ in range(num_blocks - 1)))


def resnet20(num_classes: int = 10, dropout: float = 0.0) -> CifarResNet:
    """Three blocks a stage: 269 722 parameters with ten classes."""
    return CifarResNet(3, num_classes, dropout)


def resnet32(num_classes: int = 10, dropout: float = 0.0) -> CifarResNet:
    """Five blocks a stage: 464 154 parameters with ten classes."""
    return CifarResNet(5, num_classes, dropout)


def resnet44(num_classes: int = 10, dropout: float = 0.0) -> CifarResNet:
    """Seven blocks a stage: 658 586 parameters with ten classes."""
    return CifarResNet(7, num_classes, dropout)


def resnet56(num_classes: int = 10, dropout: float = 0.0) -> CifarResNet:
    """Nine blocks a stage: 853 018 parameters with ten classes."""
    return CifarResNet(9, num_classes, dropout)


def resnet20_stride2(num_classes: int = 10) -> CifarResNet:
    """``resnet20`` that looks at every second pixel first: images of 64 × 64 cost what those of 32 × 32 do otherwise."""
    network = resnet20(num_classes)
    network.conv1.stride = (2, 2)
    return network
