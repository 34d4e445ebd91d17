"""Two models beside each other, in words."""

from __future__ import annotations

from crossgraft.compare.geometry_words import forgetting_in_words
from crossgraft.compare.record import Measure, ModelComparisonRecord, ModelPair
from crossgraft.words.formatting import NumberFormat

NUMBERS = NumberFormat(decimals=3)
MEASURES: dict[Measure, str] = {
    "cka": "CKA",
    "cka_debiased": "CKA (debiased)",
    "rbf_cka": "RBF CKA",
    "cca": "CCA",
    "svcca": "SVCCA",
    "pwcca": "PWCCA (weights of the first)",
    "pwcca_reversed": "PWCCA (weights of the second)",
    "procrustes": "Procrustes distance",
    "rsa": "RSA (correlation)",
    "rsa_euclidean": "RSA (Euclidean)",
}
"""Each measure in a table."""
DISTANCES: frozenset[Measure] = frozenset({"procrustes"})
"""Measures that are 0, not 1, for the same features."""


def pair_in_words(pair: ModelPair) -> str:
    """What a pair is: ``A with B``, ``what fine-tuning changed in A``."""
    if pair.of == "change":
        label = pair.second if pair.first == f"{pair.second} before" else ""
        return f"{label} before and after fine-tuning" if label else "A before and B after fine-tuning"
    return "A with B before fine-tuning" if pair.of == "before" else "A with B"


def answer_in_words(record: ModelComparisonRecord) -> str:
    """How alike the features and the mistakes of the two models are, and what other images say of their bodies."""
    pair = record.pairs[0]
    forgotten = None if record.geometry is None else record.geometry.forgetting
    probed = "" if forgotten is None else forgetting_in_words(forgotten)
    return " ".join(each for each in (_features(pair), _layer(pair), _mistakes(pair), probed) if each)


def _features(pair: ModelPair) -> str:
    found = pair.measured("cka_debiased")
    if found is None or found.value is None:
        reason = "" if found is None or found.reason is None else f": {found.reason}"
        return f"The penultimate features cannot be compared{reason}"
    beside = "" if found.untrained is None else f"; two untrained networks have {NUMBERS(found.untrained)}"
    what = "Fine-tuning left the penultimate features at" if pair.is_a_change else "Penultimate features have"
    return f"{what} a debiased CKA of {NUMBERS(found.value)}{beside}."


def _layer(pair: ModelPair) -> str:
    """The layer that changed most, of a network before and after."""
    grid = pair.cka
    if not pair.is_a_change or grid is None or grid.rows != grid.columns or len(grid.rows) < 2:
        return ""
    own = [grid.values[place][place] for place in range(len(grid.rows))]
    least = min(range(len(own)), key=own.__getitem__)
    return f"The layer that changed most is {grid.rows[least]} ({NUMBERS(own[least])})."


def _mistakes(pair: ModelPair) -> str:
    found = pair.mistakes
    if found is None:
        return ""
    kappa = "" if found.kappa is None else f", κ {NUMBERS(found.kappa)}"
    beside = f"{NUMBERS(found.independent)} if independent{kappa}"
    said = f"{NUMBERS(found.value)} of images are right in both or wrong in both ({beside})"
    if found.value > found.independent_high:
        return f"The two fail on the same images more often than independent models would: {said}."
    if found.value < found.independent_low:
        return f"The two fail on the same images less often than independent models would: {said}."
    return f"Shared mistakes are no more than independent models would have: {said}."
