"""The new head goes to where the network had its own, so that the network's library can load the result."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from crossgraft.errors import CrossgraftError, ExportError
from crossgraft.export.checking import TOLERANCE, example_images
from crossgraft.export.source_model import SourceModel
from crossgraft.models.adapters.insertion import why_not_mergeable
from crossgraft.models.head_place import head_places
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
