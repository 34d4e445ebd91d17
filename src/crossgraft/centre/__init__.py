"""How far networks of one method on several tasks lie from the mean of their weights (Table 3 of RepSim)."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.centre.record import CentreRecord as CentreRecord

lazy_face(__name__)
