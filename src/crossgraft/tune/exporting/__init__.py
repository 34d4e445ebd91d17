"""Hand a fine-tuned model on: other formats, each loaded again and compared before it gets its name."""

from crossgraft.tune.exporting.export_model import export_model as export_model
from crossgraft.tune.exporting.exported import Exported as Exported
