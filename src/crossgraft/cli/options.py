"""The commands that no room has: the page of a run, what there is, and what a shell completes."""

from __future__ import annotations

from pathlib import Path

from crossgraft.cli import actions
from crossgraft.cli.list_options import ListOptions
from crossgraft.cli.listing import Listed
from crossgraft.cli.output import show
from crossgraft.edit.options import SheetOptions
from crossgraft.options import Debug, Json, Quiet
from crossgraft.options.command import COMMANDS, Command, Input, Shell, Typed
from crossgraft.options.running import ReportOptions


def _complete(call: Typed) -> int:
    """``crossgraft completion``; here, because it is about all commands."""
    from crossgraft.cli.call import completion_script

    show(completion_script([command for _, command in COMMANDS], call.inputs["shell"]))
    return 0


COMMAND = (
    Command(
        "report",
        "Write the page of a finished run again, or put several runs side by side.",
        example="report runs/rank-digits",
        inputs=(Input("runs", "Run directories; several are put into one page.", type=Path, repeats=True),),
        options=(ReportOptions, Debug),
        action=actions.report,
        place=150,
    ),
    Command(
        "list",
        "Show what there is; other packages may add to all but models and results.",
        example="list scores",
        inputs=(Input("what", "What to list.", type=Listed),),
        options=(ListOptions, SheetOptions, Json, Quiet, Debug),
        action=actions.list_plugins,
        notes="WHAT is scores, models, sources (kinds of data) or results (known ones); of tune: methods, objectives, "
        "regularizers, batch-transforms, feature-transforms, augmentations, losses, schedules, presets; of fewshot: heads, "
        "samplers; of edit: confounders. Confounders are also shown on your images: --data and --out give a picture per "
        "confounder, without it, with it, and what it changed.",
        place=160,
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
        place=170,
    ),
)
