"""A small classifier with everything that a method or a regulariser may meet: blocks, BatchNorm, dropout, a fixed part."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.seeding import derive_seed, torch_generator
from crossgraft.tune.regularizers import StepContext
from crossgraft.types import Preprocessing

SIZE, NUM_CLASSES, NUM_IMAGES = 16, 3, 6
_WIDTH = 6


class _Block(nn.Module):
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
        self.blocks = nn.Sequential(_Block(), _Block(), _Block())
        self.norm = nn.LayerNorm(_WIDTH)
        self.norm.bias.requires_grad_(False)  # an author may fix a part for good
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(_WIDTH, 5)

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n classes"]:
        features = self.norm(self.blocks(self.stem(images)).mean((2, 3)))
        return self.fc(self.dropout(features))


def example_classifier() -> Classifier:
    """Three blocks of six channels, images of 16 × 16, three classes; the same weights each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(0, "example network"))
        network = _Network()
    backbone = Backbone(
        network,
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
