"""The graph of a served network with any number of images per batch; the programs of PyTorch and ONNX are both made of it."""

from __future__ import annotations

import copy

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from crossgraft.errors import CrossgraftError, ExportError
from crossgraft.export.source_model import TOLERANCE, SourceModel, example_images, quietly
from crossgraft.losses import activate
from crossgraft.models.adapters.insertion import why_not_mergeable
from crossgraft.models.classifier import head_places
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.recipe import NetworkRecipe
from crossgraft.models.sources.libraries import library_of

_OTHER_FORMATS = "Use --format torch or onnx, which contain the head as it is, or hand on the folder model of the run."


def refuse_adapters(source: SourceModel) -> None:
    """Weights alone cannot hold what stands beside them.

    Raises:
        ExportError: The classifier still has adapters.
    """
    reason = why_not_mergeable(source.classifier)
    if reason is not None:
        raise ExportError(
            f"The adapters of {source.facts.model.name} cannot become part of its weights. {reason}. {_OTHER_FORMATS}"
        )


def library_network(source: SourceModel, recipe: NetworkRecipe) -> nn.Module:
    """The architecture as its library builds it for these classes and this size, with the weights of the classifier.

    Raises:
        ExportError: The library does not build it any more, or the new head does not fit in the place of the old one.
    """
    classifier = source.classifier
    library = library_of(recipe.source)
    kwargs = {**recipe.kwargs, "num_classes": classifier.num_outputs}
    try:
        network = build_seeded(lambda: library.build(recipe.source, kwargs), 0)
        library.accept_input_size(network, classifier.preprocessing, source=recipe.source, kwargs=kwargs)
    except CrossgraftError as error:
        raise _refusal(source, f"{library.name} cannot build it with {classifier.num_outputs} outputs") from error
    return _fill(network.eval(), source)


def own_network(source: SourceModel) -> tuple[nn.Module, str]:
    """The network itself, its head the new one, and the name of that layer.

    Raises:
        ExportError: The network has no single linear layer that is its head.
    """
    places = head_places(source.classifier, source.classifier.body)
    if len(places) != 1:
        raise _refusal(source, "it has no single linear layer as its head")
    network = copy.deepcopy(source.classifier.body)
    parent, _, attribute = places[0].rpartition(".")
    setattr(network.get_submodule(parent), attribute, copy.deepcopy(source.classifier.head))
    return _fill(network.eval(), source), places[0]


def _fill(network: nn.Module, source: SourceModel) -> nn.Module:
    """Copy all weights; then one forward pass tells whether the head stands where it should."""
    places = head_places(source.classifier, network)
    state: dict[str, Tensor] = dict(source.classifier.body.state_dict())
    for place in places:
        state |= {f"{place}.{name}": tensor for name, tensor in source.classifier.head.state_dict().items()}
    expected = network.state_dict()
    fits = state.keys() == expected.keys() and all(state[name].shape == expected[name].shape for name in state)
    if not places or not fits:
        raise _refusal(source, "what it has behind its features is more than one linear layer")
    network.load_state_dict(state, strict=True)
    images = example_images(source.classifier.preprocessing, 2)
    with torch.no_grad():
        here, there = source.classifier(images), network(images)
    if here.shape != there.shape or not torch.allclose(here, there, rtol=TOLERANCE, atol=TOLERANCE):
        raise _refusal(source, "what it has behind its features is more than one linear layer")
    return network


def _refusal(source: SourceModel, reason: str) -> ExportError:
    return ExportError(
        f"The new head of {source.facts.model.name} cannot be put in the place of its own: {reason}. {_OTHER_FORMATS}"
    )


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
    shapes = {INPUT: {0: Dim("batch", min=1)}}
    with torch.no_grad(), quietly():
        network(images)  # layers that keep something of their weights (LeViT) do it now, not while they are traced
        try:
            program = torch.export.export(network, (images,), dynamic_shapes=shapes, strict=False)
        except Exception as error:  # exporters raise errors of many kinds, all about a network that runs without them
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
