"""What makes the covariances of RepSim say little, for the plan."""

from __future__ import annotations

from crossgraft.conflicts import Situation

_FEWEST_IMAGES = 64


def remarks_on_covariances(situation: Situation, source: str) -> list[str]:
    """BatchNorm in training mode; and, unless both networks see the same images, small batches and other or changed images.

    Args:
        situation: The training that is planned.
        source: Where the covariance comes from that is compared with: ``batch``, ``dataset`` or ``dataset_aug``.
    """
    said: list[str] = []
    if situation.moves_batch_norms:
        modes = "frozen or adapt" if situation.batch_norm == "train" else "frozen"
        said.append(
            "RepSim's covariances in training mode are of other features than those of the pretrained and of the finished "
            f"network, whose BatchNorm has kept statistics, so that little is kept. Use --batch-norm {modes}, or "
            "--regularizer repsim without options of covariances."
        )
    if source != "batch" and situation.images_at_once < _FEWEST_IMAGES:
        said.append(
            f"RepSim's covariance comes from {situation.images_at_once} images at a time, which says little about it (and "
            "one image says nothing: its term is 0). Use a larger --batch-size or a smaller --accumulate, or "
            "repsim:reference=batch, which sees the same images in both networks."
        )
    if source == "dataset" and situation.changes_images:
        said.append(
            "RepSim compares augmented or mixed images with the training images as they are, so part of its term is what "
            "that does to an image. repsim:reference=dataset_aug looks at them augmented and mixed at the start, too."
        )
    if source == "dataset" and situation.draws_evenly:
        said.append(
            "RepSim compares batches in which classes are drawn evenly (--sampler balanced) with all training images as they "
            "are, so that its term also pays for the proportions of the classes. repsim:reference=dataset_aug draws as training "
            "does, and repsim:reference=batch takes the very images of the step."
        )
    return said
