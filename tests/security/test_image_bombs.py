"""What a header announces is compared with the memory that is available before anything is unpacked."""

import gzip
import io
import struct
import threading
import tracemalloc
import zlib

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image

from crossgraft import compute
from crossgraft.data.decoding import decode_bytes
from crossgraft.data.inspection import inspect_images
from crossgraft.data.medical import dicom_file
from crossgraft.data.medical.dicom import DicomVolume, dicom_facts
from crossgraft.data.medical.display import parse_window
from crossgraft.data.medical.files import list_medical_file, parse_slices
from crossgraft.data.medical.nifti import NiftiVolume, nifti_facts
from crossgraft.errors import UnreadableImageError
from support.medical import dicom_bytes, dicom_dataset

SIDE = 3000  # 9 million pixels, in files of a few kilobytes
BOTH_NUMBERS = r"needs \d+ MB of memory, but only 1 MB is available\. Cut or shrink it"


@pytest.fixture
def one_megabyte(monkeypatch):
    """All that is available; and everything is asked for."""
    monkeypatch.setattr(compute, "_WORTH_ASKING", 0)
    monkeypatch.setattr(compute, "available_memory", lambda: 10**6)


def encoded(image_format, mode="L", **options):
    buffer = io.BytesIO()
    Image.new(mode, (SIDE, SIDE)).save(buffer, image_format, **options)
    return buffer.getvalue()


def tiff(dtype, **options):
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, np.zeros((SIDE, SIDE), dtype), compression="zlib", metadata=None, **options)
    return buffer.getvalue()


IMAGES = {
    "PNG": lambda: encoded("PNG"),
    "16-bit PNG": lambda: encoded("PNG", "I;16"),
    "palette PNG": lambda: encoded("PNG", "P"),
    "JPEG": lambda: encoded("JPEG", "RGB"),
    "BMP": lambda: encoded("BMP", "1"),
    "TIFF by Pillow": lambda: encoded("TIFF", compression="tiff_lzw"),
    "TIFF by tifffile": lambda: tiff(np.float64),
}


@pytest.mark.parametrize("kind", IMAGES)
def test_an_image_that_is_larger_than_the_memory_is_a_named_error(kind, one_megabyte):
    content = IMAGES[kind]()
    tracemalloc.start()
    try:
        with pytest.raises(
            UnreadableImageError, match=f"Cannot read the image x: a picture of {SIDE}×{SIDE} pixels {BOTH_NUMBERS}"
        ):
            decode_bytes(content, name="x")
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20  # what was unpacked would be 9 MB and more
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("image_format", ["GIF", "WEBP"])
def test_other_formats_are_refused_by_name_whatever_they_announce(image_format, one_megabyte):
    with pytest.raises(UnreadableImageError, match=r"it is a GIF file|a picture of .* needs .* of memory"):
        decode_bytes(encoded(image_format), name="x")


def test_the_limit_of_pillow_decides_nothing(monkeypatch):
    """Neither its warning nor its error: what fits into memory is read."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    for content in (encoded("PNG"), encoded("JPEG"), encoded("TIFF", compression="tiff_adobe_deflate")):
        assert decode_bytes(content, name="x").shape == (SIDE, SIDE, 1)


def test_where_pillow_itself_refuses_a_tiff_its_size_is_named(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(UnreadableImageError, match=f"it has {SIDE}×{SIDE} pixels, more than the 20 .* in this compression"):
        decode_bytes(encoded("TIFF", compression="tiff_lzw"), name="x")


def test_where_pillow_refuses_a_webp_its_size_is_named(monkeypatch):
    content = encoded("WEBP")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(UnreadableImageError, match="it has more pixels than Pillow reads of its format"):
        decode_bytes(content, name="x")


def test_a_bomb_can_be_skipped(one_megabyte):
    contents = [encoded("PNG"), *(encoded_small() for _ in range(2))]
    inspected = inspect_images(["bomb", "a", "b"], lambda row: decode_bytes(contents[row], name="x"), skip_unreadable=True)
    assert list(inspected.unreadable) == [0]


def encoded_small():
    buffer = io.BytesIO()
    Image.new("L", (9, 9)).save(buffer, "PNG")
    return buffer.getvalue()


def test_large_images_are_decoded_one_at_a_time(monkeypatch):
    """Else several could find the same memory free."""
    monkeypatch.setattr(compute, "_WORTH_ASKING", 0)
    inside, most = [], []

    def decode():
        with compute.room_for(1, "x"):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=decode) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


@pytest.mark.parametrize("rows_per_strip", [None, 64])
def test_a_strip_that_unpacks_into_more_than_its_place_is_refused(rows_per_strip):
    content = bytearray(tiff(np.float64, rowsperstrip=rows_per_strip))
    for tag in (256, 257):
        place = content.index(struct.pack("<HHII", tag, 4, 1, SIDE))
        content[place + 8 : place + 12] = struct.pack("<I", 30)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableImageError, match="unpacks into more than"):
            decode_bytes(bytes(content), name="x")
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


# DICOM and NIfTI


def dicom(path, policy="file"):
    dicom_facts(path, "x")
    return DicomVolume(path, "x", parse_window(policy)).read_slice(0)


def test_a_dicom_frame_that_is_larger_than_the_memory(tmp_path, one_megabyte):
    dataset = dicom_dataset(np.zeros((SIDE, SIDE), np.uint8))
    dataset.compress("1.2.840.10008.1.2.5")
    dataset.save_as(tmp_path / "x.dcm", enforce_file_format=True)
    with pytest.raises(UnreadableImageError, match=f"a frame of {SIDE}×{SIDE} pixels {BOTH_NUMBERS}"):
        dicom(tmp_path / "x.dcm")


def test_a_dicom_file_that_is_larger_than_the_memory(tmp_path, one_megabyte):
    (tmp_path / "x.dcm").write_bytes(dicom_bytes(np.zeros((1500, 1500), np.uint8)))
    with pytest.raises(UnreadableImageError, match="the file needs 2 MB of memory, but only 1 MB is available"):
        dicom(tmp_path / "x.dcm")


def test_a_frame_whose_codestream_is_larger_than_its_header_says(tmp_path):
    """The decoder takes memory for the size that the codestream names."""
    from pydicom.encaps import encapsulate

    dataset = dicom_dataset(np.zeros((8, 8), np.uint8))
    dataset.PixelData = encapsulate([encoded("JPEG")])
    dataset["PixelData"].is_undefined_length = True
    dataset.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.4.50"
    dataset.save_as(tmp_path / "x.dcm", enforce_file_format=True)
    with pytest.raises(UnreadableImageError, match=f"8×8 pixels are announced, and its compressed frame has {SIDE}×{SIDE}"):
        dicom(tmp_path / "x.dcm")


def test_a_dicom_in_gzip_is_read_like_the_file_in_it(tmp_path):
    content = dicom_bytes(np.arange(99, dtype=np.uint16).reshape(9, 11), WindowCenter=50, WindowWidth=80)
    (tmp_path / "x.dcm").write_bytes(content)
    (tmp_path / "x.dcm.gz").write_bytes(gzip.compress(content))
    np.testing.assert_array_equal(dicom(tmp_path / "x.dcm.gz"), dicom(tmp_path / "x.dcm"))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda packed: packed[: len(packed) // 2], "truncated"),
        (lambda packed: packed[:-8] + bytes(8), "compression is damaged"),
        (lambda packed: packed[:40] + b"\xff\0\xff" + packed[43:], "compression is damaged"),
        (lambda packed: packed + b"more", "compression is damaged"),
        (lambda packed: gzip.compress(b"hello " * 200), "it is a text file"),
        (lambda packed: gzip.compress(b""), "the file is empty"),
        (lambda packed: gzip.decompress(packed), None),  # no gzip but its name: the content counts
    ],
)
def test_damaged_gzip_around_a_dicom(tmp_path, damage, reason):
    path = tmp_path / "x.dcm.gz"
    path.write_bytes(damage(gzip.compress(dicom_bytes(np.arange(99, dtype=np.uint16).reshape(9, 11)))))
    if reason is None:
        assert dicom(path).shape == (9, 11, 1)
        return
    with pytest.raises(UnreadableImageError, match=reason):
        dicom(path)


def test_gzip_around_a_dicom_does_not_unpack_beyond_what_its_header_announces(tmp_path, monkeypatch):
    monkeypatch.setattr(dicom_file, "_UNPACKED_AT_FIRST", 2**14)
    content = dicom_bytes(np.zeros((64, 64), np.uint16))
    path = tmp_path / "x.dcm.gz"
    path.write_bytes(gzip.compress(content + bytes(60 * 2**20)))
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableImageError, match="it unpacks into more than the 8,192 bytes of pixels that it announces"):
            DicomVolume(path, "x", parse_window(None))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_gzip_around_a_dicom_is_asked_for_before_it_is_unpacked(tmp_path, monkeypatch, one_megabyte):
    monkeypatch.setattr(dicom_file, "_UNPACKED_AT_FIRST", 2**14)
    path = tmp_path / "x.dcm.gz"
    path.write_bytes(gzip.compress(dicom_bytes(np.zeros((SIDE, SIDE), np.uint16)), 1))
    with pytest.raises(UnreadableImageError, match="what its header announces needs 45 MB of memory, but only 1 MB"):
        DicomVolume(path, "x", parse_window(None))


def nifti(shape, dtype=np.uint8, announced=None):
    """Zeros, whose header announces another size if one is given."""
    import nibabel

    content = bytearray(nibabel.Nifti1Image(np.zeros(shape, dtype), np.eye(4)).to_bytes())
    if announced is not None:
        struct.pack_into("<4h", content, 40, 3, *announced)
    return bytes(content)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_nifti_volume_that_is_larger_than_the_memory(tmp_path, pack, one_megabyte):
    path = tmp_path / ("x.nii.gz" if pack is gzip.compress else "x.nii")
    path.write_bytes(pack(nifti((160, 160, 160))))
    with pytest.raises(UnreadableImageError, match="a volume of 160×160×160 voxels needs 8 MB of memory, but only 1 MB"):
        NiftiVolume(path, "x", parse_window(None))


def test_gzip_around_a_nifti_does_not_unpack_beyond_what_its_header_announces(tmp_path):
    path = tmp_path / "x.nii.gz"
    path.write_bytes(gzip.compress(nifti((320, 320, 320), announced=(20, 20, 20))))
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableImageError, match="more values than it announces"):
            NiftiVolume(path, "x", parse_window(None))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("slices", ["all", "middle"])
def test_a_nifti_of_billions_of_slices_is_not_listed(tmp_path, slices):
    """Version 2 counts in 64 bits, and a packed file of nine megabytes may announce as many slices of one voxel."""
    header = nibabel.Nifti2Header()
    header.set_data_dtype(np.uint8)
    header["dim"], header["magic"], header["vox_offset"] = [3, 1, 1, 2**33, 1, 1, 1, 1], b"n+2\0\r\n\x1a\n", 544
    header["pixdim"], header["qform_code"] = 1, 1
    path = tmp_path / "x.nii.gz"
    path.write_bytes(gzip.compress(bytes(header.binaryblock) + bytes(4)) + bytes(9_000_000))
    assert list_medical_file(path, "x", "NIfTI", parse_slices(slices)).slices == (0,)
    with pytest.raises(UnreadableImageError, match="its header announces 8,589,934,592 slices; read are at most 32,767"):
        nifti_facts(path, "x")


def test_a_header_that_announces_more_than_its_file_can_hold(tmp_path):
    path = tmp_path / "x.nii.gz"
    path.write_bytes(gzip.compress(nifti((4, 4, 4), announced=(30000, 30000, 30000))))
    with pytest.raises(UnreadableImageError, match="27,000,000,000,352 bytes are announced, and it can hold at most"):
        NiftiVolume(path, "x", parse_window(None))


def test_text_in_a_png_that_unpacks_into_much_is_not_unpacked():
    content = encoded_small()
    bomb = b"Comment\0\0" + zlib.compress(bytes(100 * 2**20))
    chunk = struct.pack(">I", len(bomb)) + b"zTXt" + bomb + struct.pack(">I", zlib.crc32(b"zTXt" + bomb))
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableImageError, match="too large"):
            decode_bytes(content[:33] + chunk + content[33:], name="x")
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
