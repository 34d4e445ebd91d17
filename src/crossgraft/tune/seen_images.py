"""Which of the images that are predicted a model has learned from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from crossgraft.data.rows import ImageRows
from crossgraft.tune.looks import fingerprint_of_tested
from crossgraft.tune.saving.saved_model import SavedModel
from crossgraft.words.formatting import counted


class AlreadySeen(NamedTuple):
    """Images that had a part in what a model has learned.

    Attributes:
        rows: (n,) true where it had one, or another image of its group; None: not known of each.
        sentence: Their number in words; None where of none it is known.
    """

    rows: Bool[np.ndarray, " num_images"] | None
    sentence: str | None

    @property
    def number(self) -> int | None:
        """Number of them; None: not known."""
        return None if self.rows is None else int(self.rows.sum())


def seen_in_training(images: ImageRows, model: SavedModel) -> AlreadySeen:
    """The images that a fine-tuned model was trained on or picked with, found pixel by pixel.

    A model that was handed over without its run knows the fingerprint of its whole data set and no image of it.
    """
    if model.known_images is None:
        same = images.fingerprint in model.facts.trained_on.fingerprints
        return AlreadySeen(None, "These are the images that the model was fine-tuned on" if same else None)
    seen = np.array([digest.hex() in model.known_images for digest in images.image_digests], dtype=bool)
    number = int(seen.sum())
    of_all = f"{number} of {counted(len(images), 'image')} had a part in the fine-tuning (training or validation)"
    return AlreadySeen(seen, of_all if number else None)


def seen_in_support(support: ImageRows, images: ImageRows) -> AlreadySeen:
    """The images that are in a support set, pixel by pixel, or are of a group that is."""
    learned, same_column = set(support.image_digests), support.group_column == images.group_column
    shared = sorted(_known_groups(support) & _known_groups(images)) if same_column else []
    same = np.array([digest in learned for digest in images.image_digests], dtype=bool)
    of_group = np.zeros(len(images), dtype=bool) if images.groups is None else np.isin(images.groups, shared)
    said = (
        [f"{same.sum()} of {counted(len(images), 'image')} are in the support set, pixel by pixel"] if any(same) else []
    )
    said += (
        [f"images of {counted(len(shared), 'group')} (column {images.group_column}) are on both sides"]
        if shared
        else []
    )
    return AlreadySeen(same | of_group, ", and ".join(said) or None)


def is_of_run(images: ImageRows, model: SavedModel, seen: AlreadySeen) -> bool:
    """Whether the images, or those that had no part in the fine-tuning, are its test images, or there are no others."""
    if are_its_test_images(images, model):
        return True
    others = np.arange(len(images)) if seen.rows is None else np.flatnonzero(~seen.rows)
    return len(others) == 0 or fingerprint_of_tested(images, others) == model.facts.test_fingerprint


def are_its_test_images(images: ImageRows, model: SavedModel) -> bool:
    """Whether the images are the test images of the fine-tuning, all of them and no other."""
    return fingerprint_of_tested(images, np.arange(len(images))) == model.facts.test_fingerprint


def _known_groups(images: ImageRows) -> set[str]:
    if images.groups is None:
        return set()
    return set(images.groups if images.groups_known is None else images.groups[images.groups_known])
