"""torchvision's ResNet-50 as RadImageNet's PyTorch file names it: a sequence called ``backbone``, without a classifier.

A zoo file beside this one can write ``source: radimagenet_resnet50:resnet50``. The keys of the file are expected
to be ``backbone.0.weight`` (first convolution), ``backbone.1.…`` (batch normalisation) and
``backbone.4.…`` to ``backbone.7.…`` (the four stages).

Reference: Mei et al.: RadImageNet: An Open Radiologic Deep Learning Research Dataset for Effective Transfer
Learning, Radiology: Artificial Intelligence 4 (2022) e210315.
"""

import torchvision
from torch import Tensor, nn


class SequentialResNet50(nn.Module):
    """Everything of ResNet-50 up to its last feature map."""

    def __init__(self) -> None:
        super().__init__()
        whole = torchvision.models.resnet50(weights=None)
        *up_to_the_last_stage, _pooling, _classifier = whole.children()
        self.backbone = nn.Sequential(*up_to_the_last_stage)

    def forward_features(self, x: Tensor) -> Tensor:
        """Feature map (n, 2048, height / 32, width / 32); crossgraft averages it over its positions."""
        return self.backbone(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_features(x)


def resnet50() -> SequentialResNet50:
    """23 508 032 parameters. The zoo entry says the file and how images are prepared."""
    return SequentialResNet50()
