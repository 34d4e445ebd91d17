"""Files of tensors: the same bytes for the same content, read by the library as its own."""

import struct

import pytest
import torch
from safetensors import safe_open

from crossgraft.storage.tensors import tensor_bytes

METADATA = {f"key {number}": f"'µ' {number}\n" for number in range(9)}
TENSORS = {"b.weight": torch.arange(6.0).reshape(2, 3), "a": torch.tensor(3), "none": torch.zeros(0, 2)}


@pytest.mark.parametrize("metadata", [METADATA, {"format": "pt"}, {}], ids=len)
def test_the_library_reads_what_was_written(tmp_path, metadata):
    path = tmp_path / "weights.safetensors"
    path.write_bytes(tensor_bytes(TENSORS, metadata))
    with safe_open(path, framework="pt") as file:
        assert (file.metadata() or {}) == metadata
        assert sorted(file.keys()) == sorted(TENSORS)
        assert all(torch.equal(file.get_tensor(name), tensor) for name, tensor in TENSORS.items())


def test_the_same_content_gives_the_same_bytes_and_aligned_tensors():
    (content,) = {tensor_bytes(TENSORS, METADATA) for _ in range(9)}
    assert struct.unpack_from("<Q", content)[0] % 8 == 0
