"""Options of ``compare_models``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from crossgraft.errors import UsageError
from crossgraft.options._option import Options, option, options, options_of
from crossgraft.options.command import Command, Input, Typed, VerbCall
from crossgraft.options.data import AuditSplit, ClassOptions, SourceOptions, Subsets, Unreadable
from crossgraft.options.models import CodeOptions, Download, InputSize, InsideCheckpoints
from crossgraft.options.running import Device, Looking, Output, Seed, Strictness, Terminal, Thumbnails, Workers


@options
class TwoModels(Options):
    """What is compared, and on which images."""

    group: ClassVar[str] = "Comparison"

    data: Any = option(
        "Labelled images: folder, table, .npz file …; not needed for two files of features.",
        default=None,
        takes="a path, a Dataset, a DataFrame or a list of files",
        is_path=True,
        is_common=True,
    )
    before: str | Path | Sequence[Any] | None = option(
        "Pretrained networks that A and B were fine-tuned from, with a comma (one for both is named once): what fine-tuning "
        "changed is measured, too.",
        default=None,
        takes="names or paths with a comma, or a list of one or two models",
        is_common=True,
    )
    linear_probe: bool = option(
        "Train a linear probe for models without a head for the classes, so that mistakes can be compared.",
        default=False,
        is_common=True,
    )
    probe: Any = option(
        "Other labelled images: what linear probes of both bodies tell of them, so that what was forgotten is measured.",
        default=None,
        takes="a path, a Dataset, a DataFrame or a list of files",
        is_path=True,
        is_common=True,
    )
    geometry: str | Sequence[str] | None = option(
        "What is measured of weights and features, with commas: feature_map, parameter_distance, interpolation_path, sharpness, "
        "filters, attention, tsne; all, or none. centre, alone: distances of two networks or more to the mean of their weights.",
        default=None,
        default_text="feature_map, parameter_distance, filters",
        is_common=True,
    )
    source_images: str | Path | None = option(
        "Folder of images that a vision transformer was pretrained on: attention to them is shown, too.", default=None
    )
    layers: str | Sequence[str] | None = option(
        "Layers to compare, with commas; of both models, or of A.",
        default=None,
        default_text="at most 12 building blocks",
        is_common=True,
    )
    layers_b: str | Sequence[str] | None = option(
        "Layers of B, where they have other names.", default=None, default_text="as of A"
    )
    pool: Literal["mean", "flatten"] = option(
        "What CKA of layers compares: means over positions, or all positions.", default="mean"
    )
    cca_preset: Literal["thesis", "released"] = option(
        "CCA of layers over 20 000 positions, as the thesis says, or 10 000, as its released code does.", default="thesis"
    )
    other_data: bool = option(
        "Allow images that fine-tuned models were not made on; they may have learned from some of them.", default=False
    )


@options
class CompareModelsOptions(
    Output,
    Workers,
    Device,
    Seed,
    Looking,
    Thumbnails,
    Strictness,
    InputSize,
    CodeOptions,
    InsideCheckpoints,
    Subsets,
    AuditSplit,
    Unreadable,
    ClassOptions,
    SourceOptions,
    TwoModels,
):
    """Options of ``compare_models``."""


CENTRE = "centre"


@options
class CentreStart(Options):
    """From what distances are measured, too."""

    group: ClassVar[str] = "Comparison"

    geometry: str | Sequence[str] | None = option("centre, which looks at weights alone.", default=None, default_text="centre")
    before: Any = option(
        "Pretrained network that all of them were fine-tuned from: how far they went from it is measured, too.",
        default=None,
        takes="a name, a path or a model",
    )


@options
class CentreOptions(Output, Device, Seed, InputSize, CodeOptions, Download, InsideCheckpoints, CentreStart):
    """Options of ``compare_centre``."""


def asks_for_centre(geometry: str | Sequence[str] | None) -> bool:
    """Whether ``--geometry centre`` was asked for.

    Raises:
        UsageError: Beside something else.
    """
    named = geometry.split(",") if isinstance(geometry, str) else geometry or ()
    names = [name.strip() for name in named]
    if CENTRE in names and len(names) > 1:
        others = ",".join(name for name in names if name != CENTRE)
        raise UsageError(
            f"--geometry centre looks at the weights of two networks or more, and {others} at two networks. Ask for one after "
            "the other."
        )
    return CENTRE in names


def _compare(call: Typed) -> VerbCall:
    """``crossgraft compare``, in a directory named after the data, or after the features."""
    a, b, asked = call.inputs["a"], call.inputs["b"], call.asked(CompareModelsOptions)
    networks = [a, b, *(call.inputs["more"] or ())]
    if asks_for_centre(asked.get("geometry")):
        known = options_of(CentreOptions)
        for name in asked:
            if name not in known:
                flag = options_of(CompareModelsOptions)[name].flag
                raise UsageError(
                    f"{flag} is about images or two networks, and --geometry centre looks at weights alone. Leave it out."
                )
        about = "-".join(str(Path(each).name) for each in networks)
        verb = "crossgraft.centre.verb:compare_centre"
        return VerbCall(verb, CentreOptions, (networks,), named="compare-centre", about=about, asked=asked)
    if len(networks) > 2:
        raise UsageError(
            f"compare puts two models beside each other, and there are {len(networks)}. Name two; or add --geometry centre, "
            "which measures how far the weights of several lie from their mean."
        )
    about = str(asked.get("data") or a)
    verb = "crossgraft.compare.verb:compare_models"
    return VerbCall(verb, CompareModelsOptions, (a, b), named="compare", about=about, asked=asked)


COMMAND = Command(
    "compare",
    "Two models beside each other: what fine-tuning changed, and do they see and fail alike?",
    example="compare runs/tune-breast runs/tune-birds --data breast.npz",
    inputs=(
        Input("a", "Run of crossgraft tune, checkpoint, timm name, zoo entry, or features on disk (npz, safetensors)."),
        Input("b", "The other model, of any of these kinds."),
        Input("more", "Further ones, for --geometry centre alone.", repeats=True, is_required=False),
    ),
    options=(CompareModelsOptions, Terminal),
    action=_compare,
    notes="Similarity of all pairs of layers, of the penultimate features by every measure, and of mistakes, on test images, "
    "each beside two untrained networks. --before NAME also measures what fine-tuning changed in each. --geometry centre takes "
    "two networks or more.",
    place=110,
)
