"""Options of ``run_episodes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from crossgraft.errors import UsageError
from crossgraft.options import options_of
from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import DATA_HELP, OF_EVERY_COMMAND, Command, Input, Typed, VerbCall, flag_of
from crossgraft.options.data import ClassOptions, ImageOptions, Splits, Subsets, TableOptions, Unreadable, Volumes
from crossgraft.options.models import CodeOptions, Download, InputSize, InsideCheckpoints
from crossgraft.options.running import Cache, Device, Looking, Output, Page, Seed, Strictness, Terminal, Workers
from crossgraft.rank.options import Extraction

if TYPE_CHECKING:
    from crossgraft.models.spec import ModelSpec
else:
    ModelSpec = FromProgram


def _settings_of_preset(preset: str) -> Mapping[str, object]:
    from crossgraft.tune.presets import settings_of

    return settings_of(preset, command="fewshot")


@options
class PromptOptions(Options):
    """What is said of each class to a network that reads."""

    group: ClassVar[str] = "Model and heads"

    prompts: Any = option(
        "Class weights from text: a template such as 'a photo of {class}', which may be given several times, or a YAML file with "
        "templates: and classes: (label: text).",
        default=None,
        only_if_given=True,
        repeats=True,
        takes="a template, a list of templates, a mapping with templates and classes, or a path of a YAML file",
    )


@options
class EpisodeOptions(Options):
    """What is adapted, and to which tasks."""

    group: ClassVar[str] = "Model and heads"

    model: str | Path | ModelSpec = option(
        "Name, checkpoint, zoo.yaml:NAME or package.module:factory of the frozen backbone.", is_common=True
    )
    heads: str | Sequence[Any] = option(
        "Heads with commas, each perhaps with options: ncc,copa:learning_rate=0.005,logistic; or all.",
        default="ncc,copa,logistic",
        is_common=True,
        takes="names with commas or a list of names and scikit-learn classifiers",
    )
    episodes: int = option("Number of episodes.", default=600, least=1, is_common=True)
    sampler: Any = option(
        "Rule for the sizes of an episode: meta_dataset, or n_way_k_shot:ways=5,shots=5.",
        default="meta_dataset",
        is_common=True,
        takes="a name, perhaps with options, or a Sampler of crossgraft.fewshot",
    )
    baseline: str | None = option(
        "Head that the others are compared with.", default=None, default_text="logistic, or the first head"
    )
    preset: str | None = option(
        "Settings of published episodes: sim_few_shot:class_weights=FILE (crossgraft list presets). Others may be added, none of "
        "them changed.",
        default=None,
        only_if_given=True,
        stands_for=_settings_of_preset,
    )
    superclass_column: str | None = option(
        "Column with the superclass of each class: an episode has classes of one.", default=None
    )
    base_classes: str | Sequence[str] | None = option(
        "Classes that heads with meta_fit learn from, with commas; episodes are drawn from the others.", default=None
    )
    class_split: str | Path | None = option(
        "JSON file with the classes of train, valid and test, as Meta-Dataset has them.",
        default=None,
        default_text="the file …splits.json in the folder of the data",
        only_if_given=True,
        is_path=True,
    )
    classes_of: Literal["train", "val", "test"] = option(
        "Part of the class split that episodes are drawn from; heads with meta_fit learn from train.",
        default="test",
        only_if_given=True,
    )
    seeds: int = option(
        "Repeats with consecutive seeds: each draws other episodes, and other random numbers in heads that have some.",
        default=1,
        least=1,
        only_if_given=True,
    )
    gaps: bool = option(
        "Move the gap between images and prototypes in every episode, and show what follows: accuracy over the gap.",
        default=False,
        only_if_given=True,
    )
    seen: bool = option(
        "Mark the images as a domain that the backbone was trained on, for the averages of --average.",
        default=False,
        only_if_given=True,
    )


@options
class HeadSeed(Seed):
    """Randomness of episodes, or of a head."""

    seed: int = option(
        "Random seed of episodes; with --query that of the head. Heads on episodes have their own: copa:init=random,seed=1.",
        default=0,
        is_common=True,
    )


@options
class FewshotOptions(
    Output,
    Cache,
    Extraction,
    Workers,
    Device,
    HeadSeed,
    Page,
    Strictness,
    InputSize,
    CodeOptions,
    Download,
    InsideCheckpoints,
    Unreadable,
    Subsets,
    Splits,
    Volumes,
    ClassOptions,
    TableOptions,
    PromptOptions,
    EpisodeOptions,
):
    """Options of ``run_episodes``."""

    fold: int = option("Index of the fold that is held out, from 0.", default=0)


@options
class Averaged(Options):
    """What is averaged."""

    group: ClassVar[str] = "Model and heads"

    average: str | Path | Sequence[str | Path] | None = option(
        "Finished runs on several data sets, or folders with such runs, with commas: means of the same heads over seen, unseen "
        "and all data sets.",
        default=None,
        is_path=True,
        takes="folders, or one text of them with commas",
    )


@options
class AverageOptions(Output):
    """Options of ``average_runs``."""


@options
class SupportSet(Options):
    """What is learned, and from which images."""

    group: ClassVar[str] = "Model and heads"

    support: Any = option(
        "Labelled images to learn from: folder, table, .npz file …",
        is_path=True,
        is_common=True,
        takes="a path, a Dataset, a DataFrame or a list of files",
    )
    query: Any = option(
        "Images to predict, with or without labels.",
        is_path=True,
        is_common=True,
        takes="a path, a Dataset, a DataFrame or a list of files",
    )
    model: str | Path | ModelSpec = option(
        "Name, checkpoint, zoo.yaml:NAME or package.module:factory of the frozen backbone.", is_common=True
    )
    head: Any = option(
        "Head that learns, perhaps with options: copa:learning_rate=0.005.",
        default="copa",
        is_common=True,
        takes="a name, perhaps with options, or a scikit-learn classifier",
    )


@options
class SupportOptions(
    Output,
    Cache,
    Extraction,
    Workers,
    Device,
    HeadSeed,
    Looking,
    Page,
    InputSize,
    CodeOptions,
    InsideCheckpoints,
    ImageOptions,
    PromptOptions,
    SupportSet,
):
    """Options of ``predict_from_support``."""


def _fewshot(call: Typed) -> VerbCall:
    """``crossgraft fewshot``, of tasks drawn from images or of one support set."""
    data, asked = call.inputs["data"], call.asked(SupportOptions)
    if "average" in call.typed:
        surplus = {*call.typed} - {*options_of(Averaged), *options_of(AverageOptions), *OF_EVERY_COMMAND}
        if data is not None or surplus:
            what = "DATA" if data is not None else flag_of(min(surplus))
            raise UsageError(f"--average reads finished runs and draws no tasks; it cannot be used with {what}.")
        return VerbCall("crossgraft.fewshot.averages:average_runs", AverageOptions, (call.typed["average"],), named="fewshot")
    if not {"support", "query"} & {*asked}:
        if data is None:
            raise UsageError(
                "Name the images that tasks are drawn from, for example: crossgraft fewshot digits --model resnet18; or what to "
                "learn and what to predict: --support DIR --query DIR."
            )
        if "head" in call.typed:
            raise UsageError("--head is for --support and --query. Tasks drawn from images compare --heads.")
        surplus = {*call.typed} - {*options_of(FewshotOptions), *OF_EVERY_COMMAND}
        if surplus:
            raise UsageError(f"{flag_of(min(surplus))} is for --support and --query, and tasks are drawn from {data}.")
        verb = "crossgraft.fewshot.verb:run_episodes"
        return VerbCall(verb, FewshotOptions, (data,), named="fewshot")
    surplus = {*call.typed} - {*options_of(SupportOptions), *OF_EVERY_COMMAND}
    if data is not None or surplus:
        what = "DATA" if data is not None else flag_of(min(surplus))
        raise UsageError(f"--support and --query are one task; they cannot be used with {what}.")
    for name in ("support", "query", "model"):
        if name not in asked:
            raise UsageError(f"One task needs --support, --query and --model; there is no --{name}.")
    verb = "crossgraft.fewshot.predict_from_support:predict_from_support"
    return VerbCall(verb, SupportOptions, named="fewshot", about=str(asked["query"]), asked=asked)


COMMAND = Command(
    "fewshot",
    "Compare heads that learn from a handful of images, on a frozen model; or let one predict.",
    example="fewshot digits --model mobilenetv2_100 --heads ncc,copa,logistic",
    inputs=(Input("data", DATA_HELP, is_required=False),),
    options=(FewshotOptions, SupportOptions, Averaged, Terminal),
    action=_fewshot,
    notes="Only training rows are read. Every head is adapted to the same few-shot tasks, and is compared with a baseline, "
    "paired by task. Where there are groups, no patient is in the support set and among the queries. With --support and "
    "--query there is one task: --head learns from the one, and predicts the other, as predict does. With --average there is a "
    "table of finished runs, as in publications.",
    place=80,
)
