"""Table 5 of RepSim, its ablations of Q, of the mean and of the size of batches: what is trained, and a table of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from repsim_variants import FORMS
from studies import MEDICAL_TARGETS, Difference, difference_of, verdict
from study_rows import Table, TrainingRow
from study_tables import in_numbers
from study_vit import VIT_NAME

OF = MEDICAL_TARGETS[0]
TARGET = OF._replace(name="ablations", title=f"{OF.title}, ablations")
WIDE = "mobilenetv2_035"
"""Its Q has 1280 × 1280 numbers, and with it a step of 4 images took 0.2 seconds on a busy core: no batches of 4."""
NETWORKS = (VIT_NAME, "resnet20", WIDE)
COMPARED = ("paper", "batch")
"""Forms with a covariance and a Q: the paper's, and the one that cancels the noise of batches."""
FIXED_Q, WITH_MEAN, BATCHES_OF_4, BATCHES_OF_128 = "fixed Q", "with μ", "batches of 4", "batches of 128"
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    FIXED_Q: ("learn_q=false", {}),
    WITH_MEAN: ("mean_weight=1", {}),
    BATCHES_OF_4: ("", {"batch_size": 4}),
    BATCHES_OF_128: ("", {"batch_size": 128}),
}
"""Of one thing each: options of RepSim, and of ``fine_tune``."""


class Ordering(NamedTuple):
    """What Table 5 orders; the study as it is otherwise (learned Q, no μ, batches of 64) is the empty name."""

    first: str
    second: str
    said: str
    published: str


ORDERINGS = (
    Ordering("", FIXED_Q, "learned Q − fixed Q", "+0.40, +0.04"),
    Ordering("", WITH_MEAN, "without μ − with μ", "+0.46, +0.09"),
    Ordering(BATCHES_OF_128, BATCHES_OF_4, "batches of 128 − of 4", "+2.53, +0.39"),
    Ordering("", BATCHES_OF_4, "batches of 64 − of 4", "of 32: +1.91, +0.09"),
)


def name_of(form: str, change: str, *, has_batch_norm: bool) -> str:
    """Of a variant; without a change it is one of the study."""
    return ", ".join(filter(None, (form, "frozen" if has_batch_norm else "", change)))


def ablations(network: str) -> dict[str, dict[str, Any]]:
    """Variant → options of ``fine_tune``; statistics of BatchNorm stay as they came, as they do by default."""
    has_batch_norm = network != VIT_NAME
    in_mode = {"batch_norm": "frozen"} if has_batch_norm else {}
    return {
        name_of(form, change, has_batch_norm=has_batch_norm): {
            "regularizer": f"repsim:{','.join(filter(None, (FORMS[form], said)))}",
            **options,
            **in_mode,
        }
        for change, (said, options) in CHANGES.items()
        if (network, change) != (WIDE, BATCHES_OF_4)
        for form in COMPARED
    }


def ablations_table(table: Table, study: Table) -> str:
    """Each ordering by kind of network and form, over pairs of network and seed; ``study`` has what nothing was changed of."""
    rows = {row.key: row for row in (*study.trainings, *table.trainings) if row.model in NETWORKS}
    lines = [
        "| Network | Form | Difference | Accuracy, points | CKA, debiased | Ahead in CKA | Published: accuracy, CKA | Here |",
        "|---" * 8 + "|",
    ]
    for kind, has_batch_norm in (("LayerNorm (ViT)", False), ("BatchNorm, frozen", True)):
        for form in COMPARED:
            for ordering in ORDERINGS:
                names = (name_of(form, change, has_batch_norm=has_batch_norm) for change in (ordering.first, ordering.second))
                both = list(_pairs(rows, *names, has_batch_norm=has_batch_norm))
                accuracy = difference_of([100 * ((one.accuracy or 0) - (two.accuracy or 0)) for one, two in both])
                similar = difference_of([(one.cka_debiased or 0) - (two.cka_debiased or 0) for one, two in both])
                if accuracy is not None and similar is not None:
                    cells = [kind, form, ordering.said, _points(accuracy), in_numbers(similar)]
                    cells += [f"{similar.ahead} of {similar.pairs}", ordering.published, verdict(similar).split(",")[0]]
                    lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else "Not trained yet."


def _pairs(
    rows: Mapping[tuple[str, str, int], TrainingRow], first: str, second: str, *, has_batch_norm: bool
) -> Iterator[tuple[TrainingRow, TrainingRow]]:
    """Trainings of the same network and seed that have numbers."""
    for (model, variant, seed), row in sorted(rows.items()):
        other = rows.get((model, second, seed))
        is_asked_for = variant == first and (model != VIT_NAME) is has_batch_norm
        if is_asked_for and other is not None and None not in (row.accuracy, other.accuracy):
            yield row, other


def _points(found: Difference) -> str:
    return f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"
