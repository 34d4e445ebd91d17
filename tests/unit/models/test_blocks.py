"""What the last three blocks of a network are."""

import pytest
import timm
import torch
from torch import nn
from torchvision import models

from crossgraft.models.layers import building_blocks, parameter_depths

SMALL_VIT = {"img_size": 32, "embed_dim": 12, "depth": 3, "num_heads": 1}


def build(name, kwargs):
    with torch.device("meta"):
        if name.startswith("torchvision:"):
            return models.get_model(name.removeprefix("torchvision:"), weights=None, **kwargs)
        return timm.create_model(name, **kwargs)


@pytest.mark.parametrize(
    ("name", "kwargs", "count", "first", "last"),
    [
        ("vit_tiny_patch16_224", SMALL_VIT, 3, "blocks.0", "blocks.2"),
        ("vit_tiny_patch16_224", {**SMALL_VIT, "global_pool": "map"}, 3, "blocks.0", "blocks.2"),
        ("vit_tiny_patch16_224", {**SMALL_VIT, "depth": 1}, 1, "blocks.0", "blocks.0"),
        ("xcit_nano_12_p16_224", {}, 14, "blocks.0", "cls_attn_blocks.1"),
        ("resnet18", {}, 8, "layer1.0", "layer4.1"),
        ("resnet50", {}, 16, "layer1.0", "layer4.2"),
        ("mobilenetv2_100", {}, 17, "blocks.0.0", "blocks.6.0"),
        ("mobilenetv3_small_100", {}, 11, "blocks.0.0", "blocks.4.2"),
        ("regnety_004", {}, 16, "s1.b1", "s4.b6"),
        ("convnext_atto", {}, 12, "stages.0.blocks.0", "stages.3.blocks.1"),
        ("swin_tiny_patch4_window7_224", {}, 12, "layers.0.blocks.0", "layers.3.blocks.1"),
        ("densenet121", {}, 58, "features.denseblock1.denselayer1", "features.denseblock4.denselayer16"),
        ("cs3darknet_focus_s", {}, 4, "stages.0", "stages.3"),  # three of the four look like lists of blocks
        ("inception_v3", {}, 11, "Mixed_5b", "Mixed_7c"),
        ("torchvision:vit_b_16", {}, 12, "encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_11"),
        ("torchvision:mobilenet_v2", {}, 17, "features.1", "features.17"),
        ("torchvision:efficientnet_v2_s", {}, 38, "features.2.0", "features.6.14"),  # one layer each in features.1
        ("torchvision:swin_t", {}, 12, "features.1.0", "features.7.1"),  # no merging of patches among them
        ("torchvision:squeezenet1_1", {}, 8, "features.3", "features.12"),
        ("torchvision:shufflenet_v2_x0_5", {}, 16, "stage2.0", "stage4.3"),
    ],
)
def test_blocks_of_well_known_networks(name, kwargs, count, first, last):
    blocks = building_blocks(build(name, kwargs))
    assert (len(blocks), blocks[0], blocks[-1]) == (count, first, last)


def test_a_plain_network_is_a_row_of_its_learned_layers():
    plain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten())
    assert building_blocks(plain) == ("0", "3")
    assert building_blocks(nn.Sequential(nn.BatchNorm2d(3))) == ()
    assert building_blocks(build("vgg11", {}))[-3:] == ("pre_logits.fc1", "pre_logits.fc2", "head.fc")


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.encoder = inner
        self.fc = nn.Linear(4, 2)


def test_a_network_behind_another_name_is_opened():
    inner = build("resnet18", {"num_classes": 0})
    assert building_blocks(Wrapped(inner)) == tuple(f"encoder.{name}" for name in building_blocks(inner))


def test_depths_count_blocks_and_what_lies_around_them():
    names = ["cls", "stem.w", "b.0.w", "b.0.v", "between.w", "b.1.w", "norm.w"]
    assert parameter_depths(names, ["b.0", "b.1"]) == {
        "cls": 0,
        "stem.w": 0,
        "b.0.w": 1,
        "b.0.v": 1,
        "between.w": 1,
        "b.1.w": 2,
        "norm.w": 3,
    }
    ten = [f"b.{i}.w" for i in range(11)]
    assert list(parameter_depths(ten, [f"b.{i}" for i in range(11)]).values()) == list(range(1, 12))  # b.1 is not b.10
    assert parameter_depths(["w"], []) == {"w": 1}
