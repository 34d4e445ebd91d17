"""Options about images, labels and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.models import Download
from crossgraft.options.running import Seed
from crossgraft.plain_types import Uncertain

VAL_SHARE = 0.2
"""Share of the training images that picks the model where the data have no validation rows."""


@options
class TableOptions(Options):
    """Which data sets are one, and where a table says what."""

    group: ClassVar[str] = "Data"

    join: str | Path | Sequence[str | Path] | None = option(
        "Further data set that is joined with the first; the column source says which an image is from.",
        default=None,
        repeats=True,
        only_if_given=True,
    )

    label_column: str | Sequence[str] | None = option(
        "Column of labels of a table; several columns for several labels per image.", default=None, is_common=True
    )
    label_separator: str | None = option(
        "Separator of the labels in one cell, where an image may have several.", default=None, is_separator=True
    )
    group_column: str | None = option(
        "Column of patients (lesions, writers …), whose images stay together in splits and intervals; none: no groups.",
        default=None,
        is_common=True,
    )
    path_column: str | None = option("Column of image paths of a table.", default=None)
    image_root: str | Path | None = option(
        "Folder that the paths of a table start from.", default=None, default_text="the folder of the table"
    )
    allow_outside: bool = option("Allow paths of a table to lead out of the folder that they start from.", default=False)
    uncertain: Uncertain | None = option(
        "What becomes of labels that are not known (-1, blank, NA): zeros, ones or leave-out.",
        default=None,
        default_text="they are refused",
    )
    none_label: str | None = option(
        "Name of a label that says that an image has none of the others, such as 'No Finding'.", default=None
    )
    group_from: str | None = option(
        "Regular expression that finds the group of an image in its path, such as 'patient(\\d+)'.", default=None
    )


@options
class ClassOptions(Options):
    """Names and order of the classes."""

    group: ClassVar[str] = "Data"

    class_names: str | Path | Sequence[str] | None = option(
        "Names of the classes in order, or a text file with one per line.", default=None, is_path=True
    )
    ordinal: bool = option("Classes in a meaningful order, as grades are.", default=False)


@options
class Volumes(Options):
    """What becomes an image: of files that hold several, and of folders that hold masks."""

    group: ClassVar[str] = "Data"

    window: str | None = option(
        "Intensities of DICOM and NIfTI images that become black and white.", default=None, default_text="as the file says"
    )
    slices: str | None = option(
        "Slices of volumes and frames of multi-frame files that become images: middle, all, a count or a position.",
        default=None,
        default_text="middle",
    )
    keep_masks: bool = option("Take masks and other pictures derived from an image beside them for images.", default=False)


@options
class Unreadable(Options):
    """Images that cannot be decoded."""

    group: ClassVar[str] = "Data"

    skip_unreadable: bool = option("Leave unreadable images out and count them, instead of stopping at the first.", default=False)


@options
class Splits(Options):
    """Parts of the data."""

    group: ClassVar[str] = "Rows"

    split: str | Path | None = option("JSON file of a saved split.", default=None)
    holdout: float | None = option(
        "Share of the images to hold out as test where the data have no split; rank and check: 0 for none.",
        default=None,
        default_text="0.2, and 0.2 of the others as val",
    )
    folds: int | None = option("Number of cross-validation folds.", default=None, least=2)
    fold: int | None = option("Index of the only fold to use, from 0.", default=None, least=0, default_text="all folds")


@options
class ClassBalance(Options):
    """Fewer images, so that classes have other shares."""

    group: ClassVar[str] = "Rows"

    class_shares: str | Sequence[str] | Mapping[str, float] | None = option(
        "Shares of the classes in each part, malignant=0.3; those not named divide the rest, and other images are left out.",
        default=None,
        repeats=True,
        only_if_given=True,
    )
    pair_by: str | None = option(
        "Column, such as the patient: each of its groups gives as many images of every class, and those without are left out.",
        default=None,
        only_if_given=True,
    )


@options
class Subsets(ClassBalance):
    """Fewer images."""

    group: ClassVar[str] = "Rows"

    per_class: int | None = option("Number of training images per class.", default=None, least=1)
    limit: int | None = option("Largest number of images, with the class shares kept.", default=None, least=1)


@options
class DividedRows(Subsets, Splits, Volumes, ClassOptions, TableOptions):
    """Which rows of which data, in which part each."""


@options
class SourceOptions(Download, Volumes, TableOptions):
    """What a source of images has to know."""


@options
class OpeningOptions(Splits, ClassOptions, SourceOptions):
    """What belongs to opening data, and means nothing for data that are open."""


@options
class DatasetOptions(Seed, Subsets, Unreadable, OpeningOptions):
    """What may be said when a data set is opened."""


@options
class AuditSplit(Options):
    """The test part."""

    group: ClassVar[str] = "Rows"

    split: str | Path | None = option("JSON file of a saved split.", default=None)
    holdout: float | None = option(
        "Share of the images to hold out as test where the data have no split.", default=None, default_text="0.2"
    )


@options
class Validating(Options):
    """The part of the data that picks the model."""

    group: ClassVar[str] = "Selection and metrics"

    val_fraction: float = option("Share of the training rows that becomes val where there is none; 0: no val.", default=VAL_SHARE)


@options
class Rows(Options):
    """Which images are looked at."""

    group: ClassVar[str] = "Rows"

    use_split: str | None = option(
        "Split whose rows are used: of the data, or else of the fine-tuning.",
        default=None,
        default_text="all rows",
        is_common=True,
    )


@options
class ImageOptions(Unreadable, SourceOptions, Rows):
    """What belongs to opening images, and means nothing for images that are open."""


if TYPE_CHECKING:
    from crossgraft.progress import Reporter
else:
    Reporter = FromProgram


@options
class OpenOptions(Validating, DatasetOptions):
    """What ``open_dataset`` takes."""

    location: Any = option(
        "Folder, CSV or TSV table, .npz file, hf:owner/name, or digits.", takes="a path, a DataFrame or a list of files"
    )
    use_split: str | None = option("Split of which the rows are used; None: all rows.", default="train")
    default_split: bool = option("Whether parts that are missing are drawn, as every command does.", default=False)
    fold: int = option("Index of the fold that is set aside, from 0.", default=0)
    num_threads: int | None = option("Threads that decode images.", default=None, least=1)
    reporter: Reporter | None = option("Receiver of progress; silent when None.", default=None, is_typed=False)
