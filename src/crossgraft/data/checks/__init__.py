"""Checks of a data set, one file per check."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.data.checks.assess import check_rows as check_rows
    from crossgraft.data.checks.assess import check_splits as check_splits
    from crossgraft.data.checks.assess import findings_of_rows as findings_of_rows
    from crossgraft.data.checks.survey import DataCheck as DataCheck

lazy_face(__name__)
