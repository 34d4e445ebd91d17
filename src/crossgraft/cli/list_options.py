"""Options of the list of what there is."""

from __future__ import annotations

from typing import ClassVar

from crossgraft.options._option import Options, option, options
from crossgraft.options.models import Weights


@options
class KnownFilters(Options):
    """Which known results are listed."""

    group: ClassVar[str] = "Known results"

    only_model: str | None = option("List results of models whose name holds this text.", default=None, is_common=True)
    only_target: str | None = option("List results on targets whose name holds this text.", default=None, is_common=True)
    only_from: str | None = option("List results of a publication whose name holds this text.", default=None, is_common=True)


@options
class ListOptions(Weights, KnownFilters):
    """Options of ``crossgraft list``."""

    group: ClassVar[str] = "Model"

    search: str | None = option(
        "List every model with this text in its name or in what it was trained on, here or not.", default=None, is_common=True
    )
    available: bool = option("List only models whose weights are on this machine.", default=False, is_common=True)
