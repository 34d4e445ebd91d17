"""Published trainings: one file each.

Other packages add theirs through the entry-point group ``crossgraft.presets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from crossgraft.choice import choose
from crossgraft.errors import UsageError
from crossgraft.registry import Registry
from crossgraft.tune.presets._preset import Preset as Preset
from crossgraft.tune.presets.itm_ground_truth import ItmGroundTruth as ItmGroundTruth
from crossgraft.tune.presets.repsim import RepSimPreset as RepSimPreset
from crossgraft.tune.presets.sim_cifar import SimCifar as SimCifar
from crossgraft.tune.presets.sim_cub import SimCub as SimCub
from crossgraft.tune.presets.sim_few_shot import SimFewShot as SimFewShot
from crossgraft.tune.presets.thesis import ThesisPreset as ThesisPreset
from crossgraft.tune.presets.thesis_grid import ThesisGrid as ThesisGrid
from crossgraft.words.formatting import joined

PRESETS: Registry[type[Preset]] = Registry("preset", group="crossgraft.presets", plugin_type=type)
"""Every preset that is installed."""

PRESETS.add("repsim", RepSimPreset)
PRESETS.add("itm_ground_truth", ItmGroundTruth)
PRESETS.add("sim_cifar", SimCifar)
PRESETS.add("sim_cub", SimCub)
PRESETS.add("sim_few_shot", SimFewShot)
PRESETS.add("thesis", ThesisPreset)
PRESETS.add("thesis_grid", ThesisGrid)


def settings_of(preset: object, *, command: str = "tune") -> Mapping[str, object]:
    """The options of ``command`` that a preset stands for.

    Raises:
        UnknownNameError: No preset, or option of one, has that name.
        UsageError: An option of it is wrong, or it is a preset of another command.
    """
    chosen = choose(PRESETS, str(preset))
    if chosen.command != command:
        known = joined([name for name, each in PRESETS if each.command == command])
        raise UsageError(f"--preset {preset} is for crossgraft {chosen.command}. Those of crossgraft {command} are {known}.")
    settings: object = chosen.settings
    if not isinstance(settings, Mapping):
        raise UsageError(f"The preset {preset} gives an object of type {type(settings).__name__}, not options by name. Mend it.")
    return cast("Mapping[str, object]", settings)
