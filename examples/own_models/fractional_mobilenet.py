"""MobileNetV1 narrower than timm registers it: width 0.25, 0.5 and 0.75 of the original channels.

A zoo file beside this one can write ``source: fractional_mobilenet:mobilenetv1_050``.
"""

from timm.models.efficientnet import _gen_mobilenet_v1
from torch import nn


def _mobilenetv1(width: float, *, pad_type: str, num_classes: int, **kwargs: object) -> nn.Module:
    # The weights were trained in TensorFlow, whose padding at the right and lower edge differs from
    # PyTorch's. With PyTorch's padding they load without any error, and the accuracy falls by 8 to 25 points.
    return _gen_mobilenet_v1("mobilenetv1_100", channel_multiplier=width, pad_type=pad_type, num_classes=num_classes, **kwargs)


def mobilenetv1_025(*, pad_type: str = "same", num_classes: int = 1000, **kwargs: object) -> nn.Module:
    """A quarter of the channels."""
    return _mobilenetv1(0.25, pad_type=pad_type, num_classes=num_classes, **kwargs)


def mobilenetv1_050(*, pad_type: str = "same", num_classes: int = 1000, **kwargs: object) -> nn.Module:
    """Half of the channels."""
    return _mobilenetv1(0.5, pad_type=pad_type, num_classes=num_classes, **kwargs)


def mobilenetv1_075(*, pad_type: str = "same", num_classes: int = 1000, **kwargs: object) -> nn.Module:
    """Three quarters of the channels."""
    return _mobilenetv1(0.75, pad_type=pad_type, num_classes=num_classes, **kwargs)
