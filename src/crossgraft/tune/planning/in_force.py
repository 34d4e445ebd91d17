"""What holds in one training: what the plan says of it, and what makes it another training, follow from the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from crossgraft.options._option import Option, options_of
from crossgraft.running.command_line import display_value
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import FIRST_SETTINGS, TrainerSettings, Tuning
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.batch_norm import BatchNorm
from crossgraft.tune.planning.choices import GridPoint, Plugins
from crossgraft.tune.planning.preparation import Preparation, settings_at


@dataclass(frozen=True)
class InForce:
    """What holds in one training; what options say about themselves is read from it.

    Attributes:
        options: Options as given.
        plugins: Plug-ins in the slots.
        settings: Settings of the trainer at one point of the grid.
        rule: Rule that selects epoch and grid point.
        batch_norm: What BatchNorm normalises with.
        keep: Similarity that the training is to end at.
    """

    options: TuneOptions
    plugins: Plugins
    settings: TrainerSettings
    rule: SelectionRule
    batch_norm: BatchNorm
    keep: Keep | None = None

    @classmethod
    def at(cls, prepared: Preparation, point: GridPoint) -> InForce:
        """What holds at a point of the grid."""
        options, settings = prepared.request.options, settings_at(prepared, point)
        return cls(options, prepared.plugins, settings, prepared.rule, prepared.batch_norm, prepared.keep)

    def value(self, option: Option) -> object:
        """Value of an option: as the trainer has it, where it has it, else as given."""
        return getattr(self.settings if hasattr(self.settings, option.name) else self.options, option.name)

    def tuning_options(self) -> list[Option]:
        """The options of the fine-tuning itself, not of data, model and machine."""
        return [each for each in options_of(type(self.options)).values() if issubclass(each.owner, Tuning)]

    def in_words(self) -> dict[str, str]:
        """Every setting → how it is chosen, in the order of a report; what is off is left out."""
        settings = self.settings
        rows = {"device": settings.device + (f" × {settings.num_processes}" if settings.num_processes > 1 else "")}
        for each in self.tuning_options():
            if each.about.has_row and (text := self._text(each)) is not None:
                rows[each.about.row or each.name.replace("_", " ")] = text
        return {name: rows[name] for name in dict.fromkeys([*_FIRST_ROWS, *rows]) if name in rows}

    def _text(self, option: Option) -> str | None:
        if option.about.in_words is not None:
            return option.about.in_words(self)
        value = self.value(option)
        return None if value == option.default or not option.about.decides else _value_in_words(value)

    def further(self) -> dict[str, object]:
        """Options that decide a training and are not at their defaults, but for those that ``_KNOWN_OTHERWISE`` names."""
        return {
            each.name: value
            for each in self.tuning_options()
            if each.about.decides and each.name not in _KNOWN_OTHERWISE and (value := self.value(each)) != each.default
        }


def _value_in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_in_words, cast("Sequence[object]", value)))
    return f"{value:g}" if isinstance(value, float) else str(display_value(value))


_FIRST_ROWS = (
    "preset", "method", "objective", "regularizer", "batch transform", "feature transform", "augmentation", "loss", "mirroring",
    "sampler", "optimizer", "learning rate", "schedule", "weight decay", "precision", "device", "picked by", "batch norm", "keep",
    "layer decay", "head first", "accumulate", "patience",
)  # fmt: skip
"""Rows in the order that reports have always had; any other row comes after them, in the order of the options."""

_KNOWN_OTHERWISE = frozenset({
    *FIRST_SETTINGS, "log_gradient_norms", "method", "regularizer", "batch_transform", "augmentation", "flip", "loss",
    "class_weights", "sampler", "adapter", "keep", "batch_norm", "select_by", "grid", "threshold_rule", "subgroups",
})  # fmt: skip
"""Options from before keys of trainings named options: keys hold what they became, or they decide nothing before a training has
ended. The list is closed, since the keys of finished trainings must not change."""
