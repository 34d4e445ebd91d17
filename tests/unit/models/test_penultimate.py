"""Features without a head, with another pooling, with channels last, and of networks that speak other words."""

import pytest
import timm
import torch
from timm.layers import Format
from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models.positions import ChannelLayout, find_layout, mean_over_positions

from .test_backbone import SMALL_SWIN, images_for, random_backbone, wrap
from .test_families import ONE_BLOCK

VIT = "vit_tiny_patch16_224"
SMALL = {**ONE_BLOCK, "img_size": 32}


def tokens_of(backbone, images):
    with torch.inference_mode():
        return backbone.module.forward_features(images)


@pytest.mark.parametrize(
    ("architecture", "kwargs"),
    [
        ("test_resnet", {}),
        ("test_convnext", {}),
        ("test_mambaout", {}),
        ("swin_tiny_patch4_window7_224", {**SMALL_SWIN, "img_size": 56}),
        (VIT, SMALL),
        (VIT, {**SMALL, "global_pool": "avg"}),
        (VIT, {**SMALL, "global_pool": "map"}),
        (VIT, {**SMALL, "reg_tokens": 4}),
        ("deit_tiny_distilled_patch16_224", SMALL),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(str(v) for v in value.values()),
)
def test_a_network_without_its_head_gives_the_same_features(architecture, kwargs):
    whole = random_backbone(architecture, **kwargs)
    images = images_for(whole)
    expected = whole(images).features
    whole.module.reset_classifier(0)
    facts = whole.preprocessing
    cut = wrap(whole.module, preprocessing=facts)
    output = cut(images)
    assert output.source_logits is None
    torch.testing.assert_close(output.features, expected, rtol=1e-5, atol=1e-6)


def test_map_pooling_is_what_timm_hands_to_the_head():
    backbone = random_backbone(VIT, **SMALL, global_pool="map", num_classes=0)
    images = images_for(backbone)
    with torch.inference_mode():
        patch_tokens = backbone.module.forward_features(images)[:, 1:]
        expected = backbone.module.fc_norm(backbone.module.attn_pool(patch_tokens))
    torch.testing.assert_close(backbone(images).features, expected)
    assert not torch.allclose(expected, tokens_of(backbone, images).mean(1), atol=1e-3)


def test_without_pooling_positions_are_averaged_and_other_tokens_left_out():
    backbone = random_backbone(VIT, **SMALL, global_pool="", reg_tokens=4, class_token=True)
    images = images_for(backbone)
    tokens = tokens_of(backbone, images)
    assert tokens.shape == (2, 1 + 4 + 4, 12)
    output = backbone(images)
    torch.testing.assert_close(output.features, tokens[:, 5:].mean(1))
    assert not torch.allclose(output.features, tokens.mean(1), atol=1e-3)
    assert output.source_logits is None  # one row a token, not one an image


@pytest.mark.parametrize(
    ("architecture", "kwargs", "positions"),
    [
        ("test_resnet", {}, (2, 3)),
        ("test_convnext", {}, (2, 3)),
        ("swin_tiny_patch4_window7_224", {**SMALL_SWIN, "img_size": 56}, (1, 2)),
    ],
)
def test_unpooled_maps_are_averaged_over_positions_never_over_channels(architecture, kwargs, positions):
    backbone = random_backbone(architecture, **kwargs, global_pool="", num_classes=0)
    images = images_for(backbone)
    feature_map = tokens_of(backbone, images)
    with torch.inference_mode():
        expected = backbone.module.forward_head(feature_map, pre_logits=True).mean(positions)
    assert expected.shape == (2, backbone.module.num_features)
    torch.testing.assert_close(backbone(images).features, expected)


def test_grey_images():
    backbone = random_backbone("test_vit", in_chans=1, num_classes=3)
    images = images_for(backbone)
    assert images.shape[1] == 1
    with torch.inference_mode():
        expected = backbone.module.forward_head(backbone.module.forward_features(images), pre_logits=True)
    torch.testing.assert_close(backbone(images).features, expected)


class Says(nn.Module):
    def __init__(self, **facts):
        super().__init__()
        for name, value in facts.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    ("facts", "shape", "axis"),
    [
        ({}, (1, 5, 3, 3), 1),
        ({}, (1, 7, 5), 2),
        ({}, (1, 5), 1),
        ({"num_features": 5}, (1, 3, 3, 5), 3),
        ({"num_features": 5}, (1, 5, 7), 1),
        ({"output_fmt": "NHWC"}, (1, 5, 5, 5), 3),
        ({"output_fmt": Format.NHWC, "num_features": 5}, (1, 5, 5, 5), 3),
        ({"output_fmt": "NHWC", "num_features": 5}, (1, 5, 3, 3), 1),  # the head brings channels to the front
        ({"num_features": 9, "head_hidden_size": 5}, (1, 3, 3, 5), 3),
        ({"output_fmt": "NCL"}, (1, 5, 7), 1),
        ({"output_fmt": "NHWC"}, (1, 7, 5), 2),  # tokens, whatever the format of maps
    ],
)
def test_the_axis_of_the_channels(facts, shape, axis):
    assert find_layout(Says(**facts), shape).channel_axis == axis


def test_five_axes_are_refused():
    with pytest.raises(UsageError, match=r"the network returned \(1, 2, 3, 4, 5\)"):
        find_layout(Says(), (1, 2, 3, 4, 5))


def test_the_average_is_over_everything_but_samples_and_channels():
    values = torch.arange(24.0).reshape(1, 2, 3, 4)
    assert mean_over_positions(values, ChannelLayout(1)).tolist() == [[5.5, 17.5]]
    assert mean_over_positions(values, ChannelLayout(3)).tolist() == [[10.0, 11.0, 12.0, 13.0]]
    assert mean_over_positions(values[:, 0], ChannelLayout(2, num_prefix_tokens=1)).tolist() == [[6.0, 7.0, 8.0, 9.0]]


class Speaks(nn.Module):
    """A network whose ``forward_features`` returns what the test says."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward_features(self, images):
        return self.make(images.mean((2, 3)))


def test_one_tensor_in_a_list_is_that_tensor():
    images = torch.randn(2, 3, 8, 8)
    backbone = wrap(Speaks(lambda vector: (vector,)))
    torch.testing.assert_close(backbone(images).features, images.mean((2, 3)))


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda vector: {"tokens": vector, "mask": vector}, "dict with the keys tokens, mask"),
        (lambda vector: [vector, vector], "list of 2"),
        (lambda vector: None, "NoneType"),
    ],
)
def test_what_is_no_tensor_is_named_and_not_guessed(make, found):
    with pytest.raises(UsageError, match=rf"forward_features of the model own returns a {found}"):
        wrap(Speaks(make))


def test_a_convolution_that_is_not_the_last_step_still_gives_what_goes_into_it():
    class Squeeze(nn.Module):
        def __init__(self):
            super().__init__()
            self.classifier = nn.Sequential(nn.Conv2d(3, 5, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())

        def forward(self, images):
            return self.classifier(images)

    images = torch.randn(2, 3, 8, 8)
    output = wrap(Squeeze())(images)
    torch.testing.assert_close(output.features, images.mean((2, 3)))
    assert output.source_logits.shape == (2, 5)


def test_layers_that_run_and_give_one_tensor_are_the_main_layers():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

        def forward(self, images):
            return self.left(images), self.right(images)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.pair, self.spare = Pair(), nn.Conv2d(3, 3, 1)
            self.parts = nn.ModuleDict({"norm": nn.BatchNorm2d(3)})

        def forward_features(self, images):
            left, right = self.pair(images)
            return self.parts["norm"](left + right)

    backbone = wrap(Net())
    assert backbone.layer_names == ("pair.left", "pair.right", "parts.norm")
    backbone.activations(torch.zeros(1, 3, 8, 8), backbone.layer_names)


def test_a_wrapper_around_the_network_is_opened():
    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 4, 1)
            self.encoder = nn.Sequential(nn.Conv2d(4, 16, 3), nn.Conv2d(16, 16, 3))

        def forward(self, images):
            return self.encoder(self.stem(images))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.network, self.fc = Wrapper(), nn.Linear(16, 2)

        def forward(self, images):
            return self.fc(self.network(images).mean((2, 3)))

    assert wrap(Net()).layer_names == ("network.stem", "network.encoder.0", "network.encoder.1", "fc")


def test_naflexvit_takes_images():
    kwargs = {"embed_dim": 12, "depth": 1, "num_heads": 1}
    name = next(name for name in timm.list_models("naflexvit_base_patch16_gap"))
    backbone = random_backbone(name, **kwargs, num_classes=0)
    images = images_for(backbone)
    with torch.inference_mode():
        expected = backbone.module.forward_head(backbone.module.forward_features(images), pre_logits=True)
    torch.testing.assert_close(backbone(images).features, expected)
