"""Options of ``fine_tune``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from crossgraft.edit.options import EditsBefore
from crossgraft.errors import UsageError
from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import DATA_HELP, Command, Input, Typed, VerbCall
from crossgraft.options.data import DividedRows, Unreadable, Validating
from crossgraft.options.models import Loading
from crossgraft.options.running import Computing, Output, Reported, Terminal
from crossgraft.tune.engine.settings import TrainingSteps, Tuning

if TYPE_CHECKING:
    from crossgraft.losses import Loss
    from crossgraft.models.spec import ModelSpec
    from crossgraft.tune.augmentations import Augmentation
    from crossgraft.tune.batch_transforms import BatchTransform
    from crossgraft.tune.protocols import FeatureTransform, Method, Objective, Regularizer
else:
    Augmentation = BatchTransform = FeatureTransform = Loss = Method = ModelSpec = Objective = Regularizer = FromProgram

BatchNormMode = Literal["train", "frozen", "adapt"]


@options
class StartingModel(Options):
    """The network that training starts from."""

    group: ClassVar[str] = "Model"

    model: str | Path | ModelSpec = option("Name, checkpoint, zoo.yaml:NAME or package.module:factory.", is_common=True)


def _settings_of_preset(preset: str) -> Mapping[str, object]:
    from crossgraft.tune.presets import settings_of

    return settings_of(preset)


@options
class AsPublished(Tuning):
    """The settings of a publication under one name."""

    group: ClassVar[str] = "Training"

    preset: str | None = option(
        "Settings of a published training: repsim, sim_cifar:cifar100, thesis:4 … (crossgraft list presets). Others may be "
        "added, none of them changed.",
        default=None,
        only_if_given=True,
        stands_for=_settings_of_preset,
        in_words=lambda now: now.plugins.in_words("preset"),
    )


def _mirroring(now: Any) -> str | None:
    images = now.plugins.augmentation
    return None if images.name == "none" else "yes" if images.flip else "no"


@options
class Slots(Tuning):
    """Plug-ins: what is trained, what is added to the loss, what is done to images."""

    group: ClassVar[str] = "Method"

    method: str | Mapping[str, object] | Method = option(
        "What is trained: full, linear, scratch, partial:3, lora, adaptformer.",
        default="full",
        is_common=True,
        in_words=lambda now: now.plugins.in_words("method"),
    )
    regularizer: str | Regularizer | Sequence[str | Regularizer] = option(
        "Terms added to the loss: l2_sp:alpha=0.1; several with commas or repeated.",
        default=(),
        repeats=True,
        is_common=True,
        in_words=lambda now: now.plugins.in_words("regularizer"),
    )
    batch_transform: str | BatchTransform | Sequence[str | BatchTransform] = option(
        "Transforms of a batch: mixup:0.2, cutmix, label_smoothing:0.1; several with commas or repeated.",
        default=(),
        repeats=True,
        in_words=lambda now: now.plugins.in_words("batch transform"),
    )
    augmentation: str | Mapping[str, object] | Augmentation | None = option(
        "Augmentation of each image: none, light or thesis.",
        default=None,
        default_text="light; none with linear",
        in_words=lambda now: now.plugins.in_words("augmentation"),
    )
    flip: bool = option(
        "Mirror images left to right at random.", default=True, in_protocol=True, row="mirroring", in_words=_mirroring
    )
    loss: str | Mapping[str, object] | Loss | None = option(
        "cross_entropy, focal:2, mse or multi_label.",
        default=None,
        default_text="the one that fits the labels",
        in_words=lambda now: now.plugins.in_words("loss"),
    )
    class_weights: str | Sequence[float | int] | None = option(
        "balanced, or one number per class: '1 2.5 1'.", default=None, has_row=False
    )
    sampler: str | None = option(
        "shuffle; equally often in a batch: balanced (classes), domains, domains_and_classes.",
        default=None,
        default_text="shuffle, or what --objective needs",
        in_protocol=True,
        in_words=lambda now: now.plugins.sampler,
    )
    objective: str | Mapping[str, object] | Objective = option(
        "What is minimised: erm (the mean), or over domains irm, vrex:weight=3, group_dro.",
        default="erm",
        only_if_given=True,
        in_words=lambda now: now.plugins.in_words("objective"),
    )
    feature_transform: str | FeatureTransform | Sequence[str | FeatureTransform] = option(
        "Changes of feature maps in training: mixstyle:p=0.5,alpha=0.1; several with commas or repeated.",
        default=(),
        only_if_given=True,
        repeats=True,
        in_words=lambda now: now.plugins.in_words("feature transform"),
    )


@options
class FromDomains(Tuning):
    """Where images come from."""

    group: ClassVar[str] = "Data"

    domains: str | None = option(
        "Column that says where an image comes from: hospital, scanner, writer.",
        default=None,
        only_if_given=True,
        in_protocol=True,
    )


@options
class ByDomain(FromDomains):
    """Which of them training never sees."""

    group: ClassVar[str] = "Domains"

    leave_out: str | None = option(
        "Domain that training never sees and the model is tested on; each: every one in turn, with a model each. --holdout is "
        "the share of the others that is only measured (0: none).",
        default=None,
        only_if_given=True,
        in_protocol=True,
        needs="domains",
    )
    oracle: bool = option(
        "Pick epoch, grid point and threshold on images of the domain that is left out: an upper bound, and no result.",
        default=False,
        only_if_given=True,
        needs="leave_out",
    )


@options
class FirstAdapter(Tuning):
    """Adapters that somebody has trained before."""

    group: ClassVar[str] = "Method"

    adapter: str | Path | None = option(
        "With lora, folder of an adapter saved by PEFT that training continues from. It sets rank, alpha, layers and "
        "dropout; its head is used where it has as many classes.",
        default=None,
        has_row=False,
    )


@options
class TrainingOptions(TrainingSteps):
    """Steps and learning rates, and what training is to leave as it was."""

    stop_by: str | None = option(
        "Metric on val that --patience looks at, where another one picks the model.",
        default=None,
        default_text="that of --select-by",
        only_if_given=True,
        needs="patience",
    )
    keep: float | None = option(
        "Debiased CKA on val that training is to end at, in (0, 1): the regulariser becomes as strong as that takes.",
        default=None,
        default_text="the regulariser is as strong as it says",
        only_if_given=True,
        in_protocol=True,
        in_words=lambda now: None if now.keep is None else now.keep.in_words,
    )
    batch_norm: BatchNormMode | None = option(
        "Means and variances of BatchNorm: train (of each batch, they move), frozen (the pretrained ones), or adapt (first "
        "estimated on the training images, in the network that training starts from and compares with).",
        default=None,
        default_text="frozen beside repsim and hcs, else train",
        only_if_given=True,
        in_protocol=True,
        in_words=lambda now: now.batch_norm.in_words if now.batch_norm.num_layers else None,
    )


@options
class Choosing(Tuning):
    """How the model is picked."""

    group: ClassVar[str] = "Selection and metrics"

    select_by: str | None = option(
        "Metric on val that picks the model: auc, loss, balanced_accuracy …",
        default=None,
        default_text="auc, or loss where a class is missing in val",
        row="picked by",
        in_words=lambda now: now.rule.name,
    )
    grid: str | Sequence[str] | Mapping[str, Sequence[float | int]] | None = option(
        "Settings to try: learning_rate=1e-3,1e-4; repeated for other settings.", default=None, repeats=True, has_row=False
    )


@options
class FewerVal(Tuning):
    """A smaller part that picks the model."""

    group: ClassVar[str] = "Rows"

    val_per_class: int | None = option(
        "Number of images per class of val; the others of val are left out.",
        default=None,
        least=1,
        only_if_given=True,
        has_row=False,
    )


@options
class Deciding(Tuning):
    """How probabilities become decisions."""

    group: ClassVar[str] = "Selection and metrics"

    threshold_rule: str | None = option(
        "Decision threshold of two classes or of each label: youden, sensitivity:0.95, specificity:0.9.",
        default=None,
        default_text="youden",
        has_row=False,
    )


@options
class Subgroups(Tuning):
    """Metrics of parts of the data."""

    group: ClassVar[str] = "Selection and metrics"

    subgroups: str | Sequence[str] | None = option(
        "Further columns of a table, each of whose values gets its own metrics.", default=None, has_row=False
    )


@options
class Execution(Tuning):
    """What is done with the result."""

    group: ClassVar[str] = "Output"

    plan: bool = option("Only make the plan: no step is taken and nothing is written.", default=False, decides=False)
    store: bool = option("Add the result to the known results, which later rankings use.", default=True, decides=False)
    track: str | None = option(
        "mlflow or wandb, to log there as well; the run directory stays complete.", default=None, decides=False
    )


@options
class Observing(Tuning):
    """What is written down about every step."""

    group: ClassVar[str] = "Output"

    log_gradient_norms: bool = option(
        "Write the L2 norm of the gradient of each building block in each step, before clipping, to gradient_norms.csv, with an "
        "exponential moving average (factor 0.95) and a figure.",
        default=False,
        only_if_given=True,
        has_row=False,
    )


@options
class VariantOptions(Deciding, Choosing, TrainingOptions, Slots):
    """What one variant of a comparison may do otherwise than the others; images, split, network and input are the same."""


@options
class FitOptions(Computing, Loading, Validating, Choosing, TrainingOptions, FirstAdapter, Slots, StartingModel):
    """Options of ``FineTunedClassifier``, which is given arrays that somebody else has split."""


@options
class EditedRows(Unreadable, EditsBefore, DividedRows):
    """The images that a training sees, and what is done to them first."""


@options
class TuneOptions(
    Output,
    Computing,
    Execution,
    Observing,
    Reported,
    Loading,
    FewerVal,
    EditedRows,
    Subgroups,
    ByDomain,
    Validating,
    AsPublished,
    VariantOptions,
    FirstAdapter,
    Slots,
    StartingModel,
):
    """Options of ``fine_tune``."""


Entry = str | Path | Mapping[str, object]
"""One or several variants of a comparison: a spelling, a YAML file, or a mapping with a name and settings."""


@options
class Variants(StartingModel):
    """What is compared."""

    group: ClassVar[str] = "Comparison"

    compare: Entry | Sequence[Entry] = option(
        "Variants: full,linear,l2_sp:0.1,0.01,partial:3+l2_sp, or a YAML file of named settings."
    )
    layer_pca: str | None = option(
        "Layer whose features of the test images are drawn by their first two principal components, one panel per variant; "
        "auto: the last building block.",
        default=None,
        default_text="no such figure",
        decides=False,
    )
    seeds: int = option("Number of trainings of each variant, with consecutive seeds.", default=1, least=1)


@options
class CompareOptions(TuneOptions, Variants):
    """Options of ``compare_fine_tunings``."""


def _tune(call: Typed) -> VerbCall:
    """``crossgraft tune``, one way or several."""
    if "model" not in call.typed and call.config is None:
        raise UsageError("Name the model to fine-tune, for example: --model mobilenetv2_100.")
    data, asked = call.inputs["data"], call.asked(CompareOptions)
    if asked.get("compare") is not None:
        verb = "crossgraft.variants.verb:compare_fine_tunings"
        return VerbCall(verb, CompareOptions, (data,), named="tune-compare", asked=asked, once="compare")
    if asked.get("seeds") is not None:
        raise UsageError(
            "--seeds says how often each way of --compare is trained. Give --compare too, or --seed for one training."
        )
    if asked.get("layer_pca") is not None:
        raise UsageError("--layer-pca draws a layer in each way of --compare. Give --compare too, or leave it out.")
    return VerbCall("crossgraft.tune.verb:fine_tune", TuneOptions, (data,), named="tune", asked=asked)


COMMAND = Command(
    "tune",
    "Fine-tune a pretrained model on your labelled images, and measure it on held-out images.",
    example="tune digits --model mobilenetv2_100 --method linear",
    inputs=(Input("data", DATA_HELP),),
    options=(TuneOptions, CompareOptions, Terminal),
    action=_tune,
    notes="Splits train, val and test of the data are used; a missing one is drawn. Test is looked at once, at the end. "
    "The same command goes on where it was stopped. --plan shows what would happen. --compare trains several ways on the "
    "same images, and shows what each gives and how much it keeps of what the model knew.",
    place=60,
)
