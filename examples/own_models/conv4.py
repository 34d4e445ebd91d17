"""Conv-4, the encoder of few-shot learning, in the variant of the Relation Network: no pooling at the end.

A zoo file beside this one can write ``source: conv4:conv4`` and ``kwargs: {in_chans: 1}`` for grey images.
Names of the layers are those of https://github.com/floodsung/LearningToCompare_FSL, so that its encoders load.

Reference: Sung, Yang, Zhang, Xiang, Torr, Hospedales: Learning to Compare: Relation Network for Few-Shot
Learning, CVPR 2018 (arXiv 1711.06025).
"""

from torch import Tensor, nn

# One mean and one standard deviation for every channel: those of Omniglot, which the authors' code uses for
# miniImageNet too. Weights remember what they were trained with, sensible or not.
MEAN, STD = 0.92206, 0.08426


class Conv4(nn.Module):
    """Four blocks of a 3×3 convolution with 64 channels, batch normalisation and ReLU; the first two halve the size.

    There is no head: the output is a feature map, (n, 64, 5, 5) for 28 pixels and (n, 64, 19, 19) for 84.
    """

    def __init__(self, in_chans: int) -> None:
        super().__init__()
        self.layer1 = _block(in_chans, padding=0, halve=True)
        self.layer2 = _block(64, padding=0, halve=True)
        self.layer3 = _block(64, padding=1, halve=False)
        self.layer4 = _block(64, padding=1, halve=False)
        pixels = 28 if in_chans == 1 else 84
        self.default_cfg = {"input_size": (in_chans, pixels, pixels), "mean": MEAN, "std": STD}

    def forward_features(self, x: Tensor) -> Tensor:
        """What crossgraft asks a network without a head for; it averages the map over its positions."""
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_features(x)


def _block(in_channels: int, *, padding: int, halve: bool) -> nn.Sequential:
    layers = [
        nn.Conv2d(in_channels, 64, 3, padding=padding),
        # With momentum 1 the running statistics are those of the last training batch alone. The authors therefore
        # evaluate in train mode, with the statistics of the test batch. crossgraft keeps eval mode, where the features
        # of an image do not depend on the images beside it.
        nn.BatchNorm2d(64, momentum=1.0),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers, nn.MaxPool2d(2)) if halve else nn.Sequential(*layers)


def conv4(in_chans: int = 3) -> Conv4:
    """113 088 parameters for colour images, 111 936 for grey ones."""
    return Conv4(in_chans)
