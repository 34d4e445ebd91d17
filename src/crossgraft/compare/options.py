"""Options of ``compare_models``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from crossgraft.options._option import Options, option, options
from crossgraft.options.command import Command, Input, Typed, VerbCall
from crossgraft.options.data import AuditSplit, ClassOptions, SourceOptions, Subsets, Unreadable
from crossgraft.options.models import CodeOptions, InputSize, InsideCheckpoints
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
        "filters, attention, tsne; all, or none.",
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


def _compare(call: Typed) -> VerbCall:
    """``crossgraft compare``, in a directory named after the data, or after the features."""
    a, b, asked = call.inputs["a"], call.inputs["b"], call.asked(CompareModelsOptions)
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
    ),
    options=(CompareModelsOptions, Terminal),
    action=_compare,
    notes="Similarity of all pairs of layers, of the penultimate features by every measure, and of mistakes, on test images, "
    "each beside two untrained networks. --before NAME also measures what fine-tuning changed in each.",
    place=110,
)
