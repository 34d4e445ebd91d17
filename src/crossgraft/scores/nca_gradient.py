"""NCA × gradient: features that suit the task, times layers that are ready to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from crossgraft.errors import UsageError
from crossgraft.scores._inputs import ReadableRows, ScoreInputs
from crossgraft.scores._score import Parts, scale_over_zoo, zoo_score
from crossgraft.scores._statistics import SHARED, Passes
from crossgraft.types import Features, Labels

_ALL_EQUAL = 0.5
"""What a part counts when all models have the same."""


def combine(parts: Sequence[Mapping[str, float]], *, scenario: str = "datasets") -> list[float]:
    """The two parts, each scaled to [0, 1] over the models, eq. 6.5, and multiplied.

    Args:
        parts: Parts of the models that are compared; a model that was trained on the target itself is none of them.
        scenario: ``datasets``: eq. 6.6, S_LP · S_FU, for models of one architecture from several source data sets.
            ``architectures``: (1 − S_LP) · (1 − S_FU) by eq. 6.8, for several architectures from one data set.

    Raises:
        UsageError: Unknown scenario.

    >>> rows = [{"nca": 0.5, "gradient_ratio": 3.0}, {"nca": 0.9, "gradient_ratio": 2.0}, {"nca": 0.7, "gradient_ratio": 4.0}]
    >>> [round(value, 2) for value in combine(rows)]
    [0.0, 0.0, 0.5]
    """
    if scenario not in ("datasets", "architectures"):
        raise UsageError(f"There is no scenario {scenario!r}. Use datasets or architectures.")
    suitable = scale_over_zoo([part["nca"] for part in parts], when_equal=_ALL_EQUAL)
    movable = scale_over_zoo([part["gradient_ratio"] for part in parts], when_equal=_ALL_EQUAL)
    pairs = zip(suitable, movable, strict=True)
    if scenario == "datasets":
        return [s_lp * s_fu for s_lp, s_fu in pairs]
    return [(1 - s_lp) * (1 - s_fu) for s_lp, s_fu in pairs]


@zoo_score(
    combine=combine,
    title="NCA × gradient",
    reference="Juodelyte, thesis on cross-domain transfer in medical imaging, chapter 6, eqs. 6.2–6.8",
    is_seeded=True,
    cost="NCA score and gradient ratio together",
)
def nca_gradient(
    features: Features,
    labels: Labels,
    model: object,
    images: ReadableRows,
    *,
    first: str | None = None,
    second: str | None = None,
    loo: bool = False,
    order: Literal["shuffled", "file"] = "shuffled",
    seed: int = 0,
    passes: Passes = SHARED,
) -> Parts:
    """S_LP (``nca_score``) and S_FU (``gradient_ratio``) of one model; ``combine`` multiplies them over the zoo.

    Args:
        features: (n, d).
        labels: (n,).
        model: The network, see ``gradient_ratio``.
        images: Its prepared images (n, …).
        first: Layer of the first gradient; by default the first convolution.
        second: Layer of the second gradient; by default the second convolution.
        loo: Option ``loo`` of ``nca_score``.
        order: Option ``order`` of ``gradient_ratio``.
        seed: Random seed of both.
        passes: As of ``gradient_ratio``, which shares its own.

    Returns:
        The parts ``nca`` and ``gradient_ratio``. Combined: in [0, 1], only comparable within one zoo; whoever is last in
        either part has 0, so the worst two are often tied. A part in which all are equal counts 0.5.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        NotApplicable: No model or images, or no gradient ratio for this network.
    """
    from crossgraft.scores import SCORES  # the registry holds this score too, so it exists only after this module

    inputs = ScoreInputs(features=features, labels=labels, model=model, images=images)
    ratio = SCORES.get("gradient_ratio").evaluate(inputs, first=first, second=second, order=order, seed=seed, passes=passes)
    suitable = SCORES.get("nca_score").evaluate(inputs, loo=loo, seed=seed)
    return Parts({"nca": suitable, "gradient_ratio": ratio}, warnings=(*suitable.warnings, *ratio.warnings))
