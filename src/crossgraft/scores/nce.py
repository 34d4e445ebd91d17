"""NCE: how much the source classes leave open about the target classes."""

from __future__ import annotations

import numpy as np

from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, RowStatistics
from crossgraft.types import Labels, SourceLogits


@score(
    title="NCE",
    reference="Tran, Nguyen and Hassner, Transferability and Hardness of Supervised Classification Tasks, ICCV 2019, section 4.1",
    cost="O(n·Z), below a second",
)
def nce(source_logits: SourceLogits, labels: Labels, *, logit_rows: RowStatistics = SHARED) -> ScoreValue:
    """Negative conditional entropy −H(y | z) of target classes y given the predicted source classes z.

    z_i is the source class with the largest logit of image i; J_yz the share of images with target class y and source
    class z. The score is Σ_yz J_yz log(J_yz / Σ_y J_yz) over the cells that hold images.

    Args:
        source_logits: Logits (or probabilities) of the pretrained head (n, Z); only their order within a row matters.
        labels: Target labels (n,).
        logit_rows: What is shared of the same source logits.

    Returns:
        In [−H(y), 0]; 0 when each source class holds images of one target class only. With many source classes and few
        images most source classes hold one image, which says nothing and yet scores 0.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        NotApplicable: The model has no classification head.

    Example:
        >>> logits = np.array([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 4.0]])
        >>> float(nce(source_logits=logits, labels=["benign", "benign", "malignant", "malignant"]))
        0.0
    """
    num_samples, num_source_classes = source_logits.shape
    predicted = logit_rows.of_all("predicted", lambda logits: logits.argmax(axis=1))[logit_rows.kept]
    num_classes = int(labels.max()) + 1
    cells = np.bincount(labels * num_source_classes + predicted, minlength=num_classes * num_source_classes)
    joint = cells.reshape(num_classes, num_source_classes) / num_samples
    marginal = np.broadcast_to(joint.sum(axis=0), joint.shape)
    held = joint > 0
    value = float(np.sum(joint[held] * np.log(joint[held] / marginal[held])))
    return ScoreValue(value, parts={"source_classes_predicted": int((joint.sum(axis=0) > 0).sum())})
