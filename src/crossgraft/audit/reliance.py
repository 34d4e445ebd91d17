"""How far a model relies on an artefact: its AUC where the artefact goes with the class, and where it goes against it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int64, Num
from scipy.integrate import trapezoid

from crossgraft.edit.injection import num_edited
from crossgraft.errors import DataError
from crossgraft.metrics import auc

Shares = Float[np.ndarray, " shares"]
"""p_art, share of the positives that carry the artefact in training; ascending from 0."""
Scores = Float[np.ndarray, " _"]
CHANCE = 0.5
LEAST_SHARES = 3


class Curves(NamedTuple):
    """Areas under the ROC curve by share, of one fold.

    Attributes:
        shares: (p,) from 0.
        iid: (p,) on test images like those of training.
        ood: (p,) where negatives carry the artefact and positives are clean.
    """

    shares: np.ndarray
    iid: np.ndarray
    ood: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """What i.i.d. images promise and o.o.d. images do not keep."""
        return self.iid - self.ood


class ExactTestScores(NamedTuple):
    """Scores of every test image without and with the artefact; a larger one speaks for the positive class.

    Attributes:
        positives: (P,) clean.
        positives_edited: (P,) the same images with the artefact.
        negatives: (N,) clean.
        negatives_edited: (N,) with the artefact.
    """

    positives: np.ndarray
    positives_edited: np.ndarray
    negatives: np.ndarray
    negatives_edited: np.ndarray

    @property
    def clean(self) -> float:
        """A(P0, N0): nobody carries it."""
        return pair_auc(self.positives, self.negatives)

    @property
    def aligned(self) -> float:
        """A(P1, N0): every positive carries it."""
        return pair_auc(self.positives_edited, self.negatives)

    @property
    def ood(self) -> float:
        """A(P0, N1): every negative carries it, and no positive."""
        return pair_auc(self.positives, self.negatives_edited)

    @property
    def both(self) -> float:
        """A(P1, N1): everybody carries it."""
        return pair_auc(self.positives_edited, self.negatives_edited)

    def iid(self, share: float, number: int | None = None, *, negatives: float = 0.0) -> float:
        """Mean over all draws of k = round(share · P) positives that carry it: (k A(P1, N0) + (P − k) A(P0, N0)) / P, exactly.

        Where negatives carry it in training, too, they do here: a share q of them has A(P1, N1) and A(P0, N1) instead.

        Args:
            share: p_art, in [0, 1]; what counts is the share that can be realised, k / P: 3 of 31 is not 0.1.
            number: P, positives that are drawn; None: all.
            negatives: q, realised share of the negatives that carry it, drawn independently of the positives.
        """
        number = len(self.positives) if number is None else number
        carrying = num_edited(number, share) / number
        # as differences, so that an artefact that changes nothing gives exactly the clean AUC
        area = self.clean + carrying * (self.aligned - self.clean)
        if not negatives:
            return area
        with_clean_positives, with_edited_ones = self.ood - self.clean, self.both - self.aligned
        return area + negatives * ((1 - carrying) * with_clean_positives + carrying * with_edited_ones)


def pair_auc(positives: Scores, negatives: Scores) -> float:
    """Share of pairs of a positive and a negative in which the positive has the larger score; ties count half.

    Raises:
        DataError: One of the classes has no image, or a score is NaN.
    """
    if not (len(positives) and len(negatives)):
        raise DataError("An AUC needs images of both classes.")
    labels: Int64[np.ndarray, " _"] = np.r_[np.ones(len(positives), np.int64), np.zeros(len(negatives), np.int64)]
    return auc(np.r_[positives, negatives].astype(np.float64), labels).value


def shortcut_reliance_index(shares: Shares, iid: Shares, ood: Shares) -> float:
    """SRI = ∫₀¹ (gap(p) − gap(0)) dp, gap = iid − ood, by trapezoids over the shares as they are, up to the largest of them.

    0: the model does not use the artefact. A model that uses nothing else has 0.725 on the shares 0, 0.1, 0.2, 0.5, 0.8 and 1.
    A negative value is reported as it is.

    Args:
        shares: (p,) ascending, at least three, the first 0.
        iid: (p,) AUC on images like those of training.
        ood: (p,) AUC where the artefact goes against the class.

    Raises:
        DataError: 0 is missing, there are fewer than three shares, they do not ascend, or a value is not finite.
    """
    curves = checked_curves(shares, iid, ood)
    return float(trapezoid(curves.gap - curves.gap[0], curves.shares))


def ood_drop_area(shares: Shares, iid: Shares, ood: Shares) -> float:
    """∫₀¹ (ood(0) − ood(p)) dp: what is lost, without what i.i.d. images gain. Arguments as of ``shortcut_reliance_index``."""
    curves = checked_curves(shares, iid, ood)
    return float(trapezoid(curves.ood[0] - curves.ood, curves.shares))


def flip_share(shares: Shares, ood: Shares) -> float | None:
    """p_flip: the first share at which the o.o.d. AUC crosses chance downwards, between shares by a line; None: it never does.

    From there on the artefact speaks louder than the disease.
    """
    curves = checked_curves(shares, ood, ood)
    below = np.flatnonzero(curves.ood < CHANCE)
    if not len(below):
        return None
    place = int(below[0])
    if place == 0:
        return float(curves.shares[0])
    (left, right), (above, under) = curves.shares[place - 1 : place + 1], curves.ood[place - 1 : place + 1]
    return float(left + (right - left) * (above - CHANCE) / (above - under))


def early_gap(shares: Shares, iid: Shares, ood: Shares) -> float:
    """Gap at the smallest share above 0, less the gap at 0: how soon a model gives way."""
    gap = checked_curves(shares, iid, ood).gap
    return float(gap[1] - gap[0])


def pure_shortcut(shares: Shares) -> Curves:
    """The curves of a model that sees the artefact and nothing else: iid = ½ + p / 2, ood = 0 from the first share on."""
    given = np.asarray(shares, dtype=np.float64)
    return Curves(given, 0.5 + given / 2, np.where(given > 0, 0.0, 0.5))


def flip_effect(clean: Scores, edited: Scores) -> float:
    """Mean change of the logit when an image gets the artefact.

    Args:
        clean: (n,) probabilities of the positive class.
        edited: (n,) of the same images with the artefact.

    Raises:
        DataError: Numbers of images differ, or a value is no probability.
    """
    before, after = np.asarray(clean, dtype=np.float64), np.asarray(edited, dtype=np.float64)
    if before.shape != after.shape or not len(before):
        raise DataError(f"Each image is needed without and with the artefact; got {before.size} and {after.size}.")
    return float((logits_of(after) - logits_of(before)).mean())


def logits_of(probabilities: Num[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """ln(p / (1 − p)); a probability of 0 or 1, which has none, counts as ±36.

    Raises:
        DataError: A value is no probability.
    """
    given = np.asarray(probabilities, dtype=np.float64)
    if not (np.isfinite(given).all() and given.min(initial=0) >= 0 and given.max(initial=1) <= 1):
        raise DataError("A flip effect is of probabilities in [0, 1].")
    smallest = np.finfo(np.float64).eps
    inside = np.clip(given, smallest, 1 - smallest)
    return np.log(inside) - np.log1p(-inside)


def checked_curves(shares: Shares, iid: Shares, ood: Shares) -> Curves:
    """Curves whose summaries are defined; raises as ``shortcut_reliance_index``."""
    curves = Curves(*(np.asarray(each, dtype=np.float64) for each in (shares, iid, ood)))
    if not curves.shares.shape == curves.iid.shape == curves.ood.shape or curves.shares.ndim != 1:
        raise DataError("Shares, i.i.d. and o.o.d. values must be as many.")
    if not all(np.isfinite(each).all() for each in curves):
        raise DataError("A curve has values that are not finite. Leave out shares without a result.")
    if len(curves.shares) < LEAST_SHARES or (np.diff(curves.shares) <= 0).any() or curves.shares.max(initial=0) > 1:
        raise DataError(f"A curve needs at least {LEAST_SHARES} ascending shares in [0, 1], got {curves.shares.tolist()}.")
    if curves.shares[0] != 0:
        raise DataError("The share 0 is missing: what a model does without the artefact is not known.")
    return curves
