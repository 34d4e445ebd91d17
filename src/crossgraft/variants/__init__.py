"""Several ways to fine-tune one model, on the same images: what each gives, and how much it keeps of what the model knew."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.variants.comparison import FineTuningComparison as FineTuningComparison
    from crossgraft.variants.variant import Variant as Variant

lazy_face(__name__)
