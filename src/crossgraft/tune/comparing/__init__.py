"""Several ways to fine-tune one model, on the same images: what each gives, and how much it keeps of what the model knew."""

from crossgraft.tune.comparing.comparison import FineTuningComparison as FineTuningComparison
from crossgraft.tune.comparing.variants import Variant as Variant
