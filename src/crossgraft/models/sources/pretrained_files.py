"""timm's own weights on this machine: where they may lie, what to say if not, and the one download."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch
from huggingface_hub import constants as hub_constants
from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from timm.models import get_pretrained_cfg

from crossgraft.errors import DataError, MissingWeightsError
from crossgraft.models.published_names import licence_in_words
from crossgraft.models.spec import CHECKPOINT_SUFFIXES
from crossgraft.progress import Reporter

_PAGE = "docs/how-to/radimagenet.md"
_COPY_ARRAYS = (
    "rebuild the network in PyTorch, copy each array (convolution kernels from (height, width, in, out) to (out, in, "
    "height, width), dense kernels transposed), compare the outputs of both for one image, and name the PyTorch network "
    f"as source: package.module:factory in a zoo file. {_PAGE} goes this way for ResNet-50"
)
_KERAS = (
    "holds Keras weights; crossgraft reads PyTorch weights. For ResNet-50, examples/own_models/keras_resnet50.py converts "
    f"them and checks every array. For another network: {_COPY_ARRAYS}."
)
_TENSORFLOW = (
    "holds TensorFlow weights; crossgraft reads PyTorch weights. Write the arrays with numpy.savez where TensorFlow is "
    f"installed (tf.train.load_checkpoint, or the variables of tf.saved_model.load). Then {_COPY_ARRAYS}."
)
_TFLITE = (
    "is a graph of TensorFlow Lite, whose weights are often rounded to 8 bits. Take the PyTorch or Keras file that it was "
    f"made from; for a Keras file see {_PAGE}."
)
_ONNX = (
    "is an ONNX graph; crossgraft needs the network in PyTorch. Take the PyTorch checkpoint that it was exported from. "
    "Without it, onnx.numpy_helper.to_array gives each array of onnx.load(file).graph.initializer: "
    "rename them to the keys of your PyTorch network and save them with safetensors.torch.save_file."
)
_ARRAYS = (
    "holds bare arrays, as JAX and Keras programs write them. timm publishes Google's ViT, Mixer and BiT weights in its "
    f"own names (crossgraft list models). For another network: {_COPY_ARRAYS}."
)
_FLAX = (
    "holds Flax weights; crossgraft reads PyTorch weights. flax.serialization.msgpack_restore gives the arrays where Flax is "
    f"installed. Then {_COPY_ARRAYS}."
)
_PICKLE = (
    "is a pickle, and reading one can run code from the file. If torch.save wrote it, rename it to .pth: it is then read as "
    "tensors only. Otherwise save only the weights in the environment it comes from: "
    "safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')."
)
_OTHER_NAME = "has a name that says little. If torch.save wrote it, rename it to .pth; it is then read as tensors only."

_BY_SUFFIX = {
    **dict.fromkeys((".h5", ".hdf5", ".keras"), _KERAS),
    **dict.fromkeys((".pb", ".index", ".meta"), _TENSORFLOW),
    ".tflite": _TFLITE,
    ".onnx": _ONNX,
    **dict.fromkeys((".npz", ".npy"), _ARRAYS),
    ".msgpack": _FLAX,
    **dict.fromkeys((".pkl", ".pickle"), _PICKLE),
    **dict.fromkeys((".th", ".tar", ".weights"), _OTHER_NAME),
}

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_LFS_SIGNATURE = b"version https://git-lfs"


def explain_name(path: Path) -> str | None:
    """What a file of this name is and what to do with it; None for a name that says nothing of the kind."""
    if ".data-00000-of-" in path.name:  # TensorFlow numbers the parts of a checkpoint
        return f"{path.name} {_TENSORFLOW}"
    advice = _BY_SUFFIX.get(path.suffix.lower())
    return f"{path.name} {advice}" if advice else None


def explain_folder(path: Path) -> str | None:
    """The same for a folder; None for one that is no model of another framework."""
    if (path / "saved_model.pb").is_file():
        return f"The folder {path.name} {_TENSORFLOW}"
    weights = sorted(file.name for file in path.glob("*.safetensors")) if (path / "config.json").is_file() else []
    if weights:
        return (
            f"{path.name} is a folder of the Hugging Face hub. Name the file in it: {path / weights[0]}, with its timm "
            "architecture or package.module:factory as source in a zoo file."
        )
    return None


def explain_content(path: Path) -> str | None:
    """The same for a file whose name promises PyTorch weights; None where the content tells nothing."""
    with path.open("rb") as file:
        start = file.read(max(len(_HDF5_SIGNATURE), len(_LFS_SIGNATURE)))
    if start.startswith(_HDF5_SIGNATURE):
        return f"{path.name} is an HDF5 file: it {_KERAS}"
    if start.startswith(_LFS_SIGNATURE):
        return f"{path.name} is a note of Git LFS about the weights, not the weights. Run git lfs pull where it comes from."
    return None


def damaged(path: Path, error: Exception) -> DataError:
    """What to raise for a checkpoint that cannot be read, and what it seems to be instead."""
    explanation = explain_content(path) if path.is_file() else None
    if explanation is not None:
        return DataError(explanation)
    reason = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"{path.name} cannot be read as a checkpoint: {reason}. Copy or download it again.")


_HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def pretrained_config(name: str) -> dict[str, object]:
    """What timm says about the weights of ``name``: sizes, mean, where they are published. Builds nothing."""
    config = get_pretrained_cfg(name)
    return cast("dict[str, object]", config.to_dict()) if config is not None else {}


def find_pretrained(name: str, weights_dir: Path | None = None) -> Path | None:
    """Timm's weights of ``name`` on this machine: in ``weights_dir``, Hugging Face's cache or torch's cache.

    Args:
        name: Architecture, with or without the tag of its weights.
        weights_dir: Holds files named ``<name>.safetensors`` (or ``.pth``, ``.pt``, ``.bin``).
    """
    return next((path for path in _candidates(name, weights_dir) if path.is_file()), None)


def _candidates(name: str, weights_dir: Path | None) -> Iterator[Path]:
    config = pretrained_config(name)
    if weights_dir is not None:
        tag = config.get("tag")
        for stem in dict.fromkeys((name, f"{name.partition('.')[0]}.{tag}")):
            yield from (weights_dir / f"{stem}{suffix}" for suffix in CHECKPOINT_SUFFIXES)
    repository = config.get("hf_hub_id")
    if isinstance(repository, str):
        stated = config.get("hf_hub_filename")
        for file in (stated,) if isinstance(stated, str) else _HUB_FILES:
            cached = try_to_load_from_cache(repository, file)
            if isinstance(cached, str):
                yield Path(cached)
    url = config.get("url")
    if isinstance(url, str) and url.endswith(CHECKPOINT_SUFFIXES):
        yield Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]


def require_pretrained(
    name: str, weights_dir: Path | None = None, *, allow_download: bool = False, reporter: Reporter | None = None
) -> Path:
    """The file with timm's weights; downloaded from the Hugging Face hub only with ``allow_download``.

    Raises:
        MissingWeightsError: Not on this machine, and not allowed or not possible to download.
    """
    path = find_pretrained(name, weights_dir)
    if path is not None:
        return path
    config = pretrained_config(name)
    repository, file = config.get("hf_hub_id"), config.get("hf_hub_filename") or _HUB_FILES[0]
    if not isinstance(repository, str) or not isinstance(file, str):
        raise MissingWeightsError(
            f"timm publishes no weights for {name}. Give weights: a file, or weights: random, in a zoo file."
        )
    if allow_download:
        return _download(name, repository, file, reporter or Reporter())
    suffix = Path(file).suffix
    folder = str(weights_dir) if weights_dir is not None else "a folder that you name with --weights-dir"
    raise MissingWeightsError(
        f"The weights of {name} are not on this machine. Download "
        f"https://huggingface.co/{repository}/resolve/main/{file} and put it as {name}{suffix} into {folder}; or pass "
        f"--allow-download, which stores it in {hub_constants.HF_HUB_CACHE}.{_terms(name)}"
    )


def _terms(name: str) -> str:
    """What its licence forbids or limits; nothing of one that does neither."""
    licence = pretrained_config(name).get("license")
    if not isinstance(licence, str) or (in_words := licence_in_words(licence, name)) == licence:
        return ""
    return f" Its licence is {in_words}."


def _download(name: str, repository: str, file: str, reporter: Reporter) -> Path:
    try:
        size = get_hf_file_metadata(hf_hub_url(repository, file)).size or 0
        reporter.say(
            f"Downloading the weights of {name}: {size / 1e6:.0f} MB from huggingface.co/{repository} to "
            f"{hub_constants.HF_HUB_CACHE}.{_terms(name)}"
        )
        return Path(hf_hub_download(repository, file))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise MissingWeightsError(
            f"The weights of {name} could not be downloaded from huggingface.co/{repository} (--allow-download): {first_line}. "
            f"On a machine with network, download {file} and put it as {name}{Path(file).suffix} into --weights-dir."
        ) from error


def cached_timm_names() -> list[str]:
    """Names of timm weights in Hugging Face's cache, as ``architecture.tag``."""
    cache = Path(os.fspath(hub_constants.HF_HUB_CACHE))
    prefix = "models--timm--"
    return sorted(folder.name.removeprefix(prefix) for folder in cache.glob(f"{prefix}*") if folder.is_dir())
