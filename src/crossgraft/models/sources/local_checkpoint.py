"""Checkpoint files: find them, read their header, read their tensors safely, fit them to a network."""

from __future__ import annotations

import json
import pickle
import struct
import warnings
import zipfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from crossgraft.compute import require_memory
from crossgraft.errors import DataError, MissingWeightsError, UsageError, WeightsMismatchError, nearest_names
from crossgraft.models.sources.foreign_formats import damaged, explain_content, explain_folder, explain_name
from crossgraft.models.spec import CHECKPOINT_SUFFIXES, PREPROCESSING_KEYS
from crossgraft.paths import shortened
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import counted

_WORDS = ("interpolation", "resize_policy")
MARK = {"written_by": "crossgraft"}
"""Metadata of weights that crossgraft has written where the user said, so that it may replace them."""


@dataclass(frozen=True)
class CheckpointHeader:
    """What the metadata of a ``.safetensors`` file say; every field may be empty.

    Attributes:
        architecture: A timm name, or one that only the file's author knows.
        kwargs: Arguments of the architecture.
        num_classes: Number of classes of the head; 0 for a file without one.
        preprocessing: Keys of ``ModelSpec.preprocessing``.
        licence: Licence of the weights.
    """

    architecture: str | None = None
    kwargs: Mapping[str, object] = field(default_factory=dict)
    num_classes: int | None = None
    preprocessing: Mapping[str, object] = field(default_factory=dict)
    licence: str | None = None


def read_header(path: Path) -> CheckpointHeader:
    """Metadata of a ``.safetensors`` file; other formats have none. Reads no tensor.

    Raises:
        DataError: The file is damaged, or a metadata value is not what its key promises.
    """
    if path.suffix.lower() != ".safetensors":
        return CheckpointHeader()
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise damaged(path, error) from error
    kwargs = _decode(metadata, "kwargs", path)
    num_classes = _decode(metadata, "num_classes", path)
    if not isinstance(kwargs, dict | None) or not isinstance(num_classes, int | None):
        raise DataError(f"The header of {path.name} must state kwargs as a mapping and num_classes as a whole number.")
    preprocessing = {
        key: metadata[key] if key in _WORDS else _decode(metadata, key, path) for key in PREPROCESSING_KEYS if key in metadata
    }
    return CheckpointHeader(
        architecture=metadata.get("architecture"),
        kwargs=cast("dict[str, object]", kwargs or {}),
        num_classes=num_classes,
        preprocessing=preprocessing,
        licence=metadata.get("licence") or metadata.get("license"),
    )


def is_header_of_ours(content: bytes) -> bool:
    """Whether this is the content of a ``.safetensors`` file with the ``MARK`` of crossgraft."""
    size = int.from_bytes(content[:8], "little")
    try:
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        return all(metadata[name] == value for name, value in MARK.items())
    except (ValueError, RecursionError, LookupError, TypeError):
        return False


def _decode(metadata: Mapping[str, str], key: str, path: Path) -> object:
    if key not in metadata:
        return None
    try:
        return json.loads(metadata[key])
    except (ValueError, RecursionError) as error:
        raise DataError(f"The header of {path.name} states {key} as {shortened(metadata[key])!r}, which is not JSON.") from error


def header_text(
    architecture: str, kwargs: Mapping[str, object], preprocessing: Preprocessing, licence: str | None = None
) -> dict[str, str]:
    """Metadata that ``read_header`` reads: all that is needed to build the network and to prepare its images."""
    size = [preprocessing.channels, preprocessing.height_pixels, preprocessing.width_pixels]
    return {
        **MARK,
        "architecture": architecture,
        "kwargs": json.dumps(dict(kwargs)),
        "input_size": json.dumps(size),
        "mean": json.dumps(preprocessing.mean),
        "std": json.dumps(preprocessing.std),
        "interpolation": preprocessing.interpolation,
        "resize_policy": preprocessing.resize_policy,
        "crop_pct": json.dumps(preprocessing.crop_fraction),
        **({} if licence is None else {"licence": licence}),
    }


StateDict = dict[str, Tensor]

# As timm does it: where training kept an average of the weights as well, that is what was evaluated.
_WRAPPERS = (
    *("state_dict_ema", "model_ema", "ema_state_dict"),
    *("state_dict", "model", "model_state_dict", "net", "network", "weights"),
)
_COUNTER_OF_AVERAGES = "n_averaged"  # of torch.optim.swa_utils.AveragedModel, beside the names with module.
_PREFIXES_OF_TRAINING = ("module.", "_orig_mod.")  # parallel training and torch.compile add them to any network
_PREFIXES = ("model.", "backbone.", "net.", "network.", "encoder.")
_LISTED_KEYS = 8
_MOST_WRAPPERS = 8


def find_checkpoint(weights: str, folders: Sequence[Path], *, model: str) -> Path:
    """The file that ``weights`` means: an absolute path, or relative to the first of ``folders`` that has it.

    Raises:
        UsageError: The format is not one that can be read safely; files of other frameworks get the way to convert them.
        MissingWeightsError: No such file; the message says where it was looked for.
    """
    path = Path(weights).expanduser()
    candidates = [path] if path.is_absolute() else [folder / path for folder in dict.fromkeys(folders)]
    checkpoint = next((candidate for candidate in candidates if candidate.exists()), None)
    _check_format(path, checkpoint)
    if checkpoint is not None:
        return checkpoint.resolve()
    siblings = [file.name for folder in (c.parent for c in candidates) if folder.is_dir() for file in folder.iterdir()]
    near = nearest_names(path.name, siblings)
    raise MissingWeightsError(
        f"The model {model} needs the file {path.name}, which is in none of: "
        + ", ".join(str(candidate.parent) for candidate in candidates)
        + "."
        + (f" Did you mean {' or '.join(near)}?" if near else " Put it there, or name its folder with --weights-dir.")
    )


def _check_format(path: Path, checkpoint: Path | None) -> None:
    if checkpoint is not None and checkpoint.is_dir():
        raise UsageError(explain_folder(checkpoint) or f"{path.name} is a folder. Name the file of weights in it.")
    if path.name.lower().endswith(CHECKPOINT_SUFFIXES):
        return
    known = ", ".join(CHECKPOINT_SUFFIXES)
    raise UsageError(explain_name(path) or f"{path.name} is no checkpoint that can be read: use {known}.")


def read_state_dict(path: Path, *, key: str | None = None, prefix: str | None = None) -> StateDict:
    """Tensors of a checkpoint by name, on the CPU; no code of the file ever runs.

    A training checkpoint that keeps the tensors under ``state_dict``, ``model`` or the like is unwrapped; where it
    also holds a running average of the weights (``state_dict_ema``, ``model_ema``), that is taken. The prefixes
    ``module.`` and ``_orig_mod.`` come off; others are left to ``load_weights``, which knows what the network
    expects.

    Args:
        path: The file.
        key: Key that holds the tensors, instead of those that are usual; dots lead further in.
        prefix: Beginning of the names of the tensors that are taken; it comes off, and others stay behind.

    Raises:
        DataError: The file is damaged, or holds something other than tensors; its keys are listed.
        UsageError: It has no such key, or no name begins so; what there is is listed.
    """
    state = _read(path, key)
    if prefix is None:
        return state
    taken = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
    if not taken or "" in taken:
        beginnings = list(dict.fromkeys(name.partition(".")[0] + "." for name in state))
        raise UsageError(
            f"No tensor of {path.name} is called {prefix}… (--weights-prefix). Their names begin with: "
            f"{_listed_keys(beginnings)}."
        )
    return taken


def _read(path: Path, key: str | None) -> StateDict:
    """All tensors under ``key``."""
    if path.suffix.lower() == ".safetensors":
        try:
            return _unwrap(load_file(path), path, key)
        except (SafetensorError, OSError) as error:
            raise damaged(path, error) from error
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Detected pickle protocol", category=UserWarning)
            _refuse_bomb(path)
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if explain_content(path) is not None:
            raise damaged(path, error) from error
        raise DataError(
            f"{path.name} holds more than tensors, and reading that would run code from the file. In the environment it "
            "comes from, save only the weights: safetensors.torch.save_file(model.state_dict(), 'weights.safetensors'). For "
            "a training checkpoint (Lightning, timm) model.state_dict() is torch.load(file, weights_only=False)['state_dict']."
        ) from error
    except _READ_ERRORS as error:
        raise damaged(path, error) from error
    return _unwrap(content, path, key)


# What torch raises for damaged files, beside UnpicklingError.
_READ_ERRORS = (
    *(OSError, EOFError, RuntimeError, ValueError, LookupError, AttributeError),
    *(TypeError, AssertionError, OverflowError, struct.error, zipfile.BadZipFile),
)


def _refuse_bomb(path: Path) -> None:
    """What torch writes is not packed, but it reads what is, and a few megabytes may unpack into any number of gigabytes.

    Raises:
        OutOfMemoryError: There is not so much memory.
    """
    if not zipfile.is_zipfile(path):  # as old versions of torch wrote it
        return
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > path.stat().st_size:
        require_memory(unpacked, what=f"The checkpoint {path.name}", advice="Save it again with torch.save.")


def _unwrap(content: object, path: Path, key: str | None) -> StateDict:
    if key is not None:
        content = _under(content, key, path)
    for _ in range(_MOST_WRAPPERS):  # one may contain itself
        if not isinstance(content, Mapping):
            break
        inner = next((content[key] for key in _WRAPPERS if isinstance(content.get(key), Mapping) and content[key]), None)
        if inner is None:
            break
        content = inner
    if not isinstance(content, Mapping) or not content or not all(isinstance(v, Tensor) for v in content.values()):
        raise DataError(f"{path.name} is no state dict: it must map parameter names to tensors.{_places_of_tensors(content)}")
    state = cast("Mapping[str, Tensor]", content)
    counted = {name: tensor for name, tensor in state.items() if name != _COUNTER_OF_AVERAGES}
    return _without_prefix_of_training(counted)


def _under(content: object, key: str, path: Path) -> object:
    """What lies under ``key``: one key of the file, or several with dots between them."""
    part_of = content
    for part in [key] if isinstance(content, Mapping) and key in content else key.split("."):
        if not isinstance(part_of, Mapping) or part not in part_of:
            keys = list(map(str, cast("Mapping[object, object]", part_of))) if isinstance(part_of, Mapping) else []
            raise UsageError(f"{path.name} has no key {key} (--weights-key). Its keys: {_listed_keys(keys) or 'none'}.")
        part_of = cast("Mapping[str, object]", part_of)[part]
    return part_of


def _places_of_tensors(content: object) -> str:
    """The keys of what is no state dict, with the number of tensors under each."""
    if not isinstance(content, Mapping) or not content:
        return ""
    counts = {str(key): _number_of_tensors(value) for key, value in cast("Mapping[object, object]", content).items()}
    shown = _listed_keys([f"{key} ({counted(number, 'tensor')})" if number else key for key, number in counts.items()])
    advice = " Name the one with the weights with --weights-key." if any(counts.values()) else ""
    return f" Its keys: {shown}.{advice}"


def _number_of_tensors(value: object) -> int:
    values = cast("Mapping[object, object]", value).values() if isinstance(value, Mapping) else ()
    return sum(isinstance(tensor, Tensor) for tensor in values)


def _listed_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _LISTED_KEYS} more" if len(keys) > _LISTED_KEYS else ""
    return ", ".join(shortened(key) for key in keys[:_LISTED_KEYS]) + more


def _without_prefix_of_training(state: Mapping[str, Tensor]) -> StateDict:
    """As long as all names begin with such a one, it comes off."""
    while state and (prefix := next((p for p in _PREFIXES_OF_TRAINING if all(name.startswith(p) for name in state)), None)):
        state = {name.removeprefix(prefix): tensor for name, tensor in state.items()}
    return dict(state)


def known_prefixes_removed(state: Mapping[str, Tensor]) -> Generator[StateDict]:
    """``state`` as it is, then without each known prefix that all its names share, one after the other.

    ``model.`` and its like come from networks that were an attribute of something larger (Lightning).
    """
    yield dict(state)
    while prefix := next((p for p in _PREFIXES if state and all(name.startswith(p) for name in state)), None):
        state = _without_prefix_of_training({name.removeprefix(prefix): tensor for name, tensor in state.items()})
        yield state


def load_weights(module: nn.Module, state: StateDict, *, file: str, model: str) -> None:
    """Copy ``state`` into ``module``, with or without a known prefix; float16 values go into float32 parameters.

    Raises:
        WeightsMismatchError: Names or shapes differ; one message lists all of them.
    """
    expected = module.state_dict().keys()
    state = max(known_prefixes_removed(state), key=lambda variant: len(variant.keys() & expected))
    check_fit(module, state, file=file, model=model)
    module.load_state_dict(state, strict=True)


def check_fit(module: nn.Module, state: Mapping[str, Tensor], *, file: str, model: str) -> None:
    """Compare names and shapes.

    Raises:
        WeightsMismatchError: They differ; one message lists missing, unexpected and mis-shaped keys.
    """
    expected = module.state_dict()
    missing = [key for key in expected if key not in state and not key.endswith("num_batches_tracked")]
    unexpected = [key for key in state if key not in expected]
    misshaped = [
        f"{key} is {tuple(state[key].shape)} in the file and {tuple(expected[key].shape)} in the model"
        for key in expected
        if key in state and state[key].shape != expected[key].shape
    ]
    parts = [
        _listing(items, noun)
        for items, noun in ((missing, "missing"), (unexpected, "unexpected"), (misshaped, "mis-shaped"))
        if items
    ]
    if parts:
        raise WeightsMismatchError(
            f"The weights {file} do not fit {model}. {' '.join(parts)} Check source, kwargs and num_classes."
        )


def _listing(items: Sequence[str], noun: str) -> str:
    more = f", and {len(items) - _LISTED_KEYS} more" if len(items) > _LISTED_KEYS else ""
    return f"{len(items)} {noun} key{'s' * (len(items) != 1)}: {', '.join(items[:_LISTED_KEYS])}{more}."


def infer_num_classes(state: Mapping[str, Tensor], classifier: object) -> int | None:
    """Outputs of the head in ``state``: 0 without a head, None when its name is not known.

    Args:
        state: State dict with or without a known prefix.
        classifier: Name of the head, or of several that have equally many outputs (distilled networks).
    """
    names = [classifier] if isinstance(classifier, str) else classifier
    if not isinstance(names, Sequence) or not names:
        return None
    for variant in known_prefixes_removed(state):
        for name in names:
            weight = variant.get(f"{name}.weight")
            if weight is not None:
                return int(weight.shape[0])
    return 0
