"""Penultimate features of two models by every measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossgraft.compare import ComparedNetwork, network_of_backbone
from crossgraft.compare.compared import Given
from crossgraft.compare.options import CompareModelsOptions
from crossgraft.compare.record import Measure, MeasuredFeatures, SharedMistakes
from crossgraft.data.rows import ImageRows
from crossgraft.errors import NotApplicable
from crossgraft.metrics import share_of_images
from crossgraft.models import load_as_asked
from crossgraft.progress import Reporter
from crossgraft.seeding import generator
from crossgraft.similarity import cca, linear_cka, prediction_similarity, procrustes, pwcca, rbf_cka, rsa, svcca

_FINE_TUNED = {"A": "B", "B": "A", "A before": "A", "B before": "B"}
"""Label of a network → that of its fine-tuning, if it is one; those that others are prepared as come first."""


def prepared_alike(
    given: Mapping[str, Given], options: CompareModelsOptions, *, device: str, reporter: Reporter
) -> tuple[dict[str, Given], list[str]]:
    """The models, with every start prepared as its fine-tuning, and a sentence about each that changed.

    What the options ask for is left as it is, and so is a network that was made in Python.
    """
    if options.image_size is not None or options.resize_policy is not None:
        return dict(given), []
    prepared, notes = dict(given), list[str]()
    for label, after in _FINE_TUNED.items():
        start, tuned = given.get(label), prepared.get(after)
        if start is None or tuned is None or start.spec is None or not _is_prepared_otherwise(start, tuned, label):
            continue
        wanted = tuned.network.preprocessing
        side = wanted.height_pixels if wanted.height_pixels == wanted.width_pixels else None
        asked = replace(options, image_size=side, resize_policy=wanted.resize_policy)
        again = load_as_asked(start.spec, asked, device=device, for_training=True, reporter=reporter)
        if again.preprocessing != wanted:
            continue
        prepared[label] = replace(start, model=network_of_backbone(again))
        own = start.network.preprocessing.describe()
        notes.append(
            f"{label} ({again.name}) takes images as its fine-tuning does ({wanted.describe()}), and not as its weights were "
            f"made for ({own})."
        )
    return prepared, notes


def _is_prepared_otherwise(start: Given, tuned: Given, label: str) -> bool:
    """Whether the second was fine-tuned from the first, or is the first, on images that were prepared in another way."""
    if not isinstance(start.model, ComparedNetwork) or not isinstance(tuned.model, ComparedNetwork):
        return False
    if tuned.saved is None and not label.endswith("before"):
        return False
    is_its_start = start.model.weights_fingerprint == tuned.network.start_fingerprint
    return is_its_start and start.model.preprocessing != tuned.network.preprocessing


_ITERATIONS = 2000


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of one model for the images that are looked at.

    Attributes:
        classes: Places in the classes of the data; None where there are none.
        reason: Reason that there are none.
        by_probe: Whether a linear probe made them.
        certainty: Probability of each of them, not calibrated.
    """

    classes: Int[np.ndarray, " num_images"] | None
    reason: str | None = None
    by_probe: bool = False
    certainty: Float[np.ndarray, " num_images"] | None = None


def own_predictions(
    name: str, class_names: tuple[str, ...] | None, logits: Float[np.ndarray, "num_images num_outputs"] | None, images: ImageRows
) -> Predicted:
    """What the head of a model says; the classes of the model and of the data must be the same, in any order."""
    if not images.task.partitions:
        return Predicted(None, "images have several labels each")
    if class_names is None or logits is None:
        return Predicted(None, f"{name} has no head for these classes (--linear-probe trains one on its features)")
    if set(class_names) != set(images.class_names):
        return Predicted(
            None, f"{name} tells {', '.join(class_names)} apart, and these images are {', '.join(images.class_names)}"
        )
    places = np.array([images.class_names.index(each) for each in class_names])
    return Predicted(places[logits.argmax(axis=1)], certainty=softmax(logits, axis=1).max(axis=1))


def probe_predictions(
    train: Float[np.ndarray, "num_train num_features"],
    targets: Int[np.ndarray, " num_train"],
    test: Float[np.ndarray, "num_images num_features"],
) -> Predicted:
    """Logistic regression on standardised features of the training images.

    Source: none of the thesis, whose released code has no predictions before fine-tuning.
    """
    if len(np.unique(targets)) < 2:
        return Predicted(None, "the training images are of one class, so no linear probe can be trained")
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_ITERATIONS))
    stated = probe.fit(train, targets).predict_proba(test)
    return Predicted(probe.predict(test), by_probe=True, certainty=stated.max(axis=1))


def shared_mistakes(
    one: Predicted, other: Predicted, targets: Int[np.ndarray, " num_images"], groups: np.ndarray | None
) -> tuple[SharedMistakes | None, str | None]:
    """Prediction similarity, or why there is none."""
    if one.classes is None or other.classes is None:
        return None, one.reason or other.reason
    similarity = prediction_similarity(one.classes, other.classes, targets)
    of_images = share_of_images((one.classes != targets) == (other.classes != targets), groups)
    return (
        SharedMistakes(
            num_images=similarity.n,
            value=float(similarity),
            low=of_images.low,
            high=of_images.high,
            no_interval_reason=of_images.note,
            accuracy=similarity.accuracy_a,
            other_accuracy=similarity.accuracy_b,
            independent=similarity.independent,
            independent_low=similarity.low,
            independent_high=similarity.high,
            p_value=similarity.p_value,
            kappa=similarity.kappa,
            agreement=similarity.agreement,
            by_probe=one.by_probe or other.by_probe,
        ),
        None,
    )


Features = Float[np.ndarray, "num_images _"]
MOST_IN_PAIRS = 2000
"""Images that measures of all pairs of images are of, at most; more are drawn from."""


def measure_features(
    x: Features, y: Features, untrained: tuple[Features, Features] | None, *, seed: int
) -> list[MeasuredFeatures]:
    """Every measure of two sets of features, beside that of two untrained networks.

    Args:
        x: Features of the first model.
        y: Features of the second.
        untrained: Features of two untrained networks; None where there are none.
        seed: Random seed of the images that measures of pairs are of.

    Raises:
        DataError: A number is not finite, or the numbers of rows differ.

    Cost: that of the measures; n² for at most ``MOST_IN_PAIRS`` images.
    """
    drawn = _drawn(len(x), seed)
    some = "" if drawn is None else f"of {MOST_IN_PAIRS} images drawn from {len(x)}"
    rows: list[MeasuredFeatures] = []
    for measure, (compute, in_pairs) in _MEASURES.items():
        picked = drawn if in_pairs else None
        value, reason, notes = _computed(compute, _some(x, picked), _some(y, picked))
        floor = None if untrained is None else _computed(compute, *(_some(side, picked) for side in untrained))[0]
        notes += [some] if picked is not None and some else []
        rows.append(MeasuredFeatures(measure=measure, value=value, untrained=floor, reason=reason, notes=notes))
    return rows


def _drawn(num_images: int, seed: int) -> np.ndarray | None:
    if num_images <= MOST_IN_PAIRS:
        return None
    return np.sort(generator(seed, "pairs of images").choice(num_images, MOST_IN_PAIRS, replace=False))


def _some(side: Features, rows: np.ndarray | None) -> Features:
    return side if rows is None else side[rows]


def _computed(
    compute: Callable[[Features, Features], float], x: Features, y: Features
) -> tuple[float | None, str | None, list[str]]:
    """Value, why there is none, and warnings."""
    try:
        value = compute(x, y)
    except NotApplicable as error:
        return None, str(error), []
    return float(value), None, list(getattr(value, "warnings", ()))


_MEASURES: dict[Measure, tuple[Callable[[Features, Features], float], bool]] = {
    "cka": (linear_cka, False),
    "cka_debiased": (lambda x, y: linear_cka(x, y, debiased=True), False),
    "rbf_cka": (rbf_cka, True),
    "cca": (cca, False),
    "svcca": (svcca, False),
    "pwcca": (pwcca, False),
    "pwcca_reversed": (lambda x, y: pwcca(y, x), False),
    "procrustes": (procrustes, False),
    "rsa": (rsa, True),
    "rsa_euclidean": (lambda x, y: rsa(x, y, distance="euclidean"), True),
}
"""Measure → how it is computed, and whether it looks at all pairs of images."""
