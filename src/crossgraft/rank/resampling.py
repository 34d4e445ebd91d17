"""Which images every score is evaluated without, and which labels it is compared with; the same for every model."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crossgraft.errors import DataError
from crossgraft.seeding import generator
from crossgraft.statistics import jackknife_blocks, shuffle_labels
from crossgraft.statistics.jackknife import Block
from crossgraft.tasks import task_of
from crossgraft.types import ClassIndices, Groups, LabelMatrix, Targets

NUM_SHUFFLES = 5
FEWEST_IMAGES_OF_LABEL = 10
"""A label is scored with at least this many images that have it, and as many that have not."""


@dataclass(frozen=True)
class Resampling:
    """Blocks to leave out, shuffled labels and the seed of scores; the same for every model, so that differences are paired.

    With several labels per image, scores see one label at a time.

    Attributes:
        blocks: Rows that are left out together.
        no_blocks_reason: Reason why there are no blocks.
        shuffled_labels: (n,), or (n, K) of the K scored labels; whole label sets move together.
        seed: Random seed of the scores.
        label_columns: (n, K) of 0 and 1 of the scored labels; None with one class per image.
        label_names: Names of those columns.
        labels_left_out: Other labels, and why they are not scored.
    """

    blocks: tuple[Block, ...]
    no_blocks_reason: str | None
    shuffled_labels: tuple[Targets, ...]
    seed: int
    label_columns: LabelMatrix | None = None
    label_names: tuple[str, ...] = ()
    labels_left_out: dict[str, str] = field(default_factory=dict)


def plan_resampling(
    targets: Targets, groups: Groups | None, *, seed: int, label_names: Sequence[str] | None = None
) -> Resampling:
    """Choose jackknife blocks and label permutations once for the whole zoo.

    Args:
        targets: Class of each row, or (n, L) of 0 and 1.
        groups: Stay together in blocks and permutations.
        seed: Random seed.
        label_names: Names of the L labels.

    Raises:
        DataError: There are labels, and none has enough images with it and without it.
    """
    if task_of(targets).classes_of_scores(targets) is None:
        names = [f"label {label}" for label in range(targets.shape[1])] if label_names is None else label_names
        return _plan_label_sets(targets, names, groups, seed)
    blocks, reason = _blocks(targets, groups, seed)
    if any(len(np.unique(np.delete(targets, block))) < 2 for block in blocks):
        blocks, reason = (), "One jackknife block holds all images of all classes but one."
    return Resampling(blocks, reason, _shuffles(targets, groups, seed), seed)


def _plan_label_sets(targets: LabelMatrix, names: Sequence[str], groups: Groups | None, seed: int) -> Resampling:
    """Blocks are drawn, and labels shuffled, as if each set of labels that occurs were a class."""
    sets, set_of_row = np.unique(targets, axis=0, return_inverse=True)
    set_of_row = set_of_row.ravel()
    blocks, reason = _blocks(set_of_row, groups, seed)
    why_not = [_why_not_scored(targets[:, label], blocks) for label in range(len(names))]
    scored = [label for label, why in enumerate(why_not) if why is None]
    left_out = {name: why for name, why in zip(names, why_not, strict=True) if why is not None}
    if not scored:
        first, why = next(iter(left_out.items()))
        raise DataError(
            f"None of the {len(names)} labels can be scored; the first is {first}: {why} Bring more images, or choose other "
            "labels (--label-column)."
        )
    return Resampling(
        blocks,
        reason,
        tuple(sets[shuffled][:, scored] for shuffled in _shuffles(set_of_row, groups, seed)),
        seed,
        label_columns=targets[:, scored],
        label_names=tuple(names[label] for label in scored),
        labels_left_out=left_out,
    )


def _why_not_scored(column: ClassIndices, blocks: Sequence[Block]) -> str | None:
    """Why a label cannot be scored, or None: it needs images with and without it, in every jackknife round."""
    for value, how in ((1, "with it"), (0, "without it")):
        is_value = column == value
        count = int(is_value.sum())
        if count < FEWEST_IMAGES_OF_LABEL:
            images = "image" if count == 1 else "images"
            return f"{count} {images} {how}, where at least {FEWEST_IMAGES_OF_LABEL} are needed."
        if any(is_value[block].sum() == count for block in blocks):
            return f"all {count} images {how} are of groups that one jackknife block leaves out together."
    return None


def _blocks(targets: ClassIndices, groups: Groups | None, seed: int) -> tuple[tuple[Block, ...], str | None]:
    try:
        return tuple(jackknife_blocks(targets, groups, seed=seed)), None
    except DataError as error:
        return (), str(error)


def _shuffles(targets: ClassIndices, groups: Groups | None, seed: int) -> tuple[ClassIndices, ...]:
    return tuple(shuffle_labels(targets, groups, generator(seed, "shuffled labels", i)) for i in range(NUM_SHUFFLES))
