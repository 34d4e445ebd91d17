"""The formats by the names that ``--format`` takes."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from crossgraft import optional
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.export.graph import trace
from crossgraft.export.layout import probabilities_line
from crossgraft.export.layouts import SafetensorsLayout
from crossgraft.export.onnx_model import OnnxModel
from crossgraft.export.openvino_model import OpenVinoModel
from crossgraft.export.source_model import Outputs, SourceModel, logits_of_network, quietly
from crossgraft.export.triton import TritonRepository
from crossgraft.export.written import DESCRIPTION, Format, Written, python_block
from crossgraft.models.adapted import base_model, read_peft_adapter, write_peft_adapter
from crossgraft.models.classifier import with_head_in_place
from crossgraft.models.spec import is_factory_source, library_name
from crossgraft.storage.atomic import write_atomically
from crossgraft.version import __version__
from crossgraft.words.formatting import counted

FILE = "model.pt2"
_HOW_TO_LOAD = f'torch.export.load("{FILE}").module()'
_HOW_TO_USE = f"""
import json, torch

inside = {{"{DESCRIPTION}": ""}}
model = torch.export.load("{FILE}", extra_files=inside).module()
class_names = json.loads(inside["{DESCRIPTION}"])["class_names"]
logits, probabilities = model(images)  # float32 (batch, channels, height, width) from 0 to 1, already resized
"""


class TorchProgram(Format):
    """For PyTorch, C++ and what else reads exported programs."""

    name = "torch"
    as_graph = True

    def write(self, source: SourceModel, folder: Path) -> Written:
        """Trace, save with the description inside, load again."""
        program = trace(source)
        content = io.BytesIO()
        description = source.describe(as_graph=True).model_dump_json(indent=1)
        with quietly():
            torch.export.save(program, content, extra_files={DESCRIPTION: description})
        write_atomically(folder / FILE, content.getvalue())
        with quietly():
            module = torch.export.load(folder / FILE).module()

        def answer(images: Tensor) -> Outputs:
            with torch.no_grad():
                logits, probabilities = module(images)
            return Outputs(logits.numpy(), probabilities.numpy())

        return Written(
            answer=answer,
            checked_with=f"torch.export.load of PyTorch {torch.__version__}",
            loads_with="PyTorch",
            how_to_load=_HOW_TO_LOAD,
            how_to_use=python_block(_HOW_TO_USE),
        )


_PEFT_ADAPTER_HOW_TO_LOAD = 'peft.PeftModel.from_pretrained(network, "FOLDER")'


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
            how_to_load=_PEFT_ADAPTER_HOW_TO_LOAD,
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
        build = f"network = your_function()  # your own code, with the pretrained weights and a head of {outputs} outputs"
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


_ALL = (SafetensorsLayout(), TorchProgram(), OnnxModel(), TritonRepository(), OpenVinoModel(), PeftAdapterFiles())
FORMATS: dict[str, Format] = {kind.name: kind for kind in _ALL}


def find_format(name: str) -> Format:
    """The format called ``name``, its packages imported.

    Raises:
        UnknownNameError: With the nearest names.
        MissingExtraError: A package that it needs is not installed.
    """
    if name not in FORMATS:
        raise UnknownNameError("format", name, FORMATS)
    FORMATS[name].require()
    return FORMATS[name]
