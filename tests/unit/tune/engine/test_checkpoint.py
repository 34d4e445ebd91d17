"""A checkpoint is whole or absent, and belongs to one configuration."""

import errno
import os

import pytest
import torch

from crossgraft.errors import OtherRunError, RunDirectoryError, StorageError
from crossgraft.tune.engine.checkpoint import FILE_NAME, Checkpoint, read_checkpoint, write_checkpoint

CONFIGURATION = {"learning_rate": 0.1, "rule": "lowest loss", "shape": (3, 4)}


def checkpoint(value=1.0):
    tensors = {
        "weights/a": torch.full((2, 3), value, dtype=torch.float64),
        "weights/b": torch.full((2,), value, dtype=torch.bfloat16),
        "steps": torch.tensor(7),
        "empty": torch.zeros(0, 2),
        "turned": torch.arange(6).reshape(2, 3).T,
    }
    shared = tensors["weights/a"]
    return Checkpoint(
        CONFIGURATION, {"epoch": 2, "best": float("nan"), "sums": {"z": 0.1, "a": 1e-300}}, {**tensors, "tied": shared}
    )


def test_what_is_read_is_what_was_written(tmp_path):
    assert read_checkpoint(tmp_path, CONFIGURATION) is None
    write_checkpoint(tmp_path, checkpoint(1.0))
    write_checkpoint(tmp_path, checkpoint(2.0))
    found, expected = read_checkpoint(tmp_path, CONFIGURATION), checkpoint(2.0)
    assert found.tensors.keys() == expected.tensors.keys()
    for name, tensor in expected.tensors.items():
        assert torch.equal(found.tensors[name], tensor) and found.tensors[name].dtype == tensor.dtype
    assert found.position["sums"] == {"z": 0.1, "a": 1e-300} and list(found.position["sums"]) == ["z", "a"]
    assert found.position["best"] != found.position["best"]


def test_another_configuration_is_refused_by_what_differs(tmp_path):
    write_checkpoint(tmp_path, checkpoint())
    other = {**CONFIGURATION, "learning_rate": 0.2, "batch_size": 8}
    with pytest.raises(OtherRunError) as caught:
        read_checkpoint(tmp_path, other)
    for part in ("learning_rate was 0.1 and is now 0.2", "batch_size was None and is now 8", "--overwrite"):
        assert part in str(caught.value)
    assert "rule" not in str(caught.value)


@pytest.mark.parametrize("place", ["header", "middle", "end", "cut"])
def test_a_damaged_file_is_refused(tmp_path, place):
    path = write_checkpoint(tmp_path, checkpoint())
    content = bytearray(path.read_bytes())
    if place == "cut":
        content = content[:-1]
    else:
        content[{"header": 60, "middle": len(content) - 60, "end": -1}[place]] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunDirectoryError, match="damaged"):
        read_checkpoint(tmp_path, CONFIGURATION)


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    write_checkpoint(tmp_path, checkpoint(1.0))

    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_checkpoint(tmp_path, checkpoint(2.0))
    monkeypatch.undo()
    assert read_checkpoint(tmp_path, CONFIGURATION).tensors["weights/a"][0, 0] == 1
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_leftovers_of_a_killed_run_are_removed(tmp_path):
    (tmp_path / f".{FILE_NAME}.abc").write_bytes(b"half")
    (tmp_path / "other.txt").write_text("stays")
    assert read_checkpoint(tmp_path, CONFIGURATION) is None
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]
