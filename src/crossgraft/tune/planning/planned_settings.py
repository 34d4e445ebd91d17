"""Every setting of a plan in words, those that were chosen for you too."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.edit.words import named
from crossgraft.errors import OtherRunError
from crossgraft.tune.engine.keep import TOLERANCE, Keep
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.keep_words import compared_in_words
from crossgraft.tune.planning.batch_norm import BatchNorm
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.preparation import Preparation, settings_at


def planned_settings(prepared: Preparation) -> dict[str, str]:
    """Every setting in force, and the edits of the images; where the points of a grid differ, how at each of them."""
    chosen = [
        settings_in_words(
            prepared.plugins, settings_at(prepared, point), prepared.rule, prepared.batch_norm, prepared.keep
        )
        for point in prepared.request.points
    ]
    names = dict.fromkeys(name for of_point in chosen for name in of_point)
    described = {name: " or ".join(dict.fromkeys(of_point.get(name, "none") for of_point in chosen)) for name in names}
    edits = prepared.rows.edits
    return described if edits is None else {"edited with": named(edits.edits)} | described


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


def settings_table(settings: Mapping[str, str]) -> list[str]:
    """One line per setting, names and values below each other."""
    width = max(map(len, settings), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in settings.items()]


def refuse_other_defaults(planned: Mapping[str, str], prepared: Preparation) -> None:
    """Raise where an earlier version chose another mode of BatchNorm or learning rate; reasons and the head do not count.

    Raises:
        OtherRunError: With what differs. A learning rate that the grid varies is nobody's default.
    """
    now, varied = planned_settings(prepared), {name.replace("_", " ") for name in prepared.request.points[0]}
    different = [
        f"{name} was {planned[name].partition(' ')[0]} and is now {now[name]}"
        for name in ("batch norm", "learning rate")
        if name not in varied
        and name in planned
        and name in now
        and planned[name].partition(" ")[0] != now[name].partition(" ")[0]
    ]
    if different:
        raise OtherRunError(
            f"This run was planned by a version of crossgraft with other defaults: {'; '.join(different)}. Start it again with "
            "--overwrite or in another folder (--out); --batch-norm and --learning-rate bring the old choices back."
        )
