"""Every choice in force, for plan and report."""

from __future__ import annotations

from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.choices import Plugins


def settings_in_words(plugins: Plugins, settings: TrainerSettings, rule: SelectionRule) -> dict[str, str]:
    """What is chosen → how, in the order of a report; what is off is left out."""
    slots: dict[str, str] = {}
    for plugin in plugins.describe():
        slots[plugin.kind] = f"{slots[plugin.kind]} + {plugin.spelling}" if plugin.kind in slots else plugin.spelling
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
    if settings.layer_decay != 1:
        described["layer decay"] = f"{settings.layer_decay:g}"
    if settings.head_first:
        described["head first"] = f"at most {settings.head_epochs} epochs, patience {settings.head_patience}"
    if settings.accumulate > 1:
        described["accumulate"] = str(settings.accumulate)
    if settings.patience is not None:
        described["patience"] = str(settings.patience)
    return described
