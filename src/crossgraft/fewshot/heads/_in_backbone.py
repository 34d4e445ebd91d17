"""What methods share that train inside the backbone: they read images, and leave the network as it was, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from crossgraft.compute import reuse_freed_memory
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.fewshot.heads._head import Head, Logits, Rows, refuse_values, warn_of_rise
from crossgraft.models import Backbone
from crossgraft.models.adapters import Adapter, AdapterRecipe
from crossgraft.models.adapters.insertion import insert_adapter, make_adapter, take_out_adapter
from crossgraft.models.adapters.lora import BETWEEN_TARGETS, fits_target
from crossgraft.models.adapters.tsa import TaskSpecificAdapter, why_no_tsa
from crossgraft.models.layers import building_blocks
from crossgraft.models.memory_format import channels_last
from crossgraft.models.taps import modes_kept, watch
from crossgraft.repeatable import repeatable_convolutions
from crossgraft.seeding import torch_draws
from crossgraft.types import Labels

Predicate = Callable[[str, nn.Module], bool]
AUTO, MIDDLE = "auto", "middle"
_NUM_STAGES = (3, 4)


def find_layers(network: nn.Module, layers: str | Predicate, connection: str) -> list[str]:
    """Names of the layers to adapt.

    Args:
        network: A backbone.
        layers: ``auto``: convolutions larger than one pixel in the building blocks, which leaves the stem and the 1 × 1
            convolutions of shortcuts as they are; in a network without them its linear layers. ``middle``: the same in the second
            and third stage, ``layer2`` and ``layer3`` of a ResNet; without three or four stages in the second and third quarter
            of the blocks. Or names, globs and types with ``+`` between them, or a function of name and module.
        connection: ``residual`` or ``serial``.

    Raises:
        UnknownNameError: A part of ``layers`` fits no layer.
        UsageError: There is nothing to adapt.
    """
    usable = {name: layer for name, layer in network.named_modules() if why_no_tsa(layer, connection) is None}
    if not callable(layers) and not isinstance(cast("Any", layers), str):
        raise UsageError(f"layers of TSA must be text (NAME+NAME) or a function of name and module, got {layers!r}.")
    if callable(layers):
        names = [name for name, layer in usable.items() if layers(name, layer)]
    elif layers in (AUTO, MIDDLE):
        blocks = building_blocks(network)
        names = _in_blocks(usable, blocks if layers == AUTO else _middle_of(network, blocks))
    else:
        names = _named(usable, layers)
    if not names:
        raise UsageError(
            f"TSA finds no layer to adapt in this {type(network).__name__}. Name some: layers=NAME+NAME, or layers=Conv2d."
        )
    return names


def _middle_of(network: nn.Module, blocks: Sequence[str]) -> Sequence[str]:
    """Those of the second and third stage: a stage is a row of blocks that one module holds."""
    stages = [list(stage) for _, stage in groupby(blocks, key=lambda block: block.rpartition(".")[0])]
    are_bare_layers = not all(any(network.get_submodule(block).children()) for block in blocks)
    if len(stages) in _NUM_STAGES and not are_bare_layers:
        return [*stages[1], *stages[2]]
    return blocks[round(0.25 * len(blocks)) : max(1, round(0.75 * len(blocks)))]


def _in_blocks(usable: Mapping[str, nn.Module], blocks: Sequence[str]) -> list[str]:
    inside = {
        name: layer for name, layer in usable.items() if any(name == block or name.startswith(f"{block}.") for block in blocks)
    }
    wide = [name for name, layer in inside.items() if isinstance(layer, nn.Conv2d) and max(layer.kernel_size) > 1]
    return wide or [name for name, layer in inside.items() if isinstance(layer, nn.Linear)]


def _named(usable: Mapping[str, nn.Module], layers: str) -> list[str]:
    picked: dict[str, None] = {}
    for target in (part.strip() for part in layers.split(BETWEEN_TARGETS)):
        fitting = [name for name, layer in usable.items() if fits_target(name, layer, target)]
        if not fitting:
            raise UnknownNameError("layer", target, {*usable, *(type(layer).__name__ for layer in usable.values())})
        picked |= dict.fromkeys(fitting)
    return list(picked)


Images = Float[Tensor, "num_samples *shape"]
"""(n, channels, height, width) for a ``Backbone``; for another module what it takes."""
ImageRows = Float[np.ndarray, "num_samples *shape"]
Losses = list[float]
_HALF = {torch.float16, torch.bfloat16}

PIXELS_AT_ONCE = 32 * 224 * 224
"""Pixels of the images whose forward pass is kept for the gradient; further images are looked at twice instead."""


@dataclass(eq=False, repr=False)
class InBackbone(Head):
    """Base of heads that read images: ``adapt`` and ``logits_of`` take (n, channels, height, width), prepared for the backbone.

    Args:
        backbone: Backbone, or a module that gives (n, d) features; it is shared between copies of the head, and never changed.
    """

    reads_images: ClassVar[bool] = True

    backbone: Any = field(default=None, kw_only=True, metadata={"is_option": False})

    def __sklearn_clone__(self) -> InBackbone:
        """The same options, and the same backbone instead of a copy."""
        return type(self)(**self.get_params(deep=False))

    def check(self) -> None:
        """Refuse a backbone that is none, or that computes in half precision.

        Raises:
            UsageError: It is neither a ``Backbone`` nor a module, or its weights are float16 or bfloat16.
        """
        if self.backbone is not None and not isinstance(self.backbone, Backbone | nn.Module):
            raise UsageError(
                f"backbone of {self.name} must be a Backbone or a module, got {type(self.backbone).__name__}. Load one with "
                "crossgraft.models.load_backbone."
            )
        kinds = set() if self.backbone is None else {parameter.dtype for parameter in self.network.parameters()}
        for half in kinds & _HALF:
            raise UsageError(
                f"backbone of {self.name} has weights in {str(half).removeprefix('torch.')}, too coarse to be trained. Call "
                "float() of the module first."
            )

    def fit(self, X: ImageRows, y: Labels) -> Self:
        """Adapt to a support set; a loss that ends above where it began is a warning.

        Args:
            X: (n, channels, height, width) images, prepared for the backbone.
            y: (n,) labels of any type that sorts.

        Raises:
            DataError: NaN, images that the backbone does not take, or fewer than two classes.
            DivergedError: The loss is no longer a finite number.
            UsageError: An option is out of its range, or no backbone was given.
        """
        super().fit(X, y)
        warn_of_rise(self.name, getattr(self, "loss_curve_", []))
        return self

    @property
    def network(self) -> nn.Module:
        """The module.

        Raises:
            UsageError: No backbone was given.
        """
        if self.backbone is None:
            raise UsageError(f"{type(self).__name__} trains inside a network. Give it one: backbone=.")
        return self.backbone.module if isinstance(self.backbone, Backbone) else self.backbone

    def features(self, images: Images) -> Rows:
        """(n, d) on the device of the network, part of the graph."""
        weights = next(self.network.parameters(), None)
        images = images if weights is None else images.to(weights.device)
        if isinstance(self.backbone, Backbone):
            return self.backbone.read_out(images).features
        return self.network(images)

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Inside it no parameter asks for a gradient, the network is in eval mode, and draws the same as in any other."""
        trained = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        order = channels_last(self.backbone) if isinstance(self.backbone, Backbone) else nullcontext()
        device = next((parameter.device for parameter in self.network.parameters()), torch.device("cpu"))
        draws = torch_draws(device, 0, "a head in the network")
        with reuse_freed_memory(), repeatable_convolutions(), order, modes_kept(self.network), draws:
            self.network.eval()
            for parameter in trained:
                parameter.requires_grad_(False)
            try:
                yield
            finally:
                for parameter in trained:
                    parameter.requires_grad_(True)

    def features_in_chunks(self, images: Images) -> Rows:
        """(n, d) without a graph."""
        with torch.no_grad():
            return torch.cat([self.features(chunk) for chunk in chunks_of(images)])

    def _logits(self, query: Any) -> Logits:
        check_is_fitted(self)
        rows = self._validated(query, reset=False, allow_nd=True)
        images = self._to_network(rows)
        refuse_values(images, name="Image")
        if rows.shape[1:] != self._shape:
            self._try(rows[:1])
        return self.logits_of(images)

    def _checked(self, support: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        rows, classes = self._validated(support, labels, allow_nd=True, ensure_min_samples=2)
        self._dtype = next((p.dtype for p in self.network.parameters()), torch.float32)
        images = np.asarray(rows, dtype=torch.empty(0, dtype=self._dtype).numpy().dtype)
        refuse_values(self._to_network(images), name="Image")
        self._try(images[:1])
        self._shape = images.shape[1:]
        return images, classes

    def _try(self, image: np.ndarray) -> None:
        """Raise ``DataError`` where the network does not run on such an image, or gives no features."""
        with modes_kept(self.network), torch.no_grad():
            self.network.eval()
            try:
                features: Any = self.features(self._to_network(image))
            except (RuntimeError, ValueError, IndexError, TypeError) as error:
                reason = " ".join(str(error).split()).rstrip(".")
                raise DataError(
                    f"{type(self).__name__} reads images, and its backbone does not run on one of shape {image.shape[1:]}: "
                    f"{reason}. Prepare them with crossgraft.data.transforms.prepare_batch(images, backbone.preprocessing)."
                ) from error
        if not isinstance(features, Tensor) or features.ndim != 2:
            given = f"shape {tuple(features.shape)}" if isinstance(features, Tensor) else f"type {type(features).__name__}"
            raise DataError(
                f"The backbone of {type(self).__name__} must give features of shape (n, d), and gives {given} for one image. "
                "Load it with crossgraft.models.load_backbone, or average over positions in the module."
            )

    def _to_network(self, images: np.ndarray) -> Images:
        return torch.from_numpy(np.require(images, requirements=["C", "W"])).to(self._dtype)

    def _warn_of_zeros(self, rows: np.ndarray) -> None:
        """A black image is an image."""


def chunks_of(images: Images) -> Sequence[Images]:
    """Consecutive images of about ``PIXELS_AT_ONCE`` pixels together."""
    return images.split(max(1, PIXELS_AT_ONCE // max(1, images.shape[2:].numel())))


def descend(
    features: Callable[[Images], Rows],
    images: Images,
    loss_of: Callable[[Rows], Tensor],
    optimizer: torch.optim.Optimizer,
    steps: int,
) -> Losses:
    """Steps on the whole support set; the loss before each of them.

    Where the images do not fit into memory with what their gradients need, features are computed without it first, then the
    gradient by the features, and then each chunk again with a graph: the same gradient, for one more forward pass.
    """
    chunks = chunks_of(images)
    losses: Losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        if len(chunks) == 1:
            loss = loss_of(features(images))
            loss.backward()
        else:
            with torch.no_grad():
                rows = torch.cat([features(chunk) for chunk in chunks])
            loss = loss_of(rows.requires_grad_())
            loss.backward()
            gradients = rows.grad if rows.grad is not None else torch.zeros_like(rows)
            for chunk, gradient in zip(chunks, gradients.split([len(chunk) for chunk in chunks]), strict=True):
                again = features(chunk)
                if again.requires_grad:  # not where only a head behind the network is trained
                    again.backward(gradient)
        losses.append(float(loss.detach()))
        optimizer.step()
    return losses


@dataclass(eq=False, repr=False)
class WithAdapters(InBackbone):
    """Base of TSA and CoPA + TSA.

    Attributes:
        adapters_: Layer → weights of its adapter.
    """

    @property
    def adapter_options(self) -> Mapping[str, str]:
        """Options of ``TaskSpecificAdapter``."""
        return {}

    @contextmanager
    def trained_adapters(
        self, hosts: Sequence[str], look: Callable[[], Tensor], generator: torch.Generator
    ) -> Generator[list[nn.Parameter]]:
        """Parameters of new adapters in the network; what they are at the end of the block becomes ``adapters_``.

        Raises:
            UsageError: A forward pass takes a layer's weight without calling it.
        """
        with with_adapters(self.network, hosts, self.adapter_options, generator) as put:
            refuse_uncalled(self.network, hosts, look)
            yield [parameter for adapter in put.values() for parameter in adapter.parameters()]
            self.adapters_: dict[str, dict[str, Any]] = {
                host: {name: value.clone() for name, value in adapter.state_dict().items()} for host, adapter in put.items()
            }

    def adapted_features(self, images: Images) -> Rows:
        """(n, d) of the network with the adapters of the last ``fit``, on the CPU; the network is as before afterwards."""
        random = torch.Generator()
        with self.frozen(), with_adapters(self.network, list(self.adapters_), self.adapter_options, random) as put:
            for host, adapter in put.items():
                adapter.load_state_dict(self.adapters_[host])
            return self.features_in_chunks(images).cpu()


@contextmanager
def with_adapters(
    network: nn.Module, hosts: Sequence[str], options: Mapping[str, str], generator: torch.Generator
) -> Generator[dict[str, Adapter]]:
    """Inside the block the layers have adapters with their first weights; after it the network is what it was, bit for bit."""
    put: dict[str, Adapter] = {}
    try:
        for host in hosts:
            adapter = make_adapter(network, AdapterRecipe(TaskSpecificAdapter.kind, host, options))
            adapter.draw(generator)
            insert_adapter(network.get_submodule(host), adapter)
            put[host] = adapter
        yield put
    finally:
        for host in put:
            take_out_adapter(network.get_submodule(host), TaskSpecificAdapter.kind)


@torch.no_grad()
def refuse_uncalled(network: nn.Module, hosts: Sequence[str], look: Callable[[], Tensor]) -> None:
    """Raise where a forward pass takes a layer's weight without calling it, so that an adapter there would be lost.

    Raises:
        UsageError: The message names the layer.
    """
    called: set[str] = set()
    with watch({name: network.get_submodule(name) for name in hosts}, lambda name, _: called.add(name), of="input"):
        look()
    for name in hosts:
        if name not in called:
            raise UsageError(
                f"TSA cannot adapt {name}: the network takes its weight without calling the layer. Name other layers: layers=."
            )
