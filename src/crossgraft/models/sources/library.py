"""What a library of architectures with published weights can do; timm and torchvision are two."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from safetensors import safe_open
from torch import Tensor, nn

from crossgraft.errors import CrossgraftError, MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.sources.architecture_arguments import (
    WRONG_VALUES,
    building_limits,
    refuse_large_numbers,
    refuse_other_arguments,
)
from crossgraft.models.sources.local_checkpoint import infer_num_classes, load_weights, read_state_dict
from crossgraft.models.sources.text_tower import TextTower
from crossgraft.models.spec import ModelSpec, family_of, name_in_library
from crossgraft.paths import shortened
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing


@dataclass(frozen=True)
class AvailableModel:
    """One row of ``crossgraft list models``.

    Attributes:
        name: Name to write after ``--models``.
        family: That the name suggests.
        num_parameters: Counted from the file's header, or as published; None when that needs more than a look.
        available: Whether it can be loaded now, without network.
        where: The file, or what to do to get it.
        licence: Licence of the weights, where it is known.
    """

    name: str
    family: str
    num_parameters: int | None
    available: bool
    where: str
    licence: str | None = None


@dataclass(frozen=True)
class Places:
    """Where files may be looked for.

    Attributes:
        weights_dir: Folder of the user, which comes first.
        folders: Where relative paths start.
        allow_download: Whether the network may be asked.
        reporter: Reporter of downloads.
    """

    weights_dir: Path | None = None
    folders: Sequence[Path] = ()
    allow_download: bool = False
    reporter: Reporter = field(default_factory=lambda: Reporter(quiet=True))


class ModelLibrary(ABC):
    """Networks by name: ``NAME`` of timm, ``LIBRARY:NAME`` of any other.

    A class that inherits from this one needs no more than ``name``, ``title``, ``knows``, ``create`` and ``find_weights``. One
    whose names stand for a description and a file of weights beside it says in ``locate`` which architecture that is.

    Everywhere, ``source`` is what a zoo entry says: ``resnet18``, ``resnet18.a1_in1k``, ``torchvision:resnet18``.

    Attributes:
        name: Word before the colon.
        title: Title in print.
        form: How a model of it is named, for messages.
        offers: Sources that a ranking without names takes, where their weights are on this machine.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    form: ClassVar[str] = ""
    offers: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def knows(self, source: str) -> bool:
        """Whether the library has this architecture, whatever its tag."""

    def names(self) -> list[str]:
        """Sources of all its networks, for messages and lists; empty where they cannot be listed."""
        return []

    def check(self, source: str) -> None:
        """Whether architecture and tag are known.

        Raises:
            UnknownNameError: With the nearest names.
        """
        if not self.knows(source):
            raise UnknownNameError(f"model of {self.name}", source, self.names())

    def locate(self, spec: ModelSpec, places: Places) -> ModelSpec:
        """The same model by architecture, arguments, preprocessing and file, where its name stands for a place; else itself.

        Raises:
            MissingWeightsError: There is nothing in that place.
            DataError: The description there is damaged.
            UsageError: The description there is not one of this library, or asks for more than to shape a network.
        """
        return spec

    def describe(self, source: str, kwargs: Mapping[str, object]) -> dict[str, object]:
        """What the library says about input and weights, in timm's words (``input_size``, ``mean``, ``license`` …)."""
        return {}

    def build(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """The network with random weights.

        Raises:
            UsageError: The architecture does not take these arguments, or one of them would do more than shape it.
            OutOfMemoryError: The network needs more memory than is available.
        """
        self.refuse_arguments(source, kwargs)
        try:
            with building_limits(source):
                return self.create(source, kwargs)
        except CrossgraftError:
            raise
        except WRONG_VALUES as error:
            raise self.cannot_build(source, kwargs, error) from error

    @abstractmethod
    def create(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """The network with random weights, by the library's own constructor."""

    def refuse_arguments(self, source: str, kwargs: Mapping[str, object]) -> None:
        """Let only arguments pass that shape a network, with numbers that networks have.

        Raises:
            UsageError: One of them would do something else, or is too large.
        """
        refuse_other_arguments(kwargs, where=f"the kwargs of {source}")
        refuse_large_numbers(kwargs, where=f"the kwargs of {source}")

    def cannot_build(self, source: str, kwargs: Mapping[str, object], error: Exception) -> UsageError:
        """The error for a constructor that fails."""
        arguments = shortened(", ".join(f"{key}={value!r}" for key, value in kwargs.items())) or "no arguments"
        return UsageError(
            f"{self.name} cannot build {source} with {arguments}: {error}. Check kwargs, or give source: package.module:factory."
        )

    def build_pretrained(self, source: str, kwargs: Mapping[str, object], file: Path) -> nn.Module:
        """The network with the library's own weights from ``file``.

        Raises:
            UsageError: The architecture does not take these arguments.
            WeightsMismatchError: The file does not fit; all keys are listed.
        """
        module = self.build(source, kwargs)
        load_weights(module, self.adapt_state(read_state_dict(file)), file=file.name, model=source)
        return module

    def build_from_checkpoint(self, spec: ModelSpec, seed: int) -> tuple[Mapping[str, object], nn.Module]:
        """The network of ``spec`` with the weights of its file, and the arguments that it was built with.

        Raises:
            DataError: The file is damaged.
            WeightsMismatchError: It does not fit; all keys are listed.
        """
        path = Path(str(spec.weights))
        state = read_state_dict(path, key=spec.weights_key, prefix=spec.weights_prefix)
        kwargs = dict(spec.kwargs)
        if "num_classes" not in kwargs:
            num_classes = self.infer_num_classes(spec.source, state)
            kwargs |= {} if num_classes is None else {"num_classes": num_classes}
        module = build_seeded(lambda: self.build(spec.source, kwargs), seed)
        load_weights(module, self.adapt_state(state), file=path.name, model=f"{spec.name} ({spec.architecture})")
        return kwargs, module

    def text_tower(self, spec: ModelSpec, places: Places, *, device: str) -> TextTower:
        """The text tower beside the image tower of a resolved model, whose ``text_source`` is of this library.

        Raises:
            MissingWeightsError: The tokenizer, or a description that the text tower needs, is not on this machine.
            UsageError: There is no text tower.
            WeightsMismatchError: The weights do not fit.
            DataError: A file is damaged.
        """
        raise UsageError(f"{self.name} has no text towers.")

    @abstractmethod
    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """The library's own weights on this machine, if they are there; ``source`` is known."""

    def require_weights(
        self, source: str, weights_dir: Path | None = None, *, allow_download: bool, reporter: Reporter | None
    ) -> Path:
        """The library's own weights; downloaded only with ``allow_download``, by a library that can.

        Raises:
            MissingWeightsError: Not on this machine, and not allowed or not possible to download.
        """
        path = self.find_weights(source, weights_dir)
        if path is None:
            raise MissingWeightsError(f"The weights of {source} are not on this machine. {self.where_to_get(source)}")
        return path

    def where_to_get(self, source: str) -> str:
        """What to do about weights that are not here, in a sentence."""
        return f"Give a checkpoint of {name_in_library(source)} as weights in a zoo file, or weights: random."

    def available(self, weights_dir: Path | None, search: str | None) -> list[AvailableModel]:
        """Rows of ``list models``.

        Args:
            weights_dir: Folder of the user.
            search: Text in a name: all that have it there; None: what is offered.
        """
        sources = self.offers if search is None else [name for name in self.names() if search.lower() in name.lower()]
        return [self.row(source, weights_dir) for source in sources]

    def row(self, source: str, weights_dir: Path | None) -> AvailableModel:
        """The row of one network."""
        path = self.find_weights(source, weights_dir)
        licence = self.describe(source, {}).get("license")
        return AvailableModel(
            name=source,
            family=family_of(source),
            num_parameters=None if path is None else count_parameters_of_file(path),
            available=path is not None,
            where=self.where_to_get(source) if path is None else str(path),
            licence=licence if isinstance(licence, str) else None,
        )

    def adapt_state(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A state dict of an older version or of training, as the network of today names its tensors."""
        return dict(state)

    def infer_num_classes(self, source: str, state: Mapping[str, Tensor]) -> int | None:
        """Outputs of the head in ``state``: 0 without a head, None when that cannot be told."""
        return infer_num_classes(state, self.describe(source, {}).get("classifier"))

    def recipe(self, source: str, kwargs: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
        """Source and arguments that build the same network without its weights; of another library, where it is one of that."""
        return source, kwargs

    def accept_input_size(  # noqa: B027 - most networks take any size
        self, module: nn.Module, preprocessing: Preprocessing, *, source: str, kwargs: Mapping[str, object]
    ) -> None:
        """Fit a network that was built with ``kwargs`` for one input size to another size; others need nothing.

        Raises:
            UsageError: The network cannot change its size.
        """


class PlaceLibrary(ModelLibrary):
    """A library whose names stand for places alone: what ``locate`` finds there is a network of another library.

    A class that inherits from this one needs no more than ``name``, ``title``, ``knows`` and ``locate``.
    """

    def create(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """Never: a name is located first."""
        raise self._never(source)

    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """Never: a name is located first."""
        raise self._never(source)

    def check(self, source: str) -> None:
        """Never: a name is located first."""
        raise self._never(source)

    def _never(self, source: str) -> UsageError:
        return UsageError(f"{source} is a place, not an architecture. Name the architecture that is described there.")


_NOT_PARAMETERS = ("running_mean", "running_var", "num_batches_tracked")


def count_parameters_of_file(path: Path) -> int | None:
    """Parameters in a ``.safetensors`` file, by its header; None for other files."""
    if path.suffix != ".safetensors":
        return None
    with safe_open(path, framework="np") as file:
        names = [name for name in file.keys() if not name.endswith(_NOT_PARAMETERS)]  # noqa: SIM118 - not a mapping
        return sum(math.prod(file.get_slice(name).get_shape()) for name in names)
