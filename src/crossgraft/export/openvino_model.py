"""``model.xml`` and ``model.bin``: for OpenVINO, on CPUs and accelerators of Intel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from crossgraft import optional
from crossgraft.export.graph import INPUT, OUTPUTS
from crossgraft.export.onnx_model import write_onnx
from crossgraft.export.source_model import Outputs, SourceModel, quietly
from crossgraft.export.written import DESCRIPTION, Format, Written, python_block
from crossgraft.storage.atomic import scratch_folder

FILE = "model.xml"
_HOW_TO_LOAD = f'openvino.Core().compile_model("{FILE}", "CPU", {{"INFERENCE_PRECISION_HINT": "f32"}})'
_HOW_TO_USE = f"""
import json, openvino

model = {_HOW_TO_LOAD}
class_names = json.load(open("{DESCRIPTION}", encoding="utf-8"))["class_names"]
found = model({{"{INPUT}": images}})  # float32 (batch, channels, height, width) from 0 to 1, already resized
logits, probabilities = found["logits"], found["probabilities"]
"""


class OpenVinoModel(Format):
    """Made of the graph of ONNX; weights stay float32."""

    name = "openvino"
    as_graph = True
    packages = ("openvino", "onnx", "onnxscript")
    extra = "openvino"

    def write(self, source: SourceModel, folder: Path) -> Written:
        """Trace, translate, convert, save, load again with the precision of the weights."""
        openvino: Any = optional.require("openvino", extra="openvino", needed_for="--format openvino")
        with scratch_folder("openvino") as scratch, quietly():
            write_onnx(source, scratch / "model.onnx")
            converted = openvino.convert_model(scratch / "model.onnx")
            openvino.save_model(converted, folder / FILE, compress_to_fp16=False)
            del converted  # it reads weights from the file of ONNX
        hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads()}
        model = openvino.Core().compile_model(folder / FILE, "CPU", hints)

        def answer(images: Tensor) -> Outputs:
            found = model({INPUT: images.numpy()})
            logits, probabilities = (found[name] for name in OUTPUTS)
            return Outputs(logits, probabilities)

        return Written(
            answer=answer,
            checked_with=f"OpenVINO {openvino.__version__}",
            loads_with="OpenVINO",
            how_to_load=_HOW_TO_LOAD,
            how_to_use=python_block(_HOW_TO_USE),
            notes=("OpenVINO may compute in lower precision where it is not told f32, and then gives other last digits.",),
        )
