"""The model that is exported: copies of the classifier in float32 on the CPU, and what there is to say about it."""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn

from crossgraft.data.transforms import normalise_images
from crossgraft.errors import ExportError
from crossgraft.export.record import ExportedModelRecord, OutputAgreementRecord
from crossgraft.features.passes import collect
from crossgraft.models.adapted import merged_copy
from crossgraft.models.adapters.insertion import why_not_mergeable
from crossgraft.models.classifier import Classifier
from crossgraft.models.preprocessing import describe_preprocessing
from crossgraft.seeding import torch_generator
from crossgraft.tasks import Task, recorded_task
from crossgraft.tune.measuring.logits import logits_of_batches
from crossgraft.tune.saving.record import SavedModelRecord
from crossgraft.tune.saving.saved_model import SavedModel, named_thresholds
from crossgraft.tune.sim.decorators import refuse_unstripped
from crossgraft.types import Preprocessing
from crossgraft.version import __version__


@contextmanager
def quietly() -> Generator[None]:
    """No warnings, no log lines, nothing on stdout and stderr while the block runs."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


MERGED = "The adapters are part of the exported weights."
"""Said of every format but one that keeps them as adapters."""
_GRAPH_OUTPUT = "logits and probabilities, both float32 (batch, {outputs}); the temperature is inside probabilities"
_NETWORK_OUTPUT = "logits float32 (batch, {outputs}); probabilities are {activation} of logits / temperature"


@dataclass(frozen=True, eq=False)
class SourceModel:
    """What every format is made of, and what it is compared with; nobody else holds these copies.

    Attributes:
        classifier: Classifier in eval mode, float32, on the CPU, its adapters merged where that is possible.
        reference: The same as the run saved it, adapters beside their layers.
        facts: Content of ``model.json`` of the run.
        notes: Changes made on the way, in words.
    """

    classifier: Classifier
    reference: Classifier
    facts: SavedModelRecord
    notes: tuple[str, ...]

    @property
    def task(self) -> Task:
        """What the model was trained to tell."""
        return recorded_task(self.facts)

    @property
    def temperature(self) -> float:
        """What logits are divided by; 1 where none was fitted."""
        return 1.0 if self.facts.temperature is None else self.facts.temperature

    @property
    def licence(self) -> str | None:
        """Licence of the pretrained weights; None without such weights or if it is unknown."""
        return None if self.facts.model.from_scratch else self.facts.model.licence

    def describe(self, *, as_graph: bool) -> ExportedModelRecord:
        """``description.json``.

        ``as_graph``: normalisation and probabilities are inside; otherwise it is the bare network.
        """
        facts, preprocessing = self.facts, self.classifier.preprocessing
        output = _GRAPH_OUTPUT if as_graph else _NETWORK_OUTPUT
        return ExportedModelRecord(
            crossgraft_version=__version__,
            name=facts.model.name,
            architecture=facts.model.architecture,
            trained_on=facts.trained_on.name,
            task=facts.task,
            class_names=facts.class_names,
            input=_input_in_words(preprocessing, as_graph=as_graph),
            output=output.format(outputs=len(facts.class_names), activation=f"the {self.task.activation}"),
            preprocessing=describe_preprocessing(preprocessing),
            temperature=facts.temperature,
            thresholds=named_thresholds(facts),
            decision=self.task.decision_in_words(facts.class_names, fitted=bool(named_thresholds(facts))),
            licence=self.licence,
            weights_fingerprint=facts.weights_fingerprint,
        )


def prepare_source(model: SavedModel) -> SourceModel:
    """Copies of the classifier that can be exported; ``model`` stays as it is.

    Raises:
        UsageError: ρSIM was not taken off.

    Cost: a copy of the weights, two with adapters.
    """
    refuse_unstripped(model.classifier, "The network")
    reference = copy.deepcopy(model.classifier).to("cpu")
    saved_as = reference.head.weight.dtype
    notes = []
    if saved_as != torch.float32:
        notes.append(f"The weights were {str(saved_as).removeprefix('torch.')} and are exported as float32.")
    reference = reference.float().eval()
    classifier = _merged(reference)
    if classifier is not reference:
        notes.append(MERGED)
    for parameter in [*reference.parameters(), *classifier.parameters()]:
        parameter.requires_grad_(False)
    return SourceModel(classifier, reference, model.facts, tuple(notes))


def _merged(classifier: Classifier) -> Classifier:
    """A copy whose adapters are part of its weights; where one cannot be that (AdaptFormer), ``classifier`` as it is."""
    if not classifier.recipe.adapters or why_not_mergeable(classifier) is not None:
        return classifier
    return merged_copy(classifier).eval()


def _input_in_words(preprocessing: Preprocessing, *, as_graph: bool) -> str:
    height, width = preprocessing.height_pixels, preprocessing.width_pixels
    shape = f"float32 (batch, {preprocessing.channels}, {height}, {width})"
    colours = "grey" if preprocessing.channels == 1 else "red, green and blue"
    inside = "mean and standard deviation are inside" if as_graph else "then normalised by mean and std"
    return f"images {shape}, {colours} from 0 to 1, already resized to {height}×{width} as preprocessing says; {inside}"


BATCH_SIZES = (1, 2, 5)
"""One image alone, the size that graphs are traced with, and another one."""
TOLERANCE = 1e-5
_COARSE = 4  # pixels: smooth patches, which networks tell apart better than noise


class Outputs(NamedTuple):
    """What a file that was loaded again says about a batch.

    Attributes:
        logits: (batch, C).
        probabilities: (batch, C), or None where the file gives logits only.
    """

    logits: Float32[np.ndarray, "batch num_outputs"]
    probabilities: Float32[np.ndarray, "batch num_outputs"] | None


Answer = Callable[[Float32[Tensor, "batch channels height width"]], Outputs]
"""From images in [0, 1], resized but not normalised, to outputs."""


def example_images(preprocessing: Preprocessing, number: int) -> Float32[Tensor, "batch channels height width"]:
    """Generated images in [0, 1] of the size of the input: smooth patches under noise, always the same."""
    shape = (number, preprocessing.channels, preprocessing.height_pixels, preprocessing.width_pixels)
    generator = torch_generator(0, "example images")
    patches = torch.rand((*shape[:2], _COARSE, _COARSE), generator=generator)
    smooth = nn.functional.interpolate(patches, size=shape[2:], mode="bilinear", align_corners=False)
    return 0.7 * smooth + 0.3 * torch.rand(shape, generator=generator)


def logits_of_network(network: nn.Module, preprocessing: Preprocessing) -> Answer:
    """How a bare network answers: its images are normalised outside."""

    def answer(images: Tensor) -> Outputs:
        with torch.no_grad():
            return Outputs(network(normalise_images(images, preprocessing, full_range=1)).numpy(), None)

    return answer


def check_agreement(source: SourceModel, answer: Answer, *, checked_with: str) -> OutputAgreementRecord:
    """Compare on generated images, in batches of 1, 2 and 5.

    The largest logit differences may be 1e-5 times the largest logit (at least 1e-5), those of probabilities 1e-5 times the
    largest logit after the temperature: no change of a softmax or sigmoid is larger than that of its logits.
    ``answer`` is the output of the exported model, written and loaded again.

    Raises:
        ExportError: A difference is larger, or an output is NaN; the message says by how much.

    Cost: two forward passes of eight images.
    """
    images = example_images(source.reference.preprocessing, sum(BATCH_SIZES))
    batches = images.split(BATCH_SIZES)
    prepared = (normalise_images(batch, source.reference.preprocessing, full_range=1) for batch in batches)
    logits = collect(logits_of_batches(source.reference, prepared)).numpy()
    answers = [answer(batch) for batch in batches]
    allowed = _allowed(logits)
    difference = _largest(logits, np.concatenate([outputs.logits for outputs in answers]))
    _refuse(difference, allowed, "logits", source, checked_with)
    probabilities = [outputs.probabilities for outputs in answers if outputs.probabilities is not None]
    probability_difference, allowed_probability = None, None
    if probabilities:
        calibrated = source.task.probabilities(logits, source.facts.temperature)
        allowed_probability = _allowed(logits / source.temperature)
        probability_difference = _largest(calibrated, np.concatenate(probabilities))
        _refuse(probability_difference, allowed_probability, "probabilities", source, checked_with)
    return OutputAgreementRecord(
        checked_with=checked_with,
        num_images=len(images),
        batch_sizes=list(BATCH_SIZES),
        largest_logit_difference=difference,
        allowed_logit_difference=allowed,
        largest_probability_difference=probability_difference,
        allowed_probability_difference=allowed_probability,
    )


def _allowed(logits: Float[np.ndarray, "num_images num_outputs"]) -> float:
    return TOLERANCE * max(1.0, float(np.abs(logits).max()))


def _largest(expected: np.ndarray, exported: np.ndarray) -> float:
    if expected.shape != exported.shape:
        return float("nan")
    return float(np.abs(expected.astype(np.float64) - exported).max())


def _refuse(difference: float, allowed: float, what: str, source: SourceModel, checked_with: str) -> None:
    if not difference <= allowed:  # NaN is no agreement
        raise ExportError(
            f"The exported {source.facts.model.name}, loaded again by {checked_with}, gives other {what} than the model of the "
            f"run: they differ by {difference:.2g}, where {allowed:.2g} is allowed. Nothing was kept. Try another --format, or "
            "other versions of the packages."
        )
