"""A model repository of the Triton Inference Server: ``NAME/config.pbtxt``, ``NAME/1/model.onnx`` and ``NAME/labels.txt``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from crossgraft.export.graph import INPUT, OUTPUTS
from crossgraft.export.onnx_model import FILE, load_onnx, write_onnx
from crossgraft.export.record import ExportedModelRecord
from crossgraft.export.source_model import SourceModel
from crossgraft.export.written import Format, Written, python_block
from crossgraft.storage.atomic import write_atomically
from crossgraft.words.visible import visible

LARGEST_BATCH = 64
"""Images that the server puts together at most; the graph itself takes any number."""
_HOW_TO_USE = """
import numpy as np
import tritonclient.http as triton  # server: tritonserver --model-repository=FOLDER_OF_THIS_CARD

server = triton.InferenceServerClient("localhost:8000")
sent = triton.InferInput("{input}", images.shape, "FP32")  # float32 (batch, channels, height, width) from 0 to 1, already resized
sent.set_data_from_numpy(images)
found = server.infer("{name}", [sent])
logits, probabilities = found.as_numpy("logits"), found.as_numpy("probabilities")
"""


class TritonRepository(Format):
    """The graph of ONNX under a configuration that says what it takes and gives."""

    name = "triton"
    as_graph = True
    packages = ("onnx", "onnxscript", "onnxruntime")

    def write(self, source: SourceModel, folder: Path) -> Written:
        """The folder is the repository; it holds this one model as version 1."""
        about = source.describe(as_graph=True)
        name = model_name(about)
        place = folder / name / "1"
        place.mkdir(parents=True)
        write_onnx(source, place / FILE)
        answer, checked_with = load_onnx(place / FILE)
        write_atomically(folder / name / "config.pbtxt", configuration(about))
        write_atomically(folder / name / _LABELS, "".join(f"{visible(label)}\n" for label in about.class_names))
        return Written(
            answer=answer,
            checked_with=checked_with,
            loads_with="the Triton Inference Server",
            how_to_load=f'tritonclient.http.InferenceServerClient("localhost:8000").infer("{name}", [images])',
            how_to_use=python_block(_HOW_TO_USE.format(input=INPUT, name=name)),
            notes=("The server was not run here: the graph was loaded by the runtime that its ONNX backend uses.",),
        )


_LABELS = "labels.txt"


def model_name(about: ExportedModelRecord) -> str:
    """What the server calls the model: letters, digits, ``_`` and ``-`` alone.

    >>> model_name(ExportedModelRecord.model_construct(trained_on="breast (2nd)", name="vit_tiny · ImageNet"))
    'breast_2nd-vit_tiny_ImageNet'
    """
    parts = (re.sub(r"[^A-Za-z0-9-]+", "_", part).strip("_") for part in (about.trained_on, about.name))
    return "-".join(part for part in parts if part) or "model"


def configuration(about: ExportedModelRecord) -> str:
    """``config.pbtxt`` in the text form of protocol buffers; shapes are those of one image, the batch comes before them."""
    look = about.preprocessing
    outputs = len(about.class_names)
    told = {
        "preprocessing": f"{about.input}; {look.description}",
        "output": about.output,
        "decision": about.decision,
        "thresholds": json.dumps(about.thresholds, ensure_ascii=False),
        "weights": about.weights_fingerprint,
        "use": about.use,
    }
    tensors = [_tensor("input", INPUT, (look.channels, look.height_pixels, look.width_pixels))]
    tensors += [_tensor("output", name, (outputs,), labels=_LABELS if name == OUTPUTS[1] else None) for name in OUTPUTS]
    parameters = [
        f"parameters {{\n  key: {_text(key)}\n  value {{ string_value: {_text(value)} }}\n}}" for key, value in told.items()
    ]
    lines = [
        f"# {about.use}. Written by crossgraft {about.crossgraft_version}.",
        f"name: {_text(model_name(about))}",
        'backend: "onnxruntime"',
        f"max_batch_size: {LARGEST_BATCH}",
        *tensors,
        "dynamic_batching { }",
        *parameters,
    ]
    return "\n".join(lines) + "\n"


def _tensor(kind: str, name: str, shape: tuple[int, ...], *, labels: str | None = None) -> str:
    named = "" if labels is None else f"\n  label_filename: {_text(labels)}"
    return f"{kind} {{\n  name: {_text(name)}\n  data_type: TYPE_FP32\n  dims: {list(shape)}{named}\n}}"


def _text(text: str) -> str:
    """Quoted; JSON and the text form escape alike."""
    return json.dumps(visible(text), ensure_ascii=False)
