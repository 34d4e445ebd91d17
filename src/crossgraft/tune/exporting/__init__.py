"""Hand a fine-tuned model on: other formats, each loaded again and compared before it gets its name."""

from crossgraft.moved import moved
from crossgraft.tune.exporting.exported import Exported as Exported

__getattr__ = moved("crossgraft.tune.exporting", ["export_model"])
