"""25 families of timm and the small ones of torchvision: features are what the network itself hands to its head.

The whole list of families is in docs/results/backbones.md, measured by studies/timm_families.py.
"""

import pytest
import torch
from torch import nn

from crossgraft.models import Backbone, ModelSpec, load_backbone

ONE_BLOCK = {"embed_dim": 12, "depth": 1, "num_heads": 1}
FAMILIES = {
    # networks of one linear head
    "byobnet": ("test_byobnet", {}),
    "convnext": ("test_convnext", {}),
    "cspnet": ("cs3darknet_focus_s", {}),
    "efficientnet": ("test_efficientnet", {}),
    "efficientvit_msra": ("efficientvit_m0", {}),
    "mambaout": ("test_mambaout", {}),
    "maxxvit": ("test_coatnet", {}),
    "mobilenetv3": ("mobilenetv3_small_050", {}),
    "mobilevit": ("mobilevit_xxs", {}),
    "mlp_mixer": ("gmlp_ti16_224", {"img_size": 64}),
    "nfnet": ("test_nfnet", {}),
    "pvt_v2": ("pvt_v2_b0", {"depths": (1, 1, 1, 1)}),
    "regnet": ("regnetx_002", {}),
    "resnet": ("test_resnet", {}),
    "starnet": ("starnet_s050", {}),
    "swin_transformer": (
        "swin_tiny_patch4_window7_224",
        {"img_size": 64, "embed_dim": 12, "depths": (1, 1), "num_heads": (1, 1)},
    ),
    "vision_transformer": ("test_vit", {}),
    "vision_transformer_relpos": ("test_vit_relpos", {}),
    "xcit": ("xcit_nano_12_p16_224", {"embed_dim": 16, "depth": 1, "num_heads": 2}),
    # several heads, or a head of several steps
    "crossvit": ("crossvit_tiny_240", {"depth": ((1, 1, 0),), "embed_dim": (12, 16), "num_heads": (1, 2)}),
    "deit": ("deit_tiny_distilled_patch16_224", ONE_BLOCK),
    "dla": ("dla46x_c", {}),
    "levit": ("levit_128s", {"img_size": 64, "embed_dim": (16, 16, 16), "depth": (1, 1, 1), "num_heads": (1, 1, 1)}),
    "iformer": ("iformer_t", {}),
    # no head
    "eva": ("vit_tiny_patch16_dinov3_qkvb", ONE_BLOCK),
}
TORCHVISION = {
    "efficientnet": ("efficientnet_b0", 32),
    "googlenet": ("googlenet", 32),
    "mnasnet": ("mnasnet0_5", 32),
    "mobilenet": ("mobilenet_v3_small", 32),
    "regnet": ("regnet_y_400mf", 32),
    "shufflenet": ("shufflenet_v2_x0_5", 32),
    "resnet": ("resnet18", 32),
}


def backbone_of(architecture: str, kwargs: dict, image_size: int | None = 64) -> Backbone:
    size = None if "img_size" in kwargs or architecture.startswith(("crossvit", "xcit")) else image_size
    return load_backbone(ModelSpec(architecture, architecture, "random", kwargs=kwargs), image_size=size)


def images_for(backbone: Backbone, number: int = 3) -> torch.Tensor:
    facts = backbone.preprocessing
    shape = (number, facts.channels, facts.height_pixels, facts.width_pixels)
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def literal_features(module: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """What the head gets, by the network's own words: a hook on its linear head, or its pre-logits."""
    head = module.get_classifier() if hasattr(module, "get_classifier") else last_layer(module)
    if isinstance(head, nn.Linear):
        got = []
        handle = head.register_forward_hook(lambda _module, inputs, output: got.append((inputs[0], output)))
        logits = module(images)
        handle.remove()
        ((features, output),) = got
        if torch.equal(output, logits):
            return features
    features = module.forward_head(module.forward_features(images), pre_logits=True)
    assert features.ndim == 2
    return features


def last_layer(module: nn.Module) -> nn.Module:
    return [layer for layer in module.modules() if isinstance(layer, nn.Linear)][-1]


def are_equal(found: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-5) -> bool:
    """Relative to the largest value: under random weights the signal of some networks fades to 1e-9."""
    return found.shape == expected.shape and bool((found - expected).abs().max() <= tolerance * expected.abs().max())


def check(backbone: Backbone) -> None:
    images = images_for(backbone)
    output = backbone(images)
    with torch.inference_mode():
        expected = literal_features(backbone.module, images)
        assert expected.abs().max() > 0
        assert are_equal(output.features, expected)
        assert output.source_logits is None or are_equal(output.source_logits, backbone.module(images))
        # the check can fail: the largest value over positions instead of what the network does is noticed
        wrong = wrongly_pooled(backbone.module, images, expected.shape[1])
        assert wrong is None or not are_equal(wrong, expected, 0.01)
    # no image sees its neighbours in the batch, and the same image gives the same features again
    alone = torch.cat([backbone(images[row : row + 1]).features for row in range(len(images))])
    assert are_equal(alone, output.features, 1e-5)
    assert not are_equal(output.features[[1, 0, 2]], output.features, 1e-4)
    assert torch.equal(backbone(images).features, output.features)
    assert set(backbone.activations(images, backbone.layer_names)) == set(backbone.layer_names) != set()


def wrongly_pooled(module: nn.Module, images: torch.Tensor, num_features: int) -> torch.Tensor | None:
    """Features by the wrong pooling; None where there is one position, or the head changes the width."""
    feature_map = module.forward_features(images) if hasattr(module, "forward_features") else None
    if not isinstance(feature_map, torch.Tensor) or feature_map.ndim == 2 or num_features not in feature_map.shape[1:]:
        return None
    axis = list(feature_map.shape).index(num_features, 1)
    positions = feature_map.movedim(axis, 1).flatten(2)
    return positions.amax(dim=2) if positions.shape[2] > 1 else None


@pytest.mark.parametrize("family", FAMILIES)
def test_features_of_timm_families(family):
    check(backbone_of(*FAMILIES[family]))


def test_the_families_are_25_different_modules():
    from timm.models import list_modules

    assert len(FAMILIES) == 25 and set(FAMILIES) <= set(list_modules())


@pytest.mark.parametrize("family", TORCHVISION)
def test_features_of_torchvision_families(family):
    name, size = TORCHVISION[family]
    backbone = load_backbone(ModelSpec(name, f"torchvision:{name}", "random"), image_size=size)
    assert backbone.source == "torchvision"
    check(backbone)
