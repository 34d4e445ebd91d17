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
DECIDING = {"cka_debiased": "debiased CKA", "corrupted_accuracy": "accuracy on corrupted images", "accuracy": "accuracy"}


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
    """What decided the default beside RepSim and HCS, with its numbers."""
    said = [
        f"Beside {title}, statistics that stay give {_gains(tables, variant)}."
        for variant, title in {DEFAULT: "RepSim", "hcs 0.8": "HCS"}.items()
    ]
    of_weights = in_numbers(paired(tables, "l2_sp, frozen", "l2_sp", "cka_debiased")[0])
    return (
        f"{' '.join(said)} So `frozen` is the default there. Beside L2-SP, which compares weights, they give {of_weights} in "
        "debiased CKA, and `train` stays the default, as for what is trained without a regulariser."
    )


def _gains(tables: Tables, variant: str) -> str:
    found = {name: paired(tables, f"{variant}, frozen", variant, name)[0] for name in DECIDING}
    return joined([f"{in_numbers(found[name])} in {words}" for name, words in DECIDING.items()])
