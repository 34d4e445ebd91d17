"""Options of ``distil``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import Command, Input, Typed, VerbCall
from crossgraft.options.models import CodeOptions, Download, InputSize, InsideCheckpoints
from crossgraft.options.running import Cache, Device, Looking, Output, Seed, Terminal, Workers

if TYPE_CHECKING:
    from crossgraft.models.spec import ModelSpec
else:
    ModelSpec = FromProgram


@options
class Teachers(Options):
    """Who learns, and from what."""

    group: ClassVar[str] = "Networks and images"

    model: str | Path | ModelSpec = option(
        "Name, checkpoint, zoo.yaml:NAME or package.module:factory of the student.", is_common=True
    )
    data: str | Path | Sequence[Any] = option(
        "Images that the runs were made on, in the order of the runs, with commas.",
        is_common=True,
        takes="paths with commas or a list with the data of each run",
    )
    names: str | Sequence[str] | None = option(
        "Names of the domains, in the order of the runs, with commas.", default=None, default_text="those of the data"
    )
    image_root: str | Path | None = option("Folder that paths of tables start from, for runs that were told one.", default=None)
    allow_outside: bool = option("Whether paths of a table may lead out of the folder of the images.", default=False)


@options
class Distilling(Options):
    """How long and how strongly."""

    group: ClassVar[str] = "Distillation"

    steps: int = option("Number of steps; each sees a batch of every domain.", default=2000, least=1, is_common=True)
    batch_size: int = option("Images of each domain in a step.", default=32, least=4, is_common=True)
    learning_rate: float = option(
        "Largest learning rate of the student and its heads, for SGD with momentum 0.9; falls along a cosine.",
        default=0.03,
        is_common=True,
    )
    weight_decay: float = option("Weight decay of the student and its heads.", default=7e-4)
    temperature: float = option("Temperature of the logits that are compared.", default=4.0)
    largest_weight: float = option("Weight of the domain with most images in what is distilled; the others have 1.", default=4.0)
    adapter_learning_rate: float = option(
        "Learning rate of Adam for the maps from the student's to the teachers' features.", default=0.1
    )
    adapter_weight_decay: float = option("Coupled weight decay of these maps.", default=5e-4)
    checkpoint_every: int = option("Steps between two checkpoints.", default=200, decides=False, least=1)


@options
class DistillationSettings(Seed, Distilling):
    """How long, how strongly, and with which random numbers."""


@options
class DistilOptions(
    Output, Looking, Cache, Workers, Device, InputSize, CodeOptions, Download, InsideCheckpoints, DistillationSettings, Teachers
):
    """Options of ``distil``."""


def _distil(call: Typed) -> VerbCall:
    """``crossgraft distil``, of any number of runs."""
    runs = call.inputs["runs"]
    about = "-".join(run.name for run in runs)
    return VerbCall("crossgraft.distil.verb:distil", DistilOptions, (runs,), named="distil", about=about)


COMMAND = Command(
    "distil",
    "Distil several fine-tuned models into one backbone, to learn new tasks from a handful of images.",
    example="distil runs/tune-skin runs/tune-fundus --data skin,fundus --model mobilenetv2_100",
    inputs=(Input("runs", "Run directories of crossgraft tune, at least two.", type=Path, repeats=True),),
    options=(DistilOptions, Terminal),
    action=_distil,
    notes="The student learns to classify the training rows of every run, and, fading to nothing, to look at them as their "
    "model does (URL's universal backbone). It is measured beside its teachers on the test rows. The same command goes on "
    "where it was stopped.",
    place=90,
)
