"""Checks of a data set, one file per check."""

from crossgraft.data.checks.assess import findings_of_rows as findings_of_rows
from crossgraft.data.checks.check_rows import check_rows as check_rows
from crossgraft.data.checks.check_rows import check_splits as check_splits
from crossgraft.data.checks.data_check import DataCheck as DataCheck
from crossgraft.moved import moved

__all__ = ["DataCheck", "check_rows", "check_splits", "findings_of_rows"]

__getattr__ = moved("crossgraft.data.checks", ["check_data"])
