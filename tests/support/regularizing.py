"""One step of a regulariser on features that a test chooses."""

import torch

from crossgraft.tune.regularizers import StepContext


def context_of(classifier, images=None, *, features=None, rows=None, **changes):
    """The first step on ``images``; with ``features`` in place of those that the network sees in them."""
    dtype = classifier.head.weight.dtype
    if images is None:
        count = 6 if features is None else len(features)
        images = torch.rand(count, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=dtype)
    seen, logits = classifier.features_and_logits(images)
    facts = {
        "classifier": classifier,
        "images": images,
        "targets": torch.eye(classifier.num_outputs, dtype=dtype)[torch.arange(len(images)) % classifier.num_outputs],
        "rows": torch.arange(len(images)) if rows is None else rows,
        "features": seen if features is None else features,
        "logits": logits,
        "step": 0,
        "num_processes": 1,
        "generator": torch.Generator(),
        "num_images": len(images),
        "num_images_of_all": len(images),
    }
    return StepContext(**{**facts, **changes})


def moved(classifier, by=0.1):
    """Every weight by a drawn amount, as a few steps of training would."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in classifier.parameters():
            parameter.add_(by * torch.randn(parameter.shape, generator=generator).to(parameter))
    return classifier


class PlainImages:
    """A training set of images in memory."""

    fingerprint = None

    def __init__(self, images, *, is_plain=True):
        self.images = images
        self.is_plain = is_plain

    def plain_batches(self):
        yield from self.images.split(4)

    def training_batches(self, passes):
        for _ in range(passes):
            yield from self.images.split(4)
