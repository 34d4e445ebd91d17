"""Logits of images in a fixed order, in one pass and on any device; and how long that will take."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

import numpy as np
from jaxtyping import Float32
from torch import Tensor

from crossgraft.errors import DataError
from crossgraft.features.extract import seconds_a_row
from crossgraft.features.passes import BatchLoader, Images, ImageSource, collect, run_pass
from crossgraft.models.classifier import Classifier
from crossgraft.models.device import explain_lost_device, explain_missing_operations
from crossgraft.models.taps import state_kept
from crossgraft.progress import Piece, Reporter
from crossgraft.words.formatting import counted

BATCH_SIZE = 64
_NAMED_ROWS = 5
_PART = "logits"


def logits_of_batches(
    classifier: Classifier, batches: Iterable[Images] | BatchLoader, *, on_images: Callable[[int], object] | None = None
) -> Generator[Float32[Tensor, "num_images num_outputs"]]:
    """Logits of each batch of prepared images on the CPU, computed where and in the type that the network is."""

    def read(images: Tensor) -> Tensor:
        return classifier(images).float().cpu()

    return run_pass(classifier, batches, read=read, like=classifier.head.weight, on_images=on_images)


def compute_logits(
    classifier: Classifier, images: ImageSource, *, batch_size: int = BATCH_SIZE, reporter: Reporter
) -> Float32[np.ndarray, "num_images num_outputs"]:
    """Logits of every image, before the temperature; the next batch is prepared while the network looks at this one.

    Args:
        classifier: In eval mode, on any device.
        images: In a fixed order.
        batch_size: Images at once; halved when memory runs out. Another size can change the last digits of a float32.
        reporter: Reporter of progress.

    Raises:
        DataError: Logits are NaN or infinite; the message names the images.
        OutOfMemoryError: A single image does not fit.
        DeviceLostError: The accelerator failed.
    """
    loader = _loader(classifier, images, range(len(images)), batch_size, reporter)
    name = classifier.recipe.name
    title = f"Predicting {counted(len(images), 'image')} with {name}"
    with (
        reporter.part(_PART),
        reporter.stage(title, total=len(images), unit="images") as stage,
        explain_missing_operations(name, str(classifier.head.weight.device)),
        explain_lost_device(str(classifier.head.weight.device)),
    ):
        logits = collect(logits_of_batches(classifier, loader, on_images=stage.advance)).numpy()
    _refuse_not_finite(logits, images, name)
    return logits


def foresee_logits(classifier: Classifier, images: ImageSource, *, batch_size: int = BATCH_SIZE, reporter: Reporter) -> None:
    """Say how long ``compute_logits`` of the same arguments will take, after a look at a few images."""
    if not reporter.wants_forecast or len(images) == 0:
        return

    def look(first: int) -> object:
        return collect(logits_of_batches(classifier, _loader(classifier, images, range(first), batch_size, reporter)))

    with explain_missing_operations(classifier.recipe.name, str(classifier.head.weight.device)), state_kept(classifier):
        seconds = seconds_a_row(look, most=min(batch_size, len(images)), num_rows=len(images)) * len(images)
    reporter.expect([Piece((_PART,), seconds, _PART)], counted(len(images), "image"))


def _loader(classifier: Classifier, images: ImageSource, rows: range, batch_size: int, reporter: Reporter) -> BatchLoader:
    device = str(classifier.head.weight.device)
    return BatchLoader(images, classifier.preprocessing, [rows], batch_size=batch_size, reporter=reporter, device=device)


def _refuse_not_finite(logits: np.ndarray, images: ImageSource, model: str) -> None:
    bad = np.flatnonzero(~np.isfinite(logits).all(axis=1))
    if bad.size:
        names = ", ".join(images.image_name(int(row)) for row in bad[:_NAMED_ROWS])
        more = f" and {bad.size - _NAMED_ROWS} more" if bad.size > _NAMED_ROWS else ""
        raise DataError(f"{model} gives NaN or infinite values for {names}{more}. Check these images and the weights.")
