"""Tables of the second part of docs/results/similarity.md: what methods make of weights, features and maps."""

from __future__ import annotations

from collections.abc import Mapping

from similarity_numbers import Gaps, Study, minus, of_method
from studies import difference_of
from study_tables import in_numbers, mean_and_interval, share_and_interval

METHOD_TITLES = {
    "linear": "LINEAR", "full": "FULL", "repsim": "RepSim", "l2_sp": "L2-SP", "interpolated": "interpolated, α = 0.5",
}  # fmt: skip
COLUMNS = {
    "accuracy": "Accuracy",
    "cka_debiased": "CKA, debiased",
    "loss": "Loss",
    "one_step": "Sharpness, 1 step",
    "many_steps": "Sharpness, 5 steps",
    "gradient": "Gradient",
    "to_start": "To start",
    "to_centre": "To centre",
    "accuracy_at_centre": "Accuracy at centre",
    "probe_natural": "Probe, natural images",
}
SEEN = {
    "distance": "Distance of centroids",
    "overlap": "Overlap in the plane",
    "gap": "Gap in one class",
    "drawn_gap": "Gap as drawn",
    "trustworthiness": "Trustworthiness",
    "attention": "Attention kept, test",
    "source_attention": "Attention kept, source",
}
SHARES = ("accuracy", "accuracy_at_centre", "probe_natural", "overlap", "attention", "source_attention")
"""Columns of numbers from 0 to 1."""
CLAIMS = (  # column, words, sign that keeping should have against FULL, what the paper has
    ("one_step", "flatter than FULL, 1 step", -1, "Table 2: 0.0158 and 0.0271"),
    ("many_steps", "flatter than FULL, 5 steps", -1, "Table 2"),
    ("to_centre", "closer to the centre", -1, "Table 3: 0.72 and 0.80"),
    ("accuracy_at_centre", "more accurate at the centre", 1, "not measured"),
    ("distance", "closer centroid", -1, "Fig. 3"),
    ("overlap", "more overlap in the plane", 1, "Fig. 3"),
    ("gap", "more of the gap in one class", 1, "Fig. 4"),
    ("attention", "more of the attention, test images", 1, "Fig. 5"),
    ("source_attention", "more of the attention, source images", 1, "Fig. 5"),
    ("probe_natural", "less forgetting of natural images", 1, "claimed, not measured"),
    ("accuracy", "accuracy", 0, "Table 1: 71.0 and 72.0"),
)


def models_of(study: Study) -> list[str]:
    return sorted({row.model for rows in study.geometry.values() for row in rows}, reverse=True)


def methods_table(study: Study, titles: Mapping[str, str]) -> str:
    """Mean and interval over sets and seeds, of each network; and of each set of it what is in Table 2."""
    parts: list[str] = []
    for model in models_of(study):
        sets = [titles[name] for name, rows in study.geometry.items() if any(row.model == model for row in rows)]
        seeds = sorted({row.seed for rows in study.geometry.values() for row in rows if row.model == model})
        said = f"{' and '.join(sets)}, seeds {', '.join(map(str, seeds))}"
        for columns in (COLUMNS, SEEN):
            lines = [f"| {model} | {' | '.join(columns.values())} |", "|---" * (1 + len(columns)) + "|"]
            for method, title in METHOD_TITLES.items():
                cells = [_cell(of_method(study, model, method, column), column) for column in columns]
                lines.append(f"| {title} | {' | '.join(cells)} |")
            parts.append("\n".join(lines))
        parts.insert(len(parts) - 2, f"**{model}**: {said}.")
    return "\n\n".join(parts) or "Not trained yet."


def _cell(found: Gaps, column: str) -> str:
    if column in ("one_step", "many_steps") and found:
        mean = sum(found.values()) / len(found)
        return f"{mean:.4f}"
    return (share_and_interval if column in SHARES else mean_and_interval)(list(found.values()))


def claims_table(study: Study) -> str:
    """Differences from FULL, paired by set and seed, of every method; the verdict is of RepSim."""
    methods = [name for name in METHOD_TITLES if name != "full"]
    titles = " | ".join(f"{METHOD_TITLES[name]} − FULL" for name in methods)
    lines = [f"| Network | Claim | {titles} | RepSim | Published |", "|---" * (4 + len(methods)) + "|"]
    for model in models_of(study):
        for column, words, sign, published in CLAIMS:
            full = of_method(study, model, "full", column)
            gaps = {name: minus(of_method(study, model, name, column), full) for name in methods}
            if not any(gaps.values()):
                continue
            cells = [_difference(gaps[name], column) for name in methods]
            lines.append(f"| {model} | {words} | {' | '.join(cells)} | {said(gaps['repsim'], sign)} | {published} |")
    return "\n".join(lines)


def _difference(gaps: Gaps, column: str) -> str:
    found = difference_of(list(gaps.values()))
    if found is None or column not in ("one_step", "many_steps"):
        return in_numbers(found)
    return f"{found.mean:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"


def said(gaps: Gaps, sign: int) -> str:
    """Does what is published show, with an interval that excludes 0? Where 0 is published, is it inside?"""
    found = difference_of(list(gaps.values()))
    if found is None:
        return "–"
    if found.low <= 0 <= found.high:
        return "not told apart" if sign == 0 else "not decided"
    here = 1 if found.mean > 0 else -1
    if sign == 0:
        return "higher" if here > 0 else "lower"
    return "holds" if here == sign else "the opposite"
