"""Long and short trainings beside each other: the first tables of docs/results/repsim.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

from repsim_few_steps import CHOSEN_ON, EPOCHS, JUDGED, gaps, variant_of
from repsim_kinds import paired, values
from repsim_variants import default_variant
from studies import difference_of
from study_tables import Key, Tables, in_numbers, over_pairs

FORMS = {"full": "FULL", "repsim": "`repsim`: 1 − CKA", "paper": "`repsim:preset=paper`: eq. 13–14"}
"""What trainings of both lengths have; by their names in few steps."""
METRICS = ("cka_debiased", "accuracy")


def long_variant(form: str, *, has_batch_norm: bool) -> str:
    """Its name in the study, with what ``crossgraft tune`` does about BatchNorm when nobody asks."""
    if form == "repsim":
        return default_variant(has_batch_norm=has_batch_norm)
    return "paper, frozen" if form == "paper" and has_batch_norm else form


def headline(tables: Tables, few: Tables, vit: str) -> str:
    """One line a set and network: debiased CKA / accuracy of each form, of the short trainings and of the long ones."""
    lengths = [f"{epochs} epochs" for epochs in (*EPOCHS, 15)]
    titles = [f"{title}, {length}" for length in lengths for title in FORMS.values()]
    lines = [f"| Set | Network | {' | '.join(titles)} |", "|---" * (2 + len(titles)) + "|"]
    for name in dict.fromkeys([*tables, *few]):
        long, short = ({name: each[name]} if name in each else {} for each in (tables, few))
        models = sorted({row.model for each in (long, short) for table in each.values() for row in table.trainings})
        for model in models:
            cells = [_cell(short, variant_of(form, epochs), model) for epochs in EPOCHS for form in FORMS]
            cells += [_cell(long, long_variant(form, has_batch_norm=model != vit), model) for form in FORMS]
            lines.append(f"| {name} | {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(tables: Tables, variant: str, model: str) -> str:
    """Means over seeds; – where there is no training."""
    found = [[v for key, v in values(tables, variant, metric).items() if key[1] == model] for metric in METRICS]
    return " / ".join(f"{statistics.fmean(each):.3f}" for each in found) if all(found) else "–"


def differences(tables: Tables, few: Tables, vit: str) -> str:
    """Each form minus FULL over pairs of set, length and network, with intervals; by network where something was decided."""
    lines = ["| Trainings | Form | Network | Pairs | Debiased CKA | Accuracy |", "|---" * 6 + "|"]
    normed = sorted({row.model for table in tables.values() for row in table.trainings if row.model != vit})
    for form in list(FORMS)[1:]:
        variant = long_variant(form, has_batch_norm=True)
        found = {metric: _of_models(paired(tables, variant, "full", metric)[1], normed) for metric in METRICS}
        lines += _line("15 epochs", FORMS[form], "all with BatchNorm", found)
    parts = {"few steps": JUDGED, "few steps, sets of the choice": CHOSEN_ON}
    for part, names in parts.items():
        of_part = {name: few[name] for name in names if name in few}
        models = sorted({row.model for table in of_part.values() for row in table.trainings})
        for form, title in {**FORMS, "repsim, train": "`repsim --batch-norm train`: 1 − CKA, the default before"}.items():
            by_network = models if (form, names) == ("repsim", JUDGED) else []
            for model in [*by_network, ""] if form != "full" else []:
                found = {metric: gaps(of_part, form, metric, model) for metric in METRICS}
                lines += _line(part, title, model or "all", found)
    seeds = sorted({str(row.seed) for table in few.values() for row in table.trainings})
    return "\n".join([*lines, "", f"Seeds of the short trainings: {', '.join(seeds) or 'none'}."])


def _of_models(found: Mapping[Key, float], models: Iterable[str]) -> dict[Key, float]:
    return {key: value for key, value in found.items() if key[1] in models}


def _line(part: str, title: str, network: str, found: Mapping[str, Mapping[Key, float]]) -> list[str]:
    pairs = {metric: over_pairs(of_metric) for metric, of_metric in found.items()}
    if not all(pairs.values()):
        return []
    cells = [in_numbers(difference_of(of_metric)) for of_metric in pairs.values()]
    return [f"| {part} | {title} | {network} | {len(pairs['accuracy'])} | {' | '.join(cells)} |"]
