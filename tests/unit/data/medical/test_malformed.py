"""Malformed files of each kind: a named error that gives the file and the reason, never a picture, never another error."""

import gzip
import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pydicom.uid import DeflatedExplicitVRLittleEndian, RLELossless

from crossgraft import compute
from crossgraft.data.decoding import decode_file
from crossgraft.data.medical import dicom_file
from crossgraft.data.medical.dicom import DicomVolume, dicom_facts
from crossgraft.data.medical.display import parse_window
from crossgraft.data.medical.nifti import NiftiVolume, nifti_facts
from crossgraft.errors import UnreadableImageError
from support.medical import dicom_bytes, dicom_dataset

NOISE = np.random.default_rng(0).integers(0, 2**12, (24, 20)).astype(np.uint16)
ANY = "."


def read_dicom(path, name):
    dicom_facts(path, name)
    return DicomVolume(path, name, parse_window(None)).read_slice(0)


def read_nifti(path, name):
    nifti_facts(path, name)
    return NiftiVolume(path, name, parse_window(None)).read_slice(0)


READERS = {"dcm": read_dicom, "nii": read_nifti, "png": lambda path, name: decode_file(path, name=name)}


# DICOM


def saved(dataset):
    buffer = io.BytesIO()
    dataset.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def dicom(**elements):
    return dicom_bytes(NOISE, bits_stored=12, **elements)


def dicom_without(*keywords):
    dataset = dicom_dataset(NOISE, bits_stored=12)
    for keyword in keywords:
        delattr(dataset, keyword)
    return saved(dataset)


def deflated():
    dataset = dicom_dataset(NOISE)
    dataset.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    return saved(dataset)


def rle():
    dataset = dicom_dataset(NOISE)
    dataset.compress(RLELossless, generate_instance_uid=False)
    return saved(dataset)


def with_syntax(uid):
    dataset = dicom_dataset(NOISE, bits_stored=12)
    content = saved(dataset)
    old = b"1.2.840.10008.1.2.1\0"
    assert content.count(old) == 1
    return content.replace(old, uid.encode().ljust(len(old), b"\0"))


def float_dicom(values):
    dataset = dicom_dataset(np.zeros(values.shape, np.uint16))
    del dataset.PixelData
    dataset.BitsAllocated = 32
    dataset.FloatPixelData = values.astype("<f4").tobytes()
    return saved(dataset)


DICOM_CASES = {
    "empty": (b"", "the file is empty"),
    "text": (b"PatientID,label\n1,benign\n" * 20, "it is a text file"),
    "zeros": (bytes(4000), "not a DICOM file"),
    "random bytes": (np.random.default_rng(1).bytes(3000), ANY),
    "mark alone": (bytes(128) + b"DICM", "lacks Rows|no pixels"),
    "wrong mark": (bytes(128) + b"DICX" + dicom()[132:], "not a DICOM file|damaged"),
    "png renamed": (None, "not a DICOM file|damaged|lacks"),
    "cut in the mark": (dicom()[:130], "not a DICOM file"),
    "cut in the meta information": (dicom()[:200], ANY),
    "cut in the header": (dicom()[:600], ANY),
    "cut before the pixels": (dicom()[: -NOISE.nbytes - 12], "no pixels|lacks"),
    "cut in the pixels": (dicom()[: -NOISE.nbytes // 2], "960 bytes of pixels are announced and 480 are there"),
    "one byte short": (dicom()[:-1], "truncated"),
    "no rows": (dicom_without("Rows"), "lacks Rows"),
    "no columns": (dicom_without("Columns"), "lacks Columns"),
    "no bits": (dicom_without("BitsAllocated"), "lacks BitsAllocated"),
    "no stored bits": (dicom_without("BitsStored"), "lacks BitsStored"),
    "no sign": (dicom_without("PixelRepresentation"), "lacks PixelRepresentation"),
    "no colour": (dicom_without("PhotometricInterpretation"), "PhotometricInterpretation is missing"),
    "no pixels": (dicom_without("PixelData"), r"no pixels \(CT Image Storage\)"),
    "zero rows": (dicom(Rows=0), "0×20 pixels"),
    "too many rows": (dicom(Rows=25), "bytes of pixels are announced and 960 are there"),
    "too few rows": (dicom(Rows=20), "800 bytes of pixels are announced and 960 are there"),
    "bomb": (dicom(Rows=65535, Columns=65535), "8,589,672,450 bytes of pixels are announced and 960 are there"),
    "below the limit of pixels": (dicom(Rows=9000, Columns=9000), "162,000,000 bytes of pixels are announced"),
    "frames that are not there": (dicom(NumberOfFrames=7), "bytes of pixels are announced"),
    "a million frames": (dicom(NumberOfFrames=1_000_000), "frames is given as 1000000"),
    "negative frames": (dicom(NumberOfFrames=-3), "frames is given as -3"),
    "12 bits allocated": (dicom(BitsAllocated=12), "BitsAllocated is 12"),
    "more bits stored than there are": (dicom(BitsStored=17), "bits contradict"),
    "no bit stored": (dicom(BitsStored=0), "bits contradict"),
    "highest bit beyond the sample": (dicom(HighBit=20), "bits contradict"),
    "strange sign": (dicom(PixelRepresentation=7), "PixelRepresentation is 7"),
    "unknown colours": (dicom_bytes(NOISE, photometric="HSV"), "PhotometricInterpretation is HSV"),
    "colours of one sample": (dicom_bytes(NOISE, photometric="RGB"), "RGB, but it has 1 samples"),
    "four samples": (dicom(SamplesPerPixel=4), "4 samples"),
    "slope of nothing": (dicom(RescaleSlope=0, RescaleIntercept=0), "slope and intercept are 0 and 0"),
    "slope beyond all numbers": (dicom(RescaleSlope="1e308", RescaleIntercept=0), r"slope and intercept are 1e\+308 and 0"),
    "intercept that leaves nothing": (dicom(RescaleSlope=1, RescaleIntercept="-1e17"), r"intercept are 1 and -1e\+17"),
    "palette that is not there": (dicom_bytes(NOISE, photometric="PALETTE COLOR"), "no palette"),
    "unknown compression": (with_syntax("1.2.840.10008.9.9"), ANY),
    "compression that is none": (with_syntax("1.2.840.10008.1.2.5"), ANY),
    "video": (with_syntax("1.2.840.10008.1.2.4.1"), ANY),
    "deflated and cut": (deflated()[:-100], "truncated|damaged"),
    "deflated and damaged": (deflated()[:500] + b"\xff" * 40 + deflated()[540:], "damaged|truncated"),
    "RLE and cut": (rle()[:-300], ANY),
    "floats that are none": (float_dicom(np.array([[1, np.nan]])), "NaN or infinite"),
}

# NIfTI


def nifti(values=None, **fields):
    import nibabel

    values = NOISE[..., np.newaxis].astype(np.int16) if values is None else values
    content = bytearray(nibabel.Nifti1Image(values, np.eye(4)).to_bytes())
    for offset, form, *numbers in fields.values():
        struct.pack_into(form, content, offset, *numbers)
    return bytes(content)


def gzip_bomb():
    """A header that announces 1 GiB, in a file of a few bytes."""
    return gzip.compress(nifti(dim=(40, "<8h", 3, 1024, 1024, 512, 1, 1, 1, 1)))


PACKED = gzip.compress(nifti())

NIFTI_CASES = {
    "empty": (b"", "the file is empty"),
    "text": (b"path,label\nx.nii,1\n" * 30, "it is a text file"),
    "zeros": (bytes(4000), "not a NIfTI file"),
    "random bytes": (np.random.default_rng(1).bytes(3000), "not a NIfTI file"),
    "png renamed": (None, "not a NIfTI file"),
    "one byte": (b"\xfe", "not a NIfTI file"),
    "cut in the header": (nifti()[:200], "truncated in its header"),
    "cut after the header": (nifti()[:352], "bytes are announced"),
    "cut in the values": (nifti()[:-300], "1,312 bytes are announced, and it can hold at most 1,012"),
    "one byte short": (nifti()[:-1], "bytes are announced"),
    "wrong magic": (nifti(magic=(344, "4s", b"n+7\0")), "not a NIfTI file"),
    "values in another file": (nifti(magic=(344, "4s", b"ni1\0")), "in another file"),
    "wrong length of the header": (nifti(size=(0, "<i", 349)), "not a NIfTI file"),
    "no dimensions": (nifti(dim=(40, "<h", 0)), "sizes are damaged"),
    "nine dimensions": (nifti(dim=(40, "<h", 9)), "sizes are damaged"),
    "other byte order in the sizes": (nifti(dim=(40, ">8h", 3, 24, 20, 1, 1, 1, 1, 1)), "sizes are damaged"),
    "negative size": (nifti(dim=(40, "<8h", 3, -24, 20, 1, 1, 1, 1, 1)), "sizes are damaged"),
    "size of zero": (nifti(dim=(40, "<8h", 3, 24, 0, 1, 1, 1, 1, 1)), "sizes are damaged"),
    "too large": (nifti(dim=(40, "<8h", 3, 32767, 32767, 32767, 1, 1, 1, 1)), "bytes are announced, and it can hold at most"),
    "larger than the file": (nifti(dim=(40, "<8h", 3, 24, 20, 9, 1, 1, 1, 1)), "bytes are announced"),
    "smaller than the file": (nifti(dim=(40, "<8h", 3, 20, 20, 1, 1, 1, 1, 1)), "more values than it announces"),
    "volumes that are not there": (nifti(dim=(40, "<8h", 4, 24, 20, 1, 9, 1, 1, 1)), "bytes are announced"),
    "five dimensions": (nifti(dim=(40, "<8h", 5, 24, 10, 1, 1, 2, 1, 1)), "5 dimensions"),
    "unknown type": (nifti(type=(70, "<h", 77)), "number 77"),
    "complex numbers": (nifti(np.zeros((4, 4, 4), np.complex64)), "complex64"),
    "bits of another type": (nifti(bits=(72, "<h", 8)), "contradicts itself"),
    "values inside the header": (nifti(offset=(108, "<f", 100.0)), "begin at byte 100"),
    "values nowhere": (nifti(offset=(108, "<f", float("nan"))), "begin at byte nan"),
    "values far away": (nifti(offset=(108, "<f", 1e9)), "bytes are announced"),
    "infinite slope": (nifti(slope=(112, "<ff", float("inf"), 0.0)), "scaling is damaged"),
    "infinite intercept": (nifti(slope=(112, "<ff", 1.0, float("inf"))), "scaling is damaged"),
    "flat orientation": (nifti(affine=(280, "<4f", 0.0, 0.0, 0.0, 0.0)), "orientation is damaged"),
    "NaN in the orientation": (nifti(affine=(280, "<f", float("nan"))), "orientation is damaged"),
    "NaN": (nifti(np.full((3, 3, 3), np.nan, np.float32)), "27 of its 27 values are NaN"),
    "one infinite value": (nifti(np.array([[[1.0], [np.inf]]], np.float32)), "1 of its 2 values"),
    "compressed and cut": (PACKED[:-200], "truncated"),
    "compressed and cut in its check sum": (PACKED[:-4], "truncated"),
    "compressed with a wrong check sum": (PACKED[:-8] + bytes(8), "compression is damaged"),
    "compressed and damaged": (PACKED[:300] + b"\xff\0\xff" + PACKED[303:], "compression is damaged|damaged"),
    "compressed nothing": (gzip.compress(b""), ANY),
    "compressed text": (gzip.compress(b"hello " * 200), "it is a text file"),
    "bomb of a header": (gzip_bomb(), "bytes are announced, and it can hold at most"),
    "bomb behind the values": (gzip.compress(nifti() + bytes(3 * 2**20)), "more values than it announces"),
}

# 16-bit PNG


def png16(mode=NOISE):
    buffer = io.BytesIO()
    Image.fromarray(mode).save(buffer, "PNG")
    return buffer.getvalue()


def png_of(width, height, depth, colour, data, *, interlace=0, checked=True):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    framed = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body) if checked else 7)
        for kind, body in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


ROWS = zlib.compress(b"".join(b"\0" + row.astype(">u2").tobytes() for row in NOISE))
SOUND = png16()

PNG_CASES = {
    "empty": (b"", "the file is empty"),
    "text": (b"path,label\n" * 9, "it is a text file"),
    "zeros": (bytes(500), "first bytes are damaged"),
    "random bytes": (np.random.default_rng(2).bytes(900), ANY),
    "DICOM renamed": (dicom(), "it is a DICOM file; give it the extension .dcm"),
    "mark alone": (SOUND[:8], ANY),
    **{f"cut at {share} of 20": (SOUND[: len(SOUND) * share // 20], ANY) for share in range(1, 19, 2)},
    "wrong mark": (b"\x88" + SOUND[1:], "first bytes are damaged"),
    "line ends translated": (SOUND.replace(b"\r\n", b"\n", 1), ANY),
    "zero width": (png_of(0, 24, 16, 0, ROWS), ANY),
    "zero height": (png_of(20, 0, 16, 0, ROWS), ANY),
    "wider than its data": (png_of(40, 24, 16, 0, ROWS), ANY),
    "higher than its data": (png_of(20, 48, 16, 0, ROWS), ANY),
    "bomb": (png_of(2_000_000, 2_000_000, 16, 0, ROWS), "pixels"),
    "negative width": (png_of(2**32 - 20, 24, 16, 0, ROWS), ANY),
    "16 bits of a palette": (png_of(20, 24, 16, 3, ROWS), ANY),
    "17 bits": (png_of(20, 24, 17, 0, ROWS), ANY),
    "unknown colours": (png_of(20, 24, 16, 1, ROWS), ANY),
    "unknown interlacing": (png_of(20, 24, 16, 0, ROWS[:40], interlace=1), ANY),
    "colours where grey is": (png_of(20, 24, 16, 2, ROWS), ANY),
    "wrong check sums": (png_of(20, 24, 16, 0, ROWS, checked=False), ANY),
    "no data": (png_of(20, 24, 16, 0, b""), ANY),
    "data that are no stream": (png_of(20, 24, 16, 0, b"garbage" * 9), ANY),
    "damaged data": (SOUND[:200] + b"\xff" * 9 + SOUND[209:], "damaged"),
}

CASES = [(kind, case) for kind, cases in (("dcm", DICOM_CASES), ("nii", NIFTI_CASES), ("png", PNG_CASES)) for case in cases]


@pytest.mark.parametrize(("kind", "case"), CASES, ids=lambda value: str(value).replace(" ", "-"))
def test_a_malformed_file_is_a_named_error(tmp_path, kind, case):
    content, reason = {"dcm": DICOM_CASES, "nii": NIFTI_CASES, "png": PNG_CASES}[kind][case]
    path = tmp_path / f"scan 7.{kind}"
    path.write_bytes(png16() if content is None else content)
    with pytest.raises(UnreadableImageError, match=reason) as caught:
        READERS[kind](path, "scan 7")
    assert str(caught.value).startswith("Cannot read the image scan 7: ")
    assert len(caught.value.reason) > 10


def test_there_are_thirty_of_each_kind():
    assert min(len(DICOM_CASES), len(NIFTI_CASES), len(PNG_CASES)) >= 30


@pytest.mark.parametrize(
    ("kind", "content"),
    [("dcm", dicom()), ("nii", nifti()), ("png", SOUND), ("nii", PACKED)],
    ids=["dicom", "nifti", "png", "compressed nifti"],
)
def test_the_same_files_are_read_when_they_are_sound(tmp_path, kind, content):
    path = tmp_path / f"x.{kind}"
    path.write_bytes(content)
    assert READERS[kind](path, "x").size == NOISE.size


@pytest.mark.parametrize("kind", ["dcm", "nii"])
def test_folders_and_files_that_are_not_there(tmp_path, kind):
    with pytest.raises(UnreadableImageError, match="it is a folder"):
        READERS[kind](tmp_path, "x")
    with pytest.raises(UnreadableImageError, match="there is no such file"):
        READERS[kind](tmp_path / "gone", "x")


def test_a_deflated_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(dicom_file, "_UNPACKED_AT_FIRST", 2**20)
    monkeypatch.setattr(compute, "available_memory", lambda: 10**6)
    dataset = dicom_dataset(np.zeros((1200, 1200), np.uint16))
    dataset.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    (tmp_path / "x.dcm").write_bytes(saved(dataset))
    with pytest.raises(UnreadableImageError, match=r"what it unpacks into needs \d MB of memory, but only 1 MB is available"):
        read_dicom(tmp_path / "x.dcm", "x")


def test_a_large_volume_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(compute, "_WORTH_ASKING", 0)
    monkeypatch.setattr(compute, "available_memory", lambda: 500)
    (tmp_path / "x.nii").write_bytes(nifti())
    with pytest.raises(UnreadableImageError, match="a volume of 24×20×1 voxels needs 2 kB of memory, but only 1 kB"):
        read_nifti(tmp_path / "x.nii", "x")


@pytest.mark.parametrize(
    ("kind", "content"),
    [("dcm", dicom()), ("dcm", rle()), ("dcm", deflated()), ("nii", nifti())],
    ids=["dicom", "run lengths", "deflated", "nifti"],
)
def test_a_file_cut_anywhere_is_never_a_picture(tmp_path, kind, content):
    path = tmp_path / f"cut.{kind}"
    for length in range(0, len(content) - 2, 13):
        path.write_bytes(content[:length])
        with pytest.raises(UnreadableImageError):
            READERS[kind](path, "cut")


def test_what_a_header_says_of_the_patient_is_not_repeated(tmp_path):
    content = dicom(PatientName="Doe^Jane", RescaleSlope="1", RescaleIntercept="0").replace(
        b"CS\x0c\0MONOCHROME2", b"CS\x0c\0Doe^Jane   "
    )
    path = tmp_path / "x.dcm"
    path.write_bytes(content.replace(b"DS\x02\x001 ", b"DS\x02\x00D^"))
    with pytest.raises(UnreadableImageError) as caught:
        read_dicom(path, "x")
    assert "Doe" not in str(caught.value) and "D^" not in str(caught.value)


SEEDS = {"dcm": [dicom(), rle(), deflated(), dicom(WindowCenter=40, WindowWidth=80)], "nii": [nifti(), PACKED], "png": [SOUND]}


@pytest.mark.parametrize("kind", SEEDS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(data=st.data())
def test_any_damage_is_a_picture_or_a_named_error(tmp_path, kind, data):
    content = bytearray(data.draw(st.sampled_from(SEEDS[kind])))
    near_the_header = st.integers(0, min(len(content) - 1, 1500))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(near_the_header | st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / f"x.{kind}"
    path.write_bytes(bytes(content))
    try:
        pixels = READERS[kind](path, "x")
    except UnreadableImageError:
        return
    assert pixels.dtype.name in ("uint8", "uint16", "float32")
    assert pixels.ndim == 3 and pixels.shape[-1] in (1, 3)
    assert np.isfinite(pixels.astype(np.float64)).all()
