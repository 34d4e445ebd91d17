"""Features that other programs wrote."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

from crossgraft.compare import are_stored_features, read_stored_features
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.errors import DataError

ROWS = np.random.default_rng(0).standard_normal((9, 4))


def test_arrays_are_memory_maps_where_the_file_allows_it(tmp_path):
    wide = np.asfortranarray(ROWS.astype(np.float32))
    np.savez(tmp_path / "plain.npz", first=ROWS, second=wide)
    np.savez_compressed(tmp_path / "packed.npz", first=ROWS, second=wide)
    save_file({"first": ROWS, "second": np.ascontiguousarray(wide)}, tmp_path / "some.safetensors")
    for name, is_map in (("plain.npz", True), ("packed.npz", False), ("some.safetensors", True)):
        assert are_stored_features(tmp_path / name)
        found = read_stored_features(tmp_path / name)
        assert list(found.layers) == ["first", "second"] and len(found) == 9
        for layer, expected in (("first", ROWS), ("second", wide)):
            np.testing.assert_array_equal(found.layers[layer], expected)
            assert isinstance(found.layers[layer], np.memmap) == is_map
        np.testing.assert_array_equal(found.penultimate, wide)
        np.testing.assert_array_equal(found.at(np.array([5, 2]))["first"], ROWS[[5, 2]])
    save_tensors({"features": torch.ones(9, 2, dtype=torch.bfloat16), "z": torch.zeros(9, 3)}, tmp_path / "half.safetensors")
    half = read_stored_features(f"features:{tmp_path / 'half.safetensors'}")
    assert half.penultimate.shape == (9, 2) and half.penultimate.dtype == np.float32


def test_a_checkpoint_is_no_file_of_features(tmp_path):
    save_file({"weight": ROWS, "bias": ROWS[0]}, tmp_path / "model.safetensors")
    assert not are_stored_features(tmp_path / "model.safetensors") and not are_stored_features("resnet18")
    assert not are_stored_features(tmp_path / "lost.safetensors") and not are_stored_features(3)


def test_what_is_wrong_with_a_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"There is no file of features"):
        read_stored_features(tmp_path / "lost.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    for name in ("bad.npz", "bad.safetensors"):
        with pytest.raises(DataError, match="cannot be read as features"):
            read_stored_features(tmp_path / name)
    for arrays, match in (
        ({"a": ROWS, "b": ROWS[:5]}, "not of the same images: a 9, b 5 rows"),
        ({"a": ROWS[0]}, r"a in .* has the shape \(4,\)"),
        ({"a": ROWS.reshape(9, 2, 2)}, "Pool or flatten maps"),
        ({"a": np.array([["x"], ["y"]])}, "features are numbers"),
        ({"a": np.array([[None]], dtype=object)}, "may hold code"),
        ({}, "holds no array"),
    ):
        np.savez(tmp_path / "odd.npz", **arrays)
        with pytest.raises(DataError, match=match):
            read_stored_features(tmp_path / "odd.npz")


def test_rows_are_those_that_are_looked_at_or_all(tmp_path):
    np.savez(tmp_path / "nine.npz", a=ROWS)
    stored = read_stored_features(tmp_path / "nine.npz")
    data = dataset_from_arrays(np.zeros((9, 4, 4, 3), np.uint8), np.arange(9) % 2)
    assert stored.rows_of("A", np.array([7, 3, 5, 1]), data).tolist() == [7, 3, 5, 1]
    assert stored.rows_of("A", np.arange(9), None).tolist() == list(range(9))
    with pytest.raises(DataError, match=r"A \(nine\) has features of 9 images; what is compared are 8 of them"):
        stored.rows_of("A", np.arange(8), None)
