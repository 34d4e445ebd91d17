"""DenseNet-121 of MONAI for grey images, which scales every image by its own darkest and brightest pixel.

A zoo file beside this one can write ``source: monai_densenet:densenet121``. No mean and standard deviation say what MONAI's
``ScaleIntensity`` does, since it looks at each image. So it is a layer here, the first one: it goes wherever the network goes,
into saved models and ONNX. A layer without parameters changes no name, so a checkpoint of MONAI's network fits as it is.

MONAI scales what it has loaded; here images have their size already. The two differ where resizing removes the darkest or
brightest pixel.

Reference: Cardoso et al.: MONAI: An open-source framework for deep learning in healthcare, 2022 (arXiv 2211.02701).
"""

from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor, nn


class ScaleIntensity(nn.Module):
    """Each image to values from 0 to 1, as the transform of this name does; an image of one level becomes 0."""

    def forward(self, images: Tensor) -> Tensor:
        darkest, brightest = images.amin(dim=(1, 2, 3), keepdim=True), images.amax(dim=(1, 2, 3), keepdim=True)
        span = brightest - darkest
        return (images - darkest) / span.where(span > 0, 1.0)


def densenet121(in_channels: int = 1, num_classes: int = 2, block_config: Sequence[int] = (6, 12, 24, 16)) -> nn.Module:
    """6 949 634 parameters for two classes and one channel; needs ``pip install monai``."""
    from monai.networks.nets import DenseNet121  # here, so that the layer above needs torch alone

    network = DenseNet121(spatial_dims=2, in_channels=in_channels, out_channels=num_classes, block_config=block_config)
    layers = OrderedDict([("scale_intensity", ScaleIntensity()), *network.features.named_children()])
    network.features = nn.Sequential(layers)
    network.default_cfg = {"input_size": (in_channels, 64, 64), "mean": 0.0, "std": 1.0, "classifier": "class_layers.out"}
    return network
