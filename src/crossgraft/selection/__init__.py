"""One fine-tuned model within a budget: what to try next follows from what is believed, and from what it costs.

``scheduler`` decides, ``trials`` says what it asks for, ``training`` trains, and ``table`` reads published results instead.
"""

from crossgraft.selection.budget import Budget, parse_budget
from crossgraft.selection.scheduler import Selected, run_selection
from crossgraft.selection.state import Decision
from crossgraft.selection.table import TableTrials
from crossgraft.selection.trials import Action, Rung, Trial, TrialPlan, Trials

__all__ = [
    "Action",
    "Budget",
    "Decision",
    "Rung",
    "Selected",
    "TableTrials",
    "Trial",
    "TrialPlan",
    "Trials",
    "parse_budget",
    "run_selection",
]
