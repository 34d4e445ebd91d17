"""Which models can be used here and now, without building any of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from safetensors import safe_open

from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec, read_zoo
from crossgraft.models.files_by_name import checkpoint_files, checkpoint_stem, source_in_name, why_no_architecture
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.sources.local_checkpoint import read_header
from crossgraft.models.sources.pretrained_files import cached_timm_names, find_pretrained, pretrained_config
from crossgraft.models.sources.torchvision_models import find_torchvision_weights, torchvision_names, weights_of
from crossgraft.models.spec import TORCHVISION_PREFIX, family_of
from crossgraft.options.models import DEFAULT_ZOO
from crossgraft.plain_types import AllowedCode
from crossgraft.progress import Reporter


@runtime_checkable
class OneModel(Protocol):
    """Options that name one model."""

    @property
    def model(self) -> str | Path | ModelSpec:
        """Its name, checkpoint or spec."""
        ...

    @property
    def weights_dir(self) -> str | Path | None:
        """Folder of checkpoints."""
        ...

    @property
    def weights_key(self) -> str | None:
        """Key of a checkpoint that holds the weights."""
        ...

    @property
    def weights_prefix(self) -> str | None:
        """Beginning of the names of its tensors."""
        ...

    @property
    def allow_code(self) -> AllowedCode:
        """Code that may run."""
        ...

    @property
    def allow_download(self) -> bool:
        """Whether weights may be downloaded."""
        ...


def one_model(options: OneModel, reporter: Reporter, *, command: str = "fewshot") -> ModelSpec:
    """What ``model`` names.

    Raises:
        UsageError: It names several.
        UnknownNameError: There is no such model; the message gives the nearest names.
    """
    models = [options.model] if not isinstance(options.model, Path) else str(options.model)
    specs = read_zoo(
        models,
        weights_dir=options.weights_dir,
        weights_key=options.weights_key,
        weights_prefix=options.weights_prefix,
        allow_code=options.allow_code,
        allow_download=options.allow_download,
        reporter=reporter,
    )
    if len(specs) != 1:
        raise UsageError(f"{command} takes one model; {options.model} names {len(specs)}. Name one, or use zoo.yaml:NAME.")
    return specs[0]


_NOT_PARAMETERS = ("running_mean", "running_var", "num_batches_tracked")


@dataclass(frozen=True)
class AvailableModel:
    """One row of ``crossgraft list models``.

    Attributes:
        name: Name to write after ``--models``.
        family: That the name suggests.
        num_parameters: Counted from the file's header; None when that needs more than a look.
        available: Whether it can be loaded now, without network.
        where: The file, or what to do to get it.
    """

    name: str
    family: str
    num_parameters: int | None
    available: bool
    where: str


def list_available_models(weights_dir: str | Path | None = None) -> list[AvailableModel]:
    """The default zoo, cached weights of timm and torchvision, the checkpoints of ``weights_dir``; available first.

    Reads file headers only; about 10 ms per file.
    """
    folder = Path(weights_dir) if weights_dir is not None else None
    cached = [name for name in cached_timm_names() if library_of(name).knows(name)]
    default_weights = {f"{name}.{pretrained_config(name).get('tag')}" for name in DEFAULT_ZOO}
    names = [*DEFAULT_ZOO, *(name for name in cached if name not in default_weights)]
    rows = [_timm_row(name, folder) for name in names]
    rows += (torchvision_rows := _torchvision_rows(folder))
    if folder is not None:
        named = {*names, *(Path(row.where).stem for row in torchvision_rows)}
        rows += [_checkpoint_row(path) for path in checkpoint_files(folder) if checkpoint_stem(path) not in named]
    return sorted(rows, key=lambda row: not row.available)


def _torchvision_rows(weights_dir: Path | None) -> list[AvailableModel]:
    """Only what is here: torchvision's names are no part of the default zoo."""
    rows: list[AvailableModel] = []
    for architecture in torchvision_names():
        for weights in weights_of(architecture):
            path = find_torchvision_weights(architecture, weights, weights_dir)
            if path is not None:
                name = f"{TORCHVISION_PREFIX}{architecture}.{weights.name}"
                rows.append(AvailableModel(name, family_of(name), weights.meta["num_params"], True, str(path)))
    return rows


def _timm_row(name: str, weights_dir: Path | None) -> AvailableModel:
    path = find_pretrained(name, weights_dir)
    if path is None:
        repository = pretrained_config(name).get("hf_hub_id")
        return AvailableModel(name, family_of(name), None, False, f"huggingface.co/{repository} (--allow-download)")
    return AvailableModel(name, family_of(name), _count_parameters(path), True, str(path))


def _checkpoint_row(path: Path) -> AvailableModel:
    reason = why_no_architecture(path)
    architecture = read_header(path).architecture or source_in_name(path)
    return AvailableModel(
        path.name,
        family_of(architecture or checkpoint_stem(path)),
        _count_parameters(path),
        reason is None,
        str(path) if reason is None else f"{reason}: needs a zoo file",
    )


def _count_parameters(path: Path) -> int | None:
    if path.suffix != ".safetensors":
        return None
    with safe_open(path, framework="np") as file:
        names = [name for name in file.keys() if not name.endswith(_NOT_PARAMETERS)]  # noqa: SIM118 - not a mapping
        return sum(math.prod(file.get_slice(name).get_shape()) for name in names)
