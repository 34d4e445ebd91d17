"""LEEP: how well the classes of the source predict those of the target."""

from __future__ import annotations

import numpy as np

from crossgraft.scores._expected_prediction import empirical_prediction
from crossgraft.scores._lda import posterior_of
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, RowStatistics
from crossgraft.types import Labels, SourceLogits


@score(
    title="LEEP",
    reference="Nguyen, Hassner, Seeger and Archambeau, LEEP: A New Measure to Evaluate Transferability of Learned "
    "Representations, ICML 2020, eq. 2",
    cost="O(n·Z), below a second; the softmax once for all blocks",
)
def leep(source_logits: SourceLogits, labels: Labels, *, log: bool = True, logit_rows: RowStatistics = SHARED) -> ScoreValue:
    """Log expected empirical prediction: mean_i log Σ_z p(y_i | z) θ_iz.

    θ_i is the softmax of the source logits of image i, and p(y | z) the share of source class z that falls on target
    class y: J = onehot(y)ᵀ θ / n, p(y | z) = J_yz / Σ_y J_yz.

    Args:
        source_logits: Logits of the pretrained head (n, Z); probabilities would be softmaxed twice.
        labels: Target labels (n,).
        log: Mean of logarithms, as in the paper. False gives the mean probability itself, which some repositories
            publish under the same name.
        logit_rows: What is shared of the same source logits.

    Returns:
        In (−∞, 0] with ``log``, else in (0, 1]. −H(y) (or Σ p_y²) means that the source classes say nothing.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        NotApplicable: The model has no classification head.

    Example:
        >>> logits = np.array([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 4.0]])
        >>> round(leep(source_logits=logits, labels=["benign", "benign", "malignant", "malignant"]), 4)
        -0.036
    """
    posterior = logit_rows.of_all("posterior", lambda logits: posterior_of(logits, dtype=np.float64))
    value = empirical_prediction(posterior, labels, rows=logit_rows.kept, log=log)
    return ScoreValue(value, parts={"source_classes": source_logits.shape[1]})
