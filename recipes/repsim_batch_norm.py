"""Which mode of BatchNorm: a table of docs/results/repsim.md."""

from __future__ import annotations

from repsim_kinds import paired
from repsim_uses import SHOWN, USES
from repsim_variants import DEFAULT
from study_tables import Tables, in_numbers

from crossgraft.words.formatting import joined

COLUMNS = {"accuracy": "Accuracy", "auc": "AUC", "cka_debiased": "CKA, debiased"} | {
    name: USES[name] for name in ("probe_natural", "probe_medical", "corrupted_accuracy")
}
DECIDING = {
    "cka_debiased": "debiased CKA",
    "corrupted_accuracy": "accuracy on corrupted images",
    "accuracy": "accuracy",
}


def batch_norm_modes(tables: Tables) -> str:
    """Each mode minus ``train``, over the pairs of set and network where both are there."""
    lines = [f"| Variant | Mode | Pairs | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 3) + "|"]
    for variant in SHOWN:
        for mode in ("frozen", "adapt"):
            found = {name: paired(tables, f"{variant}, {mode}", variant, name)[0] for name in COLUMNS}
            of_accuracy = found["accuracy"]
            if of_accuracy is not None:
                cells = [in_numbers(each) for each in found.values()]
                lines.append(f"| {variant} | {mode} | {of_accuracy.pairs} | {' | '.join(cells)} |")
    return "\n".join(lines)


def why_frozen(tables: Tables) -> str:
    """What decided the default beside RepSim, with its numbers."""
    said = [
        f"{in_numbers(paired(tables, f'{DEFAULT}, frozen', DEFAULT, name)[0])} in {words}"
        for name, words in DECIDING.items()
    ]
    return (
        f"Beside RepSim, statistics that stay give {joined(said)}. So `frozen` is the default there; for what is trained "
        "without it `train` stays the default."
    )
