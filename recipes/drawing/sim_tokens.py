"""Informative tokens, and what comes back from reconstructors: tables of docs/results/sim.md."""

from __future__ import annotations

import pandas as pd
from tables import Difference, difference, markdown, mean_and_interval, signed

from crossgraft.words.formatting import joined

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
    found = {key: own.set_index("image") for key, own in rows.groupby(["block", "known"], sort=False)}
    known = {key: found[key] for block in dict.fromkeys(rows["block"]) for key in found if key[0] == block}
    lines: list[list[str]] = []
    for (block, what), own in known.items():
        alone, untrained = known.get((block, "features alone")), known.get((block, what.replace("trained", "untrained", 1)))
        has_twin = "trained" in what and "untrained" not in what
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
    """How much reconstructors add to what features give back, and how much of what they give back alone was learned."""
    known = {key: own.set_index("image")["psnr"] for key, own in rows.groupby(["block", "known"], sort=False)}
    blocks = [block for block in dict.fromkeys(rows["block"]) if (block, "features alone") in known]

    def gap(block: str, one: str, other: str) -> Difference:
        found = difference(known[block, one] - known[block, other])
        assert found is not None
        return found

    added = {block: gap(block, "features and trained reconstructor", "features alone") for block in blocks}
    learned = {block: gap(block, "trained reconstructor", "untrained reconstructor") for block in blocks}
    most = max(each.high for each in added.values())
    above = [block for block, each in added.items() if each.low > 0]
    adds = f"an interval above 0 in {', '.join(above)} alone" if above else "no interval above 0"
    more = [f"{block} ({signed(each, 2)} dB)" for block, each in learned.items() if each.low > 0]
    less = [block for block, each in learned.items() if each.high < 0]
    told = (
        f"Beside the features a trained reconstructor adds at most {most:.2f} dB to what comes back ({adds}), which nobody sees."
    )
    told += " By itself it gives back less than the features it was made from in every block"
    told += f"; more than an untrained one in {', '.join(more)}" if more else "; nowhere more than an untrained one"
    told += f", and less in {joined(less)}" if less else ""
    return f"{told}. So the network gives images away, and its reconstructors do not."
