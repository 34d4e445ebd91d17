"""What a fine-tuning was asked for, with every name looked up before an image is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from crossgraft.choice import spell
from crossgraft.models import ModelSpec
from crossgraft.models.adapters.peft_format import PeftFiles
from crossgraft.options._option import configuration
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.measuring.thresholds import parse_threshold_rule
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.choices import choose_plugins
from crossgraft.tune.planning.first_adapter import open_adapter
from crossgraft.tune.planning.grid import GridPoint, point_name, read_grid
from crossgraft.tune.planning.starting_model import find_model

_PLUGIN_OPTIONS = ("method", "regularizer", "batch_transform", "augmentation", "loss")


@dataclass(frozen=True, eq=False)
class Request:
    """Options of ``fine_tune`` and what their names stand for.

    Attributes:
        options: Options as given.
        spec: Spec of the model.
        points: Points of the grid.
        adapter: Files of ``--adapter``; None without.
    """

    options: TuneOptions
    spec: ModelSpec
    points: list[GridPoint]
    adapter: PeftFiles | None = None

    @classmethod
    def of(cls, options: TuneOptions, *, around_model: AbstractContextManager[None] | None = None) -> Request:
        """Look every name up, that of the model last and within ``around_model``.

        Raises:
            UnknownNameError: A name is not known.
            UsageError: An option has no meaning.
            DataError: The adapter is damaged.
        """
        adapter = open_adapter(options.adapter, options.method)
        points = read_grid(options.grid)
        refuse_unknown_names(options)
        with around_model or nullcontext():
            spec = find_model(
                options.model,
                options.weights_dir,
                options.allow_code,
                weights_key=options.weights_key,
                weights_prefix=options.weights_prefix,
                reporter=options.reporter,
            )
        return cls(options, spec, points, adapter)

    def with_options(self, options: TuneOptions) -> Request:
        """The same model with other options."""
        return replace(self, options=options, points=read_grid(options.grid))

    def typed(self) -> dict[str, Any]:
        """The configuration as a command line gives it."""
        adapter = None if self.adapter is None else self.adapter.fingerprint  # the folder may be moved
        return as_typed(configuration(self.options, TuneOptions)) | {"adapter": adapter}

    def resolved(self) -> dict[str, Any]:
        """What options were resolved to."""
        plugins = choose_plugins(self.options, MultiClassTask())
        return {
            "model": self.spec.describe(),
            "method": spell(plugins.method),
            "regularizer": [spell(each) for each in plugins.regularizers],
            "batch_transform": [spell(each) for each in plugins.batch_transforms],
            "grid": [point_name(point) for point in self.points],
        }


def refuse_unknown_names(options: TuneOptions) -> None:
    """Raise for a misspelled plug-in, an option of one, or a threshold rule."""
    choose_plugins(options, MultiClassTask())
    parse_threshold_rule(options.threshold_rule or "youden")


def as_typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``fine_tune`` as a command line gives them: objects and mappings become their text."""
    typed = dict(values)
    for name in _PLUGIN_OPTIONS:
        value = typed[name]
        several = isinstance(value, Sequence) and not isinstance(value, str)
        typed[name] = tuple(_text(each) for each in value) if several else _text(value)
    if isinstance(typed["grid"], Mapping):
        typed["grid"] = [f"{name}={','.join(f'{v:g}' for v in values)}" for name, values in typed["grid"].items()]
    if isinstance(typed["model"], ModelSpec):
        typed["model"] = typed["model"].typed
    return typed


def _text(choice: Any) -> Any:
    if isinstance(choice, Mapping):
        options = ",".join(f"{name}={value}" for name, value in choice.items() if name != "name")
        return f"{choice.get('name', '')}:{options}" if options else choice.get("name", "")
    return choice if choice is None or isinstance(choice, str) else spell(choice)
