"""One entry of a zoo: which network, which weights, how its images are prepared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, cast

import numpy as np

from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.models.trusted_code import TrustedCode
from crossgraft.paths import shortened
from crossgraft.types import SourceFeatures

PRETRAINED = "pretrained"
RANDOM = "random"
CHECKPOINT_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt", ".pth.tar")
TORCHVISION_PREFIX = "torchvision:"
LIBRARIES_GROUP = "crossgraft.model_libraries"
"""Entry points of libraries of other packages, each by the word that stands before the names of its models."""
OWN_LIBRARIES = ("timm", "torchvision", "hf-hub", "local-dir", "pypi", "transformers", "open_clip")
"""The words of the libraries that come with this package."""
_SPELLINGS = {"hf_hub": "hf-hub", "local_dir": "local-dir", "open-clip": "open_clip"}
"""How timm has written some of them, too."""
_VERSION_APART = re.compile(r"^(mobilenet|efficientnet|swin|shufflenet|regnet)_(v\d|[xy])(?=_|$)")  # as torchvision writes
PREPROCESSING_KEYS = ("input_size", "mean", "std", "interpolation", "crop_pct", "resize_policy")


@dataclass(frozen=True)
class ModelSpec:
    """What a zoo says about one model; nothing is loaded yet.

    Attributes:
        name: Name of the model in tables.
        source: A timm architecture name, ``LIBRARY:NAME`` (see ``crossgraft list model_libraries``), or
            ``package.module:factory`` for a function that returns a ``nn.Module``.
            Empty: the header of the checkpoint names the architecture.
        weights: ``pretrained`` (the library's own), ``random``, the path of a checkpoint, or None
            (``pretrained`` for timm and torchvision; as built for a factory).
        kwargs: Passed to the architecture or the factory.
        weights_key: Key of the checkpoint that holds the weights, such as ``teacher``; dots lead further in.
        weights_prefix: Beginning of the names of the tensors that are taken, such as ``backbone.``; it comes off.
        family: Models of one family are compared with each other; None derives it from the source.
        licence: Licence of the weights.
        preprocessing: Overrides of what the weights say: ``input_size`` (channels, height, width, or one
            number of pixels), ``mean``, ``std``, ``interpolation``, ``crop_pct``, ``resize_policy``.
        source_features: Path of a ``.npy`` file (num_source_samples, num_features) with features of source
            images.
        known_as: ``model/source`` of known results that are of these weights (see ``crossgraft list results``).
        pretraining: How the weights were pretrained, in a word or two, such as ``supervised`` or ``masked images``; models are
            compared by it. None: what the name of timm's weights tells, if anything.
        folder: Folder of the zoo file; its paths and modules are looked up there too.
        weights_dir: Folder in which a library's own weights are looked up where a call names none.
        trusted: The code that may run to build it. None: who made the spec named ``source`` in Python, and so allowed it.
        text_source: The source as it was written, where that is a place with a text tower beside the image tower.
    """

    name: str
    source: str
    weights: str | None = None
    kwargs: Mapping[str, object] = field(default_factory=dict)
    weights_key: str | None = None
    weights_prefix: str | None = None
    family: str | None = None
    licence: str | None = None
    preprocessing: Mapping[str, object] = field(default_factory=dict)
    source_features: str | None = None
    known_as: str | None = None
    pretraining: str | None = None
    folder: Path | None = None
    weights_dir: Path | None = None
    trusted: TrustedCode | None = field(default=None, repr=False)
    text_source: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("A model of the zoo has an empty name.")
        for key in self.preprocessing:
            if key not in PREPROCESSING_KEYS:
                raise UnknownNameError(f"preprocessing key of the model {self.name}", key, PREPROCESSING_KEYS)

    @property
    def is_factory(self) -> bool:
        """Whether ``source`` names a Python function rather than an architecture of timm or torchvision."""
        return is_factory_source(self.source)

    @property
    def code(self) -> TrustedCode:
        """The code that may run to build the network."""
        return TrustedCode(functions=(self.source,)) if self.trusted is None else self.trusted

    @property
    def typed(self) -> str:
        """What names the model on a command line: its source, or the name of the file that says it."""
        return self.source or Path(self.weights or self.name).name

    @property
    def has_checkpoint(self) -> bool:
        """Whether ``weights`` is the path of a file."""
        return self.weights not in (None, PRETRAINED, RANDOM)

    @property
    def architecture(self) -> str:
        """The architecture for people: its name, and the arguments that change it.

        >>> ModelSpec("a", "mobilenetv2_100", kwargs={"pad_type": "same", "num_classes": 965}).architecture
        'mobilenetv2_100 (pad_type=same)'
        """
        name = self._untagged_source.rpartition(":")[2] if self.is_factory else self._untagged_source
        shaping = self._shaping_kwargs()
        arguments = ", ".join(f"{key}={without_folders(value)}" for key, value in shaping.items())
        return f"{name} ({arguments})" if arguments else name

    @property
    def architecture_key(self) -> str:
        """Equal for two models that differ only in weights and number of source classes."""
        return json.dumps([self._untagged_source, self._shaping_kwargs()], default=str)

    @property
    def _untagged_source(self) -> str:
        """The libraries write ``architecture.tag``; the tag names weights."""
        return self.source if self.is_factory else self.source.partition(".")[0]

    def _shaping_kwargs(self) -> dict[str, object]:
        """The number of source classes changes only the head, so it does not make another architecture."""
        return {key: self.kwargs[key] for key in sorted(self.kwargs) if key != "num_classes"}

    def describe(self) -> dict[str, object]:
        """The entry as plain values for a run's configuration; files by name only, never by absolute path."""
        weights = Path(self.weights).name if self.weights and self.has_checkpoint else self.weights
        return {
            "name": self.name,
            "source": self.source,
            "weights": weights,
            "kwargs": dict(self.kwargs),
            **({} if self.weights_key is None else {"weights_key": self.weights_key}),
            **({} if self.weights_prefix is None else {"weights_prefix": self.weights_prefix}),
            "family": self.family,
            "licence": self.licence,
            "preprocessing": dict(self.preprocessing),
            "source_features": Path(self.source_features).name if self.source_features else None,
            "known_as": self.known_as,
            **({} if self.pretraining is None else {"pretraining": self.pretraining}),
        }

    def load_source_features(self) -> SourceFeatures | None:
        """Features of source images, float32; None when the entry names none.

        Raises:
            DataError: The file is missing, or not a two-dimensional array of numbers.
        """
        if self.source_features is None:
            return None
        path = Path(self.source_features)
        where = f"The source_features of the model {self.name} ({path.name})"
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{where} cannot be read: {error}. Save them with numpy.save as a .npy file.") from error
        if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "fiu":
            raise DataError(f"{where} must be one array of numbers (num_source_samples, num_features).")
        return array.astype(np.float32, copy=False)


ENTRY_KEYS = tuple(
    item.name for item in fields(ModelSpec) if item.name not in ("folder", "weights_dir", "trusted", "text_source")
)


def spec_from_entry(entry: Mapping[str, object], *, folder: Path, trusted: TrustedCode, where: str) -> ModelSpec:
    """Check one mapping of a zoo file and turn it into a spec.

    Args:
        entry: Entry of the YAML file.
        folder: Folder of the YAML file.
        trusted: The code that the user named; the file itself allows none.
        where: Place for messages, for example ``zoo.yaml, entry 2``.

    Raises:
        UnknownNameError: A key is not known; the message gives the nearest ones.
        UsageError: A key is missing or has a value of the wrong type.
    """
    for key in entry:
        if key not in ENTRY_KEYS:
            raise UnknownNameError(f"key in {where}", str(key), ENTRY_KEYS)
    texts: dict[str, Any] = {key: _text(entry, key, where) for key in ENTRY_KEYS if key not in ("kwargs", "preprocessing")}
    name = texts["name"]
    if not name:
        raise UsageError(f"{where} has no name. Give it one, as tables and figures should show it.")
    if not texts["source"] and not texts["weights"]:
        raise UsageError(
            f"{where} ({name}) has neither source nor weights. Give a timm architecture, torchvision:NAME or "
            "package.module:factory as source, or a .safetensors file whose header names its architecture as weights."
        )
    texts["source"] = texts["source"] or ""
    return ModelSpec(
        **texts,
        kwargs=_mapping(entry, "kwargs", where),
        preprocessing=_mapping(entry, "preprocessing", where),
        folder=folder,
        trusted=trusted,
    )


def _text(entry: Mapping[str, object], key: str, where: str) -> str | None:
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{where}: {key} must be text, found {shortened(repr(value))}. Put it in quotes.")
    return value


def _mapping(entry: Mapping[str, object], key: str, where: str) -> dict[str, object]:
    value = entry.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: {key} must be a mapping of names to values, found {shortened(repr(value))}.")
    return {str(name): item for name, item in value.items()}


def is_factory_source(source: str) -> bool:
    """Whether ``source`` is a ``package.module:factory``.

    >>> [is_factory_source(source) for source in ("resnet18", "torchvision:resnet18", "torchvision.models:resnet18")]
    [False, False, True]
    """
    return ":" in source and _word_of_library(source) is None


def library_name(source: str) -> str:
    """The library that ``source`` speaks of, when it is no factory: timm, where no library's word stands in front.

    >>> [library_name(source) for source in ("resnet18", "torchvision:resnet18", "hf_hub:timm/resnet18.a1_in1k")]
    ['timm', 'torchvision', 'hf-hub']
    """
    return _word_of_library(source) or OWN_LIBRARIES[0]


def name_in_library(source: str) -> str:
    """``source`` without the word of its library.

    >>> name_in_library("hf-hub:timm/resnet18.a1_in1k")
    'timm/resnet18.a1_in1k'
    """
    return source if _word_of_library(source) is None else source.partition(":")[2]


def _word_of_library(source: str) -> str | None:
    """The library whose word stands in front; None where there is none."""
    word, colon, _ = source.partition(":")
    word = _SPELLINGS.get(word, word)
    return word if colon and word in _words_of_libraries() else None


@cache
def _words_of_libraries() -> frozenset[str]:
    return frozenset(OWN_LIBRARIES) | {each.name for each in entry_points(group=LIBRARIES_GROUP)}


def family_of(source: str) -> str:
    """The family that an architecture's name suggests; the same for timm and torchvision.

    >>> [family_of(name) for name in ("resnet18", "mobilenetv2_100", "vit_tiny_patch16", "nets:densenet121")]
    ['resnet', 'mobilenetv2', 'vit', 'densenet']
    >>> [family_of(f"torchvision:{name}") for name in ("mobilenet_v2", "regnet_y_400mf", "efficientnet_b0")]
    ['mobilenetv2', 'regnety', 'efficientnet']
    """
    architecture = source.rpartition(":")[2].partition(".")[0]
    first_word = _VERSION_APART.sub(r"\1\2", architecture).partition("_")[0]
    return re.sub(r"(?<![v\d])\d+$", "", first_word) or first_word


def without_folders(value: object) -> object:
    """``value`` with the last part only of every text in it that is an absolute path."""
    if isinstance(value, dict):
        return {str(key): without_folders(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [without_folders(item) for item in cast("list[object]", value)]
    if isinstance(value, str):
        for path in (PurePosixPath(value), PureWindowsPath(value)):
            if path.is_absolute():
                return path.name
    return value
