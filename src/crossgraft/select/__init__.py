"""One fine-tuned model within a budget.

``rule`` says what is trained and handed over, ``training`` trains, ``replay`` asks a table of results in its place.
"""

from crossgraft.select.budget import Budget, parse_budget
from crossgraft.select.rule import Candidate, Selected, Trial, run_selection

__all__ = ["Budget", "Candidate", "Selected", "Trial", "parse_budget", "run_selection"]
