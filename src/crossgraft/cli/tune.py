"""``crossgraft tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crossgraft.cli import options
from crossgraft.cli.comparison import EXIT_PARTIAL, compare_and_print, refuse_seeds, with_comparison
from crossgraft.cli.output import show

app = typer.Typer(rich_markup_mode=None)

Data = Annotated[str, typer.Argument(help="Folder, CSV or TSV table, .npz file, hf:owner/name, or digits.")]
Model = Annotated[str | None, typer.Option("--model", help="Name, checkpoint, or package.module:factory.")]
Method = Annotated[
    str, typer.Option("--method", help="What is trained: full, linear, scratch, partial:K, lora, adaptformer.")
]
Adapter = Annotated[
    Path | None, typer.Option("--adapter", help="With lora: folder of an adapter of PEFT that training goes on from.")
]
Regularizer = Annotated[
    list[str] | None,
    typer.Option("--regularizer", help="Added to the loss: l2_sp:alpha=0.1; several with commas or repeated."),
]
Transform = Annotated[
    list[str] | None,
    typer.Option("--batch-transform", help="mixup:0.2, cutmix, label_smoothing:0.1; with commas or repeated."),
]
Augmentation = Annotated[
    str | None, typer.Option("--augmentation", help="none, light or thesis. [default: light; none with linear]")
]
Flip = Annotated[bool, typer.Option("--flip/--no-flip", help="May an image be mirrored left to right?")]
Loss = Annotated[str | None, typer.Option("--loss", help="cross_entropy, focal:2 or multi_label. [default: what fits]")]
Weights = Annotated[str | None, typer.Option("--class-weights", help="balanced, or '1 2.5 1': one number a class.")]
Sampler = Annotated[str, typer.Option("--sampler", help="shuffle, or balanced: classes equally often.")]
Optimizer = Annotated[str, typer.Option("--optimizer", help="adamw or sgd.")]
Rate = Annotated[float | None, typer.Option("--learning-rate", help="The largest. [default: by method and network]")]
HeadRate = Annotated[float | None, typer.Option("--head-learning-rate", help="Of the new head, if it is another.")]
Decay = Annotated[float | None, typer.Option("--weight-decay", help="[default: 0.05; 0 with l2_sp]")]
Momentum = Annotated[float | None, typer.Option("--momentum", help="Of SGD. [default: 0.9]")]
Schedule = Annotated[str, typer.Option("--schedule", help="cosine or constant.")]
Epochs = Annotated[int | None, typer.Option("--epochs", min=1, help="[default: about 600 steps, 10 to 50 epochs]")]
Warmup = Annotated[float | None, typer.Option("--warmup-epochs", help="[default: 5, at most a tenth of all]")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", min=1, help="[default: 8 to 128, by number of images]")]
Accumulate = Annotated[int, typer.Option("--accumulate", min=1, help="Parts of a batch, to save memory.")]
LayerDecay = Annotated[float, typer.Option("--layer-decay", help="Of the learning rate, block by block.")]
ClipNorm = Annotated[float | None, typer.Option("--clip-norm", help="Largest norm of the gradient. [default: none]")]
Patience = Annotated[int | None, typer.Option("--patience", min=1, help="Stop after so many epochs without a gain.")]
HeadFirst = Annotated[bool, typer.Option("--head-first", help="The head alone until it gains no more, then the rest.")]
HeadEpochs = Annotated[int | None, typer.Option("--head-epochs", min=1, help="Of --head-first. [default: 100]")]
HeadPatience = Annotated[int | None, typer.Option("--head-patience", min=1, help="Of --head-first. [default: 10]")]
Precision = Annotated[str, typer.Option("--precision", help="32, bf16, 16 (GPU) or 64.")]
SelectBy = Annotated[str | None, typer.Option("--select-by", help="Metric on val that picks. [default: auc, or loss]")]
ThresholdRule = Annotated[
    str | None, typer.Option("--threshold-rule", help="youden, sensitivity:0.95, specificity:0.9. [default: youden]")
]
Grid = Annotated[
    list[str] | None, typer.Option("--grid", help="learning_rate=1e-3,1e-4: tries each; repeat for other settings.")
]
Subgroups = Annotated[str | None, typer.Option("--subgroups", help="Columns whose values get metrics of their own.")]
ValFraction = Annotated[float, typer.Option("--val-fraction", help="Of the train rows, where there is no val.")]
Split = Annotated[Path | None, typer.Option("--split", help="Saved split (JSON).")]
Folds = Annotated[int | None, typer.Option("--folds", min=2, help="Cross-validation: every image is tested once.")]
Fold = Annotated[int | None, typer.Option("--fold", min=0, help="Only this fold, from 0. [default: all]")]
PerClass = Annotated[int | None, typer.Option("--per-class", min=1, help="Train on this many images of each class.")]
ImageSize = Annotated[int | None, typer.Option("--image-size", min=1, help="Input side in pixels.")]
ResizePolicy = Annotated[str | None, typer.Option("--resize-policy", help="crop, squash or pad.")]
Plan = Annotated[bool, typer.Option("--plan", help="Only show what would be trained, and how long it takes.")]
Store = Annotated[bool, typer.Option("--store/--no-store", help="Keep the result for later rankings.")]
Track = Annotated[str | None, typer.Option("--track", help="Also log to mlflow or wandb.")]
CheckpointEvery = Annotated[
    int | None, typer.Option("--checkpoint-every", min=1, help="Steps between checkpoints. [default: an epoch]")
]
Devices = Annotated[int, typer.Option("--devices", min=1, help="How many share each batch.")]
Compare = Annotated[
    str | None,
    typer.Option("--compare", help="Ways to fine-tune: full,linear,l2_sp:0.1,0.01,partial:3+l2_sp, or a YAML file."),
]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="With --compare: trainings of each. [default: 1]")]


@app.command()
def tune(
    context: typer.Context,
    data: Data,
    model: Model = None,
    compare: Compare = None,
    seeds: Seeds = None,
    method: Method = "full",
    adapter: Adapter = None,
    regularizer: Regularizer = None,
    batch_transform: Transform = None,
    augmentation: Augmentation = None,
    flip: Flip = True,
    loss: Loss = None,
    class_weights: Weights = None,
    sampler: Sampler = "shuffle",
    optimizer: Optimizer = "adamw",
    learning_rate: Rate = None,
    head_learning_rate: HeadRate = None,
    weight_decay: Decay = None,
    momentum: Momentum = None,
    schedule: Schedule = "cosine",
    epochs: Epochs = None,
    warmup_epochs: Warmup = None,
    batch_size: BatchSize = None,
    accumulate: Accumulate = 1,
    layer_decay: LayerDecay = 1.0,
    clip_norm: ClipNorm = None,
    patience: Patience = None,
    head_first: HeadFirst = False,
    head_epochs: HeadEpochs = None,
    head_patience: HeadPatience = None,
    precision: Precision = "32",
    select_by: SelectBy = None,
    threshold_rule: ThresholdRule = None,
    grid: Grid = None,
    subgroups: Subgroups = None,
    val_fraction: ValFraction = 0.2,
    label_column: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    class_names: options.ClassNames = None,
    ordinal: options.Ordinal = False,
    group_column: options.GroupColumn = None,
    path_column: options.PathColumn = None,
    image_root: options.ImageRoot = None,
    allow_outside: options.AllowOutside = False,
    window: options.Window = None,
    slices: options.Slices = None,
    split: Split = None,
    holdout: options.Holdout = None,
    folds: Folds = None,
    fold: Fold = None,
    per_class: PerClass = None,
    limit: options.Limit = None,
    skip_unreadable: options.SkipUnreadable = False,
    weights_dir: options.WeightsDir = None,
    allow_download: options.AllowDownload = False,
    allow_code: options.AllowCode = None,
    image_size: ImageSize = None,
    resize_policy: ResizePolicy = None,
    strict: options.Strict = False,
    no_images: options.NoImages = False,
    show_names: options.ShowNames = False,
    plan: Plan = False,
    store: Store = True,
    track: Track = None,
    checkpoint_every: CheckpointEvery = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    devices: Devices = 1,
    workers: options.Workers = None,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Fine-tune a pretrained model on your labelled images, and measure it on images it never saw.

    Example: crossgraft tune digits --model mobilenetv2_100 --method linear

    Splits train, val and test of the data are used; a missing one is drawn. Test is looked at once, at the end. The same
    command goes on where it was stopped. --plan shows what would happen. --compare trains several ways on the same images,
    and shows what each gives and how much it keeps of what the model knew.
    """
    from crossgraft.cli.tune_text import tuning_text
    from crossgraft.config import resolve, settings_model
    from crossgraft.errors import UsageError
    from crossgraft.options import TuneOptions
    from crossgraft.verbs.fine_tune import fine_tune

    known = with_comparison(settings_model(TuneOptions))
    given = options.typed_flags(context)
    if "model" not in given and config is None:
        raise UsageError("Name the model to fine-tune, for example: --model mobilenetv2_100.")
    arguments = resolve(known, file=config, given=given)
    if config is not None:
        options.models_of_file(arguments, given)
    reporter = options.make_reporter(quiet=quiet)
    if arguments["compare"] is not None:
        compare_and_print(data, arguments, reporter=reporter, as_json=json)
        return
    refuse_seeds(arguments.pop("seeds"))
    arguments.pop("compare")
    tuned = options.in_own_directory(
        options.run_directories(arguments.pop("out"), "tune", data),
        lambda directory: fine_tune(data, reporter=reporter, out=directory, **arguments),
    )
    if json:
        options.print_json(tuned.to_json())
    elif tuned.tuning is None:
        show(tuned.plan.summary())
    else:
        show(tuning_text(tuned.record, tuned.out, tuned.report))
    if tuned.tuning is not None and any(row.state == "failed" for row in tuned.tuning.grid):
        raise typer.Exit(EXIT_PARTIAL)
