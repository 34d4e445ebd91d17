"""Frequencies of images, of what edits change, and of what a network looks at: all at the input of the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Integer

from crossgraft.audit.learning_priority import NetworkPriority as NetworkPriority
from crossgraft.audit.learning_priority import (
    Objective,
    Outputs,
    fitting_objective,
    network_inputs,
    network_priority,
    prepared_batches,
    shorter_side,
)
from crossgraft.audit.spectra import EditSpectrum, Scope, SpectralOverlap, edit_spectrum, spectral_overlap
from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.data.sampling import limit_rows
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.edit.edits import Editing
from crossgraft.edit.spectrum import normalized_psd, radial_psd
from crossgraft.errors import UsageError
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.progress.reporter import Stage
from crossgraft.tasks import recorded_task
from crossgraft.tune.saving.saved_model import SavedModel
from crossgraft.types import Preprocessing

Spectrum = Float64[np.ndarray, " rings"]
MOST_IMAGES = 256
"""Images that are looked at by default; of more, a draw."""


class EditFrequencies(NamedTuple):
    """What is left of one edit at the input of the network, by frequency.

    Attributes:
        edit: Its name with options.
        scope: Whether it touches a part of an image or all of it.
        psd: (K,) mean over images of the spectrum of edited minus original input, each with a sum of 1; None: nothing is left.
        num_changed: Images that count: more than their mean, or the corners of their spectrum, changed.
        rms: Root mean square of what changed, in units of the input, over all images.
        overlap: Overlap with the learning priority of the network; None where it is not defined.
        reason: Reason why there is no overlap, or why it says nothing.
    """

    edit: str
    scope: Scope
    psd: Spectrum | None
    num_changed: int
    rms: float
    overlap: SpectralOverlap | None
    reason: str | None

    @property
    def is_informative(self) -> bool:
        """Whether networks may be ordered by the overlap."""
        return self.overlap is not None and self.scope == "global"


class FrequencyAudit(NamedTuple):
    """Spectra beside each other, ring by ring. Ring 0, the mean of an image, is 0 in all of them.

    Attributes:
        rings: (K,) 0 … K − 1.
        frequencies: (K,) cycles per pixel of the input, below 0.5.
        psd: (K,) mean spectrum of the images, with a sum of 1.
        std: (K,) standard deviation over images, in the same unit.
        num_images: Images looked at.
        priority: Learning priority of the network.
        before: The same of the network that it was tuned from, objective ``features``; None where none was given.
        after: The network itself with that objective, so that it differs from ``before`` in weights alone.
        edits: One entry per edit.
    """

    rings: Integer[np.ndarray, " rings"]
    frequencies: Spectrum
    psd: Spectrum
    std: Spectrum
    num_images: int
    priority: NetworkPriority
    before: NetworkPriority | None
    after: NetworkPriority | None
    edits: tuple[EditFrequencies, ...]


def frequency_audit(
    model: Backbone | SavedModel | Classifier,
    images: Dataset,
    *,
    edits: Sequence[ImageEdit | EditSpectrum] = (),
    before: Backbone | None = None,
    objective: Objective | None = None,
    max_images: int = MOST_IMAGES,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> FrequencyAudit:
    """Spectra of images, of edits and of the gradients of a network, as the network gets them.

    Args:
        model: The network. A ``Classifier``, which has no names of classes, is taken to have those of the images, in their order,
            where they are as many.
        images: Images that it has not learned from.
        edits: Edits that are compared with what it looks at; or their spectra at this input, where they are known already.
        before: The pretrained network that it was tuned from, with the same preprocessing.
        objective: What gradients are of; by default ``true labels`` for a classifier that has the classes of the images, and
            ``features`` otherwise, the only one of a backbone. The result says which.
        max_images: Most images to look at; of more, a draw in which classes keep their shares.
        seed: Random seed of the draw and of the edits.
        reporter: Reporter of progress.

    Raises:
        UsageError: The objective does not fit the network, ``before`` gets other inputs, or ``max_images`` is below the number of
            classes.
        DataError: The input is too small, gradients are not finite, or an image cannot be edited.

    Cost: a forward and a backward pass per image, with ``before`` up to three; an FFT of every input, and of every edited one.
    Memory of a batch, of the spectra, and of the edited images of one edit, of which at most a gigabyte is kept.

    Source: thesis, section 5.2.2; the overlap is this project's.
    """
    network = model.classifier if isinstance(model, SavedModel) else model
    preprocessing = network.preprocessing
    side = shorter_side(preprocessing)
    _refuse(preprocessing, before, max_images)
    kept = images.take(draw_rows(images, max_images, seed=seed))
    targets = outputs_of(model, kept)
    objective = fitting_objective(network, objective, targets)
    twice = before is not None and objective != "features"
    unknown = [edit for edit in edits if not isinstance(edit, EditSpectrum)]
    total = len(kept) * (2 + (before is not None) + twice + len(unknown))
    with (reporter or Reporter(quiet=True)).stage("Comparing frequencies", total=total) as stage:

        def priority_of(which: Backbone | Classifier, of: Objective) -> NetworkPriority:
            return network_priority(which, prepared_batches(kept, which.preprocessing), of, targets, stage)

        mean, std = _spectrum_of_inputs(kept, preprocessing, stage)
        priority = priority_of(network, objective)
        first = None if before is None else priority_of(before, "features")
        after = priority_of(network, "features") if twice else priority
        spectra = [
            each if isinstance(each, EditSpectrum) else _spectrum_of_edit(each, kept, preprocessing, seed, stage)
            for each in edits
        ]
    rings = np.arange(len(mean))
    return FrequencyAudit(
        rings,
        rings / side,
        mean,
        std,
        len(kept),
        priority,
        first,
        None if first is None else after,
        tuple(_beside(each, priority) for each in spectra),
    )


def _refuse(preprocessing: Preprocessing, before: Backbone | None, max_images: int) -> None:
    if before is not None and before.preprocessing != preprocessing:
        raise UsageError(
            f"{before.name} gets other inputs ({before.preprocessing.describe()}) than the network that is compared with it "
            f"({preprocessing.describe()}). Load it with the same image size and preprocessing."
        )
    if max_images < 1:
        raise UsageError(f"max_images must be at least 1, got {max_images!r}.")


def draw_rows(images: Dataset, max_images: int, *, seed: int) -> np.ndarray:
    """Rows that ``frequency_audit`` looks at: all of them, or a draw in which classes keep their shares.

    Raises:
        UsageError: ``max_images`` is below the number of classes.
    """
    if len(images) <= max_images:
        return np.arange(len(images))
    if not images.task.partitions:
        return limit_rows(images.targets, max_images, seed=seed)
    present, places = np.unique(images.targets, return_inverse=True)
    if max_images < len(present):
        raise UsageError(f"max_images must be at least {len(present)}, one of each class; got {max_images}.")
    return limit_rows(places, max_images, seed=seed)


def outputs_of(model: Backbone | SavedModel | Classifier, images: Dataset) -> Outputs | None:
    """Output of the network for the class of each image; None where it has other classes, or images have several labels."""
    if isinstance(model, Backbone) or not images.task.partitions:
        return None
    if isinstance(model, Classifier):
        return images.targets if model.num_outputs == len(images.class_names) else None
    names = model.facts.class_names
    if not (recorded_task(model.facts).partitions and set(images.class_names) <= set(names)):
        return None
    return np.array([names.index(name) for name in images.class_names])[images.targets]


def _spectrum_of_inputs(images: Dataset, preprocessing: Preprocessing, stage: Stage) -> tuple[Spectrum, Spectrum]:
    """Mean over images of their spectra, scaled to a sum of 1, and the standard deviation in the same unit."""
    spectra: list[np.ndarray] = []
    for image in network_inputs(images, preprocessing):
        spectra.append(radial_psd(image))
        stage.advance()
    mean, std = np.mean(spectra, axis=0), np.std(spectra, axis=0)
    std[0] = 0
    return normalized_psd(mean), std / (mean[1:].sum() or 1.0)


def _spectrum_of_edit(edit: ImageEdit, images: Dataset, preprocessing: Preprocessing, seed: int, stage: Stage) -> EditSpectrum:
    edited = images.edited(Editing([edit], seed=seed))
    scope: Scope = getattr(edit, "scope", "global")
    return edit_spectrum(images, edited, preprocessing, edit=spell(edit), scope=scope, told=stage.advance)


def _beside(spectrum: EditSpectrum, priority: NetworkPriority) -> EditFrequencies:
    """An edit beside what the network looks at."""
    overlap = reason = None
    if spectrum.psd is None:
        reason = "nothing of it is left at the input of the network, at the frequencies of these rings"
    elif priority.psd is None:
        reason = "the network has no gradient by any image that says something of frequencies"
    else:
        overlap = spectral_overlap(spectrum.psd, priority.psd)
        if spectrum.scope == "local":
            reason = "it touches a part of the image and is broadband, so that every network overlaps with it"
    return EditFrequencies(*spectrum, overlap, reason)
