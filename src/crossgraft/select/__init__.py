"""One fine-tuned model within a budget.

``rule`` says what is trained and handed over, ``training`` trains, ``replay`` asks a table of results in its place.
"""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.select.planning import Budget as Budget
    from crossgraft.select.planning import parse_budget as parse_budget
    from crossgraft.select.rule import Candidate as Candidate
    from crossgraft.select.rule import Selected as Selected
    from crossgraft.select.rule import Trial as Trial
    from crossgraft.select.rule import run_selection as run_selection

lazy_face(__name__)
