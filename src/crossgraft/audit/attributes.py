"""Attributes such as sex and age as confounders: they cannot be painted, so images are chosen instead of edited."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64, Shaped

from crossgraft.audit.group_metrics import flags_of
from crossgraft.audit.reliance import pair_auc
from crossgraft.data import make_split
from crossgraft.edit.injection import draw_carriers, num_edited
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.seeding import derive_seed

Column = Shaped[np.ndarray, " num_images"]
_Numbers = Float64[np.ndarray, " num_known"]
_Chosen = Bool[np.ndarray, " num_known"]
_NAMES_SHOWN = 10
_CUT = re.compile(r"([<>]?)\s*(\S+)")


class BinaryAttribute(NamedTuple):
    """A column as yes or no.

    Attributes:
        flags: (n,) whether the attribute is present; False where it is not known.
        known: (n,) whether the column says anything.
        in_words: What is present: ``sex F``, ``age above 55``.
    """

    flags: np.ndarray
    known: np.ndarray
    in_words: str

    @property
    def num_missing(self) -> int:
        """Images without a value, which are left out."""
        return int((~self.known).sum())


def binary_attribute(
    values: Column, present: str | float | None = None, *, name: str, missing: Collection[str] = ()
) -> BinaryAttribute:
    """A column of texts or numbers as an attribute that images have or do not have.

    Two values: the one that is named, or else the last in order. More texts: the one that is named against all others. More
    numbers: those above the cut that is named, or else above the median; where nothing lies above it, the largest number alone.

    Args:
        values: (n,) texts, numbers or truth values; None, NaN and blanks are missing.
        present: Value that counts as present; of numbers the cut, as ``55`` or ``>55``, or ``<55``; of codes ``=3``.
        name: Name of the column.
        missing: Further values that say nothing, such as ``unknown``.

    Raises:
        DataError: All known values are equal, or all lie on one side of the cut.
        UsageError: There are more than two texts and none is named, or the cut is no number.
        UnknownNameError: No image has the named value; the message gives the nearest ones.
    """
    texts = [_text(value, missing) for value in np.asarray(values).tolist()]
    known = np.array([text is not None for text in texts], dtype=bool)
    known_texts = [text for text in texts if text is not None]
    numbers = _numbers(known_texts)
    if numbers is not None:
        known_texts = [_as_text(number) for number in numbers.tolist()]
    names = sorted(set(known_texts))
    if len(names) < 2:
        has = f"one value ({names[0]})" if names else "no value"
        raise DataError(
            f"The column {name} has {has}, and is missing for {int((~known).sum())} of {len(known)} images; an attribute needs "
            "two values."
        )
    wanted = None if present is None else str(present).strip()
    start = (wanted or " ")[:1]
    if numbers is None or start == "=" or (len(names) == 2 and start not in "<>"):
        chosen, words = _named(known_texts, numbers, names, wanted, name)
    else:
        chosen, words = _cut(numbers, wanted, name)
    flags = np.zeros(len(known), dtype=bool)
    flags[known] = chosen
    return BinaryAttribute(flags, known, words)


def _named(
    texts: Sequence[str], numbers: _Numbers | None, names: Sequence[str], wanted: str | None, name: str
) -> tuple[_Chosen, str]:
    """The images of one value, and what it is in words."""
    if wanted is None and len(names) > 2:
        shown = ", ".join(names[:_NAMES_SHOWN]) + (" …" if len(names) > _NAMES_SHOWN else "")
        raise UsageError(
            f"The column {name} has {len(names)} values ({shown}). Name the one that counts as present, which is set against "
            "all others, or those that mean a missing value."
        )
    if wanted is None:
        wanted = names[-1] if numbers is None else _as_text(float(numbers.max()))
    elif numbers is not None:
        wanted = wanted.removeprefix("=").strip()
        wanted = wanted if (number := _number(wanted)) is None else _as_text(number)
    if wanted not in names:
        raise UnknownNameError(f"value of the column {name}", wanted, names)
    return np.array([text == wanted for text in texts], dtype=bool), f"{name} {wanted}"


def _cut(numbers: _Numbers, wanted: str | None, name: str) -> tuple[_Chosen, str]:
    """The images on one side of a number, and which side in words."""
    if wanted is None:
        cut = float(np.quantile(numbers, 0.5, method="inverted_cdf"))
        if cut == numbers.max():  # nothing lies above it
            cut = float(numbers[numbers < cut].max())
        return numbers > cut, f"{name} above {cut:.10g}"
    matched = _CUT.fullmatch(wanted)
    number = None if matched is None else _number(matched[2])
    if matched is None or number is None:
        raise UsageError(f"The column {name} holds numbers, and {wanted} is no cut of them. Write for example: >55.")
    below = matched[1] == "<"
    words = f"{name} {'below' if below else 'above'} {number:.10g}"
    chosen = numbers < number if below else numbers > number
    if chosen.all() or not chosen.any():
        raise DataError(
            f"{'Every' if chosen.all() else 'No'} image has {words}: values lie between {numbers.min():.10g} and "
            f"{numbers.max():.10g}. Choose another cut."
        )
    return chosen, words


def _text(value: object, missing: Collection[str]) -> str | None:
    """The value as text, whole numbers without a point; None where it is missing."""
    if value is None or value != value:
        return None
    text = _as_text(value) if isinstance(value, float) else str(value).strip()
    return None if not text or text.casefold() == "nan" or text in missing else text


def _as_text(number: float) -> str:
    return str(int(number)) if number.is_integer() else str(number)


def _number(text: str) -> float | None:
    """The number that this text is; None for what is no finite one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _numbers(texts: Sequence[str]) -> _Numbers | None:
    """All values as numbers; None if one is not."""
    numbers = [_number(text) for text in texts]
    return None if None in numbers else np.array(numbers, dtype=np.float64)


Mask = Bool[np.ndarray, " num_images"]
RowNumbers = Int64[np.ndarray, " _"]
Cell = tuple[bool, bool]
P1, P0, N1, N0 = CELLS = ((True, True), (True, False), (False, True), (False, False))
"""Cells (class, attribute): positives and negatives with the attribute (1) and without (0)."""


@dataclass(frozen=True, eq=False)
class CellRows:
    """Images of one part by cell.

    Attributes:
        part: Where they are, for messages.
        cells: (n,) rows of each cell, of all rows.
        people: (n,) patient of each row.
        identities: (n,) identity of each row, which draws go by.
        in_words: The attribute.
        seed: Random seed.
    """

    part: str
    cells: Mapping[Cell, Mask]
    people: np.ndarray
    identities: Sequence[str]
    in_words: str
    seed: int

    def count(self, cell: Cell) -> int:
        """Number of images of a cell."""
        return int(self.cells[cell].sum())

    def among(self, rows: Mask, part: str) -> CellRows:
        """Only those of these rows."""
        cells = {cell: mask & rows for cell, mask in self.cells.items()}
        return CellRows(part, cells, self.people, self.identities, self.in_words, self.seed)

    def divide(self, test_share: float) -> tuple[CellRows, CellRows]:
        """A new split of whole patients, each cell at about the same shares."""
        for cell, mask in self.cells.items():
            patients = len(np.unique(self.people[mask]))
            if patients < 2:
                self._raise_few(cell, "of different patients for two parts", 2, patients)
        rows = np.flatnonzero(np.any([*self.cells.values()], axis=0))
        of_cell = np.argmax([self.cells[cell][rows] for cell in CELLS], axis=0)
        split = make_split(
            of_cell,
            self.people[rows],
            fractions={"train": 1 - test_share, "test": test_share},
            seed=derive_seed(self.seed, "patients of an attribute"),
            class_names=[cell_in_words(cell, self.in_words) for cell in CELLS],
        )
        chosen = np.zeros(len(self.people), dtype=bool)
        chosen[rows[split.rows("test")]] = True
        return self.divided_at(chosen)

    def divided_at(self, is_test: Mask) -> tuple[CellRows, CellRows]:
        """The two parts of a split."""
        usable = np.any([*self.cells.values()], axis=0)
        divided = np.intersect1d(self.people[usable & is_test], self.people[usable & ~is_test])
        if len(divided):
            raise DataError(
                f"{len(divided)} of {len(np.unique(self.people[usable]))} patients have images in development and in test. "
                "Give a split of whole patients."
            )
        return self.among(~is_test, "in development"), self.among(is_test, "in test")

    def size_of_dev(self, shares: Sequence[float], wanted: int | None) -> int:
        """Images of each class: what is wanted, or the most at which no share asks a cell for more than it has."""
        with_it, without, negatives = (self.count(cell) for cell in (P1, P0, N0))

        def needs(size: int) -> tuple[int, int]:
            carrying = [num_edited(size, share) for share in shares]
            return max(carrying), size - min(carrying)

        size = wanted
        if size is None:
            possible = range(min(with_it + without, negatives), 0, -1)
            fits = (each for each in possible if needs(each)[0] <= with_it and needs(each)[1] <= without)
            size = next(fits, 1)
        for cell, number in zip((P1, P0, N0), (*needs(size), size), strict=True):
            self._refuse_few(cell, number)
        return size

    def size_of_test(self, wanted: int | None) -> int:
        """Images of each cell: what is wanted, or the most that all of them have."""
        size = max(1, min(map(self.count, CELLS))) if wanted is None else wanted
        for cell in CELLS:
            self._refuse_few(cell, size)
        return size

    def draw(self, cell: Cell, number: int) -> RowNumbers:
        """The first images of a cell, in an order that depends on the seed and on nothing but the images."""
        share = number / self.count(cell) if number else 0.0
        return np.flatnonzero(draw_carriers(self.cells[cell], share, self.identities, seed=self.seed))

    def positives(self, number: int, carrying: int) -> RowNumbers:
        """So many positives, so many of which have the attribute."""
        return np.r_[self.draw(P1, carrying), self.draw(P0, number - carrying)]

    def _refuse_few(self, cell: Cell, wanted: int) -> None:
        if (available := self.count(cell)) < wanted:
            self._raise_few(cell, self.part, wanted, available)

    def _raise_few(self, cell: Cell, where: str, wanted: int, available: int) -> None:
        raise DataError(
            f"Too few {cell_in_words(cell, self.in_words)} {where}: {wanted} wanted, {available} available. "
            "Collect more, ask for fewer, or choose another value or cut of the attribute."
        )


def by_cell(truth: Mask, carries: Mask, usable: Mask) -> dict[Cell, Mask]:
    """(n,) the rows of each cell."""
    return {(own, has): usable & (truth == own) & (carries == has) for own, has in CELLS}


def cell_in_words(cell: Cell, in_words: str) -> str:
    """``positive images with sex F``."""
    return f"{'positive' if cell[0] else 'negative'} images {'with' if cell[1] else 'without'} {in_words}"


TEST_SHARE = 0.25


class AttributeDraw(NamedTuple):
    """The rows of one share.

    Attributes:
        share: p, wanted share of the positives that have the attribute.
        dev: Rows to train and select with: positives at the share, negatives without the attribute.
        iid: Test rows like those.
        dev_share: Share of the positives of ``dev`` that have it: of 31 not 0.1, but 3 / 31.
    """

    share: float
    dev: np.ndarray
    iid: np.ndarray
    dev_share: float


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
    truth, carries = flags_of(labels, "labels"), flags_of(attribute, "attribute")
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
    truth, carries = flags_of(labels, "labels"), flags_of(attribute, "attribute")
    _refuse_lengths(truth, carries, scores)
    cells = by_cell(truth, carries, np.ones(len(truth), dtype=bool))
    for cell, mask in cells.items():
        if not mask.any():
            raise DataError(f"There are no {cell_in_words(cell, in_words)}; a comparison needs some in each cell.")
    p1, p0, n1, n0 = (np.asarray(scores)[mask] for mask in cells.values())
    return AttributeScores(clean=pair_auc(p0, n0), aligned=pair_auc(p1, n0), ood=pair_auc(p0, n1), both=pair_auc(p1, n1))


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
