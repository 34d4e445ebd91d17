"""Everything that was chosen about one fine-tuning, with what the user left open filled in."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from crossgraft.choice import choose, spell
from crossgraft.compute import resolve_device
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.losses import LOSSES, Loss
from crossgraft.options._option import options_of
from crossgraft.options._values import parts_of
from crossgraft.registry import Registry
from crossgraft.tasks import Task
from crossgraft.tune.augmentations import AUGMENTATIONS, Augmentation
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS, BatchTransform
from crossgraft.tune.engine.settings import TrainerSettings, TrainingSteps, schedule_of
from crossgraft.tune.feature_transforms import FEATURE_TRANSFORMS, FeatureTransform
from crossgraft.tune.feed.batches import Sampler
from crossgraft.tune.image_protocols import is_identity
from crossgraft.tune.methods import METHODS
from crossgraft.tune.objectives import OBJECTIVES, Objective
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.presets import PRESETS, Preset
from crossgraft.tune.protocols import AddsAdapters, Method, Regularizer, form_of
from crossgraft.tune.record import PluginRecord
from crossgraft.tune.regularizers import REGULARIZERS

NO_PLUGIN = ("none", "")
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)


@dataclass(frozen=True)
class Plugins:
    """The objects in the slots.

    Attributes:
        method: Method: what is trained.
        regularizers: Regularisers added to the loss.
        batch_transforms: Transforms of a batch, in this order.
        augmentation: Transform of an image.
        loss: Loss as chosen; balanced weights are counted later, from the training rows.
        sampler: Sampler that draws rows into batches.
        objective: What is minimised.
        feature_transforms: What is done to feature maps, in this order.
        preset: Published training whose settings were asked for.
    """

    method: Method
    regularizers: tuple[Regularizer, ...]
    batch_transforms: tuple[BatchTransform, ...]
    augmentation: Augmentation
    loss: Loss
    sampler: Sampler
    objective: Objective
    feature_transforms: tuple[FeatureTransform, ...] = ()
    preset: Preset | None = None

    @property
    def features_are_fixed(self) -> bool:
        """Whether the features of each image can be computed once, because nothing that they depend on changes."""
        return self.method.features_are_fixed and self.shows_plain_images

    @property
    def shows_plain_images(self) -> bool:
        """Whether every image is shown the same way every time."""
        return is_identity(self.augmentation) and not self.batch_transforms

    @property
    def all(self) -> list[object]:
        """Every plug-in, slot by slot."""
        presets = [] if self.preset is None else [self.preset]
        replaced = [] if self.objective.is_plain_mean else [self.objective]
        of_batches = [*self.batch_transforms, *self.feature_transforms]
        return [*presets, self.method, *replaced, *self.regularizers, *of_batches, self.augmentation, self.loss]

    def describe(self) -> list[PluginRecord]:
        """All of them as a report shows them."""
        slots: list[tuple[str, Sequence[Any]]] = [
            ("preset", [] if self.preset is None else [self.preset]),
            ("method", [self.method]),
            ("objective", [] if self.objective.is_plain_mean else [self.objective]),
            ("regularizer", self.regularizers),
            ("batch transform", self.batch_transforms),
            ("feature transform", self.feature_transforms),
            ("augmentation", [self.augmentation]),
            ("loss", [self.loss]),
        ]
        return [
            PluginRecord(
                kind=kind,
                spelling=spell(plugin),
                title=plugin.title,
                reference=plugin.citation,
                in_full=getattr(plugin, "in_full", None),
                form=form_of(plugin),
            )
            for kind, plugins in slots
            for plugin in plugins
        ]

    def in_words(self, kind: str) -> str | None:
        """Those of one slot, for the plan; None: it is empty."""
        return " + ".join(each.used for each in self.describe() if each.kind == kind) or None


def choose_plugins(options: TuneOptions, task: Task) -> Plugins:
    """Build what was asked for.

    Left open: the loss is cross-entropy, or binary cross-entropy summed over labels where an image may have several; the
    augmentation is ``light``, or ``none`` for a method whose features never change, so that they are computed once; the sampler
    is the one that the objective needs, or ``shuffle``.

    Raises:
        UnknownNameError: With the nearest names.
        UsageError: An option of a plug-in is wrong.
    """
    objective: Objective = choose(OBJECTIVES, options.objective)
    sampler = options.sampler or objective.sampler or "shuffle"
    if sampler not in SAMPLERS:
        raise UnknownNameError("sampler", sampler, SAMPLERS)
    method: Method = choose(METHODS, options.method)
    augmentation = options.augmentation
    if augmentation is None:
        augmentation = "none" if method.features_are_fixed else "light"
    pixels: Any = choose(AUGMENTATIONS, augmentation)
    if not options.flip:
        pixels = dataclasses.replace(pixels, flip=False)
    loss = options.loss
    if loss is None:
        loss = task.usual_loss
    return Plugins(
        method=method,
        regularizers=tuple(_several(REGULARIZERS, options.regularizer)),
        batch_transforms=tuple(_several(BATCH_TRANSFORMS, options.batch_transform)),
        augmentation=pixels,
        loss=_with_weights(choose(LOSSES, loss), options.class_weights),
        sampler=sampler,
        objective=objective,
        feature_transforms=tuple(_several(FEATURE_TRANSFORMS, options.feature_transform)),
        preset=None if options.preset is None else choose(PRESETS, options.preset),
    )


def split_choices(text: str) -> list[str]:
    """Plug-ins with commas; a part ``option=value`` belongs to the plug-in before it.

    >>> split_choices("l2_sp:alpha=0.1,beta=0.01,bss:1")
    ['l2_sp:alpha=0.1,beta=0.01', 'bss:1']
    """
    parts: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        is_option = "=" in part.partition(":")[0]
        if is_option and parts:
            parts[-1] += f",{part}"
        elif part not in NO_PLUGIN:
            parts.append(part)
    return parts


def _several(registry: Registry[Any], choices: Any) -> list[Any]:
    is_one = isinstance(choices, str | Mapping) or not isinstance(choices, Sequence)
    parts: list[Any] = []
    for choice in [choices] if is_one else choices:
        parts += split_choices(choice) if isinstance(choice, str) else [choice]
    plugins = [choose(registry, part) for part in parts]
    names = [plugin.name for plugin in plugins]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The {registry.kind} {name} is given twice. Give it once, with all its options.")
    return plugins


def _with_weights(loss: Any, class_weights: str | Sequence[float | int] | None) -> Loss:
    """``--class-weights`` is an option of every loss, under the loss' own name for it."""
    if class_weights is None:
        return loss
    fields = {field.name for field in dataclasses.fields(loss)}
    name = next((name for name in ("class_weights", "positive_weights") if name in fields), None)
    if name is None:
        raise UsageError(f"The loss {loss.name} knows no weights. Leave out --class-weights, or choose another --loss.")
    if getattr(loss, name) is not None:
        raise UsageError("The weights of the loss are given twice: in --loss and in --class-weights. Give them once.")
    weights = class_weights if isinstance(class_weights, str) else tuple(class_weights)
    return dataclasses.replace(loss, **{name: weights})


STEPS_IN_ALL = 600
"""Epochs are chosen so that about this many steps are made …"""
FEWEST_EPOCHS, MOST_EPOCHS = 10, 50
"""… within these bounds; 50 is what the thesis and RepSim (appendix A) train."""

WARMUP_EPOCHS = 5.0
WARMUP_SHARE = 0.1
"""Warm-up is 5 epochs, but at most a tenth of all."""

_BATCH_SIZES = ((64, 8), (256, 16), (2000, 32), (10_000, 64))
_LARGEST_BATCH = 128

_SMALL_NETWORK, _LARGE_NETWORK = 10_000_000, 50_000_000
_ADAMW_RATES = {"head": 3e-3, "scratch": 1e-3, "small": 1e-3, "medium": 3e-4, "large": 1e-4, "adapter": 1e-3}
_SGD_FACTOR = 10.0
"""SGD needs steps about this much larger than AdamW, which divides by the size of the gradient."""

PRECISIONS = {"32": "32-true", "64": "64-true", "bf16": "bf16-mixed", "16": "16-mixed"}
"""Short names of number types."""


def trainer_settings(options: TuneOptions, plugins: Plugins, *, num_train: int, num_parameters: int) -> TrainerSettings:
    """What was given, and a choice for what was left open.

    Raises:
        UnknownNameError: No number type has that name.
        UsageError: A value has no meaning, or the device is not there.
    """
    known = options_of(type(options))
    given = {each.name: getattr(options, each.name) for each in dataclasses.fields(TrainerSettings) if each.name in known}
    precision = str(options.precision)
    if precision not in PRECISIONS and precision not in PRECISIONS.values():
        raise UnknownNameError("precision", precision, PRECISIONS)
    given |= {
        "schedule": spell(schedule_of(options.schedule)),
        "precision": PRECISIONS.get(precision, precision),
        "device": resolve_device(options.device),
        "num_processes": options.devices,
        "checkpoint_every_steps": options.checkpoint_every,
    }
    return choose_settings(given, plugins, num_train=num_train, num_parameters=num_parameters)


def choose_settings(given: Mapping[str, Any], plugins: Plugins, *, num_train: int, num_parameters: int) -> TrainerSettings:
    """Settings of the trainer: what was given, and for the rest (None or absent) defaults that suit.

    - ``batch_size``: 8 below 64 training images, 16 below 256, 32 below 2000, 64 below 10 000, then 128.
    - ``epochs``: about 600 steps in all, but 10 to 50 epochs. A CPU makes 600 steps of a MobileNet at 64 pixels in minutes.
    - ``learning_rate`` of AdamW: 3e-3 for the head alone, 1e-3 from scratch, for adapters and for networks below 10 million
      parameters, 3e-4 below 50 million, 1e-4 above; ten times that for SGD.
    - ``weight_decay``: 0.05; 0 beside L2-SP, which is a decay of its own (toward the pretrained weights), and for Adam, which
      would divide the decay by the size of the gradient.
    - ``warmup_epochs``: 5, at most a tenth of the epochs. The learning rate then falls along a cosine.

    Raises:
        UsageError: A value has no meaning.
    """
    values = {name: value for name, value in given.items() if value is not None}
    batch_size = values.setdefault(
        "batch_size", next((size for below, size in _BATCH_SIZES if num_train < below), _LARGEST_BATCH)
    )
    epochs = values.setdefault("epochs", _epochs(num_train, batch_size))
    values.setdefault("learning_rate", _learning_rate(plugins, num_parameters, str(values.get("optimizer", "adamw"))))
    decays = values.get("optimizer") == "adam" or any(getattr(each, "decays_weights", False) for each in plugins.regularizers)
    values.setdefault("weight_decay", 0.0 if decays else 0.05)
    values.setdefault("warmup_epochs", warmup_epochs(epochs))
    return TrainerSettings(**values)


def warmup_epochs(epochs: int) -> float:
    """Default of the warm-up for a training of so many epochs."""
    return min(WARMUP_EPOCHS, WARMUP_SHARE * epochs)


def _epochs(num_train: int, batch_size: int) -> int:
    wanted = round(STEPS_IN_ALL / math.ceil(num_train / max(1, batch_size)))
    return min(max(wanted, FEWEST_EPOCHS), MOST_EPOCHS)


def _learning_rate(plugins: Plugins, num_parameters: int, optimizer: str) -> float:
    if plugins.method.features_are_fixed:
        kind = "head"
    elif plugins.method.starts_from_scratch:
        kind = "scratch"
    elif isinstance(plugins.method, AddsAdapters):
        kind = "adapter"
    elif num_parameters < _SMALL_NETWORK:
        kind = "small"
    else:
        kind = "medium" if num_parameters < _LARGE_NETWORK else "large"
    return _ADAMW_RATES[kind] * (_SGD_FACTOR if optimizer == "sgd" else 1)


GridPoint = dict[str, float | int]
"""Setting → value of one point; empty without a grid."""

KEEP_FACTOR = "keep_factor"
"""Setting that ``--keep`` looks for, as if a grid varied it."""

GRID_SETTINGS: Mapping[str, type[float] | type[int]] = {
    name: float if float in kinds else int
    for name, each in options_of(TrainingSteps).items()
    if (kinds := {*parts_of(each.type)} - {type(None)}) <= {int, float} and each.about.in_protocol
}
"""What a grid may vary: every number that makes another training; the rest changes what is compared, and is better a run of its
own."""


def read_grid(grid: str | Sequence[str] | Mapping[str, Sequence[float | int]] | None) -> list[GridPoint]:
    """Every combination of the values, in the order in which they were written; one empty point without a grid.

    Args:
        grid: ``learning_rate=1e-3,1e-4``, several of these (in one text with commas), or a mapping of lists.

    Raises:
        UnknownNameError: A setting is not known; the message gives the nearest ones.
        UsageError: A setting is given twice, or a value is no number, or stands twice.

    >>> read_grid(["learning_rate=0.1,0.01", "batch_size=8"])
    [{'learning_rate': 0.1, 'batch_size': 8}, {'learning_rate': 0.01, 'batch_size': 8}]
    """
    axes: dict[str, list[float | int]] = {}
    for name, values in _pairs(grid):
        if name not in GRID_SETTINGS:
            raise UnknownNameError("setting of a grid", name, GRID_SETTINGS)
        if name in axes:
            raise UsageError(f"--grid gives {name} twice. Write all its values in one: --grid {name}=A,B,C.")
        numbers = [_number(name, value) for value in values]
        if len(set(numbers)) < len(numbers) or not numbers:
            raise UsageError(f"--grid {name} needs different values, for example --grid {name}=A,B.")
        axes[name] = numbers
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]


@dataclass(frozen=True)
class GridTraining:
    """One point of the grid on one fold.

    Attributes:
        fold: From 0; None without folds.
        point: Settings of the grid.
        domain: The domain that it never sees; None: none is left out.
    """

    fold: int | None
    point: GridPoint
    domain: str | None = None

    @property
    def name(self) -> str:
        """For tables and folders: ``fold-1 learning_rate=0.001``, ``without OSLO``; ``only`` where there is no other."""
        part = "" if self.fold is None else f"fold-{self.fold}"
        part = part if self.domain is None else f"without {self.domain}"
        return " ".join(each for each in (part, point_name(self.point)) if each) or "only"


def first_factor(point: GridPoint) -> GridPoint:
    """Where the search of ``--keep`` begins: as strong as the regulariser says."""
    return {**point, KEEP_FACTOR: 1.0}


def further_factors(training: GridTraining) -> str:
    """Name of all other factors of one point, as a part of the work."""
    others = {name: value for name, value in training.point.items() if name != KEEP_FACTOR}
    return f"{dataclasses.replace(training, point=others).name}, further factors"


def point_name(point: Mapping[str, float | int]) -> str:
    """A point in words, also part of the name of a folder.

    >>> point_name({"learning_rate": 0.0001, "batch_size": 8})
    'learning_rate=0.0001,batch_size=8'
    """
    return ",".join(f"{name}={value:g}" for name, value in point.items())


def _pairs(grid: str | Sequence[str] | Mapping[str, Sequence[float | int]] | None) -> list[tuple[str, Sequence[object]]]:
    if grid is None:
        return []
    if isinstance(grid, Mapping):
        return [(name, list(values)) for name, values in grid.items()]
    pairs: list[tuple[str, list[object]]] = []
    texts = [grid] if isinstance(grid, str) else grid
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, value = part.rpartition("=")
        if equals:
            pairs.append((name.strip().replace("-", "_"), []))
        if not pairs:
            raise UsageError(f"--grid {part}: write SETTING=VALUE,VALUE, for example --grid learning_rate=1e-3,1e-4.")
        pairs[-1][1].extend([value] if value else [])
    return [*pairs]


def _number(name: str, value: object) -> float | int:
    try:
        number = float(str(value))
    except ValueError as error:
        raise UsageError(f"--grid {name}: {value} is no number.") from error
    if GRID_SETTINGS[name] is float:
        return number
    if number != int(number):
        raise UsageError(f"--grid {name}: {value} is not a whole number.")
    return int(number)
