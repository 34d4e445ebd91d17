"""Names that papers print, and the weights that they mean by the names of timm, torchvision or the Hugging Face hub.

Each table says why a name means these weights. A name whose weights the publication leaves open is no alias: it stays with its
architecture, so its results speak of relatives only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crossgraft.errors import DataError


class Names(NamedTuple):
    """Names of one table.

    Attributes:
        why: Reason for which these names mean these weights.
        certain: Printed name → full name of the weights.
        architecture: Printed name → architecture, where the publication leaves the weights open.
    """

    why: str
    certain: Mapping[str, str]
    architecture: Mapping[str, str]


def _convolutional(*names: str) -> dict[str, str]:
    return {name: f"{name}.tv_in1k" for name in names}


_FACEBOOK = {
    **{f"facebook/convnext-{size}-224": f"convnext_{size}.fb_in1k" for size in ("tiny", "small", "base", "large")},
    **{f"facebook/convnext-{size}-224-22k": f"convnext_{size}.fb_in22k" for size in ("base", "large", "xlarge")},
    **{
        f"facebook/convnext-{size}-224-22k-1k": f"convnext_{size}.fb_in22k_ft_in1k"
        for size in ("base", "large", "xlarge")
    },
    **{f"facebook/convnext-{size}-384-22k-1k": f"convnext_{size}.fb_in22k_ft_in1k_384" for size in ("base", "large")},
    **{f"facebook/deit-{size}-patch16-224": f"deit_{size}_patch16_224.fb_in1k" for size in ("tiny", "small", "base")},
    **{
        f"facebook/deit-{size}-distilled-patch16-224": f"deit_{size}_distilled_patch16_224.fb_in1k"
        for size in ("tiny", "small", "base")
    },
    "facebook/deit-base-patch16-384": "deit_base_patch16_384.fb_in1k",
    "facebook/deit-base-distilled-patch16-384": "deit_base_distilled_patch16_384.fb_in1k",
}
_MICROSOFT = {
    "microsoft/swin-tiny-patch4-window7-224": "swin_tiny_patch4_window7_224.ms_in1k",
    "microsoft/swin-small-patch4-window7-224": "swin_small_patch4_window7_224.ms_in1k",
    "microsoft/swin-base-patch4-window7-224-in22k": "swin_base_patch4_window7_224.ms_in22k",
    "microsoft/swin-base-patch4-window12-384-in22k": "swin_base_patch4_window12_384.ms_in22k",
    "microsoft/swin-large-patch4-window7-224-in22k": "swin_large_patch4_window7_224.ms_in22k",
    "microsoft/swin-large-patch4-window12-384-in22k": "swin_large_patch4_window12_384.ms_in22k",
    **{
        f"microsoft/beit-{size}-patch16-224": f"beit_{size}_patch16_224.in22k_ft_in22k_in1k"
        for size in ("base", "large")
    },
    **{
        f"microsoft/beit-{size}-patch16-384": f"beit_{size}_patch16_384.in22k_ft_in22k_in1k"
        for size in ("base", "large")
    },
    **{
        f"microsoft/beit-{size}-patch16-224-pt22k-ft22k": f"beit_{size}_patch16_224.in22k_ft_in22k"
        for size in ("base", "large")
    },
}

NAMES: Mapping[str, Names] = {
    "sfda_cnn": Names(
        "Its zoo is taken to be torchvision's (V1), the usual one of that time, which timm keeps in part under the tag "
        "tv_in1k; its code was not read.",
        {
            **_convolutional("resnet34", "resnet50", "resnet101", "resnet152"),
            **_convolutional("densenet121", "densenet169", "densenet201", "inception_v3"),
            **{name: f"torchvision:{name}" for name in ("mnasnet1_0", "mobilenet_v2", "googlenet")},
        },
        {},
    ),
    "tmlr": Names(
        "The ImageNet top-1 that it prints for each network is that of these weights; of vit_small_patch16_224 it is that of "
        "augreg_in1k, but its results are those of pretraining on ImageNet-21k, so it is left open.",
        {
            **_convolutional("densenet121", "densenet161", "densenet169", "resnet18", "resnet34", "resnet50"),
            "efficientnet_b0": "efficientnet_b0.ra_in1k",
            "mobilenetv2_050": "mobilenetv2_050.lamb_in1k",
            "mobilenetv2_100": "mobilenetv2_100.ra_in1k",
        },
        {"vit_small_patch16_224": "vit_small_patch16_224"},
    ),
    "medmnistplus": Names(
        "Its code takes timm's default weights by architecture, AlexNet from torchvision; the weights of CLIP are left open.",
        {
            "VGG16": "vgg16.tv_in1k",
            "AlexNet": "torchvision:alexnet",
            "ResNet-18": "resnet18.a1_in1k",
            "DenseNet-121": "densenet121.ra_in1k",
            "EfficientNet-B4": "efficientnet_b4.ra2_in1k",
            "ViT-B/16": "vit_base_patch16_224.augreg2_in21k_ft_in1k",
            "EVA-02 ViT-B/16": "eva02_base_patch16_clip_224.merged2b",
            "DINO ViT-B/16": "vit_base_patch16_224.dino",
            "SAM ViT-B/16": "samvit_base_patch16.sa1b",
        },
        {"CLIP ViT-B/16": "vit_base_patch16_clip_224"},
    ),
    "shift": Names(
        "A network of the hub is called as there; one with the name of an original release is taken to be that release, "
        "under timm's tag of it. Cards of the hub were not read.",
        {**_FACEBOOK, **_MICROSOFT},
        {
            "google/vit-base-patch16-224": "vit_base_patch16_224",
            "google/vit-base-patch16-384": "vit_base_patch16_384",
            "google/vit-large-patch16-224": "vit_large_patch16_224",
            "google/vit-base-patch32-384": "vit_base_patch32_384",
            "google/vit-large-patch32-384": "vit_large_patch32_384",
            "microsoft/resnet-50": "resnet50",
            "facebook/convnext-base-384": "convnext_base",
            "facebook/convnext-large-384": "convnext_large",
            "microsoft/swin-base-patch4-window7-224": "swin_base_patch4_window7_224",
            "microsoft/swin-base-patch4-window12-384": "swin_base_patch4_window12_384",
            "microsoft/swin-large-patch4-window7-224": "swin_large_patch4_window7_224",
            "microsoft/swin-large-patch4-window12-384": "swin_large_patch4_window12_384",
        },
    ),
    "itm": Names(
        "Self-supervised weights are named by method and size; of supervised ones the paper names no weights.",
        {
            "DINO-B16": "vit_base_patch16_224.dino",
            "DINO-S8": "vit_small_patch8_224.dino",
            "MAE-B16": "vit_base_patch16_224.mae",
            "MAE-L16": "vit_large_patch16_224.mae",
        },
        {
            "DenseNet-121": "densenet121",
            "EfficientNet-B0": "efficientnet_b0",
            "MobileNetv2": "mobilenetv2_100",
            "ResNet-18": "resnet18",
        },
    ),
    "thesis-architectures": Names(
        "It names the weights: IMAGENET1K_V1 of torchvision.",
        {
            "densenet": "densenet121.tv_in1k",
            "resnet": "resnet18.tv_in1k",
            "vgg": "vgg11.tv_in1k",
            "efficientnet": "torchvision:efficientnet_v2_s",
            "googlenet": "torchvision:googlenet",
            "mnasnet": "torchvision:mnasnet1_0",
            "mobilenet": "torchvision:mobilenet_v3_small",
            "convnext": "torchvision:convnext_tiny",
            "shufflenet": "torchvision:shufflenet_v2_x0_5",
        },
        {},
    ),
}
_SAME = {"dart": "tmlr", "medmnistplus_accuracy": "medmnistplus", "medmnistplus_auc": "medmnistplus"}
"""Tables that use the names of another."""


def timm_name(name: str, *, table: str) -> str | None:
    """The weights that ``table`` means by ``name``; a hub name means itself, and an open one has none."""
    names = NAMES[naming_table(table)]
    return names.certain.get(name) or (
        name if "/" in name and table == "shift" and name not in names.architecture else None
    )


def naming_table(table: str) -> str:
    """The table whose names ``table`` uses: publications of one group of authors, or of two metrics, share theirs."""
    return _SAME.get(table, table)


def architecture_name(name: str, *, table: str) -> str | None:
    """The architecture of a name whose weights ``table`` leaves open."""
    return NAMES[naming_table(table)].architecture.get(name)


def weights_called(name: str) -> str | None:
    """The weights that a printed name means, whichever table prints it; None where no table does.

    Raises:
        DataError: Two tables mean different weights by it, or one leaves them open; the message names the tables.

    >>> weights_called("EfficientNet-B4"), weights_called("resnet34"), weights_called("anything")
    ('efficientnet_b4.ra2_in1k', 'resnet34.tv_in1k', None)
    """
    meanings: dict[str, list[str]] = {}
    for table, names in NAMES.items():
        if name in names.certain:
            meanings.setdefault(names.certain[name], []).append(table)
        elif name in names.architecture:
            meanings.setdefault(f"{names.architecture[name]} with weights that are not said", []).append(table)
    if len(meanings) > 1 or any(" " in meaning for meaning in meanings):
        said = " and ".join(f"{' and '.join(tables)} means {meaning}" for meaning, tables in meanings.items())
        raise DataError(f"{name} is ambiguous: {said}. Write the full name of the weights, as timm or torchvision do.")
    return next(iter(meanings), None)
