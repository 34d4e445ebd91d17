"""Informative tokens, and what comes back from reconstructors: tables of docs/results/sim.md."""

from __future__ import annotations

import pandas as pd
from tables import difference, markdown, mean_and_interval, signed

WAYS = ("baseline", "drawn", "largest of those drawn", "largest norm", "placebo")
_PLACE = ["set", "seed"]


def _of(rows: pd.DataFrame, variant: str, metric: str) -> pd.Series:
    return rows[rows["variant"] == variant].set_index(_PLACE)[metric].sort_index()


def which_tokens(rows: pd.DataFrame) -> str:
    """One row per way to choose tokens, with differences over pairs of set and seed in points."""
    lines = [
        [
            way,
            mean_and_interval(_of(rows, way, "accuracy").groupby("seed").mean()),
            mean_and_interval(_of(rows, way, "auc").groupby("seed").mean()),
            *(
                "" if way == other else signed(difference(100 * (_of(rows, way, "accuracy") - _of(rows, other, "accuracy"))), 1)
                for other in ("baseline", "drawn", "placebo")
            ),
        ]
        for way in WAYS
    ]
    return markdown(["Tokens", "Accuracy", "AUC", "− baseline, points", "− drawn, points", "− placebo, points"], lines)


def what_comes_back(rows: pd.DataFrame) -> str:
    """Inverted test images by what was known of them; differences are image by image."""
    known = {key: own.set_index("image") for key, own in rows.groupby(["block", "known"], sort=False)}
    lines: list[list[str]] = []
    for (block, what), own in known.items():
        alone, untrained = known.get((block, "features alone")), known.get((block, what.replace("trained", "untrained", 1)))
        has_twin = "trained" in what and "untrained" not in what and untrained is not None
        lines.append(
            [
                block,
                what,
                mean_and_interval(own["psnr"]),
                mean_and_interval(own["correlation"]),
                signed(difference(own["psnr"] - alone["psnr"]), 2) if alone is not None and what != "features alone" else "",
                signed(difference(own["psnr"] - untrained["psnr"]), 2) if has_twin and untrained is not None else "",
            ]
        )
    head = ["Block", "Known of an image", "PSNR, dB", "Correlation", "PSNR − features alone", "PSNR − untrained"]
    return markdown(head, lines)


def tokens_told(rows: pd.DataFrame) -> str:
    """What the rules of the log say of the largest norm."""
    own = _of(rows, "largest norm", "accuracy")
    found = {other: difference(100 * (own - _of(rows, other, "accuracy"))) for other in ("drawn", "placebo")}
    if all(each is not None and each.low > 0 for each in found.values()):
        return "Tokens with the largest norm help, by the rule: both intervals lie above 0."
    drawn = found["drawn"]
    size = "" if drawn is None else f" A gain of more than {max(drawn.high, 0):.1f} points over drawn tokens is excluded here."
    return f"No effect of the choice is shown.{size}"


def leaks_told(rows: pd.DataFrame) -> str:
    """In which blocks reconstructors help to invert."""
    known = {key: own.set_index("image")["psnr"] for key, own in rows.groupby(["block", "known"], sort=False)}
    blocks = [block for block in dict.fromkeys(rows["block"]) if (block, "features alone") in known]
    more: list[str] = []
    learned: list[str] = []
    for block in blocks:
        with_it, alone = known[block, "features and trained reconstructor"], known[block, "features alone"]
        added, by_training = (
            difference(with_it - alone),
            difference(with_it - known[block, "features and untrained reconstructor"]),
        )
        if added is not None and added.low > 0:
            more.append(f"{block} ({signed(added, 2)} dB)")
        if by_training is not None and by_training.low > 0:
            learned.append(f"{block} ({signed(by_training, 2)} dB)")
    adds = (
        f"Beside features, a trained reconstructor adds to what comes back in {', '.join(more)}"
        if more
        else ("Beside features, a trained reconstructor adds nothing to what comes back")
    )
    than = f"more than an untrained one in {', '.join(learned)}" if learned else "in no block more than an untrained one"
    return f"{adds}; {than}."
