"""One face for CNNs, ViTs and Swin: features, logits, layers, fingerprints."""

import pytest
import timm
import torch
from torch import nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.types import Preprocessing

from .conftest import tiny_timm

ONE_LINEAR_HEAD = ["test_resnet", "test_efficientnet", "test_convnext", "test_vit", "test_nfnet", "test_mambaout"]
SMALL_SWIN = {"embed_dim": 12, "depths": (1, 1), "num_heads": (1, 1)}
SMALL_VIT = {"embed_dim": 12, "depth": 1, "num_heads": 1}


def random_backbone(architecture: str, **kwargs: object) -> Backbone:
    return load_backbone(ModelSpec(architecture, architecture, "random", kwargs=kwargs))


def images_for(backbone: Backbone, number: int = 2) -> torch.Tensor:
    preprocessing = backbone.preprocessing
    shape = (number, preprocessing.channels, preprocessing.height_pixels, preprocessing.width_pixels)
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def wrap(module: nn.Module, **kwargs: object) -> Backbone:
    facts = {"name": "own", "architecture": "own", "source": "factory", "family": "own"}
    preprocessing = Preprocessing(height_pixels=8, width_pixels=8)
    return Backbone(module, **{**facts, "preprocessing": preprocessing, **kwargs})


@pytest.mark.parametrize("architecture", ONE_LINEAR_HEAD)
def test_head_of_features_is_the_output(architecture):
    backbone = random_backbone(architecture)
    images = images_for(backbone)
    output = backbone(images)
    head = backbone.module.get_classifier()
    with torch.inference_mode():
        expected = backbone.module(images)
    assert output.features.shape == (2, backbone.num_features)
    assert output.features.dtype == torch.float32
    torch.testing.assert_close(head(output.features), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(output.source_logits, expected, rtol=1e-5, atol=1e-5)
    assert backbone.num_source_classes == 1000
    # timm's own words agree on what the penultimate features are
    with torch.inference_mode():
        pre_logits = backbone.module.forward_head(backbone.module.forward_features(images), pre_logits=True)
    torch.testing.assert_close(output.features, pre_logits, rtol=1e-5, atol=1e-5)


def test_swin_reads_feature_maps_with_channels_last():
    backbone = random_backbone(
        "swin_tiny_patch4_window7_224", img_size=56, embed_dim=12, depths=(1, 1), num_heads=(1, 1), num_classes=5
    )
    assert backbone.preprocessing.height_pixels == 56
    output = backbone(images_for(backbone))
    assert output.features.shape == (2, 24)
    assert output.source_logits.shape == (2, 5)
    torch.testing.assert_close(backbone.module.head.fc(output.features), output.source_logits)


def test_two_heads_speak_through_timm_words():
    backbone = random_backbone("deit_tiny_distilled_patch16_224", embed_dim=12, depth=1, num_heads=1, img_size=32)
    images = images_for(backbone)
    output = backbone(images)
    with torch.inference_mode():
        torch.testing.assert_close(output.source_logits, backbone.module(images))
    assert output.features.shape == (2, 12)


def test_without_a_head_there_are_features_and_no_logits():
    backbone = random_backbone("test_resnet", num_classes=0)
    output = backbone(images_for(backbone))
    assert output.source_logits is None
    assert backbone.num_source_classes is None
    with torch.inference_mode():
        torch.testing.assert_close(output.features, backbone.module(images_for(backbone)))


@pytest.mark.parametrize("shape", [(2, 5), (2, 7, 5), (2, 5, 3, 3)])
def test_forward_features_alone_is_enough(shape):
    class Encoder(nn.Module):
        def forward_features(self, images):
            return torch.arange(float(torch.Size(shape).numel())).reshape(shape)[: len(images)]

    features = wrap(Encoder())(torch.zeros(2, 3, 8, 8)).features
    output = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    positions = tuple(range(2, len(shape))) if len(shape) == 4 else (1,)
    expected = output.mean(positions) if len(shape) > 2 else output
    torch.testing.assert_close(features, expected)


def test_a_head_that_is_not_the_last_step_is_not_taken():
    class Scaled(nn.Module):
        """Its fc is followed by a scale, so fc's input is not what the output is linear in."""

        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, images):
            return 2 * self.fc(images.mean((2, 3)))

    with pytest.raises(UsageError, match="forward_features"):
        wrap(Scaled())


def test_sequential_head_of_torchvision():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))

        def forward(self, images):
            return self.classifier(images.mean((2, 3)))

    backbone = wrap(Net())
    images = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(backbone(images).features, images.mean((2, 3)))


def test_eval_mode_and_no_autograd():
    backbone = wrap(tiny_timm().train())
    assert not any(module.training for module in backbone.module.modules())
    assert all(parameter.requires_grad for parameter in backbone.module.parameters())
    assert not backbone(torch.randn(1, 3, 8, 8)).features.requires_grad


def test_wrong_channels_are_refused():
    with pytest.raises(UsageError, match=r"takes images \(n, 3, height, width\), found \(2, 1, 8, 8\)"):
        wrap(tiny_timm())(torch.zeros(2, 1, 8, 8))


class NeedsColour(nn.Module):
    def __init__(self, error=None):
        super().__init__()
        self.conv, self.fc, self.error = nn.Conv2d(3, 4, 5), nn.Linear(4, 2), error

    def forward(self, images):
        if self.error is not None:
            raise self.error
        return self.fc(self.conv(images).mean(dim=(2, 3)))


@pytest.mark.parametrize(
    ("module", "preprocessing", "reason"),
    [
        (NeedsColour(), Preprocessing(8, 8, channels=1, mean=(0.5,), std=(0.5,)), "expected input.* to have 3 channels"),
        (NeedsColour(), Preprocessing(3, 3), "Kernel size can't be greater"),
        (NeedsColour(AssertionError()), Preprocessing(8, 8), "AssertionError"),
        (nn.Module(), Preprocessing(8, 8), "penultimate features|forward"),
    ],
)
def test_an_image_that_the_network_can_not_take_is_described(module, preprocessing, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        Backbone(module, name="odd", architecture="o", source="factory", preprocessing=preprocessing, family="o")
    if "forward" not in reason:
        assert str(caught.value).startswith("The model odd does not run on an image of ")
        assert "Check the input_size of its preprocessing" in str(caught.value)


def test_activations_are_what_the_layers_return():
    backbone = wrap(tiny_timm())
    images = torch.randn(2, 3, 64, 64)
    module = backbone.module
    activations = backbone.activations(images, ["layer1.0", "bn1", "fc"])
    assert list(activations) == ["layer1.0", "bn1", "fc"]
    with torch.no_grad():
        stem = module.bn1(module.conv1(images))
        torch.testing.assert_close(activations["bn1"], stem)
        torch.testing.assert_close(activations["layer1.0"], module.layer1[0](module.maxpool(module.act1(stem))))
        torch.testing.assert_close(activations["fc"], module(images))


def count_hooks(module: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in module.modules())


def test_hooks_never_stay_behind():
    backbone = wrap(tiny_timm())
    before = count_hooks(backbone.module)
    backbone(torch.randn(1, 3, 8, 8))
    backbone.activations(torch.randn(1, 3, 8, 8), ["layer1.0"])
    with pytest.raises(UnknownNameError, match=r"Did you mean layer1\.0"):
        backbone.activations(torch.randn(1, 3, 8, 8), ["conv1", "layer1.00"])
    with pytest.raises(RuntimeError):  # the forward pass fails: wrong type
        backbone.activations(torch.zeros(1, 3, 8, 8, dtype=torch.float64), ["conv1"])
    assert count_hooks(backbone.module) == before == 0


def test_a_layer_that_does_not_run_is_named():
    module = tiny_timm()
    module.spare = nn.ReLU()
    with pytest.raises(UsageError, match="spare"):
        wrap(module).activations(torch.zeros(1, 3, 8, 8), ["spare"])


def test_a_layer_without_a_tensor_is_named():
    class Pair(nn.Module):
        def forward(self, images):
            return images, images

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.pair = Pair()

        def forward_features(self, images):
            return self.pair(images)[0]

    with pytest.raises(UsageError, match="pair returns a tuple"):
        wrap(Net()).activations(torch.zeros(1, 3, 8, 8), ["pair"])


def test_layer_names_open_containers_but_not_blocks():
    assert wrap(tiny_timm()).layer_names[-3:] == ("layer4.0", "global_pool", "fc")
    vit = random_backbone("test_vit")
    assert "blocks.0" in vit.layer_names
    assert set(vit.layer_names) <= {name for name, _ in vit.module.named_modules()}


def test_parameter_count():
    backbone = wrap(tiny_timm())
    assert backbone.num_parameters == sum(p.numel() for p in timm.create_model("test_resnet").parameters())


def test_fingerprints_see_weights_and_structure_apart():
    first, same, padded = (wrap(tiny_timm()) for _ in range(3))
    assert first.weights_fingerprint == same.weights_fingerprint
    assert first.structure_fingerprint == same.structure_fingerprint
    changed = tiny_timm()
    with torch.no_grad():
        changed.fc.bias[3] += 1e-6
    assert wrap(changed).weights_fingerprint != first.weights_fingerprint
    buffer = tiny_timm()
    buffer.bn1.running_mean[0] += 1e-6
    assert wrap(buffer).weights_fingerprint != first.weights_fingerprint
    # the same weights under another padding give other features
    module = tiny_timm()
    module.conv1[0].padding = (0, 0)
    padded = wrap(module)
    assert padded.weights_fingerprint == first.weights_fingerprint
    assert padded.structure_fingerprint != first.structure_fingerprint


def test_repr_shows_the_preprocessing():
    assert "8×8 px" in repr(wrap(tiny_timm()))
