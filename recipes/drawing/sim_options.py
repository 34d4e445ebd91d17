"""One option of ρSIM at a time, its tokens, and its reconstructors: tables of docs/results/sim.md beside Fig. 3 and Table 10."""

from __future__ import annotations

import math

import pandas as pd
from scipy import stats
from tables import Difference, Lines, body, difference, gaps, marked, mean, mean_and_interval, median, of_variant, signed

from crossgraft.words.formatting import joined

SWEPT = {"rho": (0.2, (0.1, 0.4, 0.6, 0.8, 1.0)), "weight": (5e-3, (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0))}
"""Option → its default, which every sweep has, and the other values."""
HEAVIEST = "weight 1"
LOSSES = {"norm_l2": None, "norm_mse": 94.94, "mse": 94.66, "l1": 94.77, "wasserstein": 94.50, "kl": 94.85, "cosine": 94.54}
"""The default, and the others → their accuracy in Table 10."""
PUBLISHED_BASELINE = 94.65
WAYS = ("baseline", "drawn", "largest of those drawn", "largest norm", "placebo")
OF_TOKENS = ["set", "seed"]


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
    of_each = 100 * gaps(rows, variant, "baseline", "accuracy")
    middle, half = mean(of_each), half_width_of_all(rows)
    return Difference(middle, middle - half, middle + half, sum(of_each > 0), len(of_each))


def variants_of(option: str) -> list[tuple[float, str]]:
    default, others = SWEPT[option]
    return [(value, "rho_sim" if value == default else f"{option} {value:g}") for value in sorted((default, *others))]


def sweep_points(rows: pd.DataFrame) -> dict[str, list[tuple[float, Difference]]]:
    """Value and difference to the baseline, by option."""
    return {option: [(value, to_baseline(rows, variant)) for value, variant in variants_of(option)] for option in SWEPT}


def sweeps_table(rows: pd.DataFrame) -> str:
    """Every value of ρ and of the weight; memory as a multiple of the baseline's."""
    peaks = rows.pivot(index="seed", columns="variant", values="peak_bytes")
    return body(
        [option, f"{value:g}", *cells(rows, variant), median((peaks[variant] / peaks["baseline"]).dropna(), ".2f")]
        for option in SWEPT
        for value, variant in variants_of(option)
    )


def losses_table(rows: pd.DataFrame) -> Lines:
    for name, found in LOSSES.items():
        published = ["–", "–"] if found is None else [f"{found:.2f}", f"{found - PUBLISHED_BASELINE:+.2f}"]
        yield [f"`{name}`", *cells(rows, "rho_sim" if found is None else f"loss {name}"), *published]


def cells(rows: pd.DataFrame, variant: str) -> list[str]:
    found = to_baseline(rows, variant)
    return [f"{mean(rows[rows['variant'] == variant]['accuracy']):.3f}", marked(found), found.ahead_of_pairs]


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


def points_over(rows: pd.DataFrame, way: str, other: str) -> Difference | None:
    """Of accuracy, over pairs of set and seed."""
    return difference(100 * gaps(rows, way, other, "accuracy", OF_TOKENS))


def which_tokens(rows: pd.DataFrame) -> Lines:
    """One row per way to choose tokens, with differences over pairs of set and seed in points."""
    for way in WAYS:
        means = [of_variant(rows, way, metric, OF_TOKENS).groupby("seed").mean() for metric in ("accuracy", "auc")]
        others = ("baseline", "drawn", "placebo")
        to_others = ["" if way == other else signed(points_over(rows, way, other), 1) for other in others]
        yield [way, *map(mean_and_interval, means), *to_others]


def tokens_told(rows: pd.DataFrame) -> str:
    """What the rules of the log say of the largest norm."""
    drawn, placebo = (points_over(rows, "largest norm", other) for other in ("drawn", "placebo"))
    if drawn.low > 0 and placebo.low > 0:
        return "Tokens with the largest norm help, by the rule: both intervals lie above 0."
    size = f"A gain of more than {max(drawn.high, 0):.1f} points over drawn tokens is excluded here."
    return f"No effect of the choice is shown. {size}"


def what_comes_back(rows: pd.DataFrame) -> Lines:
    """Inverted test images by what was known of them; differences are image by image."""
    known = {key: own.set_index("image") for key, own in rows.groupby(["block", "known"], sort=False)}
    blocks = list(dict.fromkeys(rows["block"]))
    for (block, what), own in sorted(known.items(), key=lambda each: blocks.index(each[0][0])):
        others = ("features alone", what if "untrained" in what else what.replace("trained", "untrained"))
        to_others = [
            signed(difference(own["psnr"] - known[block, other]["psnr"]), 2) if (block, other) in known and other != what else ""
            for other in others
        ]
        yield [block, what, mean_and_interval(own["psnr"]), mean_and_interval(own["correlation"]), *to_others]


def leaks_told(rows: pd.DataFrame) -> dict[str, str]:
    """How much reconstructors add to what features give back, and how much of what they give back alone was learned."""
    known = {key: own.set_index("image")["psnr"] for key, own in rows.groupby(["block", "known"], sort=False)}
    blocks = [block for block in dict.fromkeys(rows["block"]) if (block, "features alone") in known]

    def over(one: str, other: str) -> dict[str, Difference]:
        return {block: difference(known[block, one] - known[block, other]) for block in blocks}

    added = over("features and trained reconstructor", "features alone")
    learned = over("trained reconstructor", "untrained reconstructor")
    above = [block for block, each in added.items() if each.low > 0]
    more = [f"{block} ({signed(each, 2)} dB)" for block, each in learned.items() if each.low > 0]
    less = [block for block, each in learned.items() if each.high < 0]
    told = f"more than an untrained one in {', '.join(more)}" if more else "nowhere more than an untrained one"
    return {
        "leaks_most": f"{max(each.high for each in added.values()):.2f}",
        "leaks_above": f"an interval above 0 in {', '.join(above)} alone" if above else "no interval above 0",
        "leaks_learned": told + (f", and less in {joined(less)}" if less else ""),
    }
