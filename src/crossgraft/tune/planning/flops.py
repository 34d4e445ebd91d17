"""#FLOPs of a classifier, alone and with what looks on in training."""

from __future__ import annotations

import torch

from crossgraft.models.classifier import Classifier
from crossgraft.models.multiply_adds import forward_multiply_adds, multiply_adds
from crossgraft.models.taps import modes_kept
from crossgraft.seeding import torch_generator
from crossgraft.tune.protocols import ForwardStart, LooksInside, Regularizer, StepContext

_IMAGES = 2
"""A placebo predicts one image from another."""


def network_multiply_adds(classifier: Classifier) -> int:
    """Multiply–adds of a forward pass of one image, head and adapters among it. Modes and random numbers stay as they are."""
    images = _black_images(classifier, 1)
    return forward_multiply_adds(classifier, lambda: classifier(images))


def training_multiply_adds(classifier: Classifier, regularizer: Regularizer) -> int | None:
    """Multiply–adds of one image in training: forward pass and terms of an attached regulariser; None: it does not look inside.

    The backward pass, which takes about twice as much, is not counted: tables of papers do not either.
    """
    if not isinstance(regularizer, LooksInside):
        return None
    images, begin = _black_images(classifier, _IMAGES), regularizer.before_forward

    def step() -> None:
        generator, places = torch_generator(0, "multiply-adds"), torch.arange(_IMAGES)
        begin(ForwardStart(generator, places, _IMAGES))
        output = classifier.features_and_logits(images)
        regularizer.loss(
            StepContext(
                classifier=classifier,
                images=images,
                targets=torch.zeros_like(output.logits),
                rows=places,
                features=output.features,
                logits=output.logits,
                step=0,
                num_processes=1,
                generator=generator,
                num_images=_IMAGES,
                num_images_of_all=_IMAGES,
            )
        )

    with modes_kept(classifier), torch.enable_grad():
        classifier.eval()
        return multiply_adds(step) // _IMAGES


def _black_images(classifier: Classifier, number: int) -> torch.Tensor:
    taken = classifier.preprocessing
    return classifier.head.weight.new_zeros(number, taken.channels, taken.height_pixels, taken.width_pixels)
