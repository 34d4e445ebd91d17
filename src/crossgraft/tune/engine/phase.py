"""What a training run consists of: the head alone where that is asked for, then everything that the method trains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from torch import nn

from crossgraft.tune.engine.cached_features import FeatureFeed, HeadOnly, features_of, shows_plain_images
from crossgraft.tune.engine.contract import Feed, PhaseName, TrainingJob
from crossgraft.tune.engine.keep import Keep
from crossgraft.tune.engine.modes import head_alone
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import Network
from crossgraft.tune.feed.batches import BatchMaker
from crossgraft.tune.protocols.method import Selection
from crossgraft.tune.protocols.regularizer import Regularizer


@runtime_checkable
class KeepsFeatures(Protocol):
    """An evaluation that can keep the features of its images while the trainer says that they do not change."""

    def keep_features(self, keep: bool) -> None:
        """From now on features are the same in every call (or no longer)."""
        ...


@dataclass(frozen=True)
class Phase:
    """One stretch of training with one choice of parameters, one optimiser and one schedule.

    Attributes:
        name: ``head`` or ``all``.
        selection: What is trained.
        regularizers: Whose terms are added; none while the head is trained alone.
        settings: Settings of this phase.
        keep: Similarity to end at; None in the head's phase, where features do not move.
        features_are_fixed: Whether features never change in it, and are computed once where the feed allows.
    """

    name: PhaseName
    selection: Selection
    regularizers: tuple[Regularizer, ...]
    settings: TrainerSettings
    features_are_fixed: bool
    keep: Keep | None = None

    def feed_and_network(self, job: TrainingJob) -> tuple[Feed, nn.Module]:
        """What is fed into what: images into the whole network, or features into the head."""
        feed = job.feed
        as_is = self.name == "head" or shows_plain_images(feed)
        if isinstance(feed, BatchMaker) and self.features_are_fixed and as_is and not self.regularizers:
            size, device = self.settings.batch_size, feed.device
            features = features_of(job.classifier, feed.images, batch_size=size, device=device)
            return FeatureFeed(feed, features), HeadOnly(job.classifier)
        return feed, Network(job.classifier, self.regularizers)


def phases_of(job: TrainingJob) -> tuple[Phase, ...]:
    """The head's phase, where it is asked for, and the main one.

    The thesis trains the classification layer first with the settings of the rest, until the value on the selection rows
    stops getting better; ours has no warm-up and a constant learning rate, so that only the patience ends it.

    Raises:
        UsageError: The head is to be trained first, but nothing else is trained.
    """
    settings = job.settings
    main = Phase("all", job.selection, job.regularizers, settings, job.features_are_fixed, job.keep)
    if not settings.head_first:
        return (main,)
    of_head = replace(
        settings,
        epochs=settings.head_epochs,
        patience=settings.head_patience,
        min_epochs=1,
        schedule="constant",
        warmup_epochs=0.0,
        layer_decay=1.0,
    )
    return Phase("head", head_alone(job.selection), (), of_head, features_are_fixed=True), main
