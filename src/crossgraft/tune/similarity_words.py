"""Similarity to the pretrained network beside what BatchNorm statistics do to it, in words."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.tune.keeping_record import BatchNormRecord
from crossgraft.words.formatting import NumberFormat, counted

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
        rows[_UNTOUCHED] = {
            name: 1.0 if name.endswith("_adapted") else similarity.get(f"{name}_untouched") for name in names
        }
    return rows


def batch_norm_in_words(found: BatchNormRecord | None) -> str | None:
    """The mode, why it was chosen, and what it did; None of a network without BatchNorm statistics.

    >>> batch_norm_in_words(BatchNormRecord(mode="frozen", reason="because hcs compares features", num_layers=19))
    'frozen (because hcs compares features): 19 layers kept the statistics of the pretrained network'
    """
    if found is None or not found.num_layers:
        return None
    layers = counted(found.num_layers, "layer")
    if found.mode != found.effective_mode:
        return f"{layers} kept the statistics of the pretrained network, because the method moves none"
    moving = f"{found.num_moving} of {layers}" if (found.num_moving or found.num_layers) < found.num_layers else layers
    did = {
        "train": f"the statistics of {moving} moved with the batches",
        "frozen": f"{layers} kept the statistics of the pretrained network",
        "adapt": f"the statistics of {layers} were re-estimated on the training images before the first step",
    }[found.mode]
    return f"{found.mode}{f' ({found.reason})' if found.reason else ''}: {did}"


def untouched_in_words(similarity: Mapping[str, float]) -> str | None:
    """What re-estimated statistics do on their own; None where that was not measured."""
    debiased = similarity.get("cka_debiased_untouched")
    if debiased is None:
        return None
    return (
        "BatchNorm statistics of the training images alone, with no weight changed, give a debiased CKA of "
        f"{NUMBERS(debiased)}"
    )


def meaning_of(
    similarity: Mapping[str, float], batch_norm: BatchNormRecord | None, *, from_scratch: bool = False
) -> str | None:
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
    weights = (
        f"What training changed is in the values marked as adapted ({NUMBERS(similarity.get('cka_debiased_adapted'))})."
    )
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
