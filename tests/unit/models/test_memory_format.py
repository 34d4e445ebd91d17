"""The order of a network's numbers in memory: faster for a while, and exactly as before afterwards."""

from collections import OrderedDict

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.memory_format import channels_last, put_channels_last
from support.small_classifiers import wrap


class Flattening(nn.Module):
    """Convolutions, and a view that needs the usual order of memory."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
        self.fc = nn.Linear(64, 2)

    def forward(self, images):
        return self.fc(self.layers(images).view(len(images), -1))


def convolutional():
    layers = {"one": nn.Conv2d(3, 4, 3), "two": nn.Conv2d(4, 6, 1), "pool": nn.AdaptiveAvgPool2d(1), "flat": nn.Flatten()}
    return wrap(nn.Sequential(OrderedDict(layers, fc=nn.Linear(6, 2))), size=8, num_outputs=2)


def transformer():
    return VisionTransformer(img_size=8, patch_size=4, embed_dim=8, depth=1, num_heads=2, num_classes=2)


def strides(module):
    return [tensor.stride() for tensor in (*module.parameters(), *module.buffers())]


@pytest.fixture
def images():
    return torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def test_the_order_holds_inside_the_block_and_every_bit_and_stride_is_back_after_it(images):
    classifier = convolutional().train()
    before, values = strides(classifier), [p.clone() for p in classifier.parameters()]
    said = classifier(images)
    with channels_last(classifier):
        assert classifier.training
        convolutions = [layer.weight for layer in classifier.modules() if isinstance(layer, nn.Conv2d)]
        assert all(weight.is_contiguous(memory_format=torch.channels_last) for weight in convolutions)
        assert not convolutions[0].is_contiguous()
        torch.testing.assert_close(classifier(images), said)
    assert strides(classifier) == before
    assert all(torch.equal(*pair) for pair in zip(classifier.parameters(), values, strict=True))
    assert torch.equal(classifier(images), said)


def test_parameters_stay_the_same_objects_and_keep_what_they_learn(images):
    classifier = convolutional()
    known = [id(parameter) for parameter in classifier.parameters()]
    optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1)
    with channels_last(classifier):
        classifier(images).square().sum().backward()
        optimizer.step()
        inside = classifier(images)
    assert [id(parameter) for parameter in classifier.parameters()] == known
    torch.testing.assert_close(classifier(images), inside)


def test_after_an_error_weights_lie_as_before():
    classifier = convolutional()
    before = strides(classifier)
    with pytest.raises(KeyboardInterrupt), channels_last(classifier):
        raise KeyboardInterrupt
    assert strides(classifier) == before


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(Flattening, id="a view that needs the usual order"),
        pytest.param(
            lambda: VisionTransformer(img_size=8, patch_size=4, embed_dim=8, depth=1, num_heads=2, num_classes=2),
            id="a transformer",
        ),
        pytest.param(lambda: nn.Sequential(OrderedDict(flat=nn.Flatten(), fc=nn.Linear(192, 2))), id="no convolution"),
    ],
)
def test_a_network_that_gains_nothing_or_does_not_run_is_left_alone(module, images):
    classifier = wrap(module(), size=8, num_outputs=2)
    before, said = strides(classifier), classifier(images)
    assert not put_channels_last(classifier)
    assert strides(classifier) == before and torch.equal(classifier(images), said)


def test_another_number_type_or_an_order_that_somebody_chose_is_left_alone():
    assert not put_channels_last(convolutional().double())
    assert not put_channels_last(convolutional().to(memory_format=torch.channels_last))


def test_a_backbone_is_put_and_brought_back_in_inference_mode_too():
    backbone = load_backbone(ModelSpec(name="small", source="test_resnet", weights="random"), image_size=32)
    image = backbone.probe_image()
    before, said = strides(backbone.module), backbone(image)
    with torch.inference_mode(), channels_last(backbone):
        assert backbone.module.conv1[0].weight.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(backbone(image).features, said.features)
    assert strides(backbone.module) == before and torch.equal(backbone(image).features, said.features)
    backbone.module(image).sum().backward()  # tensors of inference mode would refuse


def test_ctrl_c_while_it_is_tried_leaves_weights_as_they_were(monkeypatch):
    classifier = convolutional()
    before = strides(classifier)

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(classifier, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put_channels_last(classifier)
    assert strides(classifier) == before
