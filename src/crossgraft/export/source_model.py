"""The model that is exported: copies of the classifier in float32 on the CPU, and what there is to say about it."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch

from crossgraft.export.record import ExportedModelRecord
from crossgraft.models.adapted import merged_copy
from crossgraft.models.adapters.insertion import why_not_mergeable
from crossgraft.models.classifier import Classifier
from crossgraft.models.preprocessing import describe_preprocessing
from crossgraft.tasks import Task, recorded_task
from crossgraft.tune.saving.inference import named_thresholds
from crossgraft.tune.saving.record import SavedModelRecord
from crossgraft.tune.saving.saved_model import SavedModel
from crossgraft.tune.sim.decorators import refuse_unstripped
from crossgraft.types import Preprocessing
from crossgraft.version import __version__

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
