"""Where ``FineTuningComparison`` and ``Variant`` were."""

from crossgraft.faces import lazy_face

lazy_face(__name__, moved=dict.fromkeys(("FineTuningComparison", "Variant"), "crossgraft.tune"))
