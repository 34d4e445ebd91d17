"""The commands of this package, in the order of a first visit, and then those of others: see ``crossgraft.options.command``."""

from __future__ import annotations

from pathlib import Path

from crossgraft.audit.options import AuditOptions
from crossgraft.check.options import CheckOptions
from crossgraft.cli import actions
from crossgraft.cli.call import Call
from crossgraft.cli.listing import Listed
from crossgraft.cli.output import show
from crossgraft.compare.options import CompareModelsOptions
from crossgraft.distil.options import DistilOptions
from crossgraft.edit.options import EditOptions
from crossgraft.export.options import ExportOptions
from crossgraft.fewshot.options import FewshotOptions, SupportOptions
from crossgraft.interpolate.options import InterpolateOptions
from crossgraft.options.command import Command, Input, Shell
from crossgraft.options.showing import (
    Debug,
    DemoOptions,
    Json,
    ListOptions,
    Quiet,
    ReportOptions,
    SheetOptions,
    Terminal,
)
from crossgraft.predict.options import PredictOptions
from crossgraft.rank.options import Published, RankOptions
from crossgraft.registry import Registry
from crossgraft.select.options import Replay, SelectOptions
from crossgraft.split.options import SplitOptions
from crossgraft.tune.options import TuneOptions
from crossgraft.variants.options import CompareOptions

_DATA = "Folder, CSV or TSV table, .npz file, hf:owner/name, or digits."
_RUN = Input("run", "Run directory of crossgraft tune, or the folder model of one.", type=Path)


def _complete(call: Call) -> int:
    """``crossgraft completion``; here, because it is about all commands."""
    from crossgraft.cli.parsing import completion_script

    show(completion_script([command for _, command in COMMANDS], call.inputs["shell"]))
    return 0


_ALL = (
    Command(
        "demo",
        "See everything once, offline, on real handwriting: toy models are trained, ranked and checked.",
        example="demo",
        inputs=(),
        options=(DemoOptions, Json, Quiet, Debug),
        verb="crossgraft.demo:write_demo",
    ),
    Command(
        "check",
        "Look for what makes results wrong: copies and patients across splits, wrong labels, damaged images.",
        example="check digits",
        inputs=(Input("data", _DATA),),
        options=(CheckOptions, Terminal),
        verb="crossgraft.check.verb:check_data",
        notes="All rows of all splits are looked at. The exit code is 3 if something unsound was found, and 0 if there are "
        "only warnings and notices.",
    ),
    Command(
        "split",
        "Write the split that every command uses to a file: train, val and test, with whole patients on one side.",
        example="split digits --out split.json",
        inputs=(Input("data", _DATA),),
        options=(SplitOptions, Terminal),
        action=actions.split,
        notes="check, rank and tune draw the same split from the same data, groups and seed by themselves. Parts that come with "
        "the data are kept. No image is opened.",
    ),
    Command(
        "rank",
        "Rank pretrained models for your labelled images, without fine-tuning them.",
        example="rank digits --models resnet18,mobilenetv2_100",
        inputs=(Input("data", _DATA, is_required=False),),
        options=(RankOptions, Published, Terminal),
        action=actions.rank,
        notes="Only training rows are read. Where the data have no split, the one that tune uses is drawn, so no model is "
        "selected with images that it will be tested on; --holdout 0 reads all rows.",
    ),
    Command(
        "select",
        "Select a pretrained model within a budget, and hand it over fine-tuned.",
        example="select digits --models zoo.yaml --budget 30min",
        inputs=(Input("data", _DATA, is_required=False),),
        options=(SelectOptions, Replay, Terminal),
        action=actions.select,
        notes="Models are fine-tuned in the order of what is known of them elsewhere while the budget lasts; the best on val is "
        "handed over, and test is opened once, for it. --plan shows what would be trained. The same command goes on where it was "
        "stopped. --replay shows what this rule gives on any table of results, beside simpler ones.",
    ),
    Command(
        "tune",
        "Fine-tune a pretrained model on your labelled images, and measure it on held-out images.",
        example="tune digits --model mobilenetv2_100 --method linear",
        inputs=(Input("data", _DATA),),
        options=(TuneOptions, CompareOptions, Terminal),
        action=actions.tune,
        notes="Splits train, val and test of the data are used; a missing one is drawn. Test is looked at once, at the end. "
        "The same command goes on where it was stopped. --plan shows what would happen. --compare trains several ways on the "
        "same images, and shows what each gives and how much it keeps of what the model knew.",
    ),
    Command(
        "predict",
        "Predict the class of images with a fine-tuned model: calibrated probability and decision.",
        example="predict runs/tune-breast new_images/",
        inputs=(_RUN, Input("images", "Image file, folder of images, CSV or TSV table of paths, .npz file …")),
        options=(PredictOptions, Terminal),
        verb="crossgraft.predict.verb:predict",
        notes="Images need no labels. Where they have some (folders, or a column, named as the classes of the model), metrics "
        "with intervals are measured as well. predictions.csv in the run directory has one row per image.",
    ),
    Command(
        "fewshot",
        "Compare heads that learn from a handful of images, on a frozen model; or let one predict.",
        example="fewshot digits --model mobilenetv2_100 --heads ncc,copa,logistic",
        inputs=(Input("data", _DATA, is_required=False),),
        options=(FewshotOptions, SupportOptions, Terminal),
        action=actions.fewshot,
        notes="Only training rows are read. Every head is adapted to the same few-shot tasks, and is compared with a baseline, "
        "paired by task. Where there are groups, no patient is in the support set and among the queries. With --support and "
        "--query there is one task: --head learns from the one, and predicts the other, as predict does.",
    ),
    Command(
        "distil",
        "Distil several fine-tuned models into one backbone, to learn new tasks from a handful of images.",
        example="distil runs/tune-skin runs/tune-fundus --data skin,fundus --model mobilenetv2_100",
        inputs=(Input("runs", "Run directories of crossgraft tune, at least two.", type=Path, repeats=True),),
        options=(DistilOptions, Terminal),
        action=actions.distil,
        notes="The student learns to classify the training rows of every run, and, fading to nothing, to look at them as their "
        "model does (URL's universal backbone). It is measured beside its teachers on the test rows. The same command goes on "
        "where it was stopped.",
    ),
    Command(
        "interpolate",
        "Measure the networks between the pretrained and a fine-tuned one, without training.",
        example="interpolate runs/tune-breast breast.npz --linear runs/probe-breast",
        inputs=(_RUN, Input("data", "The images that the run was made on.")),
        options=(InterpolateOptions, Terminal),
        verb="crossgraft.interpolate.verb:interpolate",
        notes="Quality and similarity to the pretrained features of networks whose weights are mixed (WiSE-FT): a free way to "
        "keep more of what the model knew. Rows are those of the run; val picks the mixture.",
    ),
    Command(
        "compare",
        "Two models beside each other: what fine-tuning changed, and do they see and fail alike?",
        example="compare runs/tune-breast runs/tune-birds --data breast.npz",
        inputs=(
            Input(
                "a", "Run of crossgraft tune, checkpoint, timm name, zoo entry, or features on disk (npz, safetensors)."
            ),
            Input("b", "The other model, of any of these kinds."),
        ),
        options=(CompareModelsOptions, Terminal),
        action=actions.compare,
        notes="Similarity of all pairs of layers, of the penultimate features by every measure, and of mistakes, on test images, "
        "each beside two untrained networks. --before NAME also measures what fine-tuning changed in each.",
    ),
    Command(
        "audit",
        "Does a model lean on a shortcut? Put an artefact into real images, and see what it does to the AUC.",
        example="audit mobilenetv2_100 --data digits --confounder tag",
        inputs=(
            Input(
                "model",
                "Run directory of crossgraft tune or .onnx file, asked as it is; or models as of rank, which are trained.",
            ),
        ),
        options=(AuditOptions, Terminal),
        verb="crossgraft.audit.verb:audit_model",
        notes="A trained model is asked about test images without the artefact and with it. Pretrained models are trained where "
        "a share of the positives carries it, and tested where it goes with the class and where it goes against it. Exit code 5: "
        "a condition of --fail-on holds, or nothing could be assessed.",
    ),
    Command(
        "edit",
        "Write a data set again with edited images: an artefact in some, or cues taken away from all.",
        example="edit digits edited --with low_pass:0.125",
        inputs=(Input("data", _DATA), Input("to", "Folder that is written; or --out.", type=Path, is_required=False)),
        options=(EditOptions, Terminal),
        action=actions.edit,
        notes="labels.csv in the folder is what other commands open; labels, splits, groups and other columns stay. Which images "
        "are edited is drawn by --seed, the same share of each part, and a larger share has those of a smaller one.",
    ),
    Command(
        "export",
        "Write a fine-tuned model so that it works without crossgraft, and check that its outputs agree.",
        example="export runs/tune-breast --format onnx",
        inputs=(_RUN,),
        options=(ExportOptions, Json, Quiet, Debug),
        verb="crossgraft.export.verb:export_model",
        notes="safetensors is what timm or torchvision loads, laid out as on the hub of Hugging Face; torch (torch.export) "
        "and onnx hold the whole way from an image in [0, 1] to calibrated probabilities, for any batch size. Each is loaded "
        "again and compared with the model before it is kept. Nothing is sent anywhere without --push-to.",
    ),
    Command(
        "report",
        "Write the page of a finished run again, or put several runs side by side.",
        example="report runs/rank-digits",
        inputs=(Input("runs", "Run directories; several are put into one page.", type=Path, repeats=True),),
        options=(ReportOptions, Debug),
        action=actions.report,
    ),
    Command(
        "list",
        "Show what there is; other packages may add to all but models and results.",
        example="list scores",
        inputs=(Input("what", "What to list.", type=Listed),),
        options=(ListOptions, SheetOptions, Json, Quiet, Debug),
        action=actions.list_plugins,
        notes="WHAT is scores, models, sources (kinds of data) or results (known ones); of tune: methods, regularizers, "
        "batch-transforms, augmentations, losses; of fewshot: heads, samplers; of edit: confounders. Confounders are also shown "
        "on your images: --data and --out give a picture per confounder, without it, with it, and what it changed.",
    ),
    Command(
        "completion",
        "Print what a shell reads to complete commands and flags.",
        example="completion bash",
        inputs=(Input("shell", "bash, zsh or fish.", type=Shell),),
        options=(Debug,),
        action=_complete,
        notes='bash: put eval "$(crossgraft completion bash)" into ~/.bashrc. zsh: write it to a file _crossgraft in a folder of '
        "fpath. fish: write it to ~/.config/fish/completions/crossgraft.fish.",
    ),
)
COMMANDS: Registry[Command] = Registry("command", group="crossgraft.commands", plugin_type=Command)
for _command in _ALL:
    COMMANDS.add(_command.name, _command)
