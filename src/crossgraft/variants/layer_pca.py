"""What a layer makes of the test images in each variant: the first two principal components of its pooled features.

Every network has components of its own. Two networks have no common axes (from other random weights the same layer may turn its
features in any way, and joint components would mostly show the network with the largest ones), so only shapes, the order of
classes and the shares of variance can be compared. Signs, which are arbitrary, are those nearest to the first variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from sklearn.decomposition import PCA

from crossgraft.compute import limit_threads, resolve_device
from crossgraft.errors import UsageError
from crossgraft.features.passes import Images, Tap, collect, run_pass, through_taps
from crossgraft.models.classifier import Classifier
from crossgraft.models.taps import named_layer
from crossgraft.seeding import generator
from crossgraft.tune.feed.batches import evaluation_batches
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.logits import BATCH_SIZE
from crossgraft.tune.saving.saved_model import load_saved_model
from crossgraft.variants.record import LayerPcaPanel, LayerPcaRecord
from crossgraft.variants.study import DoneTraining, VariantStudy

AUTO = "auto"
MOST_DRAWN = 300
"""Images whose points are kept; components are those of all."""
_FEWEST_IMAGES = 3
_DIGITS = 5


def find_layer(study: VariantStudy, asked: str) -> str:
    """Name of the layer that was asked for, once the network has shown that its features can be taken.

    Args:
        study: Its network is built, and looks at one black image.
        asked: Name in the network; ``auto``: the last building block.

    Raises:
        UnknownNameError: There is no such layer; the message gives the nearest names.
        UsageError: What the layer gives cannot be pooled, or images have several labels.
    """
    task, class_names = study.rows.dataset.task, study.rows.dataset.class_names
    if not task.partitions:
        raise UsageError("--layer-pca colours every image by its class, but these images may have several labels. Leave it out.")
    classifier = study.pretrained(study.seeds[0], task.num_outputs(len(class_names)))
    layer = classifier.blocks[-1].removeprefix("body.") if asked == AUTO else asked
    named_layer(classifier.body, layer)
    size = classifier.preprocessing
    black = torch.zeros(1, size.channels, size.height_pixels, size.width_pixels)
    _features(classifier, layer, [black])
    return layer


def layer_pca(study: VariantStudy, done: Sequence[DoneTraining], layer: str) -> LayerPcaRecord:
    """Principal components of each variant of the first seed that ended with a model.

    Args:
        study: Its test images are looked at.
        done: All trainings.
        layer: From ``find_layer``.

    Cost: a forward pass of the test images through each network, and their features (n, d) in memory.
    """
    seed, dataset = study.seeds[0], study.rows.dataset.take(study.rows.parts[0].test)
    kept = np.sort(generator(seed, "layer pca").permutation(len(dataset))[:MOST_DRAWN])
    panels: list[LayerPcaPanel] = []
    first: Float[np.ndarray, "num_images 2"] | None = None
    with limit_threads(study.num_threads):
        for training in (each for each in done if each.seed == seed and each.record is not None):
            saved = load_saved_model(training.folder, allow_code=study.request.spec.code)
            classifier = saved.classifier.to(resolve_device(study.request.options.device))
            images = TrainingImages(dataset, classifier.preprocessing, num_threads=study.num_threads)
            device = str(classifier.head.weight.device)
            features = _features(classifier, layer, evaluation_batches(images, batch_size=BATCH_SIZE, device=device)).astype(
                np.float64
            )
            components = principal_components(features)
            if isinstance(components, str):
                panels.append(LayerPcaPanel(variant=training.variant.name, reason=components))
                continue
            points, shares = components
            first = points if first is None else first
            points = with_signs_of(first, points)
            panels.append(
                LayerPcaPanel(
                    variant=training.variant.name,
                    points=[(_rounded(x), _rounded(y)) for x, y in points[kept].tolist()],
                    shares=(shares[0], shares[1]),
                )
            )
    return LayerPcaRecord(
        layer=layer,
        seed=seed,
        num_images=len(dataset),
        classes=[int(each) for each in dataset.targets[kept]],
        class_names=list(dataset.class_names),
        panels=panels,
    )


def principal_components(
    features: Float[np.ndarray, "num_images num_features"],
) -> tuple[Float[np.ndarray, "num_images 2"], tuple[float, float]] | str:
    """Coordinates along the first two components and their shares of the variance; a reason where there are none.

    Cost: O(n d min(n, d)).
    """
    if len(features) < _FEWEST_IMAGES or features.shape[1] < 2:
        return f"{len(features)} images with {features.shape[1]} features have no two components"
    if not np.isfinite(features).all():
        return "its features are not finite"
    if not np.ptp(features, axis=0).any():
        return "its features are the same for all images"
    fitted = PCA(n_components=2, svd_solver="full")
    points = fitted.fit_transform(features)
    shares = fitted.explained_variance_ratio_
    return points, (float(shares[0]), float(shares[1]))


def with_signs_of(
    first: Float[np.ndarray, "num_images 2"], points: Float[np.ndarray, "num_images 2"]
) -> Float[np.ndarray, "num_images 2"]:
    """``points``, each axis turned around where that brings the images nearer to where ``first`` has them."""
    return points * np.where((points * first).sum(axis=0) < 0, -1.0, 1.0)


def _features(classifier: Classifier, layer: str, batches: Iterable[Images]) -> Float[np.ndarray, "num_images num_features"]:
    tap = Tap(f"body.{layer}", pool="mean")
    read = through_taps(classifier, [tap], run=classifier.features)
    pooled = run_pass(classifier, batches, read=read, like=classifier.head.weight)
    return collect(each[tap].float() for each in pooled).numpy()


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
