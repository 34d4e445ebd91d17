"""Options of ``compare_fine_tunings``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from crossgraft.options._option import option, options
from crossgraft.tune.options import StartingModel, TuneOptions

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
