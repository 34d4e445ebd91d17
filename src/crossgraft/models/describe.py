"""Preprocessing becomes a record."""

from __future__ import annotations

from dataclasses import asdict

from crossgraft.records import PreprocessingRecord
from crossgraft.types import Preprocessing


def describe_preprocessing(preprocessing: Preprocessing) -> PreprocessingRecord:
    """Size, interpolation, resize policy, mean and standard deviation."""
    return PreprocessingRecord.model_validate({**asdict(preprocessing), "description": preprocessing.describe()})
