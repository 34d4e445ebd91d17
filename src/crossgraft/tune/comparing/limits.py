"""What limits a comparison, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.tune.comparing.curves import Curve
from crossgraft.tune.comparing.study import Study
from crossgraft.tune.comparing.summary import ENOUGH_SEEDS
from crossgraft.words.formatting import counted


def intervals_in_words(num_seeds: int) -> str:
    """What would have to be drawn anew for the intervals of the variants to say how much it changes."""
    if num_seeds >= ENOUGH_SEEDS:
        return (
            f"Intervals of a variant are those of its mean over {num_seeds} seeds (Student's t): how much other seeds would "
            "change it, on these test images. Intervals of differences count test images and seeds."
        )
    runs = "is one training each" if num_seeds == 1 else "are two trainings each, too few to see how much seeds change"
    return f"There {runs}, so intervals are those of test images; another seed may change more than they say."


def notes_on(study: Study, curves: Sequence[Curve]) -> list[str]:
    """What a reader of differences and of the curve should know."""
    notes = [
        "Every difference has its own 95 % interval: of those that are truly 0, about one in twenty looks like more by chance.",
        "Which variant is best was seen on the test images. The value of the best of many is a little too high; new images say "
        "how it really is.",
    ]
    if any(each.starts_from_scratch for each in study.variants):
        notes.append("Scratch starts from random weights; its similarity, too, is to the pretrained network.")
    if curves:
        layers = curves[0].record.num_batch_norms
        own = (
            f" The statistics of {counted(layers, 'BatchNorm layer')} were estimated anew on the training images."
            if layers
            else ""
        )
        notes.append(
            "The curve mixes the weights of the pretrained network and of full, without any training (WiSE-FT)."
            f"{own} A variant is compared with the network on the curve that is equally similar by the biased CKA, which "
            "counts as known; between two measured networks the curve is taken as straight."
        )
    return notes
