"""Options of ``audit_model``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import Command, Input
from crossgraft.options.data import AuditSplit, ClassOptions, SourceOptions, Subsets, Unreadable
from crossgraft.options.models import CodeOptions, InputSize, InsideCheckpoints
from crossgraft.options.running import Cache, Device, Looking, Output, Page, Seed, Strictness, Terminal, Workers
from crossgraft.rank.options import Extraction

if TYPE_CHECKING:
    from crossgraft.tune.protocols import Method
else:
    Method = FromProgram

SHARES = "0,0.1,0.2,0.5,0.8,1"


@options
class Confounding(Options):
    """What is put into images, and into how many."""

    group: ClassVar[str] = "Audit"

    data: Any = option(
        "Labelled images: folder, table, .npz file …",
        is_path=True,
        is_common=True,
        takes="a path, a Dataset, a DataFrame or a list of files",
    )
    confounders: str | Sequence[Any] = option(
        "Artefact that is put into images, with options: tag, low_pass:0.244 …; crossgraft list confounders shows them. "
        "'poisson_image:1e7 against poisson_image:2e7': where images have another level instead.",
        default=(),
        default_text="tag, where no column is named",
        takes="names with commas or a list of names and edits",
        flag="confounder",
        repeats=True,
        is_common=True,
    )
    attributes: str | Sequence[str] = option(
        "Column whose groups confound, perhaps with the value in question: sex:F, age:>60; or a fact of the file: height.",
        default=(),
        flag="attribute",
        repeats=True,
        is_common=True,
    )
    readable: str | Sequence[str] = option(
        "Column that a probe reads from features of held-out patients, as for --attribute: sex:F, age:>60.",
        default=(),
        repeats=True,
        only_if_given=True,
    )
    positive: str | None = option(
        "Class that is told from all others.", default=None, default_text="the last one", is_common=True
    )
    mode: Literal["quick", "full"] = option(
        "quick: classifiers on frozen features, in minutes; full: a fine-tuning for each fold and share. A model that is "
        "trained already is asked as it is.",
        default="quick",
        is_common=True,
    )
    shares: str | Sequence[float] = option("Shares of the training positives that carry the artefact, from 0 on.", default=SHARES)
    audit_folds: int = option(
        "Number of folds of the images that train and select; all are measured on the same test images.",
        default=5,
        least=1,
        flag="folds",
    )
    fold_method: Literal["stratified", "shuffled"] = option(
        "stratified: each image selects in one fold (StratifiedGroupKFold); shuffled: 15 % select, drawn anew for each fold "
        "(GroupShuffleSplit), as in the released code of the thesis.",
        default="stratified",
    )
    negatives: float = option(
        "Share of the negatives that carry the artefact, in training and in test images like those.", default=0.0
    )
    stage: Literal["native", "input"] = option(
        "native: artefacts are put into images as they are; input: into images that are resized for the network.",
        default="native",
    )
    unit: Literal["image", "patient"] = option("What is drawn to carry it: images, or whole patients.", default="image")
    test_mode: Literal["exact", "sampled"] = option(
        "exact: mean over all draws of test images that carry it; sampled: one draw per share.", default="exact"
    )
    micro_auc: bool = option(
        "Also compute areas as the released code of the thesis does, to compare curves with its figures.", default=False
    )
    absent: str | None = option("Edit of images that do not carry the artefact, for example another noise level.", default=None)
    strength: float = option("Multiple of what an artefact changes; with 0 nothing can be relied on.", default=1.0)
    mitigate: str | Sequence[Any] = option(
        "Mitigations that are compared with plain training: balanced_sampling, group_weights, dfr …; quick mode.",
        default=(),
        takes="names with commas or a list of names and mitigations",
        repeats=True,
    )
    start: Any = option(
        "Pretrained network that a trained model started from, where its run does not say: a name, or zoo.yaml:NAME.",
        default=None,
        takes="text, a path or a ModelSpec",
    )
    frequency: bool = option(
        "Also compare frequencies: of images, artefacts and gradients; of a trained model AUC under low-pass and high-pass.",
        default=False,
    )
    fail_on: str | Sequence[str] = option(
        "Condition that ends with exit code 5: relies, sensitive, or a number such as 'shortcut_reliance_index>0.1'.",
        default=(),
        repeats=True,
    )


@options
class AuditPlanning(Options):
    """What is done with the result."""

    group: ClassVar[str] = "Output"

    plan: bool = option(
        "Only say how many images a verdict needs, and how many there are: no model is asked and nothing is written.",
        default=False,
        decides=False,
    )


@options
class FullTraining(Options):
    """How networks are fine-tuned in full mode; all else as ``tune`` chooses it."""

    group: ClassVar[str] = "Training"

    method: str | Mapping[str, object] | Method = option(
        "What is trained in full mode: full, linear, scratch, lora …", default="full"
    )
    epochs: int | None = option(
        "Largest number of passes over the training images.",
        default=None,
        least=1,
        default_text="about 600 steps, 10 to 50 epochs",
    )
    learning_rate: float | None = option(
        "Largest learning rate, after warm-up.", default=None, default_text="by method and network"
    )


@options
class AuditOptions(
    Output,
    AuditPlanning,
    Cache,
    Extraction,
    Workers,
    Device,
    Seed,
    Looking,
    Page,
    Strictness,
    InputSize,
    CodeOptions,
    InsideCheckpoints,
    FullTraining,
    Subsets,
    AuditSplit,
    Unreadable,
    ClassOptions,
    SourceOptions,
    Confounding,
):
    """Options of ``audit_model``."""


COMMAND = Command(
    "audit",
    "Does a model lean on a shortcut? Put an artefact into real images, and see what it does to the AUC.",
    example="audit mobilenetv2_100 --data digits --confounder tag",
    inputs=(
        Input(
            "model", "Run directory of crossgraft tune or .onnx file, asked as it is; or models as of rank, which are trained."
        ),
    ),
    options=(AuditOptions, Terminal),
    verb="crossgraft.audit.verb:audit_model",
    notes="A trained model is asked about test images without the artefact and with it. Pretrained models are trained where "
    "a share of the positives carries it, and tested where it goes with the class and where it goes against it. Exit code 5: "
    "a condition of --fail-on holds, or nothing could be assessed.",
    place=120,
)
