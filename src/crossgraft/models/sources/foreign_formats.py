"""Weights of other frameworks, and what is no file of weights: what it is, and what to do with it."""

from __future__ import annotations

from pathlib import Path

from crossgraft.errors import DataError

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
