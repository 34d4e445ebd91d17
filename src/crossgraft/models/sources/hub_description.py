"""``config.json`` as timm writes it beside weights: an architecture, its arguments, and how its images are prepared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from timm.models import is_model, list_models

from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models.preprocessing import POLICY_OF_CROP_MODE
from crossgraft.models.sources.architecture_arguments import refuse_large_numbers, refuse_other_arguments
from crossgraft.models.spec import PREPROCESSING_KEYS, RANDOM, ModelSpec
from crossgraft.types import shown_value

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "open_clip_model.safetensors", "open_clip_pytorch_model.bin")
"""Names of weights on the hub, the safest first."""
_MOST_BYTES = 1 << 20


_OWN_FUNCTION = "Write a function that builds the network, and give it as source: package.module:factory."


def lists_of_parts(names: Sequence[str]) -> list[str]:
    """Names of the files that say in which parts weights lie, by the names that whole weights would have."""
    return [f"{name}.index.json" for name in names if name.endswith((".safetensors", ".bin"))]


def in_parts(of: str, listed_in: str) -> UsageError:
    """The error for weights in several files: the folder or repository, and the file that lists them."""
    return UsageError(
        f"The weights of {of} lie in several files ({listed_in}), and crossgraft reads one. Save them in one: "
        "model.save_pretrained(FOLDER, max_shard_size='1TB') of transformers, or safetensors.torch.load_file of each part, the "
        f"dictionaries put together, and save_file of the whole as {WEIGHTS[0]}."
    )


def read_json(file: Path, *, of: str, instead: str = _OWN_FUNCTION) -> dict[str, object]:
    """What a description says.

    Args:
        file: A file such as ``config.json``.
        of: What it describes, for messages.
        instead: What to do where it names code.

    Raises:
        DataError: It is damaged or too large.
        UsageError: It names code (``auto_map``).
    """
    if file.stat().st_size > _MOST_BYTES:
        raise DataError(f"{file.name} of {of} has {file.stat().st_size:,} bytes, which no description of a network has.")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file.name} of {of} is not JSON: {error}. Copy or download it again.") from error
    if not isinstance(content, dict):
        raise DataError(f"{file.name} of {of} must be a mapping of names to values. Copy or download it again.")
    said = cast("dict[str, object]", content)
    if "auto_map" in said:
        raise UsageError(
            f"{file.name} of {of} names code that would have to run (auto_map), and crossgraft runs none that a file names. "
            f"{instead}"
        )
    return said


def read_description(file: Path, *, of: str) -> dict[str, object]:
    """What a ``config.json`` of timm says.

    Raises:
        DataError, UsageError: As of ``read_json``.
        UsageError: It describes no network of timm.
    """
    said = read_json(file, of=of)
    if not isinstance(said.get("architecture"), str):
        kind = said.get("model_type")
        hint = (
            f"It is of transformers ({kind}), not of timm: write transformers:{of} instead."
            if kind is not None
            else "timm writes it there with timm.models.push_to_hf_hub or save_for_hf."
        )
        raise UsageError(f"{CONFIG} of {of} names no architecture of timm. {hint}")
    return said


def described(spec: ModelSpec, said: Mapping[str, object], *, of: str) -> ModelSpec:
    """``spec`` with the architecture, arguments, preprocessing and licence that a description says; its own words win.

    Raises:
        UnknownNameError: timm has no such architecture, or an argument is not one that shapes a network.
        UsageError: An argument would load weights.
        DataError: A value is not what its key promises.
    """
    architecture = str(said["architecture"])
    if not is_model(architecture):
        raise UnknownNameError(f"architecture in {CONFIG} of {of}", architecture, list_models())
    where = f"{CONFIG} of {of}"
    arguments, stated = dict(mapping_in(said, "model_args", where)), mapping_in(said, "pretrained_cfg", where)
    refuse_other_arguments(arguments, where=where)
    for name in ("num_classes", "global_pool"):
        if name in said and said[name] is not None and name not in arguments:
            arguments[name] = said[name]
    if (number := arguments.get("num_classes")) is not None:
        number_of_classes(number, where=where)
    licence = stated.get("license")
    preprocessing = {key: stated[key] for key in PREPROCESSING_KEYS if stated.get(key) is not None}
    if (policy := POLICY_OF_CROP_MODE.get(str(stated.get("crop_mode")))) is not None:
        preprocessing.setdefault("resize_policy", policy)
    return replace(
        spec,
        source=architecture,
        kwargs={**arguments, **spec.kwargs},
        licence=spec.licence or (licence if isinstance(licence, str) else None),
        preprocessing={**preprocessing, **spec.preprocessing},
    )


def in_folder(spec: ModelSpec, folder: Path) -> ModelSpec:
    """The network that ``config.json`` of a folder describes, with the weights beside it.

    Raises:
        MissingWeightsError: There are none.
        UsageError: They lie in several files.
        DataError, UsageError, UnknownNameError: As of ``read_description`` and ``described``.
    """
    found = described(spec, read_description(folder / CONFIG, of=folder.name), of=folder.name)
    if spec.weights == RANDOM or spec.has_checkpoint:
        return found
    file = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if file is None:
        if (parts := next((name for name in lists_of_parts(WEIGHTS) if (folder / name).is_file()), None)) is not None:
            raise in_parts(folder.name, parts)
        raise MissingWeightsError(f"{folder} has {CONFIG} and no weights: put one of {', '.join(WEIGHTS)} beside it.")
    return replace(found, weights=str(file.resolve()))


def number_of_classes(stated: object, *, where: str) -> int:
    """The number of classes that a description states.

    Raises:
        DataError: It is none; ``where`` says in which file.
        UsageError: No network has so many.
    """
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < 0:
        raise DataError(
            f"The number of classes in {where} must be a whole number of at least 0, found {shown_value(stated)}. Correct it."
        )
    refuse_large_numbers(stated, where=where)
    return stated


def mapping_in(said: Mapping[str, object], key: str, where: str) -> Mapping[str, object]:
    """What a description says under a key; empty where it says nothing.

    Raises:
        DataError: It is no mapping; ``where`` says in which file.
    """
    value = said.get(key) or {}
    if not isinstance(value, Mapping):
        raise DataError(f"{key} in {where} must be a mapping of names to values, found {type(value).__name__}.")
    return {str(name): item for name, item in cast("Mapping[object, object]", value).items()}
