"""Options of ``interpolate``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import RUN_INPUT, Command, Input
from crossgraft.options.models import WEIGHTS_KEY, WEIGHTS_PREFIX, CodeOptions, InsideCheckpoints
from crossgraft.options.running import Device, Looking, Output, Terminal, Workers

if TYPE_CHECKING:
    from crossgraft.models.spec import ModelSpec
else:
    ModelSpec = FromProgram


@options
class Between(Options):
    """Between which networks, and where on the way."""

    group: ClassVar[str] = "Interpolation"

    linear: str | Path | None = option(
        "Run directory of --method linear on the same data: its head stands on the pretrained body where alpha is 0.",
        default=None,
        default_text="the fine-tuned head at every alpha",
        is_common=True,
    )
    model: str | Path | ModelSpec | None = option(
        "The pretrained network as fine_tune took it; needed without a linear probe only.",
        default=None,
        is_common=True,
        instead_of="linear",
    )
    alphas: str | Sequence[float | int] | None = option(
        "Shares of the fine-tuned network, in [0, 1], with commas.", default=None, default_text="0,0.1, … 1", is_common=True
    )
    batch_norm: Literal["estimate", "mix"] = option(
        "Statistics of BatchNorm between the ends: estimate on training images, or mix.", default="estimate"
    )
    on_point: Callable[[Any], None] | None = option(
        "Given what each network says about val and test, in the order of alpha.", default=None, decides=False, is_typed=False
    )


@options
class RunData(Options):
    """Where the data of the runs are, if not where the runs say."""

    group: ClassVar[str] = "Data"

    join: str | Path | Sequence[str | Path] | None = option(
        "Data set that the data of the run were joined with.", default=None, repeats=True, only_if_given=True
    )
    image_root: str | Path | None = option("Folder that the paths of a table start from.", default=None)
    allow_outside: bool = option("Whether paths of a table may lead out of the folder of the images.", default=False)
    class_names: str | Path | Sequence[str] | None = option(
        "Class names as fine_tune took them, where that was a file.", default=None
    )


@options
class StartWeights(InsideCheckpoints):
    """Where the weights of the pretrained network come from, and which tensors are its."""

    group: ClassVar[str] = "Model"

    weights_dir: str | Path | None = option("Folder of checkpoints.", default=None, needs="model")
    weights_key: str | None = option(WEIGHTS_KEY, default=None, needs="model")
    weights_prefix: str | None = option(WEIGHTS_PREFIX, default=None, needs="model")


@options
class InterpolateOptions(Output, Workers, Device, Looking, CodeOptions, StartWeights, RunData, Between):
    """Options of ``interpolate``."""


COMMAND = Command(
    "interpolate",
    "Measure the networks between the pretrained and a fine-tuned one, without training.",
    example="interpolate runs/tune-breast breast.npz --linear runs/probe-breast",
    inputs=(RUN_INPUT, Input("data", "The images that the run was made on.")),
    options=(InterpolateOptions, Terminal),
    verb="crossgraft.interpolate.verb:interpolate",
    notes="Quality and similarity to the pretrained features of networks whose weights are mixed (WiSE-FT): a free way to "
    "keep more of what the model knew. Rows are those of the run; val picks the mixture.",
    place=100,
)
