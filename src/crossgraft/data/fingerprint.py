"""What makes two data sets the same.

The fingerprint of a data set covers decoded pixels, labels and groups in row order. File names, formats and
folders are left out on purpose: a renamed folder is the same data, an edited image is not. A split is drawn
before any image is opened, so it carries the fingerprint of the listing instead: names, labels and groups.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

_VERSION = b"crossgraft data 1"


def image_digest(pixels: np.ndarray) -> bytes:
    """32 bytes that identify shape, type and samples of one image; O(number of samples)."""
    little_endian = np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder("<"))
    digest = hashlib.sha256(f"{little_endian.dtype.str} {little_endian.shape}".encode())
    digest.update(little_endian.data)
    return digest.digest()


def dataset_fingerprint(digests: Sequence[bytes], labels: np.ndarray, groups: np.ndarray | None) -> str:
    """64 hexadecimal digits that identify images, labels and groups in row order.

    Args:
        digests: ``image_digest`` of each row.
        labels: One label per row, or a row of 0 and 1.
        groups: One group per row, or None.
    """
    fingerprint = hashlib.sha256(_VERSION)
    for row, digest in enumerate(digests):
        group = "" if groups is None else f"group {groups[row]}"
        # As a list, because numpy shortens the text of more than 1000 labels per image.
        label = labels[row] if labels.ndim == 1 else labels[row].tolist()
        text = f"label {label}\x1f{group}\x1e"
        fingerprint.update(digest)
        fingerprint.update(text.encode())
    return fingerprint.hexdigest()


def training_fingerprint(names: Sequence[str], labels: np.ndarray, groups: np.ndarray | None) -> str:
    """12 hexadecimal digits of the training rows of a split, by which reports of one split are known.

    The rows of other parts are not needed, so a command that must not open them can say which split it uses. Groups count as
    numbers in the order of their first row: those that files name in their headers have no other name.
    """
    numbers: dict[object, int] = {}
    known = None if groups is None else [numbers.setdefault(group, len(numbers)) for group in groups.tolist()]
    columns = [list(names), labels.tolist(), known]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:12]


def listing_fingerprint(names: Sequence[str], labels: np.ndarray, groups: np.ndarray | None) -> str:
    """64 hexadecimal digits that identify names, labels and groups in row order, without opening an image."""
    columns = [list(names), labels.tolist(), None if groups is None else groups.tolist()]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()


class ListedRows:
    """Rows that were listed, whether their images were opened or not: what is known of each, and what tells them from others.

    Attributes as in ``ImageRows``.
    """

    name: str
    labels: np.ndarray
    groups: np.ndarray | None
    group_column: str | None
    groups_known: np.ndarray | None
    splits: np.ndarray | None
    attributes: dict[str, np.ndarray]

    @property
    def row_names(self) -> Sequence[str]:
        """Name of the file or row of each image, relative to the data."""
        raise NotImplementedError

    def fingerprint_of_split(self, train: np.ndarray) -> str:
        """What a split is known by whose training rows are these: 12 hexadecimal digits."""
        names = self.row_names
        groups = None if self.groups is None else self.groups[train]
        return training_fingerprint([names[int(row)] for row in train], self.labels[train], groups)

    @property
    def listing_fingerprint(self) -> str:
        """64 hexadecimal digits of names, labels and groups: what a ``Split`` of these rows belongs to."""
        return listing_fingerprint(self.row_names, self.labels, self.groups)

    @property
    def rows_fingerprint(self) -> str:
        """64 hexadecimal digits of names and labels alone."""
        return listing_fingerprint(self.row_names, self.labels, None)
