"""DICOM that is cut, and NIfTI of unusual kinds: read as an independent reading gives it, or refused by name."""

import gzip
import struct

import nibabel
import numpy as np
import pytest
from pydicom.encaps import get_frame
from pydicom.uid import RLELossless

from crossgraft.data.decoding import decode_file
from crossgraft.data.medical.dicom import DicomVolume, missing_from_rle
from crossgraft.data.medical.display import parse_window
from crossgraft.data.medical.nifti import NiftiVolume
from crossgraft.errors import UnreadableImageError
from support.medical import dicom_dataset, write_dicom

NOISE = np.random.default_rng(0).integers(0, 2**12, (24, 20)).astype(np.uint16)
FILE_WINDOW = parse_window(None)


def rle_file(folder, stored, *, uid="1.2.3"):
    """The file, and its only frame as it stands there."""
    dataset = dicom_dataset(stored, SOPInstanceUID=uid)
    dataset.compress(RLELossless, generate_instance_uid=False)
    dataset.save_as(folder / "x.dcm", enforce_file_format=True)
    return folder / "x.dcm", get_frame(dataset.PixelData, 0, number_of_frames=1)


def rewritten(path, frame, *, announced=False):
    """The same file with another frame; against the standard, the length of all pixels may be announced."""
    content = path.read_bytes()
    item = struct.Struct("<HHI")
    items = item.pack(0xFFFE, 0xE000, 0) + item.pack(0xFFFE, 0xE000, len(frame)) + frame + item.pack(0xFFFE, 0xE0DD, 0)
    length = struct.pack("<I", len(items) if announced else 0xFFFFFFFF)
    return content[: content.index(struct.pack("<HH", 0x7FE0, 0x10))] + b"\xe0\x7f\x10\0OB\0\0" + length + items


@pytest.mark.parametrize("length", range(20, 28))
@pytest.mark.parametrize("frames", [1, 3])
def test_rle_without_its_last_bytes_is_refused_whatever_the_length_of_its_uid(tmp_path, length, frames):
    """The mark behind the last item is 8 bytes; pydicom misses its first four only."""
    dataset = dicom_dataset(np.stack([NOISE[:8]] * frames), SOPInstanceUID="1.2." + "3" * (length - 4))
    dataset.compress(RLELossless, generate_instance_uid=False)
    path = tmp_path / "x.dcm"
    dataset.save_as(path, enforce_file_format=True)
    content = path.read_bytes()
    DicomVolume(path, "x", FILE_WINDOW).read_slice(0)
    for missing in range(1, 40):
        path.write_bytes(content[:-missing])
        with pytest.raises(UnreadableImageError, match="truncated"):
            DicomVolume(path, "x", FILE_WINDOW)


def test_cut_rle_whose_length_is_announced_is_refused(tmp_path):
    path, frame = rle_file(tmp_path, NOISE)
    content = rewritten(path, frame, announced=True)
    path.write_bytes(content)
    DicomVolume(path, "x", FILE_WINDOW).read_slice(0)
    for missing in range(1, 40):
        path.write_bytes(content[:-missing])
        with pytest.raises(UnreadableImageError, match="truncated in its compressed pixels"):
            DicomVolume(path, "x", FILE_WINDOW)


@pytest.mark.parametrize("announced", [False, True])
def test_an_rle_frame_that_was_cut_before_it_was_wrapped_is_refused(tmp_path, announced):
    path, frame = rle_file(tmp_path, NOISE[:5, :7])
    sound = DicomVolume(path, "x", FILE_WINDOW).read_slice(0)
    for length in range(len(frame) + 1):
        path.write_bytes(rewritten(path, frame[:length], announced=announced))
        volume = DicomVolume(path, "x", FILE_WINDOW)
        if length == len(frame):
            np.testing.assert_array_equal(volume.read_slice(0), sound)
        else:
            with pytest.raises(UnreadableImageError, match=r"frame 1 of 1 is truncated: .* (are there|of 35 bytes)"):
                volume.read_slice(0)


def rle_frame(*segments):
    starts = [64 + sum(map(len, segments[:number])) for number in range(len(segments))]
    return struct.pack("<16I", len(segments), *starts, *[0] * (15 - len(segments))) + b"".join(segments)


@pytest.mark.parametrize(
    ("frame", "missing"),
    [
        (rle_frame(b"\x02abc"), None),
        (rle_frame(b"\x02abc\0"), None),  # padded to an even length
        (rle_frame(b"\x80\xfea"), None),  # 128 does nothing, and −2 repeats three times
        (rle_frame(b"\x01ab", b"\x01ab\xffc"), None),  # how earlier segments end is for the decoder to say
        (rle_frame(b"\x02ab"), "its last segment unpacks into 2 of 3 bytes"),
        (rle_frame(b"\x01ab\0"), "its last segment unpacks into 2 of 3 bytes"),
        (rle_frame(b"\xfe"), "its last segment unpacks into 0 of 3 bytes"),
        (rle_frame(b"\x02abc", b""), "its last segment begins at byte 68, and 68 bytes are there"),
        (rle_frame(b"\x02abc")[:63], "63 of the 64 bytes of its header are there"),
        (struct.pack("<16I", 16, *[64] * 15), None),  # damaged, not cut
    ],
)
def test_what_an_rle_frame_lacks_follows_from_its_header_and_its_runs(frame, missing):
    assert missing_from_rle(frame, 3) == missing


def test_compressed_pixels_whose_items_do_not_follow_each_other(tmp_path):
    dataset = dicom_dataset(NOISE)
    dataset.compress(RLELossless, generate_instance_uid=False)
    path = tmp_path / "x.dcm"
    dataset.save_as(path, enforce_file_format=True)
    content = bytearray(path.read_bytes())
    table = content.index(struct.pack("<HH", 0xFFFE, 0xE000))  # of offsets; the first frame follows it
    item = table + 8 + struct.unpack_from("<I", content, table + 4)[0]
    content[item + 4 : item + 8] = struct.pack("<I", struct.unpack_from("<I", content, item + 4)[0] - 2)
    path.write_bytes(content)
    with pytest.raises(UnreadableImageError, match="compressed pixels are damaged at byte"):
        DicomVolume(path, "x", FILE_WINDOW)


def test_dicom_in_gzip_in_a_folder_of_classes(tmp_path):
    from crossgraft.data import open_dataset

    for name, first in (("benign", 0), ("malignant", 40)):
        for number in range(2):
            stored = (np.arange(64) + first + number).reshape(8, 8).astype(np.uint8)
            plain = write_dicom(tmp_path / f"{name}{number}.dcm", stored, patient=f"P{name}{number}")
            packed = tmp_path / "images" / name / f"{number}.DCM.gz"
            packed.parent.mkdir(parents=True, exist_ok=True)
            packed.write_bytes(gzip.compress(plain.read_bytes()))
    data = open_dataset(tmp_path / "images")
    np.testing.assert_array_equal(data.read(3)[..., 0], (np.arange(64) + 41).reshape(8, 8))
    assert data.group_column == "patient (DICOM PatientID)"


def volume(content, name="x.nii"):
    """Writes and reads it."""

    def read(folder):
        (folder / name).write_bytes(content)
        return NiftiVolume(folder / name, "x", FILE_WINDOW).read_slice(0)

    return read


def nifti(values, **fields):
    """A file whose header has other bytes where ``fields`` say so."""
    content = bytearray(nibabel.Nifti1Image(values, np.eye(4)).to_bytes())
    for offset, form, *numbers in fields.values():
        struct.pack_into(form, content, offset, *numbers)
    return bytes(content)


def seen(plane):
    """(x, y) of a volume whose axes point right and anterior, as a radiologist looks at it."""
    return plane[::-1, ::-1].T


COLOUR = np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")])
COLOUR_ALPHA = np.dtype([*COLOUR.descr, ("A", "u1")])


@pytest.mark.parametrize("dtype", [COLOUR, COLOUR_ALPHA])
def test_colours_of_nifti(tmp_path, dtype):
    names = dtype.names
    samples = np.random.default_rng(0).integers(0, 256, (5, 4, 1, len(names))).astype(np.uint8)
    values = np.empty(samples.shape[:3], dtype)
    for number, name in enumerate(names):
        values[name] = samples[..., number]
    expected = samples[:, :, 0, :3] * (samples[:, :, 0, 3:] / 255 if len(names) == 4 else 1)
    decoded = volume(nifti(values))(tmp_path)
    assert np.abs(decoded - np.rot90(expected, 2).transpose(1, 0, 2)).max() <= 0.5


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_number_of_nifti_in_both_byte_orders(tmp_path, dtype, order):
    values = np.arange(100).reshape(5, 20, 1).astype(np.dtype(dtype).newbyteorder(order))
    header = nibabel.Nifti1Header(endianness=order)
    header.set_data_dtype(values.dtype)
    content = nibabel.Nifti1Image(values, np.eye(4), header).to_bytes()
    decoded = volume(content)(tmp_path)[..., 0].astype(np.float64)
    expected = seen(values[..., 0].astype(np.float64)) / 99
    assert np.abs(decoded / decoded.max() - expected).max() <= 1e-5


@pytest.mark.parametrize("slope", [0.0, float("nan")])
def test_a_slope_of_nothing_means_none(tmp_path, slope):
    """As the standard says for 0; nibabel treats NaN alike, and the intercept then counts for nothing, too."""
    values = np.arange(20, dtype=np.int16).reshape(5, 4, 1)
    plain = volume(nifti(values))(tmp_path)
    np.testing.assert_array_equal(volume(nifti(values, slope=(112, "<ff", slope, 7.0)))(tmp_path), plain)


VOLUME = np.arange(20, dtype=np.int16).reshape(5, 4, 1)
REFUSED = {
    "slope without intercept": (nifti(VOLUME, slope=(112, "<ff", 2.0, float("nan"))), "scaling is damaged"),
    "long doubles": (nifti(VOLUME, type=(70, "<hh", 1536, 128)), r"float128|1536"),
    "complex": (nifti(VOLUME.astype(np.complex128)), "complex128, which is not read"),
    "vectors": (nifti(np.zeros((5, 4, 1, 1, 3), np.float32)), "it has 5 dimensions"),
    "infinite offset": (nifti(VOLUME, offset=(108, "<f", float("inf"))), "begin at byte inf"),
    "two files": (nifti(VOLUME, magic=(344, "4s", b"ni1\0")), "its values are in another file"),
    "no magic": (nifti(VOLUME, magic=(344, "4s", b"\0\0\0\0")), "not a NIfTI file"),
    "cut gzip": (gzip.compress(nifti(VOLUME))[:-12], "truncated"),
    "rest behind gzip": (gzip.compress(nifti(VOLUME)) + b"rest", "compression is damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nifti_that_is_not_read_is_named(tmp_path, case):
    content, reason = REFUSED[case]
    with pytest.raises(UnreadableImageError, match=reason):
        volume(content)(tmp_path)


def test_the_content_says_whether_a_nifti_is_packed(tmp_path):
    expected = volume(nifti(VOLUME))(tmp_path)
    np.testing.assert_array_equal(volume(nifti(VOLUME), "x.nii.gz")(tmp_path), expected)
    np.testing.assert_array_equal(volume(gzip.compress(nifti(VOLUME)), "y.nii")(tmp_path), expected)


@pytest.mark.parametrize("kind", [nibabel.Nifti1Pair, nibabel.Nifti2Pair])
def test_the_header_of_a_pair_is_called_what_it_is(tmp_path, kind):
    nibabel.save(kind(VOLUME, np.eye(4)), tmp_path / "x.hdr")
    with pytest.raises(UnreadableImageError, match=r"header of one in two files \(\.hdr and \.img\); save it as one \.nii"):
        decode_file(tmp_path / "x.hdr")
