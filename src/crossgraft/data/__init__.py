"""Images with labels: opening them, splitting them, and preparing them for a model."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.data.dataset import Dataset as Dataset
    from crossgraft.data.dataset import dataset_from_arrays as dataset_from_arrays
    from crossgraft.data.opening import DATA_OPTIONS as DATA_OPTIONS
    from crossgraft.data.opening import open_dataset as open_dataset
    from crossgraft.data.sampling import limit_rows as limit_rows
    from crossgraft.data.sampling import take_per_class as take_per_class
    from crossgraft.data.sources import SOURCES as SOURCES
    from crossgraft.data.splits import Split as Split
    from crossgraft.data.splits import k_folds as k_folds
    from crossgraft.data.splits import make_split as make_split
    from crossgraft.data.splits import official_split as official_split
    from crossgraft.data.transforms import prepare_batch as prepare_batch

lazy_face(__name__)
