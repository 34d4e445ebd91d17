"""What weights do, and what keeping is for: tables of docs/results/repsim.md."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import numpy as np
from repsim_kinds import KINDS, comparable, of_kind, paired, reference_of, values
from repsim_variants import DEFAULT, FORMS, by_weight
from study_tables import Key, Tables, in_numbers, over_seeds

USES = {
    "probe_natural": "Probe, natural images",
    "probe_medical": "Probe, other medical set",
    "clean_accuracy": "Accuracy, clean",
    "corrupted_accuracy": "Accuracy, corrupted",
}
_COLUMNS_OF_WEIGHTS = ("Accuracy", "CKA, debiased")
SHOWN = ("full", "l2_sp", "hcs 0.8", *FORMS)


def weights(tables: Tables, vit: str) -> str:
    """Of the pairs of set and network that have every weight of a form that is there at all; others would be another mix."""
    lines = [f"| Network | Form | Weight | Pairs | {' | '.join(_COLUMNS_OF_WEIGHTS)} |", "|---" * 6 + "|"]
    cells: dict[tuple[str, str, str], dict[str, dict[Key, float]]] = {}
    for kind in KINDS:
        own = of_kind(tables, kind, vit)
        for form in FORMS:
            for metric in ("accuracy", reference_of(kind)):
                named = by_weight(form).items()
                of_weight = {weight: _seed_zero(values(own, name, metric)) for weight, name in named}
                there = {weight: found for weight, found in of_weight.items() if found}
                common = set.intersection(*map(set, there.values())) if len(there) > 1 else set[Key]()
                for weight, found in there.items() if common else ():
                    cells.setdefault((kind.title, form, weight), {})[metric] = {key: found[key] for key in common}
    for (title, form, weight), found in cells.items():
        shown = [over_seeds(of_metric) for of_metric in found.values()]
        places = max(len(of_metric) for of_metric in found.values())
        if len(shown) == len(_COLUMNS_OF_WEIGHTS):
            lines.append(f"| {title} | {form} | {weight} | {places} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _seed_zero(found: Mapping[Key, float]) -> dict[Key, float]:
    return {key: value for key, value in found.items() if key[2] == 0}


def uses(tables: Tables, vit: str) -> str:
    lines = [f"| Network | Variant | {' | '.join(USES.values())} |", "|---" * (len(USES) + 2) + "|"]
    for kind in KINDS[:3]:
        own = of_kind(tables, kind, vit)
        for variant in ("linear", *SHOWN):
            cells = [over_seeds(comparable(own, variant, metric)) for metric in USES]
            if any(cell != "–" for cell in cells):
                lines.append(f"| {kind.title} | {variant} | {' | '.join(cells)} |")
        before = [over_seeds(comparable(own, "full", f"{metric}_before")) if "probe" in metric else "" for metric in USES]
        if before[0] != "–":
            lines.append(f"| {kind.title} | *pretrained body* | {' | '.join(before)} |")
    return "\n".join(lines)


def use_differences(tables: Tables, vit: str) -> str:
    """Each form minus FULL, and how far similarity and use go together over trainings."""
    lines = [f"| Network | Variant − FULL | {' | '.join(USES.values())} |", "|---" * (len(USES) + 2) + "|"]
    for kind in KINDS[:3]:
        own = of_kind(tables, kind, vit)
        for variant in ("l2_sp", "hcs 0.8", *FORMS):
            found = [paired(own, variant, "full", metric)[0] for metric in USES]
            if any(found):
                lines.append(f"| {kind.title} | {variant} | {' | '.join(map(in_numbers, found))} |")
    sentences: list[str] = []
    for kind in KINDS[:3]:
        own = of_kind(tables, kind, vit)
        for metric in ("probe_natural", "probe_medical", "corrupted_accuracy"):
            correlation = _correlation(own, metric)
            if correlation is not None:
                sentences.append(f"- {kind.title}: {USES[metric]}: {correlation:+.2f}")
    said = "Correlation with debiased CKA over variants, within each set, network and seed (mean):"
    return "\n".join(lines) + (f"\n\n{said}\n\n" + "\n".join(sentences) if sentences else "")


def _correlation(tables: Tables, metric: str) -> float | None:
    """Spearman's between similarity and a number over variants, mean over set, network and seed."""
    of_place: dict[Key, list[tuple[float, float]]] = {}
    for variant in SHOWN:
        similar, found = values(tables, variant, "cka_debiased"), values(tables, variant, metric)
        for key in similar.keys() & found.keys():
            of_place.setdefault(key, []).append((similar[key], found[key]))
    ranks = [np.argsort(np.argsort(np.array(points), axis=0), axis=0) for points in of_place.values() if len(points) > 2]
    each = [float(np.corrcoef(rank.T)[0, 1]) for rank in ranks]
    return statistics.fmean(each) if each else None


def bought(tables: Tables, vit: str) -> str:
    """What the similarity of the default buys, in words."""
    bought = {
        "probe_natural": "less forgetting of natural images",
        "probe_medical": "features of more use for the other medical set",
        "corrupted_accuracy": "a higher accuracy on corrupted images",
    }
    lines: list[str] = []
    for kind in KINDS:
        own = of_kind(tables, kind, vit)
        gaps = {name: paired(own, DEFAULT, "full", name)[0] for name in bought}
        known = {name: gap for name, gap in gaps.items() if gap is not None}
        if not known:
            continue
        does = [bought[name] for name, gap in known.items() if gap.low is not None and gap.low > 0]
        costs = [bought[name] for name, gap in known.items() if gap.high is not None and gap.high < 0]
        open_ = [bought[name] for name in known if bought[name] not in (*does, *costs)]
        said = [f"buys {', '.join(does)}" if does else "buys nothing that shows"]
        said += [f"costs {', '.join(costs)}"] if costs else []
        said += [f"not decided: {', '.join(open_)}"] if open_ else []
        lines.append(f"- {kind.title}: {'; '.join(said)}.")
    return "\n".join(lines)
