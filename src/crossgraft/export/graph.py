"""The graph of a served network with any number of images per batch; the programs of PyTorch and ONNX are both made of it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from crossgraft.errors import ExportError
from crossgraft.export.checking import example_images
from crossgraft.export.quietly import quietly
from crossgraft.export.source_model import SourceModel
from crossgraft.losses import activate

INPUT, OUTPUTS = "images", ("logits", "probabilities")
_TRACED_BATCH = 2  # of 0 and 1 torch makes constants
_PLACES = ("stack_trace", "from_node", "source_fn_stack")


class ServedNetwork(nn.Module):
    """Normalisation, network, head, temperature and softmax or sigmoid."""

    scale: Tensor
    shift: Tensor

    def __init__(self, source: SourceModel) -> None:
        super().__init__()
        preprocessing = source.classifier.preprocessing
        mean = torch.tensor(preprocessing.mean).view(1, -1, 1, 1)
        std = torch.tensor(preprocessing.std).view(1, -1, 1, 1)
        # the same two operations as crossgraft.data.transforms.normalise_images
        self.register_buffer("scale", 1 / std)
        self.register_buffer("shift", mean / std)
        self.classifier = source.classifier
        self.temperature = source.temperature
        self.task = source.task

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch num_outputs"], Float[Tensor, "batch num_outputs"]]:
        """Logits before the temperature, and probabilities after it, of images in [0, 1]."""
        logits = self.classifier(images * self.scale - self.shift)
        return logits, activate(logits / self.temperature, self.task)


def trace(source: SourceModel) -> ExportedProgram:
    """Export with a dynamic batch.

    Raises:
        ExportError: The network does something that cannot be part of a graph.

    Cost: seconds, more for deep networks.
    """
    network = ServedNetwork(source).eval()
    images = example_images(source.classifier.preprocessing, _TRACED_BATCH)
    try:
        with torch.no_grad(), quietly():
            network(images)  # layers that keep something of their weights (LeViT) do it now, not while they are traced
            shapes = {INPUT: {0: Dim("batch", min=1)}}
            program = torch.export.export(network, (images,), dynamic_shapes=shapes, strict=False)
    except Exception as error:  # exporters raise errors of many kinds, all about the network
        raise refusal(source, "torch.export", error) from error
    _forget_places(program)
    return program


def refusal(source: SourceModel, exporter: str, error: Exception) -> ExportError:
    """In the first line of the exporter's words."""
    reason = (str(error).strip().splitlines() or [""])[0].rstrip(".") or type(error).__name__
    return ExportError(
        f"{exporter} cannot make a graph of {source.facts.model.name}: {reason}. Use --format safetensors, which holds the "
        "weights alone."
    )


def _forget_places(program: ExportedProgram) -> None:
    """Lines and files of this machine's Python code, and the images of the trace, are nobody's business."""
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            for key in _PLACES:
                node.meta.pop(key, None)
    program.example_inputs = None
