"""How good predictions are, always with an interval."""

from crossgraft.metrics.accuracy import Accuracy as Accuracy
from crossgraft.metrics.accuracy import accuracy as accuracy
from crossgraft.metrics.accuracy import accuracy_difference as accuracy_difference
