"""Attributes such as sex and age as confounders: they cannot be painted, so images are chosen instead of edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossgraft.audit._attribute_cells import CELLS, N0, CellRows, Mask, by_cell, cell_in_words
from crossgraft.audit._attribute_columns import BinaryAttribute as BinaryAttribute
from crossgraft.audit._attribute_columns import Column
from crossgraft.audit._attribute_columns import binary_attribute as binary_attribute
from crossgraft.audit.reliance import pair_auc
from crossgraft.edit.injection import num_edited
from crossgraft.errors import DataError, UsageError

REMARK = "An attribute may carry clinical signal: a gap is not proof of a wrong model."
TEST_SHARE = 0.25


class AttributeDraw(NamedTuple):
    """The rows of one share.

    Attributes:
        share: p, wanted share of the positives that have the attribute.
        dev: Rows to train and select with: positives at the share, negatives without the attribute.
        iid: Test rows like those.
        dev_share: Share of the positives of ``dev`` that have it: of 31 not 0.1, but 3 / 31.
        iid_share: The same of ``iid``.
    """

    share: float
    dev: np.ndarray
    iid: np.ndarray
    dev_share: float
    iid_share: float


class AttributeProtocol(NamedTuple):
    """Row numbers, ascending, of every set of images that an audit of an attribute needs.

    Attributes:
        draws: One per share, in the order in which they were given.
        ood: Positives without the attribute, negatives with it.
        aligned: Positives with it, negatives without.
        clean: Positives and negatives without it.
        balanced: As many of each of the four cells.
        test: All test rows; exact scores are of these.
        num_dev: Images of each class in ``dev``, at every share.
        num_test: Images of each class in a set of test images, and of each cell of ``balanced``.
    """

    draws: tuple[AttributeDraw, ...]
    ood: np.ndarray
    aligned: np.ndarray
    clean: np.ndarray
    balanced: np.ndarray
    test: np.ndarray
    num_dev: int
    num_test: int


class AttributeScores(NamedTuple):
    """Areas under the ROC curve between cells, P and N with (1) and without (0) the attribute.

    Attributes:
        clean: A(P0, N0).
        aligned: A(P1, N0).
        ood: A(P0, N1).
        both: A(P1, N1).
    """

    clean: float
    aligned: float
    ood: float
    both: float

    def iid(self, share: float, number: int) -> float:
        """Mean over all draws of ``number`` positives, k = round(share · number) of them with the attribute, exactly.

        (k A(P1, N0) + (number − k) A(P0, N0)) / number: every positive of a cell is drawn as often as any other.
        """
        carrying = num_edited(number, share)
        return (carrying * self.aligned + (number - carrying) * self.clean) / number


def draw_protocol(
    labels: Column,
    attribute: Column,
    units: Column | None,
    *,
    shares: Sequence[float],
    identities: Sequence[str],
    is_test: Mask | None = None,
    test_share: float = TEST_SHARE,
    num_dev: int | None = None,
    num_test: int | None = None,
    known: Mask | None = None,
    in_words: str = "the attribute",
    seed: int = 0,
) -> AttributeProtocol:
    """Divide patients into development and test first, then fill each set of images from the four cells (class, attribute).

    Only the share of the positives that have the attribute changes with p. Sizes do not, nor does the balance of the classes,
    1 : 1. Draws are nested: a positive with the attribute that is there at 0.2 is there at 0.5, too.

    Args:
        labels: (n,) 1 = positive.
        attribute: (n,) 1 = has it.
        units: (n,) patient of each image, all of whose images are in one part; None: images of one identity.
        shares: p, shares of the positives that have the attribute, each in [0, 1].
        identities: Identity of each image, such as the digest of its pixels; it decides every draw, so that the order of the
            rows does not matter.
        is_test: (n,) test rows of a split that is there; None: a new one, stratified by cell.
        test_share: Share of the images that a new split tests on.
        num_dev: Images of each class in development; None: the most that all shares can have.
        num_test: Images of each class in a test; None: the most that all tests can have.
        known: (n,) whether the attribute is known; other rows are left out.
        in_words: The attribute in messages, as ``BinaryAttribute.in_words``.
        seed: Random seed.

    Raises:
        DataError: Lengths differ, a value is not 0 or 1, a share not in [0, 1], a patient is in both parts, or a cell has too
            few images: it is named with the numbers wanted and available.
        UsageError: There is no share, or a size has no meaning.

    Cost: a hash per image and share.

    Source: the protocol is that of Juodelyte's thesis, chapter 4. The released code draws before it divides patients, so that
    some are in both parts, and it makes no i.i.d. test images.
    """
    truth, carries = _flags(labels, "labels"), _flags(attribute, "attribute")
    usable = np.ones(len(truth), dtype=bool) if known is None else np.asarray(known, dtype=bool)
    people = np.asarray(identities if units is None else units)
    _refuse_lengths(truth, carries, usable, people, identities, truth if is_test is None else is_test)
    _refuse_sizes(shares, test_share, num_dev, num_test)
    rows = CellRows("", by_cell(truth, carries, usable), people, identities, in_words, seed)
    dev, test = rows.divide(test_share) if is_test is None else rows.divided_at(np.asarray(is_test, dtype=bool))
    per_class, per_cell = dev.size_of_dev(shares, num_dev), test.size_of_test(num_test)
    negatives, (p1, p0, n1, n0) = dev.draw(N0, per_class), (test.draw(cell, per_cell) for cell in CELLS)
    draws: list[AttributeDraw] = []
    for share in shares:
        carrying, carrying_test = num_edited(per_class, share), num_edited(per_cell, share)
        draws.append(
            AttributeDraw(
                share=float(share),
                dev=np.sort(np.r_[dev.positives(per_class, carrying), negatives]),
                iid=np.sort(np.r_[test.positives(per_cell, carrying_test), n0]),
                dev_share=carrying / per_class,
                iid_share=carrying_test / per_cell,
            )
        )
    ood, aligned, clean = (np.sort(np.r_[pair]) for pair in ((p0, n1), (p1, n0), (p0, n0)))
    balanced, all_rows = np.sort(np.r_[p1, p0, n1, n0]), np.flatnonzero(np.any([*test.cells.values()], axis=0))
    return AttributeProtocol(tuple(draws), ood, aligned, clean, balanced, all_rows, per_class, per_cell)


def attribute_scores(
    scores: Float[np.ndarray, " num_images"], labels: Column, attribute: Column, *, in_words: str = "the attribute"
) -> AttributeScores:
    """The four areas under the ROC curve between the cells of test images, each with all of its images.

    Args:
        scores: (n,) a larger one speaks for the positive class.
        labels: (n,) 1 = positive.
        attribute: (n,) 1 = has it.
        in_words: The attribute in messages, as ``BinaryAttribute.in_words``.

    Raises:
        DataError: Lengths differ, a value is not 0 or 1, a score is NaN, or a cell has no image.
    """
    truth, carries = _flags(labels, "labels"), _flags(attribute, "attribute")
    _refuse_lengths(truth, carries, scores)
    cells = by_cell(truth, carries, np.ones(len(truth), dtype=bool))
    for cell, mask in cells.items():
        if not mask.any():
            raise DataError(f"There are no {cell_in_words(cell, in_words)}; a comparison needs some in each cell.")
    p1, p0, n1, n0 = (np.asarray(scores)[mask] for mask in cells.values())
    return AttributeScores(
        clean=pair_auc(p0, n0), aligned=pair_auc(p1, n0), ood=pair_auc(p0, n1), both=pair_auc(p1, n1)
    )


def _flags(values: Column, name: str) -> Mask:
    known = np.asarray(values)
    if not np.isin(known, (0, 1)).all():
        raise DataError(f"{name} must be 0 or 1 for each image.")
    return known.astype(bool)


def _refuse_lengths(first: Mask, *others: Sequence[str] | np.ndarray) -> None:
    lengths = [len(first), *map(len, others)]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise DataError(f"Every image needs one entry in each list; they have {', '.join(map(str, lengths))}.")


def _refuse_sizes(shares: Sequence[float], test_share: float, *sizes: int | None) -> None:
    if not len(shares):
        raise UsageError("A protocol needs at least one share, such as 0.")
    if not 0 < test_share < 1:
        raise UsageError(f"The share of test images must lie between 0 and 1, got {test_share!r}.")
    if any(size is not None and size < 1 for size in sizes):
        raise UsageError(f"Development and test need at least 1 image of each class, got {sizes}.")
