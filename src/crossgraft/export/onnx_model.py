"""``model.onnx``: a graph for onnxruntime and all that reads ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from crossgraft import optional
from crossgraft.export.graph import INPUT, OUTPUTS, refusal, trace
from crossgraft.export.source_model import Answer, Outputs, SourceModel, quietly
from crossgraft.export.written import Format, Written, python_block
from crossgraft.storage.atomic import write_atomically

FILE = "model.onnx"
OPSET = 20
METADATA_KEY = "crossgraft"
"""Under which the description lies in the metadata of the model."""
LARGEST_FILE_BYTES = 1_800_000_000
"""A file of ONNX ends at 2 GB; weights of larger models lie in a second file beside it."""
_ERRORS_ONLY = 3
_HOW_TO_LOAD = f'onnxruntime.InferenceSession("{FILE}")'
_HOW_TO_USE = f"""
import json, onnxruntime

session = onnxruntime.InferenceSession("{FILE}")
class_names = json.loads(session.get_modelmeta().custom_metadata_map["{METADATA_KEY}"])["class_names"]
# images: float32 (batch, channels, height, width) from 0 to 1, already resized
logits, probabilities = session.run(None, {{"{INPUT}": images}})
"""


class OnnxModel(Format):
    """For onnxruntime, on servers, in browsers and on devices."""

    name = "onnx"
    as_graph = True
    packages = ("onnx", "onnxscript", "onnxruntime")  # two write, onnxruntime checks

    def write(self, source: SourceModel, folder: Path) -> Written:
        """Trace, translate, save with the description in the metadata, load again."""
        write_onnx(source, folder / FILE)
        answer, checked_with = load_onnx(folder / FILE)
        return Written(
            answer=answer,
            checked_with=checked_with,
            loads_with="onnxruntime",
            how_to_load=_HOW_TO_LOAD,
            how_to_use=python_block(_HOW_TO_USE),
        )


def write_onnx(source: SourceModel, path: Path) -> None:
    """The graph with the description in its metadata; a model that one file of ONNX cannot hold has a second one beside it.

    Raises:
        ExportError: The network cannot be part of a graph.
    """
    model = _translate(source)
    model.metadata_props[METADATA_KEY] = source.describe(as_graph=True).model_dump_json()
    _save(model, source, path)


def load_onnx(path: Path) -> tuple[Answer, str]:
    """How the graph answers, and what loaded it."""
    onnxruntime: Any = optional.require("onnxruntime", extra="export", needed_for="--format onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def answer(images: Tensor) -> Outputs:
        return Outputs(*session.run(list(OUTPUTS), {INPUT: images.numpy()}))

    return answer, f"onnxruntime {onnxruntime.__version__}"


def _translate(source: SourceModel) -> Any:
    """The model as ``onnx_ir`` holds it; names of places in the code of this machine are taken out."""
    program = trace(source)
    try:
        with quietly():
            translated: Any = torch.onnx.export(
                program, (), dynamo=True, opset_version=OPSET, input_names=[INPUT], output_names=list(OUTPUTS), verbose=False
            )
    except Exception as error:  # exporters raise errors of many kinds, all about the network
        raise refusal(source, "torch.onnx", error) from error
    for node in translated.model.graph.all_nodes():
        node.metadata_props.clear()
    return translated.model


def _save(model: Any, source: SourceModel, path: Path) -> None:
    onnx_ir: Any = optional.require("onnx_ir", extra="export", needed_for="--format onnx")
    num_bytes = sum(tensor.numel() * tensor.element_size() for tensor in source.classifier.state_dict().values())
    if num_bytes <= LARGEST_FILE_BYTES:
        write_atomically(path, onnx_ir.to_proto(model).SerializeToString())
    else:
        onnx_ir.save(model, path, external_data=f"{path.name}.data")
