"""One option of ρSIM at a time: tables of docs/results/sim.md beside Fig. 3 and Table 10 of the paper."""

from __future__ import annotations

import math

import pandas as pd
from scipy import stats
from tables import Difference, markdown, mean, median, signed

SWEPT = {"rho": (0.2, (0.1, 0.4, 0.6, 0.8, 1.0)), "weight": (5e-3, (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0))}
"""Option → its default, which every sweep has, and the other values."""
HEAVIEST = "weight 1"
LOSSES = {
    "norm_l2": None,
    "norm_mse": "MSE Loss (Normalized)",
    "mse": "MSE Loss",
    "l1": "ℓ1 Loss",
    "wasserstein": "Wasserstein Distance",
    "kl": "KL Divergence",
    "cosine": "Cosine Similarity",
}
"""The default, and the others → their names in Table 10."""
TABLE_10 = {
    "Cosine Similarity": 94.54, "KL Divergence": 94.85, "Wasserstein Distance": 94.50, "ℓ1 Loss": 94.77, "MSE Loss": 94.66,
    "MSE Loss (Normalized)": 94.94,
}  # fmt: skip
PUBLISHED_BASELINE = 94.65


def half_width_of_all(rows: pd.DataFrame) -> float:
    """Half of the 95 % interval that a mean difference of any two variants has, in points.

    Accuracy is taken as mean of its variant + what its seed shares + noise, whose variance is what is left over in all
    variants together: with two seeds alone an interval of each difference by itself would say nothing.
    """
    accuracy = 100 * rows.pivot(index="variant", columns="seed", values="accuracy").loc[list(rows["variant"].unique())].to_numpy()
    degrees = (accuracy.shape[0] - 1) * (accuracy.shape[1] - 1)
    means = accuracy.mean(axis=1, keepdims=True) + accuracy.mean(axis=0, keepdims=True) - accuracy.mean()
    deviation = math.sqrt(((accuracy - means) ** 2).sum() / degrees)
    return float(stats.t.ppf(0.975, degrees)) * deviation * math.sqrt(2 / accuracy.shape[1])


def to_baseline(rows: pd.DataFrame, variant: str) -> Difference:
    """Mean difference in points over all seeds."""
    of_seed = rows.pivot(index="seed", columns="variant", values="accuracy")
    gaps = [100 * (one - other) for one, other in zip(of_seed[variant], of_seed["baseline"], strict=True)]
    middle, half = mean(gaps), half_width_of_all(rows)
    return Difference(middle, middle - half, middle + half, sum(gap > 0 for gap in gaps), len(gaps))


def variants_of(option: str) -> list[tuple[float, str]]:
    default, others = SWEPT[option]
    return [(value, "rho_sim" if value == default else f"{option} {value:g}") for value in sorted((default, *others))]


def sweep_points(rows: pd.DataFrame) -> dict[str, list[tuple[float, Difference]]]:
    """Value and difference to the baseline, by option."""
    return {option: [(value, to_baseline(rows, variant)) for value, variant in variants_of(option)] for option in SWEPT}


def sweeps_table(rows: pd.DataFrame) -> str:
    """Every value of ρ and of the weight; memory as a multiple of the baseline's."""
    peaks = rows.pivot(index="seed", columns="variant", values="peak_bytes")
    lines = [
        [option, f"{value:g}", *cells(rows, variant), median((peaks[variant] / peaks["baseline"]).dropna(), ".2f")]
        for option in SWEPT
        for value, variant in variants_of(option)
    ]
    return markdown(["Option", "Value", "Accuracy", "− baseline, points", "Ahead, seeds", "Memory of a step"], lines)


def losses_table(rows: pd.DataFrame) -> str:
    lines: list[list[str]] = []
    for name, title in LOSSES.items():
        published = ["–", "–"] if title is None else [f"{TABLE_10[title]:.2f}", f"{TABLE_10[title] - PUBLISHED_BASELINE:+.2f}"]
        lines.append([f"`{name}`", *cells(rows, "rho_sim" if title is None else f"loss {name}"), *published])
    head = ["Loss", "Accuracy", "− baseline, points", "Ahead, seeds", "Published, %", "Published − baseline"]
    return markdown(head, lines)


def cells(rows: pd.DataFrame, variant: str) -> list[str]:
    found = to_baseline(rows, variant)
    said = f"**{signed(found, 2)}**" if found.excludes_0 else signed(found, 2)
    return [f"{mean(rows[rows['variant'] == variant]['accuracy']):.3f}", said, f"{found.ahead} of {found.pairs}"]


def beyond_chance(rows: pd.DataFrame) -> str:
    """The variants whose interval excludes 0, in words."""
    found = {name: to_baseline(rows, name) for name in rows["variant"].unique() if name != "baseline"}
    return ", ".join(f"{name} ({signed(each, 2)})" for name, each in found.items() if each.excludes_0) or "none"


def widths_told(rows: pd.DataFrame) -> str:
    """How much the width owes to the variant with the largest weight, which varies most."""
    others = rows[rows["variant"] != HEAVIEST]
    return (
        f"±{half_width_of_all(rows):.2f}, and ±{half_width_of_all(others):.2f} without {HEAVIEST}, which varies most; then they "
        f"exclude 0 for {beyond_chance(others)}, of {others['variant'].nunique() - 1} variants, of which chance alone makes "
        "about one in twenty"
    )
