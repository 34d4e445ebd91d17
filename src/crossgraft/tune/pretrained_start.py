"""The pretrained network that a saved model was fine-tuned from, where its weights are on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Protocol, cast, runtime_checkable

from pydantic import ValidationError

from crossgraft.errors import CrossgraftError, MissingWeightsError, RunDirectoryError
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.models.spec import PRETRAINED, library_name, spec_from_entry
from crossgraft.models.trusted_code import NOTHING, trusted_code
from crossgraft.options.command import TypedCommand
from crossgraft.paths import read_whole
from crossgraft.plain_types import AllowedCode
from crossgraft.progress import Reporter
from crossgraft.records.base import RunRecord
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.rows_of_run import run_directory_of
from crossgraft.tune.saving.saved_model import SavedModel

_NAMING = ("--model", "--weights-dir", "--weights-key", "--weights-prefix")


@runtime_checkable
class StartOptions(Protocol):
    """Options that say where pretrained weights are."""

    @property
    def allow_code(self) -> AllowedCode:
        """Code that may run."""
        ...

    @property
    def weights_dir(self) -> str | Path | None:
        """Folder of checkpoints."""
        ...

    @property
    def allow_download(self) -> bool:
        """Whether weights may be fetched."""
        ...


def pretrained_start(model: object, saved: SavedModel, options: StartOptions, reporter: Reporter) -> Backbone | str:
    """The network with its pretrained weights, prepared as the tuned one; or the reason why there is none, as a sentence.

    Args:
        model: What was given: a run directory, a saved model, what ``fine_tune`` returned.
        saved: The tuned model.
        options: Where weights are looked up, and what code may run.
        reporter: Reporter of downloads.
    """
    facts = saved.facts
    if facts.model.from_scratch:
        return "It started from random weights, so that there is no pretrained network to compare with."
    spec = _spec(model, saved, options, reporter)
    if isinstance(spec, str):
        return spec
    wanted = saved.classifier.preprocessing
    try:
        backbone = load_backbone(
            spec,
            seed=facts.seed,
            device=saved.device,
            weights_dir=options.weights_dir,
            allow_download=options.allow_download,
            image_size=wanted.height_pixels if wanted.height_pixels == wanted.width_pixels else None,
            resize_policy=wanted.resize_policy,
            reporter=reporter,
        )
    except MissingWeightsError:
        return "Its pretrained weights are not on this machine. Name their folder with --weights-dir."
    except CrossgraftError as error:
        return _told(reporter, "The pretrained network cannot be loaded", error)
    if backbone.weights_fingerprint != facts.model.weights_fingerprint:
        return f"The weights of {spec.name} on this machine are others than those that it was tuned from."
    if backbone.preprocessing != wanted:
        return f"{spec.name} prepares images in another way than the tuned network ({wanted.describe()})."
    return backbone


def start_as_typed(run: Path) -> dict[str, str]:
    """The flags that named the network when it was fine-tuned, such as ``--model``; none where its record does not say.

    They are for people to read and to type again: a record is data, and decides nothing.
    """
    record = _record_of(run)
    typed = TypedCommand.read("" if record is None else record.as_typed or record.command_line)
    return {flag: value for flag in _NAMING if (value := typed.value(flag)) is not None}


def _told(reporter: Reporter, what: str, error: CrossgraftError) -> str:
    """A sentence for the page; the error itself, which may name folders, is for the terminal alone."""
    reporter.warn(f"{what}: {error}")
    return f"{what}; the terminal says why."


def _spec(model: object, saved: SavedModel, options: StartOptions, reporter: Reporter) -> ModelSpec | str:
    """As the record of the run names the network; without a run, the own weights of a library are all that is known."""
    run = model.out if isinstance(model, FineTuningResult) else model
    entry = _entry_of_run(Path(run)) if isinstance(run, str | Path) else None
    if entry is None:
        network = saved.classifier.recipe.network
        if network is None or saved.facts.model.source != library_name(network.source):
            return "Which file its pretrained weights came from is not known here. Give the whole run directory."
        return ModelSpec(saved.facts.model.name, network.source, PRETRAINED, network.kwargs, trusted=NOTHING)
    try:
        spec = spec_from_entry(entry, folder=Path.cwd(), trusted=trusted_code(options.allow_code), where="run.json")
    except CrossgraftError as error:
        return _told(reporter, "The pretrained network cannot be told from its record", error)
    return replace(spec, weights=_file_name(spec.weights))


def _entry_of_run(run: Path) -> Mapping[str, object] | None:
    """What ``run.json`` says about the network; it is data, and may have come with the folder from anywhere."""
    record = _record_of(run)
    entry = None if record is None else record.config.get("model")
    if not isinstance(entry, Mapping):
        return None
    known = cast("Mapping[str, object]", entry)
    return {key: value for key, value in known.items() if key != "source_features"}


def _record_of(run: Path) -> RunRecord | None:
    try:
        return RunRecord.model_validate_json(read_whole(run_directory_of(run) / "run.json"))
    except (OSError, ValidationError, RunDirectoryError):
        return None


def _file_name(weights: str | None) -> str | None:
    """Without any folder: a record says what a file is called, and the user where it is."""
    return None if weights is None else PureWindowsPath(PurePosixPath(weights).name).name
