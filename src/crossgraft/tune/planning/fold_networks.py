"""The networks that the trainings of one fold start from, and are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from crossgraft.choice import spell
from crossgraft.errors import UsageError
from crossgraft.geometry.batch_norm import batch_norms_of, with_estimated_statistics
from crossgraft.models import Backbone, ModelSpec, load_as_asked, random_weights_control, read_zoo
from crossgraft.models.adapted import read_peft_adapter
from crossgraft.models.adapters import LoraAdapter, adapters_of
from crossgraft.models.adapters.peft_format import PeftFiles, read_files
from crossgraft.models.classifier import Classifier
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.models.zoo import is_zoo_entry
from crossgraft.progress import Reporter
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.methods.lora import LoRA
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.protocols import put_adapters_in
from crossgraft.tune.sim.decorators import refuse_unstripped
from crossgraft.types import AllowedCode
from crossgraft.words.formatting import counted, short_fingerprint


def open_adapter(folder: str | Path | None, method: object) -> PeftFiles | None:
    """The files of ``--adapter``, read before anything else is.

    Raises:
        UsageError: The method trains no LoRA, or has options that the adapter decides about.
        DataError: There is no adapter, or it is damaged.
    """
    if folder is None:
        return None
    asked = str(typed_choice(method)).strip()
    if asked.partition(":")[0] != LoRA.name:
        raise UsageError(
            f"--adapter is a LoRA that training goes on from, but --method {asked} trains no LoRA. Say --method lora, or leave "
            "--adapter out."
        )
    if asked != LoRA.name:
        raise UsageError(
            f"--adapter says rank, alpha, layers and dropout itself, and --method {asked} says some of them, too. Say "
            "--method lora alone."
        )
    return read_files(folder)


def typed_choice(choice: Any) -> Any:
    """A plug-in as a command line names it, however it was given; None stays."""
    if isinstance(choice, Mapping):
        options = ",".join(f"{name}={value}" for name, value in choice.items() if name != "name")
        return f"{choice.get('name', '')}:{options}" if options else choice.get("name", "")
    return choice if choice is None or isinstance(choice, str) else spell(choice)


def put_first_adapters_in(classifier: Classifier, method: Any, files: PeftFiles | None, *, seed: int) -> list[str]:
    """Put the method's adapters into ``classifier``, nothing for a method without; notes for the plan.

    Raises:
        UsageError: The network has no place for them.
        WeightsMismatchError: Those that were trained before are of another network.
    """
    if files is None:
        put_adapters_in(method, classifier, seed=seed)
        return []
    given_adapter = read_peft_adapter(classifier, files)
    ranks = sorted({lora.r for _, lora in adapters_of(classifier).values() if isinstance(lora, LoraAdapter)})
    rank = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
    notes = [
        f"Training goes on from an adapter of {rank} on {counted(len(given_adapter.recipes), 'layer')} "
        f"({short_fingerprint(given_adapter.fingerprint)}); the result is not added to the known results."
    ]
    if given_adapter.why_no_head is not None:
        notes.append(f"The head of the adapter is not used: {given_adapter.why_no_head}. A new one is trained.")
    return notes


def find_model(
    model: str | Path | ModelSpec,
    weights_dir: str | Path | None,
    allow_code: AllowedCode = None,
    *,
    weights_key: str | None = None,
    weights_prefix: str | None = None,
    allow_download: bool = False,
    reporter: Reporter | None = None,
) -> ModelSpec:
    """The one model that is named; ``reporter`` is told where a name alone led to a file.

    Raises:
        UsageError: Several are named.
    """
    is_one = isinstance(model, ModelSpec) or is_zoo_entry(str(model))  # its name may have a comma
    named = [model] if is_one else str(model)
    specs = read_zoo(
        named,
        weights_dir=weights_dir,
        weights_key=weights_key,
        weights_prefix=weights_prefix,
        allow_code=allow_code,
        allow_download=allow_download,
        reporter=reporter,
    )
    if len(specs) != 1:
        names = ", ".join(spec.name for spec in specs)
        raise UsageError(f"--model names {len(specs)} models ({names}); fine-tune one at a time.")
    return specs[0]


def model_of(options: TuneOptions) -> ModelSpec:
    """The one that the options of a fine-tuning name. Raises as ``find_model``."""
    return find_model(
        options.model,
        options.weights_dir,
        options.allow_code,
        weights_key=options.weights_key,
        weights_prefix=options.weights_prefix,
        allow_download=options.allow_download,
        reporter=options.reporter,
    )


def load_start(spec: ModelSpec, options: TuneOptions, *, scratch: bool, reporter: Reporter) -> Backbone:
    """The network with its pretrained weights, or with random ones (``scratch``).

    Raises:
        UsageError: It carries reconstructors of ρSIM, which would be trained and saved with it.
    """
    chosen = replace(random_weights_control(spec), name=spec.name) if scratch else spec
    backbone = load_as_asked(chosen, options, device="cpu", for_training=True, reporter=reporter)
    refuse_unstripped(backbone.module, f"The network {spec.name}")
    return backbone


Statistics = Mapping[str, Tensor]
"""Means and variances of BatchNorm layers, named as in the state of the network."""


@dataclass(eq=False)
class FoldNetworks:
    """Copies, to be changed by whoever asks for them.

    Statistics of BatchNorm are estimated once, when they are first needed, and only of networks that have some.

    Attributes:
        load_start: Gives the network as it was prepared.
        pretrained: Gives the one with its weights and statistics as they came; None where they are not here.
        images: Training images of the fold.
        device: Where statistics are estimated.
        adapts: Whether training starts with statistics of these images.
    """

    load_start: Callable[[], Classifier]
    pretrained: Callable[[], Classifier | None]
    images: TrainingImages
    device: str
    adapts: bool = False

    def start(self) -> Classifier:
        """What every training of the fold starts from."""
        start = self.load_start()
        return _with(self._statistics, start) if self.adapts and self._statistics else start

    @property
    def start_in_checkpoints(self) -> dict[str, str]:
        """What a checkpoint says of the start, where that is computed: its last digits depend on the number of threads."""
        return {"starting weights": weights_fingerprint(self.load_start())[:16]} if self.adapts else {}

    def adapted(self) -> Classifier | None:
        """The pretrained network with statistics of the training images; None where it has no BatchNorm, or is not here."""
        if not self._statistics:
            return None
        pretrained = self.pretrained()
        return None if pretrained is None else _with(self._statistics, pretrained)

    @cached_property
    def _statistics(self) -> Statistics:
        pretrained = self.pretrained()
        layers = [] if pretrained is None else batch_norms_of(pretrained)
        if pretrained is None or not layers:
            return {}
        state = with_estimated_statistics(pretrained, self.images, device=self.device).state_dict()
        return {f"{name}.{kind}": state[f"{name}.{kind}"] for name in layers for kind in ("running_mean", "running_var")}


def _with(statistics: Statistics, network: Classifier) -> Classifier:
    network.load_state_dict(statistics, strict=False)
    return network
