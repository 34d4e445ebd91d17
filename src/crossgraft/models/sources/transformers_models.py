"""``transformers:ORG/NAME``, ``transformers:ORG/NAME@REVISION`` and ``transformers:FOLDER``: vision networks of transformers.

A folder or repository is data: ``config.json`` says the kind of network and its sizes, which go through a list of arguments, and
weights are read as tensors only. What is left behind is ``transformers:MODEL_TYPE`` with arguments, so that a saved model needs
no hub. Images are prepared by crossgraft as the processor's file says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, cast

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError, UsageError, WeightsMismatchError
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.sources.architecture_arguments import (
    WRONG_VALUES,
    building_limits,
    refuse_large_numbers,
    refuse_loading_arguments,
    refuse_nested_values,
)
from crossgraft.models.sources.described_places import (
    DescribedPlace,
    find_place,
    repositories_in_cache,
    repository_of,
    row_in_cache,
)
from crossgraft.models.sources.hub_description import CONFIG, number_of_classes, read_json
from crossgraft.models.sources.library import AvailableModel, ModelLibrary, Places
from crossgraft.models.sources.local_checkpoint import read_state_dict
from crossgraft.models.sources.text_tower import TextTower
from crossgraft.models.sources.transformers_images import ADVICE, PROCESSOR_FILES, preprocessing_of
from crossgraft.models.sources.transformers_networks import (
    FAMILIES,
    NUM_CLASSES,
    POOLER,
    TransformersNetwork,
    VisionFamily,
    argument_names,
    build,
    build_with,
    differences,
    input_size,
    told_names,
)
from crossgraft.models.sources.transformers_texts import TEXT_FAMILIES, transformers_text_tower
from crossgraft.models.spec import RANDOM, ModelSpec, name_in_library
from crossgraft.paths import shortened
from crossgraft.types import Preprocessing, shown_value

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_NEEDS = f"{CONFIG}, {PROCESSOR_FILES[0]} and {_WEIGHTS[0]} (or {_WEIGHTS[1]})"
_HEAD = "ForImageClassification"
_OWN_PREFIX = "model."  # of the network inside ``TransformersNetwork``
_POOLER_KEY = "pooler."
_UNUSED = ("mask_token",)  # a network has it and features never depend on it
_TRAINING_STATE = ("position_ids", "relative_position_index")
_LISTED = 8
_STATED = ("input_size", "mean", "std")


class TransformersLibrary(ModelLibrary):
    """The vision networks of Hugging Face's transformers that ``FAMILIES`` lists."""

    name: ClassVar[str] = "transformers"
    title: ClassVar[str] = "vision networks of transformers"
    form: ClassVar[str] = "transformers:ORG/NAME, transformers:ORG/NAME@REVISION or transformers:FOLDER"

    def knows(self, source: str) -> bool:
        """Any name may be a folder or a repository."""
        return bool(name_in_library(source))

    def names(self) -> list[str]:
        """Those in the cache of the hub."""
        found = repositories_in_cache(CONFIG, lambda file, of: _described(read_json(file, of=of), of=of))
        return [f"{self.name}:{each.id}" for each in found]

    def available(self, weights_dir: Path | None, search: str | None) -> list[AvailableModel]:
        """Repositories in the cache, whose weights may or may not be there."""
        return [self.row(name, weights_dir) for name in self.names() if search is None or search.lower() in name.lower()]

    def row(self, source: str, weights_dir: Path | None) -> AvailableModel:
        """By the files in the cache."""
        return row_in_cache(source, repository_of(source, form=self.form), _WEIGHTS)

    def check(self, source: str) -> None:
        """Whether it is a kind of network; folders and repositories have been looked up before."""
        _family(source)

    def locate(self, spec: ModelSpec, places: Places) -> ModelSpec:
        """The network that ``config.json`` of a folder or repository describes, and the file of its weights."""
        if name_in_library(spec.source) in FAMILIES:
            return spec
        place = find_place(spec.source, places, description=CONFIG, form=self.form, needs=_NEEDS)
        said = read_json(place.file((CONFIG,)), of=place.name)
        kind, said = _described(said, of=place.name)
        kwargs = {**_arguments(kind, said, of=place.name), **spec.kwargs}
        found = replace(
            spec,
            source=f"{self.name}:{kind}",
            text_source=spec.source if kind in TEXT_FAMILIES else None,
            kwargs=kwargs,
            preprocessing={**self._preprocessing(spec, place, kind, kwargs), **spec.preprocessing},
        )
        if not kwargs.get(NUM_CLASSES):
            places.reporter.say(f"{spec.name}: its features are {FAMILIES[kind].features}.")
        if spec.weights == RANDOM or spec.has_checkpoint:
            return found
        file = place.weights(_WEIGHTS)
        return replace(found, weights=str(file), kwargs=_with_pooler(FAMILIES[kind], kwargs, lambda: _keys(file)))

    def text_tower(self, spec: ModelSpec, places: Places, *, device: str) -> TextTower:
        """By the class of transformers for the texts of this kind."""
        place = find_place(str(spec.text_source), places, description=CONFIG, form=self.form, needs=_NEEDS)
        said = read_json(place.file((CONFIG,)), of=place.name)
        kind, _ = _described(said, of=place.name)
        return transformers_text_tower(kind, said, place, Path(str(spec.weights)), name=spec.name, device=device)

    def _preprocessing(
        self, spec: ModelSpec, place: DescribedPlace, kind: str, kwargs: Mapping[str, object]
    ) -> dict[str, object]:
        file = place.find(PROCESSOR_FILES)
        if all(spec.preprocessing.get(key) is not None for key in _STATED):
            return {}
        if file is None:
            raise MissingWeightsError(
                f"{place.name} does not say how its images are prepared: it has no {PROCESSOR_FILES[0]}. Put the processor's "
                f"file there. Or: {ADVICE}"
            )
        try:
            channels = input_size(FAMILIES[kind], kwargs)[0]
        except Exception as error:  # the checks of its configurations have classes of their own
            raise self.cannot_build(f"{self.name}:{kind}", kwargs, error) from error
        return preprocessing_of(read_json(file, of=place.name), channels=channels, of=place.name)

    def describe(self, source: str, kwargs: Mapping[str, object]) -> dict[str, object]:
        """The size that the network was made for."""
        self.refuse_arguments(source, kwargs)
        try:
            return {"input_size": input_size(_family(source), kwargs)}
        except Exception as error:  # the checks of its configurations have classes of their own
            raise self.cannot_build(source, kwargs, error) from error

    def refuse_arguments(self, source: str, kwargs: Mapping[str, object]) -> None:
        """Let only arguments of the configuration pass that shape a network, with numbers that networks have."""
        where = f"the kwargs of {source}"
        refuse_loading_arguments(kwargs, where=where)
        known = argument_names(_family(source))
        for name, value in kwargs.items():
            if name not in known:
                raise UnknownNameError(f"argument in {where}", name, known)
            refuse_nested_values(name, value, where=where)
        refuse_large_numbers(kwargs, where=where)

    def create(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """By the classes of transformers; nothing is read."""
        try:
            return build(_family(source), kwargs)
        except WRONG_VALUES:
            raise
        except Exception as error:  # the checks of its configurations have classes of their own
            raise self.cannot_build(source, kwargs, error) from error

    def build_from_checkpoint(self, spec: ModelSpec, seed: int) -> tuple[Mapping[str, object], nn.Module]:
        """The network with the tensors of a file, which transformers renames where they are of an older version of it."""
        family, path = _family(spec.source), Path(str(spec.weights))
        state = _without_own_prefix(read_state_dict(path, key=spec.weights_key, prefix=spec.weights_prefix))
        kwargs = _with_pooler(family, spec.kwargs, lambda: list(state))
        if NUM_CLASSES not in kwargs and family.classifier is not None and "classifier.weight" in state:
            kwargs[NUM_CLASSES] = len(state["classifier.weight"])
        self.refuse_arguments(spec.source, kwargs)
        told: Mapping[str, object] = {}

        def fill() -> nn.Module:
            nonlocal told
            with building_limits(spec.source):
                module, told = build_with(family, kwargs, state)
            return module

        try:
            module = build_seeded(fill, seed)
        except WRONG_VALUES as error:
            raise self.cannot_build(spec.source, kwargs, error) from error
        _refuse_misfit(told, module, file=path.name, model=f"{spec.name} ({spec.architecture})")
        return kwargs, module

    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """A kind of network has none; a folder or repository is located first."""
        return None

    def where_to_get(self, source: str) -> str:
        """By a name that stands for weights."""
        return (
            f"{source} is a kind of network. Name a repository or a folder of it: {self.form} (a folder that is called like a "
            f"kind: {self.name}:./{name_in_library(source)}); or give weights: random."
        )

    def accept_input_size(
        self, module: nn.Module, preprocessing: Preprocessing, *, source: str, kwargs: Mapping[str, object]
    ) -> None:
        """Tell the network to fit its position embeddings, where it must be told."""
        size = (preprocessing.height_pixels, preprocessing.width_pixels)
        if isinstance(module, TransformersNetwork) and size != input_size(_family(source), kwargs)[1:]:
            module.interpolates = module.can_interpolate


def _family(source: str) -> VisionFamily:
    kind = name_in_library(source)
    if kind not in FAMILIES:
        raise UnknownNameError("kind of network of transformers", kind, FAMILIES)
    return FAMILIES[kind]


def _described(said: Mapping[str, object], *, of: str) -> tuple[str, Mapping[str, object]]:
    """``model_type``, and the part of a description that is about the image tower.

    Raises:
        UsageError: It is of timm, or its weights are quantised.
        UnknownNameError: The kind is not supported.
        DataError: The image tower is not described by a mapping.
    """
    kind = said.get("model_type")
    if "architecture" in said:
        raise UsageError(
            f"{CONFIG} of {of} is of timm ({shown_value(said['architecture'])}). Write hf-hub:ORG/NAME or local-dir:FOLDER."
        )
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise UnknownNameError(f"model_type in {CONFIG} of {of}", shortened(str(kind)), [], hint=_OTHERS)
    if said.get("quantization_config") is not None:
        raise UsageError(
            f"The weights of {of} are quantised (quantization_config), and crossgraft computes with the numbers that were "
            "trained. Take the repository that it was made from."
        )
    if not FAMILIES[kind].is_tower:
        return kind, said
    tower: dict[str, object] = {}
    for key in ("vision_config", "vision_config_dict"):  # the second is of older versions and wins there, too
        part = said.get(key) or {}
        if not isinstance(part, Mapping):
            raise DataError(f"{key} in {CONFIG} of {of} must be a mapping of names to values. Copy or download it again.")
        tower |= cast("Mapping[str, object]", part)
    return kind, tower


_OTHERS = (
    f"Known: {', '.join(FAMILIES)}. For another one, write a function that builds it, and give it as source: "
    "package.module:factory."
)


def _arguments(kind: str, said: Mapping[str, object], *, of: str) -> dict[str, object]:
    """What shapes the network; names that its configuration class does not know have no effect in transformers, either."""
    family, where = FAMILIES[kind], f"{CONFIG} of {of}"
    stated = {key: value for key, value in said.items() if key in argument_names(family)}
    for key, value in stated.items():
        refuse_nested_values(key, value, where=where)
    refuse_large_numbers(stated, where=where)
    try:
        found = differences(family, stated)
    except Exception as error:  # the checks of its configurations have classes of their own
        raise DataError(f"{where} holds a value that transformers refuses: {error}. Copy or download it again.") from error
    architectures = said.get("architectures")
    if family.classifier is not None and isinstance(architectures, list) and family.classifier in architectures:
        labels = said.get("id2label")
        number = len(cast("Mapping[str, object]", labels)) if isinstance(labels, Mapping) else said.get("num_labels", 2)
        found[NUM_CLASSES] = number_of_classes(number, where=where)
    return found


def _keys(file: Path) -> list[str]:
    """Names of the tensors of a file."""
    if file.suffix != ".safetensors":
        return list(read_state_dict(file))
    try:
        with safe_open(file, framework="pt") as opened:
            return list(opened.keys())
    except (SafetensorError, OSError):
        return []  # said where the tensors are read


def _with_pooler(family: VisionFamily, kwargs: Mapping[str, object], keys: Callable[[], Sequence[str]]) -> dict[str, object]:
    """With the pooler, where the tensors hold a trained one and nobody has chosen."""
    if not family.has_optional_pooler or POOLER in kwargs or kwargs.get(NUM_CLASSES):
        return dict(kwargs)
    return {**kwargs, **({POOLER: True} if any(_POOLER_KEY in key for key in keys()) else {})}


def _without_own_prefix(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Names of a network that crossgraft has saved, as transformers gives them."""
    is_own = all(name.startswith(_OWN_PREFIX) for name in state)
    return {name.removeprefix(_OWN_PREFIX) if is_own else name: tensor for name, tensor in state.items()}


def _refuse_misfit(told: Mapping[str, object], module: nn.Module, *, file: str, model: str) -> None:
    """Tensors of a text tower, a decoder or another head may be left over; of the network itself none.

    Raises:
        WeightsMismatchError: The message lists the names.
    """
    parts = {name.partition(".")[0] for name, _ in cast(nn.Module, module.model).named_parameters()}
    missing = [key for key in told_names(told, "missing_keys") if not key.endswith((*_UNUSED, *_TRAINING_STATE))]
    unexpected = [
        key
        for key in told_names(told, "unexpected_keys")
        if key.partition(".")[0] in parts and not key.endswith((*_UNUSED, *_TRAINING_STATE))
    ]
    other_shapes = told_names(told, "mismatched_keys")
    said = [
        f"{len(keys)} {noun}: {', '.join(keys[:_LISTED])}{f', and {len(keys) - _LISTED} more' if len(keys) > _LISTED else ''}."
        for keys, noun in ((missing, "missing"), (unexpected, "unexpected"), (other_shapes, "of another shape"))
        if keys
    ]
    if said:
        raise WeightsMismatchError(f"The weights {file} do not fit {model}. {' '.join(said)} Check {CONFIG} and kwargs.")
