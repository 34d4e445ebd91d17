"""``model.pt2``: a program of ``torch.export`` that runs without the Python code of the network."""

from __future__ import annotations

import io
from pathlib import Path

import torch
from torch import Tensor

from crossgraft.export.checking import Outputs
from crossgraft.export.graph import trace
from crossgraft.export.quietly import quietly
from crossgraft.export.source_model import SourceModel
from crossgraft.export.written import DESCRIPTION, Format, Written, python_block
from crossgraft.storage.atomic import write_atomically

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
