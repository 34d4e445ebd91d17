"""What does not go together, with the reason; and what goes together but should be known. One table each.

What concerns one plug-in alone stands in its own file, see ``crossgraft.conflicts``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crossgraft.conflicts import HasConflicts, HasRemarks
from crossgraft.errors import UsageError
from crossgraft.tasks import Task
from crossgraft.tune.engine.launch import has_bf16, missing_gpus
from crossgraft.tune.engine.selection_rule import Keep
from crossgraft.tune.engine.settings import TrainerSettings, schedule_of
from crossgraft.tune.image_protocols import is_identity
from crossgraft.tune.options import BatchNormMode
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.domain_rules import TrainingDomains, notes_by_domains, refusal_by_domains, warnings_by_domains
from crossgraft.tune.planning.step_cost import fewest_in_a_batch
from crossgraft.tune.protocols import keeps_reference


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
        is_convolutional: Whether the network has more than one convolution, which cuts an image into tokens.
        domains: Domains of the training images of each fold; empty where nobody said.
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
    is_convolutional: bool
    domains: tuple[TrainingDomains, ...] = ()

    @property
    def asked(self) -> frozenset[str]:
        """What the user gave, or has the grid vary."""
        return self.given | self.grid_settings

    @property
    def missed_by_schedule(self) -> str:
        """Parts of the schedule behind the last epoch; empty where there are none."""
        return schedule_of(self.settings.schedule).beyond(self.settings.epochs) or ""

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
        return ", ".join(each.name for each in self.plugins.regularizers if keeps_reference(each))

    @property
    def feature_transforms(self) -> str:
        """Names of the feature transforms."""
        return ", ".join(each.name for each in self.plugins.feature_transforms)

    @property
    def has_adapter(self) -> bool:
        """Whether training starts from an adapter that was given."""
        return "adapter" in self.given

    @property
    def idle_keepers(self) -> str:
        """Names of those, where their own options leave nothing of any of them."""
        comparing = [each for each in self.plugins.regularizers if keeps_reference(each)]
        return "" if any(getattr(each, "pulls", True) for each in comparing) else self.keepers

    @property
    def images_at_once(self) -> int:
        """Images of one part of a batch, of all processes together."""
        return min(self.settings.batch_size, self.num_train) // self.settings.accumulate

    @property
    def fewest_images(self) -> int:
        """Images that a process has at once, where it has fewest: its share of the smallest micro-batch of an epoch."""
        is_full = bool(self.domains and self.domains[0].strata(self.plugins.sampler))
        batch = self.settings.batch_size if is_full else fewest_in_a_batch(self.num_train, self.settings.batch_size)
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
        return self.plugins.sampler in ("balanced", "domains_and_classes")

    @property
    def weighs_classes(self) -> bool:
        """Whether the loss weights rare classes more."""
        loss = self.plugins.loss
        return any(getattr(loss, name, None) is not None for name in ("class_weights", "positive_weights"))

    @property
    def missing_gpus(self) -> str:
        """What to say where there are fewer GPUs than processes; empty where there are enough, and on the CPU."""
        return missing_gpus(self.settings.num_processes) if self.device.startswith("cuda") else ""

    @property
    def given_in_grid(self) -> str:
        """Settings that are given and varied."""
        return ", ".join(sorted(self.given & self.grid_settings))


FEWEST_FOR_SIMILARITY = 4
"""Rows of a debiased CKA."""


@dataclass(frozen=True)
class Rule:
    """When it holds, ``text`` is said; names in braces are fields of ``TrainingSituation``."""

    holds: Callable[[TrainingSituation], bool]
    text: str


REFUSED: tuple[Rule, ...] = (
    Rule(
        lambda s: bool(s.plugins.feature_transforms) and s.plugins.method.features_are_fixed,
        "--feature-transform {feature_transforms} varies features for the layers behind them to learn from, but --method "
        "{method} trains none of these. Leave it out, or choose a method that trains more.",
    ),
    Rule(
        lambda s: bool(s.plugins.feature_transforms) and s.settings.accumulate > 1,
        "--feature-transform {feature_transforms} mixes images of a whole batch, and --accumulate {settings.accumulate} cuts it. "
        "Leave --accumulate out, with a smaller --batch-size if memory is short.",
    ),
    Rule(
        lambda s: s.plugins.method.starts_from_scratch and bool(s.keepers),
        "--regularizer {keepers} refers to the pretrained weights, but --method {method} replaces them by random "
        "ones. Leave one of them out.",
    ),
    Rule(
        lambda s: s.plugins.method.features_are_fixed and bool(s.plugins.regularizers),
        "--regularizer {regularizers} acts on the pretrained part, but --method {method} does not move it at all, so it would "
        "only cost time. Leave it out, or choose a method that trains more.",
    ),
    Rule(
        lambda s: bool(s.single_label_transforms) and not s.task.partitions,
        "--batch-transform {single_label_transforms} spreads one label over the classes, but these images may have "
        "several labels. Leave it out.",
    ),
    Rule(
        lambda s: s.task.name not in s.plugins.loss.tasks,
        "--loss {plugins.loss.name} is not for {task} targets. Leave --loss out to get the usual one.",
    ),
    Rule(
        lambda s: s.weighs_classes and s.draws_evenly,
        "--sampler {plugins.sampler} and weights of classes both correct for rare classes, together they would do it twice. Give "
        "one of them.",
    ),
    Rule(
        lambda s: s.settings.head_first and s.plugins.method.features_are_fixed,
        "--head-first trains the head alone and then everything that the method trains, but --method {method} trains "
        "only the head. Leave it out.",
    ),
    Rule(
        lambda s: s.settings.head_first and s.plugins.method.starts_from_scratch,
        "--head-first fits the head to pretrained features, but --method {method} starts from random ones. Leave it out.",
    ),
    Rule(
        lambda s: s.plugins.method.features_are_fixed and {"learning_rate", "head_learning_rate"} <= s.asked,
        "--learning-rate and --head-learning-rate are both given, but --method {method} trains only the head, so the first would "
        "do nothing. Give one of them.",
    ),
    Rule(
        lambda s: s.settings.layer_decay != 1 and s.plugins.method.features_are_fixed,
        "--layer-decay lowers the learning rate of early layers, but --method {method} trains only the head. Leave it out.",
    ),
    Rule(
        lambda s: s.settings.layer_decay != 1 and s.plugins.method.starts_from_scratch,
        "--layer-decay protects pretrained early layers, but --method {method} replaces them by random ones. Leave it out.",
    ),
    Rule(
        lambda s: s.settings.patience is not None and not s.has_val,
        "--patience stops when the validation rows get no better, but there are none (--val-fraction 0). Leave one out.",
    ),
    Rule(
        lambda s: "select_by" in s.given and not s.has_val,
        "--select-by picks the epoch by validation rows, but there are none (--val-fraction 0). Leave one out.",
    ),
    Rule(
        lambda s: s.num_points > 1 and not s.has_val,
        "--grid picks the best point by validation rows, but there are none (--val-fraction 0). Leave one out.",
    ),
    Rule(
        lambda s: s.keep is not None and not s.keepers,
        "--keep {keep.target:g} makes a regulariser as strong as it must be, and there is none that compares features with the "
        "pretrained ones. Add one, for example --regularizer repsim, or leave --keep out.",
    ),
    Rule(
        lambda s: s.keep is not None and s.fewest_val < FEWEST_FOR_SIMILARITY,
        "--keep {keep.target:g} is looked for on the validation rows, of which there are {fewest_val}; a debiased CKA needs four "
        "and many more to say much. Give more of them (--val-fraction), or leave --keep out.",
    ),
    Rule(
        lambda s: s.keep is not None and bool(s.idle_keepers),
        "--keep {keep.target:g} multiplies the terms of {keepers}, whose own options make them 0. Leave those options out.",
    ),
    Rule(
        lambda s: s.keep is not None and s.has_adapter,
        "--keep {keep.target:g} is a similarity to the pretrained network, but training starts from an adapter in it "
        "(--adapter), and {keepers} compares with that. Leave one of them out.",
    ),
    Rule(
        lambda s: s.batch_norm == "adapt" and s.has_adapter,
        "--batch-norm adapt estimates the statistics of the pretrained network, but training starts from an adapter in it "
        "(--adapter), whose features have other ones. Leave one of them out.",
    ),
    Rule(
        lambda s: s.keep is not None and s.settings.patience is not None,
        "--patience stops where the validation metric gets no better, but --keep {keep.target:g} has to see where a whole "
        "training ends. Leave one of them out, or ask for fewer --epochs.",
    ),
    Rule(
        lambda s: s.settings.log_gradient_norms and not s.num_trained_blocks,
        "--log-gradient-norms is about the building blocks of the network, and --method {method} trains none of them. Leave it "
        "out, or choose a method that trains more.",
    ),
    Rule(lambda s: bool(s.given_in_grid), "{given_in_grid} is given and also varied by --grid. Write its value into the grid."),
    Rule(
        lambda s: s.settings.num_processes > 1 and s.device == "cpu" and bool(s.moved_batch_norms),
        "--devices {settings.num_processes}: the network has BatchNorm layers that are trained ({moved_batch_norms[0]} …), "
        "and on the CPU each process would normalise with its own share of the batch, so that the result depends on their "
        "number. Train with one process, keep their statistics (--batch-norm frozen), or choose a method that trains none of "
        "them (--method linear).",
    ),
    Rule(
        lambda s: s.settings.num_processes > 1 and s.device == "cpu" and bool(s.trained_batch_norms),
        "--devices {settings.num_processes}: the network has BatchNorm layers without kept statistics ({trained_batch_norms[0]} "
        "…), and on the CPU each process would normalise with its own share of the batch, so that the result depends on their "
        "number. Train with one process, or choose a method that trains none of them (--method linear).",
    ),
    Rule(
        lambda s: s.settings.num_processes > s.settings.batch_size,
        "--devices {settings.num_processes} would share batches of {settings.batch_size}: some would have no image. Ask "
        "for fewer devices or a larger --batch-size.",
    ),
    Rule(
        lambda s: s.settings.accumulate > s.settings.batch_size,
        "--accumulate {settings.accumulate} would cut batches of {settings.batch_size} into micro-batches without an image. "
        "Ask for at most as many micro-batches as images.",
    ),
    Rule(
        lambda s: s.settings.num_processes > s.settings.batch_size // s.settings.accumulate,
        "--devices {settings.num_processes} would share micro-batches of {settings.batch_size} / {settings.accumulate} images "
        "(--accumulate): some would have none. Ask for fewer micro-batches.",
    ),
    Rule(
        lambda s: s.settings.warmup_epochs >= s.settings.epochs and "warmup_epochs" in s.given,
        "--warmup-epochs {settings.warmup_epochs:g} is all of --epochs {settings.epochs}. Ask for fewer.",
    ),
    Rule(
        lambda s: s.settings.precision == "16-mixed" and s.device == "cpu",
        "--precision 16-mixed needs a GPU; this is the CPU. Use --precision bf16 or --precision 32.",
    ),
    Rule(
        lambda s: s.settings.precision == "bf16-mixed" and s.device.startswith("cuda") and not has_bf16(),
        "--precision bf16: this GPU has no bf16. Use --precision 32, or --precision 16.",
    ),
    Rule(lambda s: s.device.startswith("cuda") and bool(s.missing_gpus), "--devices {settings.num_processes}: {missing_gpus}"),
    Rule(
        lambda s: "momentum" in s.asked and s.settings.optimizer != "sgd",
        "--momentum is of SGD; Adam and AdamW have their own. Leave it out, or say --optimizer sgd.",
    ),
    Rule(
        lambda s: s.settings.nesterov and s.settings.optimizer != "sgd",
        "--nesterov is a momentum of SGD. Leave it out, or say --optimizer sgd.",
    ),
    Rule(
        lambda s: s.settings.nesterov and s.settings.momentum == 0,
        "--nesterov looks ahead along the momentum, which is 0. Leave one of them out.",
    ),
    Rule(
        lambda s: bool(s.missed_by_schedule),
        "--schedule {settings.schedule} lowers the learning rate in {missed_by_schedule} (counted from 0), which a training of "
        "{settings.epochs} epochs never reaches. Ask for more --epochs, or for earlier ones.",
    ),
    Rule(
        lambda s: "stop_by" in s.given and not s.has_val,
        "--stop-by looks at validation rows, but there are none (--val-fraction 0). Leave one out.",
    ),
    Rule(
        lambda s: bool(s.asked & {"head_epochs", "head_patience"}) and not s.settings.head_first,
        "--head-epochs and --head-patience are about the first phase of --head-first. Give that too, or leave them out.",
    ),
    Rule(
        lambda s: "threshold_rule" in s.given and not s.task.threshold_columns(s.num_classes),
        "--threshold-rule needs two classes or several labels per image; among {num_classes} classes the most probable one "
        "is decided for. Leave it out.",
    ),
    Rule(
        lambda s: "threshold_rule" in s.given and not s.has_val,
        "--threshold-rule is fitted on validation rows, but there are none (--val-fraction 0). Leave one out.",
    ),
)
"""Refused, first that holds."""

WARNED: tuple[Rule, ...] = (
    Rule(
        lambda s: bool(s.trained_batch_norms) and s.settings.accumulate > 1,
        "--accumulate {settings.accumulate} cuts each batch into micro-batches of about {images_at_once} images, and BatchNorm "
        "layers that are trained ({trained_batch_norms[0]} …) normalise each micro-batch with its own mean and variance, so the "
        "result is not that of a whole batch. Leave --accumulate out, with a smaller --batch-size or --precision bf16 if memory "
        "is short, or keep BatchNorm frozen (--batch-norm frozen, or --method linear).",
    ),
)
"""Said in the plan and as a warning, all that hold."""

SAID: tuple[Rule, ...] = (
    Rule(
        lambda s: s.plugins.method.features_are_fixed and not s.plugins.features_are_fixed,
        "{method} could compute the features of each image once, but augmentation and batch transforms change images "
        "anew in each epoch, so every step goes through the whole network. --augmentation none is many times faster.",
    ),
    Rule(
        lambda s: s.plugins.features_are_fixed, "The features of each image are computed once; epochs then train the head alone."
    ),
    Rule(lambda s: s.mixes and s.draws_evenly, "Mixed images come from rows that were drawn evenly over the classes."),
    Rule(
        lambda s: not s.has_val,
        "There are no validation rows: the last epoch is kept, and neither temperature nor threshold is fitted.",
    ),
    Rule(
        lambda s: s.settings.batch_size > s.num_train,
        "The batch size {settings.batch_size} is more than the {num_train} training images; every step sees them all.",
    ),
    Rule(
        lambda s: bool(s.trained_batch_norms) and s.settings.batch_size // s.settings.accumulate < 8,
        "BatchNorm layers are trained on fewer than 8 images at a time; their statistics will be noisy.",
    ),
    Rule(
        lambda s: s.has_adapter and bool(s.keepers),
        "{keepers} compares with the network that training starts from, which has the adapter (--adapter); similarity is "
        "reported to the pretrained network without it.",
    ),
    Rule(
        lambda s: s.num_jobs > 30, "{num_jobs} trainings are a lot; the best of many looks better on validation rows than it is."
    ),
)
"""Said in the plan, all that hold."""


def refuse_contradictions(situation: TrainingSituation) -> None:
    """Raise for the first contradiction.

    Raises:
        UsageError: Two choices cannot both be followed; the message gives the reason and what to do.
    """
    for rule in REFUSED:
        if rule.holds(situation):
            raise UsageError(_fill(rule.text, situation))
    if reason := refusal_by_domains(situation.plugins, situation.settings, situation.task, situation.domains):
        raise UsageError(reason)
    for plugin in situation.plugins.all:
        reason = plugin.conflicts(situation) if isinstance(plugin, HasConflicts) else None
        if reason is not None:
            raise UsageError(reason)


def warnings_on(situation: TrainingSituation) -> list[str]:
    """What is done as it was asked for, but seldom meant."""
    return [
        *(_fill(rule.text, situation) for rule in WARNED if rule.holds(situation)),
        *warnings_by_domains(situation.plugins, situation.settings, situation.domains),
    ]


def notes_on(situation: TrainingSituation) -> list[str]:
    """What goes together but should be known."""
    refusals = [_fill(rule.text, situation) for rule in SAID if rule.holds(situation)]
    remarking = [plugin for plugin in situation.plugins.all if isinstance(plugin, HasRemarks)]
    about_domains = notes_by_domains(situation.plugins, situation.settings, situation.domains)
    return [*refusals, *about_domains, *(remark for plugin in remarking for remark in plugin.remarks(situation))]


class _Fields(dict[str, object]):
    """What a text may name, looked up where it does."""

    def __init__(self, situation: TrainingSituation) -> None:
        super().__init__()
        self._situation = situation

    def __missing__(self, name: str) -> object:
        return getattr(self._situation, name)


def _fill(text: str, situation: TrainingSituation) -> str:
    return text.format_map(_Fields(situation))
