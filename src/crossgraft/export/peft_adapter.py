"""LoRA adapters and the head alone, as PEFT loads them into the pretrained network."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import torch
from torch import nn

from crossgraft import optional
from crossgraft.errors import UsageError
from crossgraft.export.checking import logits_of_network
from crossgraft.export.quietly import quietly
from crossgraft.export.source_model import SourceModel
from crossgraft.export.weights_layout import probabilities_line
from crossgraft.export.written import Format, Written, python_block
from crossgraft.models.adapted import base_model, read_peft_adapter, write_peft_adapter
from crossgraft.models.head_place import with_head_in_place
from crossgraft.models.spec import is_factory_source, library_name
from crossgraft.version import __version__
from crossgraft.words.formatting import counted

_HOW_TO_LOAD = 'peft.PeftModel.from_pretrained(network, "FOLDER")'


class PeftAdapterFiles(Format):
    """A few per cent of the weights; whoever loads them has the pretrained network already.

    PEFT is not needed to write its files; where it is installed, it loads them for the check.
    """

    name = "peft"

    def write(self, source: SourceModel, folder: Path) -> Written:
        """``adapter_model.safetensors`` and ``adapter_config.json``, loaded into the network without adapters.

        Raises:
            UsageError: There is no LoRA, PEFT would compute something else, or the adapter belongs to a network with other
                statistics than the pretrained one.
        """
        decided = source.facts.batch_norm
        if decided is not None and decided.mode == "adapt" and decided.num_layers:
            raise UsageError(
                f"This adapter was trained beside {counted(decided.num_layers, 'BatchNorm layer')} with statistics of the "
                "training images (--batch-norm adapt), and PEFT's files hold no statistics: loaded into the pretrained network "
                "it would say something else. Use --format safetensors, torch or onnx."
            )
        write_peft_adapter(source.reference, folder)
        loaded, checked_with = _load(source, folder)
        return Written(
            answer=logits_of_network(loaded.eval(), source.reference.preprocessing),
            checked_with=checked_with,
            loads_with="PEFT",
            how_to_load=_HOW_TO_LOAD,
            how_to_use=python_block(_how_to_use(source)),
            card_name="README.md",
            notes=("The pretrained weights are not in the file; load it into the same ones.",),
            holds_adapters=True,
        )


@torch.no_grad()
def _load(source: SourceModel, folder: Path) -> tuple[nn.Module, str]:
    """By PEFT where it is installed, else by crossgraft; the head is empty before."""
    bare = base_model(source.reference)
    for parameter in bare.head.parameters():
        parameter.zero_()
    if importlib.util.find_spec("peft") is None:
        read_peft_adapter(bare, folder)
        return bare, f"crossgraft {__version__} (PEFT is not installed)"
    with quietly():
        peft: Any = optional.require("peft", extra="peft", needed_for="Loading the adapter with PEFT")
        network, _ = with_head_in_place(bare)
        return peft.PeftModel.from_pretrained(network, str(folder)), f"PEFT {peft.__version__}"


def _how_to_use(source: SourceModel) -> str:
    recipe = source.reference.recipe.network
    outputs = source.reference.num_outputs
    if recipe is None or is_factory_source(recipe.source):
        build = (
            f"network = your_function()  # your own code, with the pretrained weights and a head of {outputs} outputs"
        )
    elif library_name(recipe.source) == "timm":
        build = f'network = timm.create_model("{recipe.source}", pretrained=True, num_classes={outputs})'
    else:
        build = f"network = ...  # {recipe.source} with its pretrained weights and a head of {outputs} outputs"
    return f"""
import timm, torch
from peft import PeftModel

{build}
model = PeftModel.from_pretrained(network, "FOLDER_OF_THIS_CARD").eval()
logits = model(images)  # resized and normalised as description.json says
{probabilities_line(source)}
"""
