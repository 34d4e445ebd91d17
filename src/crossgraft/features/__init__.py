"""Features are computed once, kept on the disk, and read back as a memory map."""

from crossgraft.features.extract import extract_features as extract_features
from crossgraft.features.store import FeatureSet as FeatureSet
