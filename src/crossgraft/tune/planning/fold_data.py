"""What the trainings of one fold share: images, targets, loss, evaluation; and the batches made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.data import Dataset
from crossgraft.losses import Loss
from crossgraft.models.classifier import Classifier
from crossgraft.tune.engine.contract import Evaluate
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.feed.batch_plan import BatchPlan
from crossgraft.tune.feed.batches import BatchMaker
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.pretrained_features import PretrainedFeatures
from crossgraft.tune.measuring.selection_metrics import SelectionMetrics
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.fold_networks import FoldNetworks


@dataclass(frozen=True, eq=False)
class FoldData:
    """What all trainings of one fold share.

    Attributes:
        fold: Number of the fold, from 0; None without folds.
        images: Images of the training rows.
        targets: (n, C) of the training rows.
        loss: Loss with weights counted from these rows.
        evaluate: Evaluation on the validation rows.
        networks: Networks that trainings start from and are compared with.
        fingerprint: Fingerprint of everything about the data that decides the result.
    """

    fold: int | None
    images: TrainingImages
    targets: Float[Tensor, "num_samples num_classes"]
    loss: Loss
    evaluate: Evaluate
    networks: FoldNetworks
    fingerprint: str


def make_fold_data(
    dataset: Dataset,
    parts: FoldRows,
    classifier: Classifier,
    plugins: Plugins,
    settings: TrainerSettings,
    num_threads: int,
    *,
    start: Callable[[], Classifier],
    pretrained: Callable[[], Classifier | None],
    adapts: bool = False,
) -> FoldData:
    """Read the images and count the weights of the loss; where a run computes is in ``settings``.

    Every evaluation compares features with those of the networks that ``pretrained`` leads to (None if it is not here),
    unless they never change. ``start`` and ``adapts`` are those of ``FoldNetworks``.
    """
    train, val = dataset.take(parts.train), dataset.take(parts.val) if parts.val.size else None
    targets = target_matrix(dataset, parts.train)
    loss = plugins.loss.resolve(targets, task=dataset.task.name)
    val_images = None if val is None else TrainingImages(val, classifier.preprocessing, num_threads=num_threads)
    batch_size = max(settings.batch_size, 32)
    images = TrainingImages(train, classifier.preprocessing, num_threads=num_threads)
    networks = FoldNetworks(start, pretrained, images, settings.device, adapts)

    def features_of(load: Callable[[], Classifier | None]) -> PretrainedFeatures | None:
        if val_images is None or plugins.method.features_are_fixed:
            return None
        number_type = torch.float64 if settings.precision == "64-true" else torch.float32
        return PretrainedFeatures(
            val_images, load, batch_size=batch_size, device=settings.device, number_type=number_type
        )

    evaluate = SelectionMetrics(
        images=val_images,
        targets=dataset.targets[parts.val],
        matrix=target_matrix(dataset, parts.val),
        loss=loss,
        task=dataset.task,
        batch_size=batch_size,
        device=settings.device if settings.num_processes == 1 else "cpu",
        pretrained=features_of(networks.pretrained),
        adapted=features_of(networks.adapted),
    )
    return FoldData(parts.fold, images, targets, loss, evaluate, networks, _fingerprint(dataset, parts, classifier))


def make_feed(data: FoldData, plugins: Plugins, settings: TrainerSettings) -> BatchMaker:
    """The batches of one training."""
    plan = BatchPlan(data.targets, batch_size=settings.batch_size, sampler=plugins.sampler, seed=settings.seed)
    return BatchMaker(
        data.images,
        data.targets,
        plan,
        augmentation=plugins.augmentation,
        batch_transforms=plugins.batch_transforms,
        seed=settings.seed,
        device=settings.device if settings.num_processes == 1 else "cpu",
    )


def target_matrix(dataset: Dataset, rows: np.ndarray) -> Float[Tensor, "num_rows num_classes"]:
    """One-hot classes, or 0 and 1 for every label, float32."""
    return torch.from_numpy(dataset.task.marks(dataset.targets[rows], len(dataset.class_names)).astype(np.float32))


def _fingerprint(dataset: Dataset, parts: FoldRows, classifier: Classifier) -> str:
    rows = "|".join(",".join(map(str, part.tolist())) for part in (parts.train, parts.val, parts.test))
    facts = [dataset.fingerprint, rows, ",".join(dataset.class_names), classifier.preprocessing.describe()]
    facts += [hashlib.sha256(dataset.targets.tobytes()).hexdigest(), classifier.recipe.weights_fingerprint]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()
