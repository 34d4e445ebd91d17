"""Small classifiers with what a method or a regulariser may meet: blocks, BatchNorm, dropout, attention, a fixed part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.seeding import derive_seed, torch_generator
from crossgraft.tune.regularizers import StepContext
from crossgraft.types import Preprocessing

ExampleKind = Literal["convolutions", "transformer"]
"""Three residual blocks with BatchNorm, or two pre-norm blocks with attention."""

SIZE, NUM_CLASSES, NUM_IMAGES = 16, 3, 6
_WIDTH = 6


class _ConvolutionalBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(_WIDTH)

    def forward(self, maps: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
        return maps + torch.tanh(self.norm(self.convolution(maps)))


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, _WIDTH, 4, 4)
        self.blocks = nn.Sequential(_ConvolutionalBlock(), _ConvolutionalBlock(), _ConvolutionalBlock())
        self.norm = nn.LayerNorm(_WIDTH)
        self.norm.bias.requires_grad_(False)  # an author may fix a part for good
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(_WIDTH, 5)

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n classes"]:
        features = self.norm(self.blocks(self.stem(images)).mean((2, 3)))
        return self.fc(self.dropout(features))


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(_WIDTH, 3 * _WIDTH)
        self.proj = nn.Linear(_WIDTH, _WIDTH)

    def forward(self, tokens: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]:
        queries, keys, values = self.qkv(tokens).chunk(3, dim=-1)
        return self.proj(nn.functional.scaled_dot_product_attention(queries, keys, values))


class _PreNormBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
        self.attn = _Attention()
        self.mlp = nn.Sequential(nn.Linear(_WIDTH, 2 * _WIDTH), nn.GELU(), nn.Linear(2 * _WIDTH, _WIDTH))

    def forward(self, tokens: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]:
        tokens = tokens + self.attn(self.norm1(tokens))
        return tokens + self.mlp(self.norm2(tokens))


class _Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, _WIDTH, 4, 4)
        self.blocks = nn.Sequential(_PreNormBlock(), _PreNormBlock())
        self.norm = nn.LayerNorm(_WIDTH)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(_WIDTH, 5)

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n classes"]:
        tokens = self.blocks(self.patches(images).flatten(2).transpose(1, 2))
        return self.fc(self.dropout(self.norm(tokens).mean(1)))


def example_network(kind: ExampleKind = "convolutions") -> nn.Module:
    """The network of an example classifier with its own head; the same weights each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(0, "example network"))
        return _Network() if kind == "convolutions" else _Transformer()


def example_classifier(kind: ExampleKind = "convolutions") -> Classifier:
    """Blocks of six channels, images of 16 × 16, three classes; the same weights each time."""
    backbone = Backbone(
        example_network(kind),
        name="example",
        architecture="example",
        source="factory",
        family="example",
        preprocessing=Preprocessing(SIZE, SIZE),
    )
    return make_classifier(backbone, NUM_CLASSES, seed=0)


class ExampleTrainingSet:
    """The six images of ``example_step``; said to be augmented, so that they need not be the same in every step."""

    is_plain = False
    fingerprint = None

    def __init__(self, classifier: Classifier) -> None:
        self._images = _images(classifier)

    def plain_batches(self) -> Iterator[Float[Tensor, "batch channels height width"]]:
        """Four images, then two."""
        yield from self._images.split(4)

    def training_batches(self, passes: int) -> Iterator[Float[Tensor, "batch channels height width"]]:
        """Mirrored."""
        for _ in range(passes):
            yield from self._images.flip(3).split(4)


def _images(classifier: Classifier) -> Float[Tensor, "batch channels height width"]:
    p = classifier.preprocessing
    random = torch_generator(0, "example images")
    return torch.randn(NUM_IMAGES, 3, p.height_pixels, p.width_pixels, generator=random).to(classifier.head.weight)


def example_step(classifier: Classifier) -> StepContext:
    """The first step on six drawn images; the generator is new each time."""
    dtype = classifier.head.weight.dtype
    images = _images(classifier)
    output = classifier.features_and_logits(images)
    rows = torch.arange(NUM_IMAGES)
    return StepContext(
        classifier=classifier,
        images=images,
        targets=torch.eye(classifier.num_outputs, dtype=dtype)[rows % classifier.num_outputs],
        rows=rows,
        features=output.features,
        logits=output.logits,
        step=0,
        num_processes=1,
        generator=torch_generator(0, "example step"),
        num_images=NUM_IMAGES,
        num_images_of_all=NUM_IMAGES,
    )


def move_weights(classifier: Classifier) -> None:
    """As a few steps of training would: every weight by about a tenth."""
    random = torch_generator(0, "moved weights")
    with torch.no_grad():
        for parameter in classifier.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random).to(parameter), alpha=0.1)


def surroundings(network: Classifier) -> dict[str, object]:
    """Attributes, hooks and flags of every module, by the name of the module."""
    return {
        name: (
            sorted(vars(module)),
            [len(value) for key, value in sorted(vars(module).items()) if key.endswith("hooks")],
            module.training,
            [(key, parameter.requires_grad) for key, parameter in module.named_parameters(recurse=False)],
        )
        for name, module in network.named_modules()
    }
