"""Where ``FineTuningComparison`` and ``Variant`` were."""

from crossgraft.moved import moved

__getattr__ = moved("crossgraft.tune.comparing", ["FineTuningComparison", "Variant"], to="crossgraft.tune")
