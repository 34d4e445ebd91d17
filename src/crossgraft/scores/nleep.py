"""N-LEEP: LEEP with the source classes replaced by the clusters that the features form."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from crossgraft import seeding
from crossgraft.errors import UsageError
from crossgraft.scores._expected_prediction import empirical_prediction
from crossgraft.scores._mixture import RIDGE, CovarianceKind, Mixture, fit_mixture
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, FeatureStatistics, Statistics
from crossgraft.types import Features, Labels


@score(
    title="N-LEEP",
    reference="Li, Jia, Sang, Zhu, Green, Wang and Gong, Ranking Neural Checkpoints, CVPR 2021, section 3.2",
    is_seeded=True,
    num_redraws=4,
    invariances=("rotation", "shift"),
    cost="principal components and an EM fit with K = ratio·C components; the most expensive static score",
)
def nleep(
    features: Features,
    labels: Labels,
    *,
    log: bool = False,
    ratio: int = 5,
    covariance: CovarianceKind = "full",
    variance_kept: float = 0.8,
    seed: int = 0,
    statistics: Statistics = SHARED,
) -> ScoreValue:
    """mean_i Σ_k r_ik p(y_i | k), with r the posterior of a Gaussian mixture on the leading principal components.

    p(y | k) = Σ_{i: y_i=y} r_ik / Σ_i r_ik; a component without rows has p(y | k) = p(y). The mixture starts from
    k-means. With rows left out (the jackknife) it starts from the responsibilities of the full fit instead, so that the
    spread over images is not mixed with that over starting points, which a ranking estimates from four more fits.

    Args:
        features: (n, d).
        labels: (n,).
        log: Mean of logarithms, as in the paper. The default is the mean probability, which the published code
            computes and published tables hold.
        ratio: Mixture components for each class; K = min(ratio·C, n).
        covariance: ``full`` or ``diag`` covariances of the components.
        variance_kept: Share of the variance that the principal components hold, in (0, 1).
        seed: Random seed of the k-means start.
        statistics: Shared statistics of the same features and labels.

    Returns:
        In (0, 1], or (−∞, 0] with ``log``; higher is better. ``parts`` says the covariance kind and the size of the fit.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: A setting is out of range.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> round(nleep(features=X, labels=y), 3)
        1.0
    """
    if ratio < 1:
        raise UsageError(f"`ratio` must be at least 1 component for each class, got {ratio}.")
    if not 0 < variance_kept < 1:
        raise UsageError(f"`variance_kept` must lie between 0 and 1, got {variance_kept}.")
    num_components = min(ratio * statistics.num_classes, statistics.num_samples)
    mixture = _mixture(statistics.label_free, num_components, covariance, variance_kept, seed)
    notes = list(statistics.warnings)
    if statistics.label_free.is_constant:
        notes.append("All features are constant, so the mixture has nothing to separate.")
    elif statistics.label_free.scatter_spectrum.values[-1] / statistics.num_samples < RIDGE:
        notes.append("The features vary less than the ridge of the mixture; multiply them by a constant first.")
    if not mixture.converged:
        notes.append(f"The mixture did not converge in {mixture.num_iterations} steps.")
    parts = {
        "components": num_components,
        "full_covariance": covariance == "full",
        "iterations": mixture.num_iterations,
        "log_likelihood": mixture.log_likelihood,
    }
    value = empirical_prediction(mixture.posterior, statistics.targets, log=log)
    return ScoreValue(value, parts=parts, warnings=notes)


def _mixture(
    statistics: FeatureStatistics, num_components: int, covariance: CovarianceKind, variance_kept: float, seed: int
) -> Mixture:
    """The fitted mixture of these features, remembered: label permutations do not fit it again."""

    def fit() -> Mixture:
        points = statistics.principal_scores(variance_kept)
        if points.shape[1] == 0:
            even = np.full((statistics.num_samples, num_components), 1 / num_components)
            return Mixture(even, 0.0, 0, converged=True)
        if statistics.origin is None:
            start = _clusters(points, num_components, seed)
        else:
            parent, kept, _ = statistics.origin
            start = _mixture(parent, num_components, covariance, variance_kept, seed).posterior[kept]
        return fit_mixture(points, start, covariance=covariance)

    return statistics.remember(("mixture", num_components, covariance, variance_kept, seed), fit)


def _clusters(points: np.ndarray, num_clusters: int, seed: int) -> np.ndarray:
    """One-hot k-means clusters, at most as many as there are distinct rows."""
    points = points.astype(np.float32)
    num_clusters = min(num_clusters, len(np.unique(points, axis=0)))
    kmeans = KMeans(num_clusters, n_init=1, random_state=seeding.derive_seed(seed, "k-means"))  # pyright: ignore[reportArgumentType] - the stub knows "auto" only
    with warnings.catch_warnings():  # rows that differ by rounding only may share a cluster; EM does not mind
        warnings.simplefilter("ignore", ConvergenceWarning)
        assigned = kmeans.fit_predict(points)
    return np.eye(num_clusters)[assigned]
