"""LoRA beside every layer that it knows: the equation with loops, the shapes of A and B, merging, what is refused."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from timm.layers import Conv2dSame, StdConv2d
from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models.adapters.lora import LoraAdapter

OPTIONS = {"r": 4, "alpha": 6.0, "dropout": 0.0}


def adapted(layer, **options):
    """The layer in float64, an adapter with drawn weights beside it."""
    layer = layer.double()
    adapter = LoraAdapter.make(layer, {**OPTIONS, **options}, name="layer")
    random = torch.Generator().manual_seed(1)
    adapter.draw(random)
    with torch.no_grad():
        adapter.B.copy_(torch.randn(adapter.B.shape, generator=random))
    layer.add_module("lora", adapter.eval())
    adapter.watch(layer)
    return layer, adapter


def built(kind, *arguments, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(*arguments, **options)


CONVOLUTIONS = {
    "plain": lambda: built(nn.Conv2d, 6, 8, 3, padding=1),
    "strided, dilated, without bias": lambda: built(nn.Conv2d, 6, 8, 3, stride=2, padding=2, dilation=2, bias=False),
    "groups": lambda: built(nn.Conv2d, 8, 12, (3, 1), groups=4),
    "depthwise": lambda: built(nn.Conv2d, 4, 4, 3, groups=4, padding=1),
    "reflected": lambda: built(nn.Conv2d, 6, 8, 3, padding=1, padding_mode="reflect"),
    "same": lambda: built(Conv2dSame, 6, 8, 3, stride=2),
    "one dimension": lambda: built(nn.Conv1d, 6, 8, 5, padding="same"),
    "three dimensions": lambda: built(nn.Conv3d, 2, 4, (1, 2, 3)),
    "transposed": lambda: built(nn.ConvTranspose2d, 6, 8, 3, stride=2, padding=1, output_padding=1),
    "transposed, groups": lambda: built(nn.ConvTranspose2d, 8, 12, 3, groups=2, dilation=2),
    "transposed, one dimension": lambda: built(nn.ConvTranspose1d, 4, 6, 4, stride=3),
    "transposed, three dimensions": lambda: built(nn.ConvTranspose3d, 2, 4, 2),
}


def image_for(layer):
    dims = layer.weight.ndim - 2
    return torch.randn(2, layer.in_channels, *(7, 9, 5)[:dims], generator=torch.Generator().manual_seed(2)).double()


def change_by_loops(layer, adapter):
    """ΔW = (α / r) B A, number by number, in the shape of the layer's weight."""
    A, B, groups, r = adapter.A.detach(), adapter.B.detach(), layer.groups, adapter.r
    inputs, outputs, inner = layer.in_channels // groups, layer.out_channels // groups, r // groups
    change = torch.zeros_like(layer.weight)
    kernel = list(itertools.product(*map(range, layer.kernel_size)))
    for group, i, o, k in itertools.product(range(groups), range(inputs), range(outputs), range(inner)):
        channel, row = group * outputs + o, group * inner + k
        for place in kernel:
            if isinstance(layer, nn.modules.conv._ConvTransposeNd):
                value = A[(row, i, *([0] * len(place)))] * B[(row, o, *place)]
                change[(group * inputs + i, o, *place)] += adapter.scaling * value
            else:
                value = B[(channel, k, *([0] * len(place)))] * A[(row, i, *place)]
                change[(channel, i, *place)] += adapter.scaling * value
    return change


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_gives_what_the_changed_weight_gives(name):
    layer, adapter = adapted(CONVOLUTIONS[name]())
    images = image_for(layer)
    change = change_by_loops(layer, adapter)
    found = layer(images)
    torch.testing.assert_close(adapter.weight_change(layer), change, rtol=0, atol=1e-13)
    adapter.enabled = False
    before = layer(images)
    with torch.no_grad():
        layer.weight += change
    torch.testing.assert_close(found, layer(images), rtol=0, atol=1e-12)
    assert (found - before).abs().max() > 0.1


def test_a_transposed_convolution_may_be_asked_for_a_size():
    layer, adapter = adapted(CONVOLUTIONS["transposed"]())
    images = image_for(layer)
    found = layer(images, output_size=(13, 18))
    adapter.merge(layer)
    torch.testing.assert_close(found, layer(images, output_size=(13, 18)), rtol=0, atol=1e-12)


def test_a_linear_layer():
    layer, adapter = adapted(built(nn.Linear, 5, 7))
    tokens = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(2)).double()
    change = 6.0 / 4 * adapter.B.detach() @ adapter.A.detach()
    expected = tokens @ (layer.weight + change).T + layer.bias
    torch.testing.assert_close(layer(tokens), expected, rtol=0, atol=1e-13)
    assert (adapter.A.shape, adapter.B.shape) == ((4, 5), (7, 4))


@pytest.mark.parametrize("rows", [[[0, 4], [8, 12]], [[0, 4], [4, 8], [8, 12]], [[4, 8]], [[8, 12]]], ids=str)
def test_ranges_of_a_fused_layer_are_layers_of_their_own(rows):
    layer, adapter = adapted(built(nn.Linear, 5, 12), rows=rows)
    tokens = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(2)).double()
    adapter.enabled = False
    before = layer(tokens)
    adapter.enabled = True
    expected = before.clone()
    for number, (start, stop) in enumerate(rows):
        A, B = adapter.A[4 * number : 4 * number + 4], adapter.B[4 * number : 4 * number + 4]
        expected[..., start:stop] += 1.5 * tokens @ A.T @ B.T
    found = layer(tokens)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
    outside = sorted(set(range(12)) - {row for start, stop in rows for row in range(start, stop)})
    assert torch.equal(found[..., outside], before[..., outside])
    adapter.merge(layer)
    torch.testing.assert_close(layer(tokens), found, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_rows_of_no_range_keep_their_weights_when_merged(dtype):
    layer = built(nn.Linear, 5, 12).to(dtype)
    adapter = LoraAdapter.make(layer, {**OPTIONS, "rows": [[0, 4], [8, 12]]}, name="layer")
    with torch.no_grad():
        adapter.B.fill_(0.3)
        adapter.A.fill_(0.7)
    before = layer.weight.detach().clone()
    adapter.merge(layer)
    assert torch.equal(layer.weight[4:8], before[4:8]) and not torch.equal(layer.weight[:4], before[:4])
    adapter.merge(layer)  # once is enough
    exact = before.double() + adapter.weight_change(layer)
    assert torch.equal(layer.weight, exact.to(dtype))
    adapter.unmerge(layer)
    assert torch.equal(layer.weight, before)


def test_first_weights():
    layer = built(nn.Conv2d, 6, 8, 3)
    adapter = LoraAdapter.make(layer, {**OPTIONS, "r": 64}, name="layer")
    adapter.draw(torch.Generator().manual_seed(0))
    bound = 1 / math.sqrt(6 * 9)
    assert not adapter.B.any()
    assert adapter.A.abs().max() <= bound and adapter.A.abs().max() > 0.99 * bound
    torch.testing.assert_close(adapter.A.std(), torch.tensor(bound / math.sqrt(3)), rtol=0.05, atol=0)


def test_dropout_is_on_the_inputs_of_a_in_training_alone():
    layer, adapter = adapted(built(nn.Linear, 50, 3), dropout=0.5)
    tokens = torch.ones(1, 50).double()
    evaluated = layer(tokens)
    adapter.train()
    torch.manual_seed(0)
    found = layer(tokens)
    torch.manual_seed(0)
    kept = F.dropout(tokens, 0.5)
    adapter.enabled = False
    torch.testing.assert_close(found, layer(tokens) + 1.5 * kept @ adapter.A.T @ adapter.B.T)
    assert not torch.allclose(found, evaluated)


def test_a_merged_adapter_is_neither_trained_nor_saved():
    layer, adapter = adapted(built(nn.Linear, 5, 7))
    adapter.merge(layer)
    adapter.train()
    with pytest.raises(UsageError, match="unmerge_adapters"):
        layer(torch.zeros(1, 5).double())
    with pytest.raises(UsageError, match="twice"):
        layer.state_dict()
    adapter.unmerge(layer)
    assert set(layer.state_dict()) == {"weight", "bias", "lora.A", "lora.B"}


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.LayerNorm(4), "it is a LayerNorm"),
        (StdConv2d(3, 4, 3), "a StdConv2d does more with its weight"),
        (nn.Conv2d(6, 6, 3, groups=3), "its 3 groups of channels need a rank r that is a multiple of 3, asked for 4"),
        (nn.ConvTranspose2d(6, 6, 3, groups=3), "its 3 groups"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_layers_that_can_not_be_adapted(layer, message):
    with pytest.raises(UsageError, match=message):
        LoraAdapter.make(layer, OPTIONS, name="body.layer")
