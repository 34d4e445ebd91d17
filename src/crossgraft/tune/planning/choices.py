"""Everything that was chosen about one fine-tuning, with what the user left open filled in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossgraft.choice import choose, spell
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.losses import LOSSES, Loss
from crossgraft.registry import Registry
from crossgraft.tasks import Task
from crossgraft.tune.augmentations import AUGMENTATIONS, Augmentation
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS, BatchTransform
from crossgraft.tune.feed.batch_plan import Sampler
from crossgraft.tune.methods import METHODS
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.plugins_record import PluginRecord
from crossgraft.tune.protocols.augmentation import is_identity
from crossgraft.tune.protocols.method import Method
from crossgraft.tune.protocols.regularizer import Regularizer
from crossgraft.tune.regularizers import REGULARIZERS

NO_PLUGIN = ("none", "")
SAMPLERS: tuple[Sampler, ...] = ("shuffle", "balanced")


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
    """

    method: Method
    regularizers: tuple[Regularizer, ...]
    batch_transforms: tuple[BatchTransform, ...]
    augmentation: Augmentation
    loss: Loss
    sampler: Sampler

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
        return [self.method, *self.regularizers, *self.batch_transforms, self.augmentation, self.loss]

    def describe(self) -> list[PluginRecord]:
        """All of them as a report shows them."""
        slots: list[tuple[str, Sequence[Any]]] = [
            ("method", [self.method]),
            ("regularizer", self.regularizers),
            ("batch transform", self.batch_transforms),
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
            )
            for kind, plugins in slots
            for plugin in plugins
        ]


def choose_plugins(options: TuneOptions, task: Task) -> Plugins:
    """Build what was asked for.

    Left open: the loss is cross-entropy, or binary cross-entropy summed over labels where an image may have several; the
    augmentation is ``light``, or ``none`` for a method whose features never change, so that they are computed once.

    Raises:
        UnknownNameError: With the nearest names.
        UsageError: An option of a plug-in is wrong.
    """
    if options.sampler not in SAMPLERS:
        raise UnknownNameError("sampler", options.sampler, SAMPLERS)
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
        sampler=options.sampler,
    )


def split_choices(text: str) -> list[str]:
    """Plug-ins with commas; a part ``option=value`` belongs to the plug-in before it.

    >>> split_choices("l2_sp:alpha=0.1,beta=0.01,bss:1")
    ['l2_sp:alpha=0.1,beta=0.01', 'bss:1']
    """
    found: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        is_option = "=" in part.partition(":")[0]
        if is_option and found:
            found[-1] += f",{part}"
        elif part not in NO_PLUGIN:
            found.append(part)
    return found


def _several(registry: Registry[Any], choices: Any) -> list[Any]:
    given: list[Any] = [choices] if isinstance(choices, str | Mapping) else list(_as_sequence(choices))
    parts: list[Any] = []
    for choice in given:
        parts += split_choices(choice) if isinstance(choice, str) else [choice]
    plugins = [choose(registry, part) for part in parts]
    names = [plugin.name for plugin in plugins]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The {registry.kind} {name} is given twice. Give it once, with all its options.")
    return plugins


def _as_sequence(choices: Any) -> Sequence[Any]:
    return choices if isinstance(choices, Sequence) else [choices]


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
