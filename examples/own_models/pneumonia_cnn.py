"""A small CNN that tells pneumonia from normal chest X-rays: what many first projects look like.

A zoo file beside this one can write ``source: pneumonia_cnn:pneumonia_cnn``. Names of the layers are those of
https://github.com/SpeedGotFried/pneumonia-detection-medmnist, so that its "vanilla" checkpoint loads. It was
trained on the train split of PneumoniaMNIST: a ranking on those images says nothing about transfer.
"""

from torch import Tensor, nn


class PneumoniaCnn(nn.Module):
    """Four convolutions of 16, 32, 64 and 128 channels, the mean over all positions, one linear layer."""

    default_cfg = {  # noqa: RUF012 - read only
        "input_size": (3, 128, 128),
        "mean": (0.485, 0.456, 0.406),
        "std": (0.229, 0.224, 0.225),
    }

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_convolution(3, 16),
            nn.MaxPool2d(2),
            *_convolution(16, 32),
            nn.MaxPool2d(2),
            *_convolution(32, 64),
            nn.MaxPool2d(2),
            *_convolution(64, 128),
        )
        self.fc = nn.Linear(128, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x).mean(dim=(2, 3)))


def _convolution(in_channels: int, out_channels: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(in_channels, out_channels, 3, padding=1), nn.BatchNorm2d(out_channels), nn.ReLU()


def pneumonia_cnn(num_classes: int = 2) -> PneumoniaCnn:
    """98 178 parameters; class 0 is normal, class 1 pneumonia."""
    return PneumoniaCnn(num_classes)
