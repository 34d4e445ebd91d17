"""What tests of the command line begin with."""

from support.workspace import crossgraft as crossgraft
from support.workspace import run_once as run_once
from support.workspace import runs_made as runs_made
from support.workspace import workspace as workspace
