"""An npz file takes no more memory than it announces, and announces no more than there is."""

import io
import re
import struct
import zipfile

import numpy as np
import pytest

from crossgraft import compute
from crossgraft.cli import main as command
from crossgraft.data import open_dataset
from crossgraft.data.checks import survey
from crossgraft.errors import DataError, OutOfMemoryError
from support.unlabelled import open_images

IMAGES = np.random.default_rng(0).integers(0, 255, (12, 8, 8), dtype=np.uint8)
LABELS = np.arange(12) % 2


def npy(shape, data=b"", *, dtype="|u1", length=None):
    """An array file whose header announces this shape, and which holds these bytes."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header) if length is None else length) + header + data


def archive(path, members, *, announced=None, method=zipfile.ZIP_DEFLATED):
    """A zip file; `announced` replaces the unpacked size of the first member in both of its headers."""
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    if announced is not None:
        content = bytearray(path.read_bytes())
        struct.pack_into("<I", content, 22, announced)
        struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 24, announced)
        path.write_bytes(content)
    return path


def whole(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.fixture
def little_memory(monkeypatch):
    """As on a machine with 10 MB left."""
    monkeypatch.setattr(compute, "available_memory", lambda: 10_000_000)


@pytest.fixture
def nothing_unpacked(monkeypatch):
    """Whoever unpacks an array fails the test."""
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("the array was unpacked"))


OPENING = pytest.mark.parametrize("opening", [open_dataset, open_images])


@OPENING
@pytest.mark.parametrize("key", ["images", "train_images"])
def test_an_array_that_does_not_fit_is_refused_before_it_is_unpacked(tmp_path, little_memory, nothing_unpacked, opening, key):
    labels = key.replace("images", "labels")
    path = archive(tmp_path / "x.npz", {key: npy((12, 1000, 1000), bytes(12_000_000)), labels: whole(LABELS)})
    assert path.stat().st_size < 50_000
    with pytest.raises(OutOfMemoryError, match=rf"The array {key} of x.npz needs 12 MB of memory, but only 10 MB is avail"):
        opening(path)


def test_an_attribute_counts_like_an_image(tmp_path, little_memory):
    names = whole(np.zeros(12, "S1000000"))
    path = archive(tmp_path / "x.npz", {"images": whole(IMAGES), "labels": whole(LABELS), "site": names})
    with pytest.raises(OutOfMemoryError, match=r"The array site of x\.npz needs 60 MB"):  # 12 MB, and four times that as text
        open_dataset(path)


@pytest.mark.parametrize("shape", [(10**9, 10**9), (12, 10**5, 10**5), (10**30,), (2**63, 2)])
def test_a_header_that_announces_more_than_the_file_holds_is_damage(tmp_path, nothing_unpacked, shape):
    path = archive(tmp_path / "x.npz", {"images": npy(shape, b"x" * 1000), "labels": whole(LABELS)})
    with pytest.raises(DataError, match=r"The array images of x.npz is damaged: its header announces .* and the file holds 1 kB"):
        open_dataset(path)


@pytest.mark.parametrize("shape", [(-1, 8, 8), ("'x'",), (True, 8)], ids=str)
def test_a_shape_that_is_none_is_damage(tmp_path, shape):
    path = archive(tmp_path / "x.npz", {"images": npy(shape, bytes(64)), "labels": whole(LABELS)})
    with pytest.raises(DataError, match=r"x\.npz"):
        open_dataset(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_file_that_unpacks_to_more_than_it_announces_is_not_unpacked(tmp_path, monkeypatch, method):
    """The zip header says 5 000 bytes, the stream holds 50 MB of them."""
    content = npy((12, 8, 8), bytes(50_000_000))
    path = archive(tmp_path / "x.npz", {"images": content, "labels": whole(LABELS)}, announced=5000, method=method)
    unpacked = []
    original = zipfile.ZipExtFile._read1
    monkeypatch.setattr(zipfile.ZipExtFile, "_read1", lambda self, n: unpacked.append(original(self, n)) or unpacked[-1])
    with pytest.raises(DataError, match=r"The array images of x\.npz is damaged"):
        open_dataset(path)
    assert sum(map(len, unpacked)) < 60_000


def test_a_header_of_gigabytes_is_not_read(tmp_path, monkeypatch):
    path = archive(tmp_path / "x.npz", {"images": npy((12, 8, 8), bytes(10_000_000), length=10_000_000), "labels": whole(LABELS)})
    reading = zipfile.ZipExtFile.read
    asked = []
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda self, n=-1: asked.append(n) or reading(self, n))
    with pytest.raises(DataError, match=r"The array images of x\.npz is damaged"):
        open_dataset(path)
    assert max(asked) <= 2**14 and min(asked) >= 0


def test_what_is_no_array_is_not_read(tmp_path):
    path = archive(tmp_path / "x.npz", {"images": bytes(10_000_000), "labels": whole(LABELS)})
    with pytest.raises(DataError, match=r"The array images of x\.npz is damaged"):
        open_dataset(path)


def test_damaged_lzma_is_a_named_error(tmp_path):
    path = archive(tmp_path / "x.npz", {"images": whole(IMAGES), "labels": whole(LABELS)}, method=zipfile.ZIP_LZMA)
    content = bytearray(path.read_bytes())
    content[60:200] = bytes(140)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"The array images of x\.npz is damaged"):
        open_dataset(path)


def test_what_fits_is_read_as_before(tmp_path, little_memory):
    np.savez_compressed(tmp_path / "x.npz", images=IMAGES, labels=LABELS, site=np.asarray([b"a", b"b"] * 6))
    dataset = open_dataset(tmp_path / "x.npz")
    assert (dataset.read(3)[..., 0] == IMAGES[3]).all() and dataset.attributes["site"].tolist() == ["a", "b"] * 6


ALLOCATIONS = [
    MemoryError(),
    np._core._exceptions._ArrayMemoryError((10**6, 10**6), np.dtype("f8")),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried ..."),
    RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB."),
]


@pytest.mark.parametrize("error", ALLOCATIONS, ids=lambda error: type(error).__name__)
def test_no_memory_is_one_paragraph_in_every_command(tmp_path, monkeypatch, capsys, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(survey, "list_rows", fail)
    assert command.main(["check", str(tmp_path), "--out", str(tmp_path / "run")]) == OutOfMemoryError.exit_code
    said = capsys.readouterr()
    error = re.sub(r"\AStarting [a-z ]+\.\n", "", said.err)
    assert error.startswith("Error: Not enough memory") and "Internal error" not in said.err and not said.out
    assert said.err.count("\n") <= 3


def test_memory_that_ends_while_an_array_is_read_names_the_array(tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", images=IMAGES, labels=LABELS)

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(np, "load", fail)
    with pytest.raises(OutOfMemoryError, match=r"The array images of x\.npz does not fit into memory"):
        open_dataset(tmp_path / "x.npz")
