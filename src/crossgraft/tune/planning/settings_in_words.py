"""Every setting in force in words, those that were chosen for the user among them."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.tune.engine.keep import TOLERANCE, Keep
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.batch_norm import BatchNorm
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.words.keep_words import compared_in_words


def settings_of_points(prepared: Preparation, at_points: Sequence[TrainerSettings]) -> dict[str, str]:
    """What is chosen → how, in the order of a report; where the points of a grid differ, how at each of them."""
    chosen = [
        settings_in_words(prepared.plugins, settings, prepared.rule, prepared.batch_norm, prepared.keep)
        for settings in at_points
    ]
    names = dict.fromkeys(name for of_point in chosen for name in of_point)
    return {name: " or ".join(dict.fromkeys(of_point.get(name, "none") for of_point in chosen)) for name in names}


def settings_in_words(
    plugins: Plugins,
    settings: TrainerSettings,
    rule: SelectionRule,
    batch_norm: BatchNorm,
    keep: Keep | None = None,
) -> dict[str, str]:
    """What is chosen → how, in the order of a report; what is off is left out."""
    slots: dict[str, str] = {}
    for plugin in plugins.describe():
        slots[plugin.kind] = f"{slots[plugin.kind]} + {plugin.used}" if plugin.kind in slots else plugin.used
    if plugins.augmentation.name != "none":
        slots["mirroring"] = "yes" if plugins.augmentation.flip else "no"
    head = settings.head_learning_rate
    described = {
        **slots,
        "sampler": plugins.sampler,
        "optimizer": settings.optimizer,
        "learning rate": f"{settings.learning_rate:g}" + ("" if head is None else f" (head {head:g})"),
        "schedule": f"{settings.schedule} after {settings.warmup_epochs:g} epochs of warm-up",
        "weight decay": f"{settings.weight_decay:g}",
        "precision": settings.precision,
        "device": settings.device + (f" × {settings.num_processes}" if settings.num_processes > 1 else ""),
        "picked by": rule.name,
    }
    if batch_norm.num_layers:
        described["batch norm"] = batch_norm.in_words
    if keep is not None:
        described["keep"] = (
            f"{compared_in_words(adapted=keep.is_adapted)} of {keep.target:g} on val, within {TOLERANCE:g}"
        )
    if settings.layer_decay != 1:
        described["layer decay"] = f"{settings.layer_decay:g}"
    if settings.head_first:
        described["head first"] = f"at most {settings.head_epochs} epochs, patience {settings.head_patience}"
    if settings.accumulate > 1:
        described["accumulate"] = str(settings.accumulate)
    if settings.patience is not None:
        described["patience"] = str(settings.patience)
    return described
