"""One face for the networks that are compared: pretrained ones, fine-tuned ones, and untrained ones of the same architecture.

Features on disk stand for a network, too: one array (n, d) per layer in an npz or safetensors file, read as a memory map where
the file allows it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.lib import format as npy_format
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from crossgraft.data.rows import ImageRows
from crossgraft.errors import DataError
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

Rows = Int[np.ndarray, " _"]
_ROWS_HASHED = 4096
PREFIX = "features:"
_PENULTIMATE = "features"
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """Features of some images that another program made.

    Attributes:
        name: Name of the file without its suffix.
        layers: (n, d) by layer, in the order of the file; all of the same images.
    """

    name: str
    layers: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.layers.values())))

    @property
    def penultimate(self) -> np.ndarray:
        """The array called ``features``, or the last one."""
        return self.layers.get(_PENULTIMATE, list(self.layers.values())[-1])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of names, types and numbers."""
        digest = hashlib.sha256()
        for name, values in self.layers.items():
            digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
            for start in range(0, len(values), _ROWS_HASHED):
                digest.update(np.ascontiguousarray(values[start : start + _ROWS_HASHED]).tobytes())
        return digest.hexdigest()

    def at(self, rows: Rows) -> dict[str, np.ndarray]:
        """Features of a batch, read from the file."""
        return {name: np.asarray(values[rows]) for name, values in self.layers.items()}

    def rows_of(self, label: str, rows: Rows, images: ImageRows | None) -> Rows:
        """Where the images that are looked at stand in the file: these alone, or all images.

        Raises:
            DataError: The features are of another number of images.
        """
        if len(self) == len(rows):
            return np.arange(len(rows))
        if images is not None and len(self) == len(images):
            return np.asarray(rows)
        every = "" if images is None else f", or all {len(images)}"
        raise DataError(
            f"{label} ({self.name}) has features of {len(self)} images; what is compared are {len(rows)} of them{every}. "
            "Give features of the same images in the same order."
        )


def are_stored_features(given: object) -> bool:
    """Whether this names features: ``features:FILE``, an npz file, or a safetensors file of matrices of equal length."""
    if not isinstance(given, str | Path):
        return False
    if str(given).startswith(PREFIX) or Path(given).suffix == ".npz":
        return True
    path = Path(given)
    if path.suffix != ".safetensors" or not path.is_file():
        return False
    try:
        with safe_open(path, framework="numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 - no mapping
    except SafetensorError:
        return False
    return bool(shapes) and all(len(shape) == 2 for shape in shapes) and len({shape[0] for shape in shapes}) == 1


def read_stored_features(given: str | Path) -> StoredFeatures:
    """Open a file of features.

    Raises:
        DataError: The file is missing or damaged, an array is no matrix of numbers, or arrays have different lengths.
    """
    path = Path(str(given).removeprefix(PREFIX))
    if not path.is_file():
        raise DataError(f"There is no file of features {path}. Give an npz or safetensors file with arrays (n, d).")
    try:
        layers = _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
    except (OSError, ValueError, zipfile.BadZipFile, SafetensorError) as error:
        raise DataError(f"{path} cannot be read as features: {' '.join(str(error).split())}. Write it again.") from error
    for name, rows in layers.items():
        if rows.ndim != 2 or rows.dtype.kind not in "fiu" or 0 in rows.shape:
            raise DataError(
                f"{name} in {path} has the shape {rows.shape} and type {rows.dtype}; features are numbers (n, d), one row per "
                "image. Pool or flatten maps first."
            )
    lengths = {name: len(rows) for name, rows in layers.items()}
    if not lengths:
        raise DataError(f"{path} holds no array.")
    if len(set(lengths.values())) > 1:
        numbers_of_rows = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"The arrays in {path} are not of the same images: {numbers_of_rows} rows.")
    return StoredFeatures(path.stem, layers)


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Maps of the arrays; those of a type that numpy does not have are read as float32."""
    with safe_open(path, framework="pt") as file:  # which checks header and offsets
        names = list(file.keys())
        others = {name: file.get_slice(name).get_dtype() for name in names}
        read = {name: file.get_tensor(name).float().numpy() for name in names if others[name] not in _TYPES}
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header: dict[str, Any] = json.loads(stream.read(length))
    return {
        name: read[name]
        if name in read
        else np.memmap(
            path,
            dtype=_TYPES[others[name]],
            mode="r",
            shape=tuple(header[name]["shape"]),
            offset=8 + length + header[name]["data_offsets"][0],
        )
        for name in names
    }


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """Arrays that are stored as they are become maps; compressed ones are read."""
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.compress_type != zipfile.ZIP_STORED:
                with archive.open(entry) as part:
                    arrays[name] = npy_format.read_array(part, allow_pickle=False)
                continue
            with archive.open(entry) as part:  # which refuses a header that contradicts the directory of the archive
                shape, in_columns, dtype = _header(part)
                offset = part.tell()
            file.seek(entry.header_offset + 26)
            name_length, extra_length = np.frombuffer(file.read(4), "<u2").tolist()
            start = entry.header_offset + 30 + name_length + extra_length + offset
            order = "F" if in_columns else "C"
            arrays[name] = np.memmap(path, dtype=dtype, mode="r", shape=shape, order=order, offset=start)
    return arrays


def _header(part: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array; no objects, which would be code.

    Raises:
        ValueError: It is no array, or one of objects.
    """
    version = npy_format.read_magic(part)
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape, in_columns, dtype = read(part)
    if dtype.hasobject:
        raise ValueError("an array of Python objects is not read, because it may hold code")
    return shape, in_columns, dtype


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


Model = ComparedNetwork | StoredFeatures


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
