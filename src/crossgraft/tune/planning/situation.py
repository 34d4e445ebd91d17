"""Everything about a training that can contradict itself."""

from __future__ import annotations

from dataclasses import dataclass

from crossgraft.tasks import Task
from crossgraft.tune.engine.keep import Keep
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.options import BatchNormMode
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.steps import fewest_in_a_batch
from crossgraft.tune.protocols.augmentation import is_identity
from crossgraft.tune.protocols.regularizer import keeps_reference


@dataclass(frozen=True)
class TrainingSituation:
    """Everything that the tables of ``contradictions`` look at.

    Attributes:
        plugins: Plug-ins in the slots.
        settings: Settings of the trainer.
        task: Kind of the targets.
        num_train: Training rows.
        num_classes: Classes or labels.
        has_val: Whether there are rows that select the model.
        device: Resolved.
        num_jobs: Folds × grid points.
        num_points: Number of points of the grid.
        batch_norm: What BatchNorm normalises with.
        trained_batch_norms: Names of BatchNorm layers that normalise with each batch.
        moved_batch_norms: Names of those that keep statistics, which would move.
        keep: Similarity to end at.
        fewest_val: Selection rows of the fold that has the fewest.
        given: Arguments that the user gave.
        grid_settings: Settings that the grid varies.
        num_trained_blocks: Number of building blocks with a trained parameter.
    """

    plugins: Plugins
    settings: TrainerSettings
    task: Task
    num_train: int
    num_classes: int
    has_val: bool
    device: str
    num_jobs: int
    num_points: int
    batch_norm: BatchNormMode
    trained_batch_norms: tuple[str, ...]
    moved_batch_norms: tuple[str, ...]
    keep: Keep | None
    fewest_val: int
    given: frozenset[str]
    grid_settings: frozenset[str]
    num_trained_blocks: int

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.plugins.method.name

    @property
    def regularizers(self) -> str:
        """Names of the regularisers."""
        return ", ".join(regularizer.name for regularizer in self.plugins.regularizers)

    @property
    def keepers(self) -> str:
        """Names of the regularisers that compare with the weights training starts from: all that do not say otherwise."""
        found = self.plugins.regularizers
        return ", ".join(each.name for each in found if keeps_reference(each))

    @property
    def has_adapter(self) -> bool:
        """Whether training starts from an adapter that was given."""
        return "adapter" in self.given

    @property
    def idle_keepers(self) -> str:
        """Names of those, where their own options leave nothing of any of them."""
        found = [each for each in self.plugins.regularizers if keeps_reference(each)]
        return "" if any(getattr(each, "pulls", True) for each in found) else self.keepers

    @property
    def images_at_once(self) -> int:
        """Images of one part of a batch, of all processes together."""
        return min(self.settings.batch_size, self.num_train) // self.settings.accumulate

    @property
    def fewest_images(self) -> int:
        """Images that a process has at once, where it has fewest: its share of the smallest micro-batch of an epoch."""
        batch = fewest_in_a_batch(self.num_train, self.settings.batch_size)
        return batch // min(self.settings.accumulate, batch) // self.settings.num_processes

    @property
    def moves_batch_norms(self) -> bool:
        """Whether BatchNorm normalises with each batch, so that its kept statistics move."""
        return bool(self.moved_batch_norms)

    @property
    def single_label_transforms(self) -> str:
        """Batch transforms that mean nothing for several labels per image."""
        return ", ".join(each.name for each in self.plugins.batch_transforms if not each.accepts_multi_label)

    @property
    def shows_plain_images(self) -> bool:
        """Whether every image is shown the same way every time."""
        return self.plugins.shows_plain_images

    @property
    def mixes(self) -> bool:
        """Whether images are mixed."""
        return any(getattr(transform, "mixes_images", False) for transform in self.plugins.batch_transforms)

    @property
    def changes_images(self) -> bool:
        """Whether images are augmented or mixed."""
        return self.mixes or not is_identity(self.plugins.augmentation)

    @property
    def draws_evenly(self) -> bool:
        """Whether rows are drawn evenly over the classes."""
        return self.plugins.sampler == "balanced"

    @property
    def weighs_classes(self) -> bool:
        """Whether the loss weights rare classes more."""
        loss = self.plugins.loss
        return any(getattr(loss, name, None) is not None for name in ("class_weights", "positive_weights"))

    @property
    def given_in_grid(self) -> str:
        """Settings that are given and varied."""
        return ", ".join(sorted(self.given & self.grid_settings))
