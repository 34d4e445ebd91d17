"""A fine-tuning in words: what was planned, what was kept, how similar the features stayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crossgraft.tune.record import BatchNormRecord, KeepRecord, PlanRecord, PluginRecord
from crossgraft.words.formatting import NumberFormat, count, counted, duration, magnitude, size, small_percent

NUMBERS = NumberFormat(decimals=3)
_ALIKE = 0.1
"""Two similarities that are no further apart are about as low as each other."""
_LITTLE = 0.05
"""A similarity that is no further from 1 leaves nothing to explain."""

CKA = {
    "cka": "CKA",
    "cka_debiased": "CKA, debiased",
    "cka_adapted": "CKA, adapted",
    "cka_debiased_adapted": "CKA, debiased, adapted",
}
"""Headings of the similarities of a network to the pretrained one; of those with BatchNorm there are four."""
ADAPTED = "Adapted: compared with the pretrained weights under BatchNorm statistics of the training images."
_FINE_TUNED, _UNTOUCHED = "Fine-tuned", "Weights untouched, statistics re-estimated"


def similarity_rows(similarity: Mapping[str, float]) -> dict[str, dict[str, float | None]]:
    """Name of a network → its similarities, by the names of ``CKA`` that were measured.

    What is debiased comes first. One with BatchNorm has a second row: its pretrained weights under statistics of the training
    images, a network that is the same as the adapted one.
    """
    names = sorted((name for name in CKA if name in similarity), key=lambda name: "debiased" not in name)
    rows: dict[str, dict[str, float | None]] = {_FINE_TUNED: {name: similarity[name] for name in names}}
    if "cka_debiased_untouched" in similarity:
        rows[_UNTOUCHED] = {name: 1.0 if name.endswith("_adapted") else similarity.get(f"{name}_untouched") for name in names}
    return rows


def batch_norm_in_words(batch_norm: BatchNormRecord | None) -> str | None:
    """The mode, why it was chosen, and what it did; None of a network without BatchNorm statistics.

    >>> batch_norm_in_words(BatchNormRecord(mode="frozen", reason="because hcs compares features", num_layers=19))
    'frozen (because hcs compares features): 19 layers kept the statistics of the pretrained network'
    """
    if batch_norm is None or not batch_norm.num_layers:
        return None
    layers = counted(batch_norm.num_layers, "layer")
    if batch_norm.mode != batch_norm.effective_mode:
        return f"{layers} kept the statistics of the pretrained network, because the method moves none"
    moving = (
        f"{batch_norm.num_moving} of {layers}"
        if (batch_norm.num_moving or batch_norm.num_layers) < batch_norm.num_layers
        else layers
    )
    did = {
        "train": f"the statistics of {moving} moved with the batches",
        "frozen": f"{layers} kept the statistics of the pretrained network",
        "adapt": f"the statistics of {layers} were re-estimated on the training images before the first step",
    }[batch_norm.mode]
    return f"{batch_norm.mode}{f' ({batch_norm.reason})' if batch_norm.reason else ''}: {did}"


def untouched_in_words(similarity: Mapping[str, float]) -> str | None:
    """What re-estimated statistics do on their own; None where that was not measured."""
    debiased = similarity.get("cka_debiased_untouched")
    if debiased is None:
        return None
    return (
        f"BatchNorm statistics of the training images alone, with no weight changed, give a debiased CKA of {NUMBERS(debiased)}"
    )


def meaning_of(similarity: Mapping[str, float], batch_norm: BatchNormRecord | None, *, from_scratch: bool = False) -> str | None:
    """What the similarity of a fine-tuned network says beside that of untouched weights; None without BatchNorm.

    Args:
        similarity: Similarities on test, by their names in the record.
        batch_norm: What BatchNorm did in training; None: not known.
        from_scratch: Whether training began with random weights.
    """
    alone, tuned = untouched_in_words(similarity), similarity.get("cka_debiased")
    if alone is None or tuned is None:
        return None
    if from_scratch or batch_norm is None:
        return f"{alone}."
    if batch_norm.effective_mode == "frozen":
        changed = (
            f"so features hardly changed (debiased CKA {NUMBERS(tuned)})"
            if 1 - tuned <= _LITTLE
            else f"so it is the training of its weights that changed the features (debiased CKA {NUMBERS(tuned)})"
        )
        return (
            f"The BatchNorm statistics stayed those of the pretrained network, {changed}. {alone}; that is part of the values "
            "marked as adapted."
        )
    weights = f"What training changed is in the values marked as adapted ({NUMBERS(similarity.get('cka_debiased_adapted'))})."
    if batch_norm.mode == "adapt":
        return f"{alone}. Training started from there. {weights}"
    return f"{alone}; the fine-tuned network has {NUMBERS(tuned)}. {_cause(similarity, batch_norm)} {weights}"


def _cause(similarity: Mapping[str, float], batch_norm: BatchNormRecord) -> str:
    """Whether statistics that moved in training may be why the similarity fell."""
    untouched, tuned = similarity["cka_debiased_untouched"], similarity["cka_debiased"]
    if 1 - tuned <= _LITTLE:
        return "There is hardly a fall to explain."
    if untouched > tuned + _ALIKE:
        return "So moved statistics do not explain the fall; training of the weights does."
    if 0 < (batch_norm.num_moving or 0) < batch_norm.num_layers:
        return "So statistics, of which only some moved, may explain a part of the fall."
    return "So moved statistics alone may explain the fall, whatever training did to the weights."


_KINDS = {"regularizer": "regulariser"}  # options are spelled as in other tools, words as in these pages
_HARDLY = 0.005


def kind_in_words(plugin: PluginRecord) -> str:
    """What kind of plug-in it is.

    >>> kind_in_words(PluginRecord(kind="regularizer", spelling="repsim", title="RepSim"))
    'regulariser'
    """
    return _KINDS.get(plugin.kind, plugin.kind)


def adapters_in_words(plan: PlanRecord) -> str:
    """How large the adapters are, and beside what."""
    share = plan.num_adapter_parameters / (plan.num_trained + plan.num_frozen)
    parameters = counted(plan.num_adapter_parameters, "parameter")
    return f"{parameters}, {small_percent(share)} of the network, {size(plan.adapter_bytes)} on their own"


def own_in_words(plan: PlanRecord) -> str:
    """What regularisers learn beside the network, and what that takes of a step."""
    adapters = f"{counted(plan.num_own_parameters, 'parameter')} of their own, trained too"
    if plan.added_seconds_per_step is None or plan.seconds_per_step is None or plan.added_bytes is None:
        return adapters
    before = plan.seconds_per_step - plan.added_seconds_per_step
    share = plan.added_seconds_per_step / before if before > 0 else 1.0
    time = (
        f"about {duration(plan.added_seconds_per_step)} a step more ({small_percent(share)})"
        if share >= _HARDLY
        else "hardly any time"
    )
    return f"{adapters}; {time} and {size(max(plan.added_bytes, 0))} of memory"


def flops_in_words(plan: PlanRecord) -> str | None:
    """What an image costs in a forward pass, and in that of training where reconstructors look on; None: not known."""
    if plan.multiply_adds is None:
        return None
    alone = f"{magnitude(plan.multiply_adds)} multiply–adds to look at an image"
    if plan.added_multiply_adds is None or plan.multiply_adds == 0:
        return alone
    share = small_percent(plan.added_multiply_adds / plan.multiply_adds)
    return f"{alone}; {magnitude(plan.training_multiply_adds or 0)} in training, with reconstructors (+{share})"


def trained_in_words(plan: PlanRecord) -> str:
    """How many parameters are trained, of how many, and their share."""
    everything = plan.num_trained + plan.num_frozen
    return f"{count(plan.num_trained)} of {count(everything)} parameters trained ({small_percent(plan.num_trained / everything)})"


def memory_in_words(plan: PlanRecord) -> str:
    """The largest memory of training, or why it is not known."""
    return plan.peak_reason or "not measured" if plan.peak_bytes is None else f"about {size(plan.peak_bytes)}"


_LARGE = 100  # factors from here on are shown as whole numbers


def compared_in_words(*, adapted: bool) -> str:
    """The similarity, and where it is not that to the network as it came, to what.

    >>> compared_in_words(adapted=True)
    'debiased CKA to the adapted network'
    """
    return f"debiased CKA{' to the adapted network' if adapted else ''}"


def kept_in_words(keep: KeepRecord, batch_norm: BatchNormRecord | None = None) -> str:
    """What was asked for, what was found, and what it took; with ``batch_norm`` it is said where training started.

    >>> kept_in_words(KeepRecord(target=0.8, found=[0.79], factors=[3.25], tolerance=0.03))
    'debiased CKA of 0.8 on val asked for, 0.790 found; terms that keep features × 3.2'
    """
    reached = "not defined" if not (known := _known(keep)) else f"{_range([NUMBERS(each) for each in known])} found"
    factor = _range([factor_in_words(each) for each in sorted(keep.factors)])
    compared = compared_in_words(adapted=_starts_adapted(batch_norm))
    return f"{compared} of {keep.target:g} on val asked for, {reached}; terms that keep features × {factor}"


def factor_in_words(factor: float) -> str:
    """A factor with two digits that count.

    >>> [factor_in_words(factor) for factor in (0.0001, 1.0, 13.323, 4567.8)]
    ['0.0001', '1', '13', '4568']
    """
    return f"{factor:.2g}" if factor < _LARGE else f"{factor:.0f}"


def missed_in_words(keep: KeepRecord, batch_norm: BatchNormRecord | None = None) -> str:
    """What was reached instead, and what to do.

    Args:
        keep: The similarity that was to be kept, which is not the one that was found.
        batch_norm: What BatchNorm did; frozen statistics are advised only where they moved, and it is said where training
            started.
    """
    missed = [value for value in _known(keep) if abs(value - keep.target) > keep.tolerance]
    num_undefined = keep.found.count(None)
    sentences: list[str] = []
    if missed:
        several = f"{len(missed)} of {len(keep.found)} models that were kept have"
        models = "the model that was kept has" if len(keep.found) == 1 else several
        reached = _range([NUMBERS(value) for value in missed])
        compared = compared_in_words(adapted=_starts_adapted(batch_norm))
        sentences.append(f"--keep {keep.target:g} was not reached: {models} a {compared} of {reached} on val.")
    if num_undefined:
        models = "" if len(keep.found) == 1 else f" for {num_undefined} of {len(keep.found)} models"
        reason = "there are too few images, or features have collapsed"
        sentences.append(f"--keep {keep.target:g}: the similarity on val is not defined{models}; {reason}.")
    if any(value < keep.target for value in missed):
        moves = batch_norm is not None and bool(batch_norm.num_layers) and batch_norm.effective_mode != "frozen"
        frozen = ", or --batch-norm frozen" if moves else ""
        sentences.append(f"Where less was kept, give more epochs or a lower --learning-rate{frozen}.")
    if any(value > keep.target for value in missed):
        sentences.append("Where more was kept, give more epochs or a higher --learning-rate.")
    return " ".join(sentences)


def _starts_adapted(batch_norm: BatchNormRecord | None) -> bool:
    return batch_norm is not None and batch_norm.mode == "adapt"


def _known(keep: KeepRecord) -> list[float]:
    return sorted(value for value in keep.found if value is not None)


def _range(ascending: Sequence[str]) -> str:
    """Texts of the smallest and the largest, or of the only one."""
    first, last = ascending[0], ascending[-1]
    return first if first == last else f"{first} to {last}"
