"""The 1797 scans of handwritten digits that scikit-learn brings along, with their writers.

scikit-learn ships the scans in the order in which people wrote them, but without the writers. The block
boundaries below are the ones that the INRIA scikit-learn course uses in its lesson on grouped
cross-validation. They are a reconstruction, not an official list: 13 writers are documented for this part of
the original data, the boundaries give 14 blocks; and the printed order of the digits suggests that rows
906–914 were written by the writer of the next block.
"""

from __future__ import annotations

import numpy as np

from crossgraft.data._groups import NO_GROUPS
from crossgraft.data.sources._source import DataSource, SourceRequest, SourceRows, refuse_missing_split, refuse_options
from crossgraft.errors import UsageError

WRITER_BOUNDARIES = (0, 130, 256, 386, 516, 646, 776, 915, 1029, 1157, 1287, 1415, 1545, 1667, 1797)
"""Writer block b holds the rows from entry b up to, not including, entry b+1."""

_FULL_INK = 16  # the scans count inked pixels of 4×4 cells


class Digits(DataSource):
    """The word ``digits``. A folder of that name is opened as ``./digits``."""

    name = "digits"
    description = "scikit-learn's 1797 handwritten digits with the writer as group (built in)"

    def accepts(self, location: str) -> bool:
        """Only the word itself."""
        return location == "digits"

    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """Load the scans; nothing is downloaded."""
        refuse_options(
            request,
            "the built-in digits",
            unused=(
                *("label_columns", "label_separator", "uncertain", "none_label", "group_from"),
                *("path_column", "image_root", "window", "slices"),
            ),
            advice="Leave it out.",
        )
        if request.group_column not in (None, "writer", NO_GROUPS):
            raise UsageError(f"The built-in digits have no column {request.group_column}. Their only group column is writer.")
        if request.use_split not in (None, "train"):
            refuse_missing_split(request.use_split, [], "The built-in digits set")
        from sklearn.datasets import load_digits  # after what is refused: it imports much

        counts, labels = (np.asarray(array) for array in load_digits(return_X_y=True))
        pixels = np.round(counts.reshape(-1, 8, 8, 1) * (255 / _FULL_INK)).astype(np.uint8)
        return SourceRows(
            name="digits",
            labels=labels,
            image_names=[f"row {row}" for row in range(len(pixels))],
            decode=lambda row: pixels[row],
            groups=writer_blocks(),
            group_column="writer",
            attributes={"writer": writer_blocks()} if request.group_column == NO_GROUPS else {},
            stamps=lambda: "digits",
        )


def writer_blocks() -> np.ndarray:
    """The reconstructed writer of each of the 1797 digits, ``writer 01`` … ``writer 14``."""
    names = [f"writer {block:02d}" for block in range(1, len(WRITER_BOUNDARIES))]
    return np.repeat(names, np.diff(WRITER_BOUNDARIES))
