"""What the thesis says of sources and shortcuts, each claim beside the rows of recipes/shortcut_sources.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from studies import difference_of

Row = Mapping[str, str]
MEAN = "mean"


class Claim(NamedTuple):
    """A difference of two sources that the thesis says something of.

    Attributes:
        said: What the thesis says, and where.
        first: Source that is subtracted.
        second: Source that it is subtracted from.
        metric: ``sri`` or ``clean_auc``.
        confounders: Artefacts that the claim is about.
        sign: Expected sign of the difference; 0: none.
    """

    said: str
    first: str
    second: str
    metric: str
    confounders: tuple[str, ...]
    sign: int


ALL = ("tag", "low_pass", "poisson_image", "nlm_denoising", MEAN)
CLAIMS = (
    Claim(
        "Medical pretraining is more robust than natural to a tag and to denoising (4.3: on CT the o.o.d. AUC falls from 0.84 to "
        "0.02 with ImageNet and to 0.22 with RadImageNet for the tag, from 0.7 to 0.01 and from 0.83 to 0.6 for denoising), and "
        "to frequency shortcuts (5.2.1).",
        "natural",
        "medical",
        "sri",
        ("tag", "low_pass", "nlm_denoising", MEAN),
        -1,
    ),
    Claim(
        "Both rely on Poisson noise alike where it is independent from pixel to pixel (4.3, X-rays).",
        "natural",
        "medical",
        "sri",
        ("poisson_image",),
        0,
    ),
    Claim("They classify about equally well (4.3, 5.2.1).", "natural", "medical", "clean_auc", ("",), 0),
    Claim(
        "Random weights rely on artefacts as much as ImageNet's, where they learn the task at all (4.3).",
        "natural",
        "random",
        "sri",
        ALL,
        0,
    ),
    Claim(
        "Pretraining on whitened medical images lets a network pick up the shortcut (5.2.4, with noise and NLM).",
        "medical",
        "whitened",
        "sri",
        ("poisson_image", "nlm_denoising", MEAN),
        1,
    ),
    Claim(
        "Pretraining on low-passed natural images makes a network more robust (5.2.4, with noise and NLM) …",
        "natural",
        "low_passed",
        "sri",
        ("poisson_image", "nlm_denoising", MEAN),
        -1,
    ),
    Claim(
        "… as robust as medical pretraining, or more (5.2.4).",
        "medical",
        "low_passed",
        "sri",
        ("poisson_image", "nlm_denoising", MEAN),
        0,
    ),
)


def claims(trainings: Sequence[Row], differences: Sequence[Row]) -> str:
    """One paragraph each."""
    told = [_difference(claim, differences) for claim in CLAIMS]
    told += [spread(trainings), epochs(trainings)]
    body = "".join(f"- {paragraph}\n" for paragraph in told if paragraph)
    return f"""
## Beside the thesis

ImageNet and RadImageNet, ResNet50 at full size, chest X-rays, CT and knee MRI there; small networks and sources and breast
ultrasound here. In brackets the interval over patients, which decides; whether that over three folds agrees is said, too.

{body}"""


def _difference(claim: Claim, differences: Sequence[Row]) -> str:
    parts: list[str] = []
    for name in claim.confounders:
        row = next(
            (
                each
                for each in differences
                if (each["source"], each["other"], each["metric"]) == (claim.first, claim.second, claim.metric)
                and each["confounder"].partition(":")[0] == name
            ),
            None,
        )
        if row is not None and row["patients_low"]:
            parts.append(f"{_label(claim, name)} {_told(row)}: {_verdict(row, claim.sign)}")
    if not parts:
        return ""
    titles = {"low_passed": "low-passed CIFAR-10", "natural": "CIFAR-10", "random": "random weights"}
    first, second = (titles.get(name, name) for name in (claim.first, claim.second))
    return f"**{claim.said}** Here, {second} less {first}: {'; '.join(parts)}."


def _label(claim: Claim, name: str) -> str:
    if claim.metric == "clean_auc":
        return "clean AUC"
    return "mean SRI of the artefacts" if name == MEAN else f"SRI, {name}"


def _told(row: Row) -> str:
    return f"{float(row['difference']):+.3f} [{float(row['patients_low']):+.3f}, {float(row['patients_high']):+.3f}]"


def _verdict(row: Row, sign: int) -> str:
    """By the interval over patients, and whether that over folds agrees."""
    found = _side(row, "patients_")
    if not found:
        return "not decided" if sign else "no difference shown"
    told = ("higher" if found > 0 else "lower") if sign == 0 else "as claimed" if found == sign else "the opposite"
    return told if _side(row, "") == found else f"{told} over patients, not decided over folds"


def _side(row: Row, prefix: str) -> int:
    """Sign of a difference whose interval does not hold 0; else 0."""
    low, high = (float(row[f"{prefix}{end}"] or "nan") for end in ("low", "high"))
    return int(low > 0) - int(high < 0)


def spread(trainings: Sequence[Row]) -> str:
    """Standard deviation between folds."""
    said = "**Random weights fluctuate most from fold to fold (5.2.1).** "
    found = {name: _between_folds(trainings, name) for name in ("natural", "medical", "random")}
    if any(value is None for value in found.values()):
        return ""
    titles = {"natural": "CIFAR-10", "medical": "medical", "random": "random weights"}
    values = ", ".join(f"{titles[name]} {value:.3f}" for name, value in found.items())
    return f"{said}Here, standard deviation of the o.o.d. AUC between folds, mean over artefacts and shares: {values}."


def _between_folds(trainings: Sequence[Row], source: str) -> float | None:
    cells: dict[tuple[str, str], list[float]] = {}
    for row in trainings:
        if row["source"] == source:
            cells.setdefault((row["confounder"], row["share"]), []).append(float(row["ood"]))
    return statistics.fmean(statistics.stdev(values) for values in cells.values()) if cells else None


def epochs(trainings: Sequence[Row]) -> str:
    """Epochs to convergence, training by training."""
    said = "**Medical pretraining needs more epochs: 141 on average, with ImageNet 72 (4.3; at most 200, learning rate 1e-5).** "
    from_natural = _paired_epochs(trainings, "natural", "medical")
    from_random = _paired_epochs(trainings, "natural", "random")
    if not from_natural:
        return ""
    told = [_gap("medical less CIFAR-10", from_natural)]
    if from_random:
        told.append(_gap("random weights less CIFAR-10", from_random))
    return (
        f"{said}Here, epoch that val picks of ten, trainings of the same fold, share and artefact paired (Student's t; they "
        f"share images, so take it as rough): {'; '.join(told)}."
    )


def _paired_epochs(trainings: Sequence[Row], first: str, second: str) -> list[float]:
    def of(source: str) -> dict[tuple[str, str, str], float]:
        key: Callable[[Row], str] = lambda row: "" if row["share"] == "0" else row["confounder"]  # noqa: E731
        return {(key(row), row["share"], row["fold"]): float(row["best_epoch"]) for row in trainings if row["source"] == source}

    before, after = of(first), of(second)
    return [after[name] - before[name] for name in before if name in after]


def _gap(what: str, gaps: Sequence[float]) -> str:
    found = difference_of(gaps)
    if found is None:
        return what
    verdict = "not decided" if found.low <= 0 <= found.high else "more" if found.low > 0 else "fewer"
    return f"{what} {found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}], {found.pairs} pairs: {verdict}"
