"""The one model that a verb works with."""

from __future__ import annotations

from pathlib import Path

from crossgraft.distil.options import DistilOptions
from crossgraft.errors import UsageError
from crossgraft.fewshot.options import FewshotOptions, SupportOptions
from crossgraft.models import ModelSpec, read_zoo
from crossgraft.progress import Reporter


def one_model(
    options: FewshotOptions | SupportOptions | DistilOptions, reporter: Reporter, *, command: str = "fewshot"
) -> ModelSpec:
    """What ``model`` names.

    Raises:
        UsageError: It names several.
        UnknownNameError: There is no such model; the message gives the nearest names.
    """
    models = [options.model] if not isinstance(options.model, Path) else str(options.model)
    specs = read_zoo(
        models,
        weights_dir=options.weights_dir,
        weights_key=options.weights_key,
        weights_prefix=options.weights_prefix,
        allow_code=options.allow_code,
        reporter=reporter,
    )
    if len(specs) != 1:
        raise UsageError(
            f"{command} takes one model; {options.model} names {len(specs)}. Name one, or use zoo.yaml:NAME."
        )
    return specs[0]
