"""Features are computed once, kept on the disk, and read back as a memory map."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.features.extract import extract_features as extract_features
    from crossgraft.features.store import FeatureSet as FeatureSet

lazy_face(__name__)
