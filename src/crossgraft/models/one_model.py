"""The one model that a verb works with."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec, read_zoo
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
        reporter=reporter,
    )
    if len(specs) != 1:
        raise UsageError(
            f"{command} takes one model; {options.model} names {len(specs)}. Name one, or use zoo.yaml:NAME."
        )
    return specs[0]
