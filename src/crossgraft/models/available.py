"""Which models can be used here and now, without building any of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec
from crossgraft.models.files_by_name import checkpoint_files, checkpoint_stem, source_in_name, why_no_architecture
from crossgraft.models.published_names import published_names
from crossgraft.models.sources.libraries import LIBRARIES, library_of
from crossgraft.models.sources.library import AvailableModel, count_parameters_of_file
from crossgraft.models.sources.local_checkpoint import read_header
from crossgraft.models.spec import family_of
from crossgraft.models.zoo import FindingOptions, zoo_as_asked
from crossgraft.progress import Reporter


@runtime_checkable
class OneModel(FindingOptions, Protocol):
    """Options that name one model."""

    @property
    def model(self) -> str | Path | ModelSpec:
        """Its name, checkpoint or spec."""
        ...


def one_model(options: OneModel, reporter: Reporter, *, command: str = "fewshot") -> ModelSpec:
    """What ``model`` names.

    Raises:
        UsageError: It names several.
        UnknownNameError: There is no such model; the message gives the nearest names.
    """
    models = [options.model] if not isinstance(options.model, Path) else str(options.model)
    specs = zoo_as_asked(models, options, reporter)
    if len(specs) != 1:
        raise UsageError(f"{command} takes one model; {options.model} names {len(specs)}. Name one, or use zoo.yaml:NAME.")
    return specs[0]


def list_available_models(weights_dir: str | Path | None = None, *, search: str | None = None) -> list[AvailableModel]:
    """What a ranking without names would take, further weights on this machine, and checkpoints; available first.

    Reads file headers only; about 10 ms per file.

    Args:
        weights_dir: Folder of checkpoints.
        search: Text in a name, or in what a well-known network was trained on: then every network that has it there.
    """
    folder = Path(weights_dir) if weights_dir is not None else None
    rows = [row for _, library in LIBRARIES for row in library.available(folder, search)]
    if search is not None:
        known = [each for each in published_names().values() if search.lower() in f"{each.name} {each.trained_on}".lower()]
        rows += [
            replace(library_of(each.source).row(each.source, folder), name=each.name, licence=each.licence) for each in known
        ]
    if folder is not None:
        named = {name for row in rows for name in (row.name, Path(row.where).stem)}
        files = [path for path in checkpoint_files(folder) if search is None or search.lower() in path.name.lower()]
        rows += [_checkpoint_row(path) for path in files if checkpoint_stem(path) not in named]
    return sorted(rows, key=lambda row: not row.available)


def _checkpoint_row(path: Path) -> AvailableModel:
    reason = why_no_architecture(path)
    header = read_header(path)
    architecture = header.architecture or source_in_name(path)
    return AvailableModel(
        path.name,
        family_of(architecture or checkpoint_stem(path)),
        count_parameters_of_file(path),
        reason is None,
        str(path) if reason is None else f"{reason}: needs a zoo file",
        header.licence,
    )
