"""The one model that is named, and its network as training finds it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crossgraft.errors import UsageError
from crossgraft.models import Backbone, ModelSpec, load_as_asked, random_weights_control, read_zoo
from crossgraft.models.zoo import is_zoo_entry
from crossgraft.progress import Reporter
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.sim.decorators import refuse_unstripped
from crossgraft.types import AllowedCode


def find_model(
    model: str | Path | ModelSpec,
    weights_dir: str | Path | None,
    allow_code: AllowedCode = None,
    *,
    weights_key: str | None = None,
    weights_prefix: str | None = None,
    reporter: Reporter | None = None,
) -> ModelSpec:
    """The one model that is named; ``reporter`` is told where a name alone led to a file.

    Raises:
        UsageError: Several are named.
    """
    is_one = isinstance(model, ModelSpec) or is_zoo_entry(str(model))  # its name may have a comma
    named = [model] if is_one else str(model)
    specs = read_zoo(
        named,
        weights_dir=weights_dir,
        weights_key=weights_key,
        weights_prefix=weights_prefix,
        allow_code=allow_code,
        reporter=reporter,
    )
    if len(specs) != 1:
        names = ", ".join(spec.name for spec in specs)
        raise UsageError(f"--model names {len(specs)} models ({names}); fine-tune one at a time.")
    return specs[0]


def load_start(spec: ModelSpec, options: TuneOptions, *, scratch: bool, reporter: Reporter) -> Backbone:
    """The network with its pretrained weights, or with random ones (``scratch``).

    Raises:
        UsageError: It carries reconstructors of ρSIM, which would be trained and saved with it.
    """
    chosen = replace(random_weights_control(spec), name=spec.name) if scratch else spec
    backbone = load_as_asked(chosen, options, device="cpu", for_training=True, reporter=reporter)
    refuse_unstripped(backbone.module, f"The network {spec.name}")
    return backbone
