"""Weights of other frameworks are refused with what the file is and what to do."""

import pytest

from crossgraft.errors import DataError, UsageError
from crossgraft.models import ModelSpec, load_backbone, read_zoo
from crossgraft.models.sources.local_checkpoint import read_state_dict

from .conftest import TINY


@pytest.mark.parametrize(
    ("name", "what", "advice"),
    [
        ("net.h5", "holds Keras weights", r"keras_resnet50\.py converts them .* docs/how-to/radimagenet\.md"),
        ("net.weights.h5", "holds Keras weights", "docs/how-to/radimagenet.md"),
        ("NET.H5", "holds Keras weights", "docs/how-to/radimagenet.md"),
        ("net.hdf5", "holds Keras weights", "docs/how-to/radimagenet.md"),
        ("net.keras", "holds Keras weights", "docs/how-to/radimagenet.md"),
        ("saved_model.pb", "holds TensorFlow weights", "numpy.savez"),
        ("model.ckpt.index", "holds TensorFlow weights", "tf.train.load_checkpoint"),
        ("model.ckpt.data-00000-of-00001", "holds TensorFlow weights", "tf.train.load_checkpoint"),
        ("net.tflite", "TensorFlow Lite", "Take the PyTorch or Keras file"),
        ("net.onnx", "ONNX graph", "to_array"),
        ("vit.npz", "bare arrays", "timm publishes"),
        ("flax_model.msgpack", "Flax weights", "msgpack_restore"),
        ("encoder.pkl", "is a pickle", r"rename it to \.pth"),
        ("resnet20.th", "a name that says little", r"rename it to \.pth"),
    ],
)
def test_each_format_is_named_with_what_to_do(name, what, advice):
    with pytest.raises(UsageError, match=rf"{name} .*{what}.*{advice}"):
        read_zoo(name)
    with pytest.raises(UsageError, match=f"{what}.*{advice}"):
        load_backbone(ModelSpec("mine", TINY, name))


def test_an_unknown_ending_names_those_that_can_be_read():
    with pytest.raises(UsageError, match=r"net\.txt is no checkpoint that can be read: use \.safetensors"):
        load_backbone(ModelSpec("mine", TINY, "net.txt"))


def test_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, file in (("exported", "saved_model.pb"), ("from_hub", "config.json"), ("resnet18", "config.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
    for name in ("from_hub", "resnet18"):
        (tmp_path / name / "model.safetensors").touch()
    with pytest.raises(UsageError, match="The folder exported holds TensorFlow weights"):
        read_zoo("exported")
    with pytest.raises(UsageError, match=r"Hugging Face hub\. Name the file in it: .*model\.safetensors"):
        read_zoo("./from_hub")
    assert read_zoo("resnet18")[0].source == "resnet18"  # a folder that happens to be there changes nothing
    (tmp_path / "own.pth").mkdir()
    with pytest.raises(UsageError, match=r"own\.pth is a folder\. Name the file"):
        load_backbone(ModelSpec("mine", TINY, "own.pth"))


@pytest.mark.parametrize("suffix", [".pth", ".bin", ".ckpt", ".safetensors"])
@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"\x89HDF\r\n\x1a\n", "is an HDF5 file: it holds Keras weights"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS .* git lfs pull"),
    ],
)
def test_a_name_that_promises_too_much(tmp_path, suffix, start, message):
    path = tmp_path / f"net{suffix}"
    path.write_bytes(start + bytes(200))
    with pytest.raises(DataError, match=message):
        read_state_dict(path)
