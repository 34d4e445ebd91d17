"""Files of features: checksums, leftovers of killed processes, memory maps."""

import os
import socket

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from crossgraft.features._atomic_file import atomic_file, remove_leftovers
from crossgraft.features._tensor_file import checksum, map_tensors, write_tensors
from crossgraft.features.store import cache_folder

MATRICES = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.floats(width=32))


@given(MATRICES, st.integers(0, 9))
def test_the_checksum_of_a_whole_is_the_sum_over_its_parts(matrix, cut):
    assert checksum(matrix) == (checksum(matrix[:cut]) + checksum(matrix[cut:])) % 2**64


@given(MATRICES, st.data())
def test_the_checksum_sees_every_single_bit(matrix, data):
    flipped = matrix.copy()
    words = flipped.reshape(-1).view(np.uint32)
    words[data.draw(st.integers(0, words.size - 1))] ^= np.uint32(1 << data.draw(st.integers(0, 31)))
    assert checksum(flipped) != checksum(matrix)


def test_written_in_pieces_and_read_as_a_map(tmp_path):
    features = np.arange(12, dtype=np.float32).reshape(4, 3)
    logits = -np.arange(8, dtype=np.float32).reshape(4, 2)
    with atomic_file(tmp_path / "f.safetensors") as file:
        pieces = [features[:1], features[1:], logits[:3], logits[3:]]
        write_tensors(file, {"features": (4, 3), "source_logits": (4, 2)}, pieces, {"seconds": "2.5"})
    stored = map_tensors(tmp_path / "f.safetensors")
    np.testing.assert_array_equal(stored.tensors["features"], features)
    np.testing.assert_array_equal(stored.tensors["source_logits"], logits)
    assert stored.metadata == {"seconds": "2.5"}
    base = stored.tensors["features"]
    while not isinstance(base, np.memmap):
        base = base.base  # the array is a view into the map, not a copy


def test_leftovers_of_dead_processes_go_and_those_of_living_ones_stay(tmp_path):
    host = socket.gethostname()
    dead, alive = 2**22 + 12345, os.getpid()  # above the largest process number of Linux
    names = {
        "dead": f".a.safetensors.{host}.{dead}.0a1b2c3d.tmp",
        "alive": f".a.safetensors.{host}.{alive}.0a1b2c3d.tmp",
        "elsewhere": f".a.safetensors.another-host.{dead}.0a1b2c3d.tmp",
    }
    for name in names.values():
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {names["alive"], names["elsewhere"]}


def test_the_name_of_a_temporary_file_tells_its_process(tmp_path):
    with atomic_file(tmp_path / "a.b.safetensors") as file:
        (temporary,) = tmp_path.iterdir()
        assert temporary.name.startswith(f".a.b.safetensors.{socket.gethostname()}.{os.getpid()}.")
        file.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["a.b.safetensors"]


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache_folder(tmp_path) == tmp_path
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "c"))
    assert cache_folder() == tmp_path / "c" / "features"
    monkeypatch.delenv("CROSSGRAFT_CACHE")
    assert cache_folder().parts[-2:] == ("crossgraft", "features")
