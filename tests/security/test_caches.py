"""The cache may be shared, and disks fail: what crossgraft did not write there is computed again."""

import json
import os

import numpy as np
import pytest
import torch
from safetensors.torch import save

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import DataError
from crossgraft.features import extract_features
from crossgraft.features.store import checksum, map_tensors, write_tensors
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.rank.results_store import known_results_file, read_known_results
from crossgraft.tune.regularizers import _moment_terms as _kept_moments
from crossgraft.tune.regularizers._moment_terms import Moments

ROWS = 12


@pytest.fixture(scope="module")
def backbone():
    return load_backbone(ModelSpec("net", "test_resnet", "random"), image_size=32)


@pytest.fixture(scope="module")
def dataset():
    pixels = np.random.default_rng(0).integers(0, 256, (ROWS, 8, 8), dtype=np.uint8)
    return dataset_from_arrays(pixels, np.arange(ROWS) % 2)


@pytest.fixture(scope="module")
def stored(dataset, backbone, tmp_path_factory):
    """What extraction finds, read into memory: the files themselves are replaced."""
    found = extract_features(dataset, backbone, cache_dir=tmp_path_factory.mktemp("stored"))
    return {"features": np.array(found.features), "source_logits": np.array(found.source_logits)}


def write(path, arrays, **metadata):
    """A file with its own right checksums."""
    sums = {name: str(checksum(array)) for name, array in arrays.items()}
    with path.open("wb") as file:
        shapes = {name: array.shape for name, array in arrays.items()}
        write_tensors(file, shapes, list(arrays.values()), {**sums, "seconds": "1.0", **metadata})


FORGED = {
    "other width": lambda arrays: ({**arrays, "features": arrays["features"][:, :3]}, {}),
    "no width": lambda arrays: ({**arrays, "features": arrays["features"][:, :0]}, {}),
    "nan": lambda arrays: ({**arrays, "features": arrays["features"] * np.nan}, {}),
    "infinity": lambda arrays: ({**arrays, "source_logits": arrays["source_logits"] + np.inf}, {}),
    "no logits": lambda arrays: ({"features": arrays["features"]}, {}),
    "another array": lambda arrays: ({**arrays, "x": arrays["features"]}, {}),
    "seconds in words": lambda arrays: (arrays, {"seconds": "few"}),
    "endless": lambda arrays: (arrays, {"seconds": "inf"}),
    "seconds in a list": lambda arrays: (arrays, {"seconds": [1]}),
}


@pytest.mark.parametrize("file", ["features.safetensors", "shard-00000.safetensors"])
@pytest.mark.parametrize("case", FORGED)
def test_features_of_somebody_else_are_computed_anew(dataset, backbone, stored, tmp_path, case, file):
    extract_features(dataset, backbone, cache_dir=tmp_path)
    (path,) = tmp_path.rglob("features.safetensors")
    path.unlink()
    arrays, metadata = FORGED[case](stored)
    write(path.with_name(file), arrays, **metadata)
    found = extract_features(dataset, backbone, cache_dir=tmp_path)
    assert not found.from_cache
    np.testing.assert_array_equal(found.features, stored["features"])
    np.testing.assert_array_equal(found.source_logits, stored["source_logits"])


ENTRY = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}


@pytest.mark.parametrize(
    "header",
    [
        {"__metadata__": ["seconds"], "features": ENTRY},
        {"__metadata__": "seconds", "features": ENTRY},
        {"__metadata__": {}, "features": {**ENTRY, "data_offsets": [-64, 16]}},
        {"__metadata__": {}, "features": {**ENTRY, "shape": [2, 2**61]}},
        {"__metadata__": {}, "features": {**ENTRY, "data_offsets": {"1": 16}}},
    ],
    ids=["list", "text", "before the file", "far behind it", "mapping"],
)
def test_a_header_that_is_none_is_no_file_of_features(tmp_path, header, recwarn):
    text = json.dumps(header).encode()
    path = tmp_path / "features.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(16))
    assert map_tensors(path) is None
    assert not recwarn.list


def test_a_header_of_gigabytes_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "features.safetensors"
    with path.open("wb") as file:
        file.write((2**40).to_bytes(8, "little"))
        file.truncate(2**41)  # takes no space
    assert map_tensors(path) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_nobody_waits_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "features.safetensors")
    assert map_tensors(tmp_path / "features.safetensors") is None
    os.mkfifo(known_results_file())
    with pytest.raises(DataError, match="It is a pipe or a device"):
        read_known_results()


WRONG_MOMENTS = {
    "bfloat16": lambda mean, square: (mean.bfloat16(), square),
    "whole numbers": lambda mean, square: (mean.long(), square),
    "shorter": lambda mean, square: (mean[:3].clone(), square),
    "no square": lambda mean, square: (mean, square[:3].clone()),
    "nan": lambda mean, square: (mean * torch.nan, square),
}


@pytest.mark.parametrize("case", [None, *WRONG_MOMENTS])
def test_moments_of_somebody_else_are_computed_anew(backbone, case):
    classifier = make_classifier(backbone, 2, seed=0)
    size = classifier.num_features
    right = Moments(torch.zeros(size, dtype=torch.float64), torch.eye(size, dtype=torch.float64))
    tensors = dict(zip(Moments._fields, right if case is None else WRONG_MOMENTS[case](*right), strict=True))
    path = _kept_moments._path(classifier, "data")
    path.parent.mkdir(parents=True)
    sums = "bfloat16 is no type of numpy" if case == "bfloat16" else _kept_moments._checksum(tensors)
    path.write_bytes(save(tensors, metadata={"sha256": sums}))
    found = _kept_moments.kept_or_computed(classifier, "data", lambda: right)
    assert (found is right) == (case is not None)
