"""Files of features: checksums, memory maps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from crossgraft.features.store import cache_folder, checksum, map_tensors, write_tensors
from crossgraft.storage.atomic import atomic_file

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


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache_folder(tmp_path) == tmp_path
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "c"))
    assert cache_folder() == tmp_path / "c" / "features"
    monkeypatch.delenv("CROSSGRAFT_CACHE")
    assert cache_folder().parts[-2:] == ("crossgraft", "features")
