"""One face for the networks that are compared: pretrained ones, fine-tuned ones, and untrained ones of the same architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.features.passes import Tap, run_pass, through_taps
from crossgraft.models.backbone import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.models.multiply_adds import multiply_adds
from crossgraft.models.penultimate import BackboneOutput
from crossgraft.models.recipe import NetworkRecipe, build_network
from crossgraft.models.trusted_code import TrustedCode
from crossgraft.seeding import derive_seed
from crossgraft.tune.saving.saved_model import SavedModel
from crossgraft.types import Preprocessing

Images = Float[Tensor, "num_images channels height width"]


@dataclass(frozen=True, eq=False)
class ComparedNetwork:
    """A network that is compared.

    Attributes:
        name: For people.
        module: What runs; its hooks, modes and weights are as they were after every pass.
        body: The part whose layers are compared, and which says where channels are.
        prefix: What stands before the names of layers of ``body`` in ``module``.
        run: One forward pass: penultimate features, and logits where it has a head.
        preprocessing: How images become inputs.
        recipe: How the same network is built without its weights; None for a module that was made in Python.
        architecture: For people.
        family: As of the backbone.
        weights_fingerprint: SHA-256 of the weights.
        start_fingerprint: SHA-256 of the pretrained weights that it was fine-tuned from; its own where it was not.
        class_names: Classes of its logits; None where these are none of the data's.
        saved: The fine-tuned model with its facts; None for others.
        head: Name of its head in ``body``, which is no layer of its features; None where there is none.
        device: Where it is.
        backbone: The pretrained network; None for a fine-tuned one.
    """

    name: str
    module: nn.Module
    body: nn.Module
    prefix: str
    run: Callable[[Images], BackboneOutput]
    preprocessing: Preprocessing
    recipe: NetworkRecipe | None
    architecture: str
    family: str
    weights_fingerprint: str
    start_fingerprint: str
    class_names: tuple[str, ...] | None = None
    saved: SavedModel | None = None
    head: str | None = None
    device: str = "cpu"
    backbone: Backbone | None = None

    @property
    def measured(self) -> Classifier | Backbone | nn.Module:
        """What measures of geometry take: the network with its head for the classes, or the pretrained one."""
        return self.module if self.backbone is None else self.backbone

    @property
    def classifier(self) -> Classifier | None:
        """The network with its head for the classes; None without one."""
        return None if self.saved is None else self.saved.classifier

    def probe(self) -> Images:
        """One black image of the size that it takes."""
        taken = self.preprocessing
        return torch.zeros(1, taken.channels, taken.height_pixels, taken.width_pixels)

    @property
    def num_parameters(self) -> int:
        """With the head, where it has one."""
        return sum(each.numel() for each in self.module.parameters())

    def multiply_adds(self) -> int:
        """Multiply–adds of a forward pass of one image, see ``crossgraft.models.multiply_adds``."""
        return multiply_adds(lambda: next(run_pass(self.module, [self.probe()], read=self.run, like=self.weight)))

    def reader(self, layers: list[str]) -> Callable[[Images], tuple[BackboneOutput, dict[str, Tensor]]]:
        """What ``run_pass`` reads: the output, and what each layer of ``body`` gives, from one forward pass.

        Raises:
            UnknownNameError: There is no such layer; the message gives the nearest names.
        """
        taps = {name: Tap(f"{self.prefix}{name}", run="last") for name in layers}
        outputs: list[BackboneOutput] = []
        tapped = through_taps(self.module, list(taps.values()), run=lambda images: outputs.append(self.run(images)))

        def read(images: Images) -> tuple[BackboneOutput, dict[str, Tensor]]:
            of_taps = tapped(images)
            return outputs.pop(), {name: of_taps[tap] for name, tap in taps.items()}

        return read

    def has_body_of(self, other: ComparedNetwork) -> bool:
        """Whether both have the same architecture, whatever their heads, and prepare images alike."""
        if self.recipe is None or other.recipe is None or self.preprocessing != other.preprocessing:
            return False
        bodies = [
            {name: value for name, value in recipe.kwargs.items() if name != "num_classes"}
            for recipe in (self.recipe, other.recipe)
        ]
        return self.recipe.source == other.recipe.source and bodies[0] == bodies[1]

    @property
    def weight(self) -> Tensor:
        """A weight, to whose device and number type images are brought."""
        return next(parameter for parameter in self.module.parameters() if parameter.is_floating_point())


def network_of_backbone(backbone: Backbone) -> ComparedNetwork:
    """A pretrained network, or one with random weights."""
    return ComparedNetwork(
        name=backbone.name,
        module=backbone.module,
        body=backbone.module,
        prefix="",
        run=backbone.read_out,
        preprocessing=backbone.preprocessing,
        recipe=backbone.network,
        architecture=backbone.architecture,
        family=backbone.family,
        weights_fingerprint=backbone.weights_fingerprint,
        start_fingerprint=backbone.weights_fingerprint,
        head=next((name for name, each in backbone.module.named_modules() if each is backbone.linear_head), None),
        device=backbone.device,
        backbone=backbone,
    )


def network_of_saved(saved: SavedModel, *, name: str) -> ComparedNetwork:
    """A fine-tuned network."""
    classifier, facts = saved.classifier, saved.facts

    def run(images: Images) -> BackboneOutput:
        features, logits = classifier.features_and_logits(images)
        return BackboneOutput(features.float(), logits.float())

    return ComparedNetwork(
        name=name,
        module=classifier,
        body=classifier.body,
        prefix="body.",
        run=run,
        preprocessing=classifier.preprocessing,
        recipe=classifier.recipe.network,
        architecture=classifier.recipe.architecture,
        family=classifier.recipe.family,
        weights_fingerprint=facts.weights_fingerprint,
        start_fingerprint=classifier.recipe.weights_fingerprint,
        class_names=tuple(facts.class_names),
        saved=saved,
        device=saved.device,
    )


def untrained(network: ComparedNetwork, *, seed: int, number: int, trusted: TrustedCode) -> ComparedNetwork | None:
    """A network of the same architecture with the random weights that a training from scratch begins with.

    Args:
        network: The network it stands beside.
        seed: Random seed.
        number: Number among several; each has weights of its own.
        trusted: The code that the user named.

    Returns:
        None where nobody can build the network again.
    """
    if network.recipe is None:
        return None
    drawn = derive_seed(seed, "untrained", number)
    module = build_network(network.recipe, network.preprocessing, seed=drawn, trusted=trusted)
    backbone = Backbone(
        module,
        name=f"untrained {network.architecture} {number}",
        architecture=network.architecture,
        source="factory",
        preprocessing=network.preprocessing,
        family=network.family,
        device=network.device,
        network=network.recipe,
    )
    return network_of_backbone(backbone)
