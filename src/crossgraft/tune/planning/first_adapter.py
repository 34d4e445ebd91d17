"""Where the adapters of a training begin: drawn anew, or as somebody has trained them before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossgraft.choice import spell
from crossgraft.errors import UsageError
from crossgraft.models.adapted import read_peft_adapter
from crossgraft.models.adapters import LoraAdapter, adapters_of
from crossgraft.models.adapters.peft_format import PeftFiles, read_files
from crossgraft.models.classifier import Classifier
from crossgraft.tune.methods.lora import LoRA
from crossgraft.tune.protocols.method import put_adapters_in
from crossgraft.words.formatting import counted, short_fingerprint


def open_adapter(folder: str | Path | None, method: object) -> PeftFiles | None:
    """The files of ``--adapter``, read before anything else is.

    Raises:
        UsageError: The method trains no LoRA, or has options that the adapter decides about.
        DataError: There is no adapter, or it is damaged.
    """
    if folder is None:
        return None
    asked = _in_words(method)
    if asked.partition(":")[0] != LoRA.name:
        raise UsageError(
            f"--adapter is a LoRA that training goes on from, but --method {asked} trains no LoRA. Say --method lora, or leave "
            "--adapter out."
        )
    if asked != LoRA.name:
        raise UsageError(
            f"--adapter says rank, alpha, layers and dropout itself, and --method {asked} says some of them, too. Say "
            "--method lora alone."
        )
    return read_files(folder)


def _in_words(method: object) -> str:
    if isinstance(method, Mapping):
        options = [f"{name}={value}" for name, value in method.items() if name != "name"]
        return f"{method.get('name', '')}{':' if options else ''}{','.join(options)}"
    return method.strip() if isinstance(method, str) else spell(method)


def put_first_adapters_in(classifier: Classifier, method: Any, files: PeftFiles | None, *, seed: int) -> list[str]:
    """Put the method's adapters into ``classifier``, nothing for a method without; notes for the plan.

    Raises:
        UsageError: The network has no place for them.
        WeightsMismatchError: Those that were trained before are of another network.
    """
    if files is None:
        put_adapters_in(method, classifier, seed=seed)
        return []
    found = read_peft_adapter(classifier, files)
    ranks = sorted({lora.r for _, lora in adapters_of(classifier).values() if isinstance(lora, LoraAdapter)})
    rank = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
    notes = [
        f"Training goes on from an adapter of {rank} on {counted(len(found.recipes), 'layer')} "
        f"({short_fingerprint(found.fingerprint)}); the result is not added to the known results."
    ]
    if found.why_no_head is not None:
        notes.append(f"The head of the adapter is not used: {found.why_no_head}. A new one is trained.")
    return notes
