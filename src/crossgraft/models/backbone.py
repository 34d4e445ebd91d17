"""One face for every network: features, source logits, layers, preprocessing, fingerprints."""

from __future__ import annotations

import copy
from collections.abc import Generator, Hashable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.models.device import Precision, explain_lost_device, explain_missing_operations, move_to_device
from crossgraft.models.fingerprint import structure_fingerprint, weights_fingerprint
from crossgraft.models.layers import count_parameters, main_layers, observe_layers
from crossgraft.models.penultimate import BackboneOutput, Route, find_route, read_out
from crossgraft.models.preprocessing import describe_preprocessing
from crossgraft.models.recipe import NetworkRecipe
from crossgraft.models.record import ModelRecord, Role
from crossgraft.models.taps import Tap, Taps
from crossgraft.types import Preprocessing


def describe_model(backbone: Backbone, role: Role, *, seconds: float | None = None, from_cache: bool = False) -> ModelRecord:
    """One backbone as the report shows it."""
    return ModelRecord(
        name=backbone.name,
        role=role,
        architecture=backbone.architecture,
        source=backbone.source,
        family=backbone.family,
        licence=backbone.licence,
        num_parameters=backbone.num_parameters,
        num_features=backbone.num_features,
        num_source_classes=backbone.num_source_classes,
        weights_fingerprint=backbone.weights_fingerprint,
        preprocessing=describe_preprocessing(backbone.preprocessing),
        feature_seconds=seconds,
        features_from_cache=from_cache,
    )


Images = Float[Tensor, "num_samples channels height width"]
T = TypeVar("T")
_MOST_FINDINGS = 64


class Known(Generic[T]):
    """What was found out by running a network, for the next one that is the same to the last bit.

    A process that trains one network many times finds out once where its head is. Of the last 64 networks; findings hold no
    tensors.
    """

    def __init__(self) -> None:
        self._findings: dict[Hashable, T] = {}

    def get(self, key: Hashable | None) -> T | None:
        """The finding for ``key``; None where there is none, or no key."""
        return self._findings.get(key)

    def keep(self, key: Hashable | None, finding: T) -> T:
        """Remember and return it; one without a key is not kept."""
        if key is not None:
            while len(self._findings) >= _MOST_FINDINGS:
                del self._findings[next(iter(self._findings))]
            self._findings[key] = finding
        return finding


class _Looked(NamedTuple):
    """What running a network on one image tells."""

    route: Route
    layer_names: tuple[str, ...]
    num_features: int
    num_source_classes: int | None


_LOOKED: Known[_Looked] = Known()


class Backbone:
    """A pretrained network in eval mode.

    Args:
        module: The network, with its weights; switched to eval mode and moved to ``device``.
        name: What tables call it.
        architecture: For people, for example ``mobilenetv2_100``.
        source: ``timm`` or ``torchvision`` (own weights or random ones), ``checkpoint`` (a file) or ``factory``.
        preprocessing: How images become inputs.
        family: Models of one family are compared with each other.
        licence: Licence of the weights, if known.
        architecture_key: Equal for two backbones that differ only in weights; ``architecture`` if not given.
        device: As torch writes it.
        network: How to build the same network without its weights; None for a module that nobody can build again.

    Attributes:
        precision: Number type in which a call computes; set to ``bf16`` for torch's autocast.
        num_parameters: All of them, trainable or not.
        num_features: Length d of the penultimate features.
        num_source_classes: Length Z of the source logits; None without a head.
        weights_fingerprint: SHA-256 of the state dict as loaded.
        structure_fingerprint: SHA-256 of everything else that decides the features: arguments, layers, code.
        layer_names: The building blocks, first to last; ``activations`` takes any name of
            ``module.named_modules()``.

    Raises:
        UsageError: The network does not run on an image of its ``preprocessing``, or the penultimate features cannot
            be found; the message says what to change.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        name: str,
        architecture: str,
        source: str,
        preprocessing: Preprocessing,
        family: str,
        licence: str | None = None,
        architecture_key: str | None = None,
        device: str = "cpu",
        network: NetworkRecipe | None = None,
    ) -> None:
        self.module = module.eval()
        self.name = name
        self.architecture = architecture
        self.source = source
        self.preprocessing = preprocessing
        self.family = family
        self.licence = licence
        self.architecture_key = architecture_key or architecture
        self.device = device
        self.network = network
        self.precision: Precision = "32"
        self.num_parameters = count_parameters(module)
        self.weights_fingerprint = weights_fingerprint(module)
        self.structure_fingerprint = structure_fingerprint(module, self.architecture_key)
        move_to_device(self.module, device)
        key = self.identity
        looked = _LOOKED.get(key) or _LOOKED.keep(key, self._look())
        self._route = looked.route
        self.layer_names = looked.layer_names
        self.num_features = looked.num_features
        self.num_source_classes = looked.num_source_classes

    def _look(self) -> _Looked:
        """Run it once or twice on one image."""
        name, preprocessing, device = self.name, self.preprocessing, self.device
        with (
            torch.inference_mode(),
            _explain_refusal(name, preprocessing),
            explain_missing_operations(name, device),
            explain_lost_device(device),
        ):
            probe = self.probe_image()
            route = find_route(self.module, probe, name=name)
            with observe_layers(self.module) as gives_tensor:
                features, logits = read_out(route, self.module, probe)
        layers = tuple(main_layers(self.module, gives_tensor))
        return _Looked(route, layers, int(features.shape[1]), None if logits is None else int(logits.shape[1]))

    @property
    def identity(self) -> Hashable | None:
        """What decides all that is found out by running it; None where somebody's own code does, which may do anything."""
        if self.source == "factory":
            return None
        shape = self.preprocessing.channels, self.preprocessing.height_pixels, self.preprocessing.width_pixels
        held = tuple(name for name, parameter in self.module.named_parameters() if not parameter.requires_grad)
        structure = structure_fingerprint(self.module, self.architecture_key)  # as it is now: layers may have been put in
        return self.weights_fingerprint, structure, self.device, shape, held

    def __call__(self, images: Images) -> BackboneOutput:
        """Features (n, d) and source logits (n, Z) of prepared images, float32, on the backbone's device.

        In ``precision``; ``read_out`` and ``activations`` compute in the number type of the weights.

        The result takes no part in autograd; use ``module`` for gradients.

        Raises:
            UsageError: The images do not have the channels that ``preprocessing`` states.
        """
        with torch.inference_mode(), self.in_precision(), explain_missing_operations(self.name, self.device):
            output = self.read_out(self._accept(images))
        features, logits = output
        if self.precision == "bf16":
            return BackboneOutput(features.float(), None if logits is None else logits.float())
        # tensors of inference mode are refused by autograd later; a copy made outside of it is not
        return BackboneOutput(features.clone(), None if logits is None else logits.clone())

    def in_precision(self) -> AbstractContextManager[object]:
        """Around several calls: weights are brought to the number type once, and not at each call."""
        if self.precision == "32":
            return nullcontext()
        return torch.autocast(torch.device(self.device).type, torch.bfloat16)

    def activations(self, images: Images, layers: Sequence[str]) -> dict[str, Tensor]:
        """Outputs of named layers for prepared images, in the order asked for, in each layer's own shape.

        Of a layer that runs several times the last output counts.

        Raises:
            UnknownNameError: No such layer; the message gives the nearest names.
            UsageError: A layer does not run, or returns no tensor.
        """
        taps = {layer: Tap(layer, run="last") for layer in layers}
        with torch.no_grad(), Taps(self.module, taps.values()) as tapped:
            self.read_out(self._accept(images))
        return {layer: tapped[tap] for layer, tap in taps.items()}

    def read_out(self, images: Images) -> BackboneOutput:
        """As a call, for images on the backbone's device and as part of the graph."""
        return read_out(self._route, self.module, images)

    @property
    def linear_head(self) -> nn.Linear | None:
        """The pretrained head, where it is one linear layer on the penultimate features."""
        if self._route.kind != "linear_head":
            return None
        head = self.module.get_submodule(self._route.head)
        return head if isinstance(head, nn.Linear) else None

    def around(self, module: nn.Module) -> Backbone:
        """The same backbone around another network of the same structure; facts about weights stay those of this one."""
        twin = copy.copy(self)
        twin.module = module
        return twin

    def probe_image(self) -> Tensor:
        """One image with every value between -1 and 1."""
        shape = (1, self.preprocessing.channels, self.preprocessing.height_pixels, self.preprocessing.width_pixels)
        return torch.linspace(-1, 1, int(torch.Size(shape).numel())).reshape(shape).to(self.device)

    def __repr__(self) -> str:
        facts = f"{self.architecture}, d={self.num_features}, {self.preprocessing.describe()}"
        return f"Backbone({self.name!r}, {facts})"

    def _repr_html_(self) -> str:
        """A short table for notebooks."""
        from crossgraft.words.notebook import facts_table

        facts = {
            "architecture": self.architecture,
            "features": self.num_features,
            "source classes": self.num_source_classes,
            "parameters": f"{self.num_parameters:,}",
            "images become": self.preprocessing.describe(),
            "licence": self.licence,
            "device": self.device,
        }
        return facts_table(f"Backbone {self.name}", facts)

    def _accept(self, images: Tensor) -> Tensor:
        if images.ndim != 4 or images.shape[1] != self.preprocessing.channels:
            raise UsageError(
                f"{self.name} takes images (n, {self.preprocessing.channels}, height, width), found "
                f"{tuple(images.shape)}. Prepare them with crossgraft.data.transforms.prepare_batch(images, "
                "backbone.preprocessing)."
            )
        return images.to(self.device)


@contextmanager
def _explain_refusal(model: str, preprocessing: Preprocessing) -> Generator[None]:
    """A network that cannot take the stated image fails somewhere inside, in torch's words: say what to look at."""
    try:
        yield
    except (CrossgraftError, torch.OutOfMemoryError):
        raise
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
        channels, height, width = preprocessing.channels, preprocessing.height_pixels, preprocessing.width_pixels
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise UsageError(
            f"The model {model} does not run on an image of {channels} × {height} × {width} (channels, height, width): "
            f"{reason}. Check the input_size of its preprocessing, --image-size, and its kwargs (in_chans)."
        ) from error
