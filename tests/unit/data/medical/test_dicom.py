"""DICOM: every stored value comes back, and is shown as the standard says."""

import threading
from importlib.util import find_spec

import numpy as np
import pytest
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    RLELossless,
)

from crossgraft.data.medical.dicom import DicomVolume, dicom_facts
from crossgraft.data.medical.display import parse_window
from crossgraft.errors import UnreadableImageError
from support.medical import dicom_dataset, write_dicom


def read(path, window=None, index=0):
    return DicomVolume(path, path.name, parse_window(window)).read_slice(index)


def stored_values(seed, bits, *, signed=False, shape=(9, 7)):
    """Random stored values, with the lowest and the highest among them."""
    rng = np.random.default_rng(seed)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    kind = f"{'i' if signed else 'u'}{1 if bits <= 8 else 2}"
    values = rng.integers(low, high, shape, endpoint=True).astype(kind)
    values.flat[:2] = low, high
    return values


def recovered(pixels, bits, *, signed=False, inverted=False):
    """The stored values behind pixels that --window full made."""
    white = np.iinfo(pixels.dtype).max
    steps = np.rint(pixels[..., 0].astype(np.float64) * (2**bits - 1) / white).astype(np.int64)
    steps = 2**bits - 1 - steps if inverted else steps
    return steps - 2 ** (bits - 1) if signed else steps


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 5, 8, 10, 12, 15, 16])
def test_full_keeps_every_stored_value(tmp_path, bits, signed, photometric):
    if bits == 1 and signed:
        pytest.skip("one bit has no sign")
    values = stored_values(bits, bits, signed=signed)
    path = write_dicom(tmp_path / "x.dcm", values, bits_stored=bits, photometric=photometric, WindowCenter=3, WindowWidth=2)
    pixels = read(path, "full")
    assert pixels.dtype == (np.uint8 if bits in (1, 8) else pixels.dtype)
    assert (pixels.min(), pixels.max()) == (0, np.iinfo(pixels.dtype).max)
    inverted = photometric == "MONOCHROME1"
    np.testing.assert_array_equal(recovered(pixels, bits, signed=signed, inverted=inverted), values)


@pytest.mark.parametrize(("slope", "intercept"), [(1, 0), (1e-10, 1e6), (1e-3, 1e15)])
def test_all_65536_values_stay_apart_whatever_they_stand_for(tmp_path, slope, intercept):
    values = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    pixels = read(write_dicom(tmp_path / "x.dcm", values, RescaleSlope=slope, RescaleIntercept=intercept), "full")
    np.testing.assert_array_equal(pixels[..., 0], values)


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, ExplicitVRBigEndian, DeflatedExplicitVRLittleEndian])
@pytest.mark.parametrize("bits", [8, 12])
def test_other_encodings_give_the_same(tmp_path, syntax, bits):
    values = stored_values(1, bits)
    dataset = dicom_dataset(values, bits_stored=bits)
    dataset.file_meta.TransferSyntaxUID = syntax
    if syntax == ExplicitVRBigEndian:
        dataset.PixelData = values.astype(values.dtype.newbyteorder(">")).tobytes()
        dataset["PixelData"].VR = "OB" if bits == 8 else "OW"
    dataset.save_as(tmp_path / "x.dcm", enforce_file_format=True)
    np.testing.assert_array_equal(recovered(read(tmp_path / "x.dcm", "full"), bits), values)


@pytest.mark.parametrize("bits", [8, 12, 16])
@pytest.mark.parametrize("frames", [1, 3])
def test_rle_needs_no_other_package(tmp_path, bits, frames):
    values = stored_values(2, bits, shape=(frames, 9, 7))
    dataset = dicom_dataset(values if frames > 1 else values[0], bits_stored=bits)
    dataset.compress(RLELossless, generate_instance_uid=False)
    dataset.save_as(tmp_path / "x.dcm", enforce_file_format=True)
    volume = DicomVolume(tmp_path / "x.dcm", "x.dcm", parse_window("full"))
    for frame in range(frames):
        np.testing.assert_array_equal(recovered(volume.read_slice(frame), bits), values[frame])


def test_frames_are_slices(tmp_path):
    values = stored_values(3, 16, shape=(4, 6, 5))
    path = write_dicom(tmp_path / "x.dcm", values)
    assert dicom_facts(path, "x.dcm").num_slices == 4
    for frame in range(4):
        np.testing.assert_array_equal(read(path, "full", frame)[..., 0], values[frame])


def test_bits_beyond_the_value_are_ignored(tmp_path):
    values = stored_values(4, 12, signed=True)
    junk = (np.random.default_rng(0).integers(0, 16, values.shape) << 12).astype(np.uint16)
    dirty = ((values.view(np.uint16) & 0x0FFF) | junk).view(np.int16)
    pixels = read(write_dicom(tmp_path / "x.dcm", dirty, bits_stored=12), "full")
    np.testing.assert_array_equal(recovered(pixels, 12, signed=True), values)


def test_bits_below_the_value_are_ignored(tmp_path):
    values = stored_values(5, 12)
    dirty = (values << 4) | 7
    pixels = read(write_dicom(tmp_path / "x.dcm", dirty, bits_stored=12, high_bit=15), "full")
    np.testing.assert_array_equal(recovered(pixels, 12), values)


def ramp(low, high):
    return np.arange(low, high, dtype=np.int16)[np.newaxis]


def expected_linear(x, center, width):
    """PS3.3 C.11.2.1.2.1, literally."""
    if x <= center - 0.5 - (width - 1) / 2:
        return 0.0
    if x > center - 0.5 + (width - 1) / 2:
        return 1.0
    return (x - (center - 0.5)) / (width - 1) + 0.5


def expected_exact(x, center, width):
    """PS3.3 C.11.2.1.3.2, literally."""
    if x <= center - width / 2:
        return 0.0
    return 1.0 if x > center + width / 2 else (x - center) / width + 0.5


def expected_sigmoid(x, center, width):
    """PS3.3 C.11.2.1.3.1, literally."""
    return 1 / (1 + np.exp(min(700, -4 * (x - center) / width)))


@pytest.mark.parametrize("width", [1, 2, 80, 400])
@pytest.mark.parametrize(
    ("function", "expected"),
    [(None, expected_linear), ("LINEAR", expected_linear), ("LINEAR_EXACT", expected_exact), ("SIGMOID", expected_sigmoid)],
)
def test_the_window_of_the_file_is_applied_in_physical_units(tmp_path, function, expected, width):
    stored = ramp(-300, 300)
    elements = {} if function is None else {"VOILUTFunction": function}
    path = write_dicom(
        tmp_path / "x.dcm", stored, RescaleSlope=2, RescaleIntercept=10, WindowCenter=40, WindowWidth=width, **elements
    )
    wanted = [expected(2.0 * value + 10, 40, width) for value in stored[0]]
    np.testing.assert_allclose(read(path)[0, :, 0] / 65535, wanted, atol=0.5 / 65535 + 1e-9)


def test_the_first_of_several_windows_counts(tmp_path):
    one = write_dicom(tmp_path / "1.dcm", ramp(-300, 300), WindowCenter=40, WindowWidth=80)
    two = write_dicom(tmp_path / "2.dcm", ramp(-300, 300), WindowCenter=[40, -100], WindowWidth=[80, 500])
    np.testing.assert_array_equal(read(one), read(two))


def test_the_users_window_replaces_that_of_the_file(tmp_path):
    path = write_dicom(tmp_path / "x.dcm", ramp(-1024, 1024), WindowCenter=0, WindowWidth=10, RescaleIntercept=-24)
    pixels = read(path, "-100,200")[0, :, 0] / 65535
    wanted = np.clip((np.arange(-1024, 1024) - 24 + 200) / 200, 0, 1)
    np.testing.assert_allclose(pixels, wanted, atol=1e-5)
    np.testing.assert_array_equal(read(path, "lung"), read(path, "-600,1500"))


@pytest.mark.parametrize("window", [{"WindowCenter": 40, "WindowWidth": 0}, {"WindowCenter": "", "WindowWidth": ""}, {}])
def test_without_a_usable_window_the_full_range_is_shown(tmp_path, window):
    path = write_dicom(tmp_path / "x.dcm", ramp(0, 100), bits_stored=12, **window)
    assert dicom_facts(path, "x.dcm").shown == "full range"
    np.testing.assert_array_equal(read(path), read(path, "full"))


def lut_item(first, entries, bits):
    item = Dataset()
    item.add_new("LUTDescriptor", "US", [len(entries), first, bits])
    item.add_new("LUTData", "OW", np.asarray(entries, "<u2").tobytes())
    return item


def test_a_voi_table_is_looked_up(tmp_path):
    entries = np.array([0, 5, 1000, 4095])
    path = write_dicom(tmp_path / "x.dcm", np.arange(8, dtype=np.uint16)[np.newaxis], VOILUTSequence=[lut_item(2, entries, 12)])
    assert dicom_facts(path, "x.dcm").shown == "own table"
    wanted = entries[np.clip(np.arange(8) - 2, 0, 3)] / 4095
    np.testing.assert_allclose(read(path)[0, :, 0] / 65535, wanted, atol=1e-5)


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, ExplicitVRLittleEndian])
def test_a_voi_table_may_begin_below_zero_where_unsigned_values_are_rescaled(tmp_path, syntax):
    item, entries = Dataset(), np.arange(0, 4096, 2)
    item.add_new("LUTDescriptor", "SS", [len(entries), -1000, 12])
    item.add_new("LUTData", "OW", entries.astype("<u2").tobytes())
    values = np.arange(2048, dtype=np.uint16)[np.newaxis]
    dataset = dicom_dataset(values, bits_stored=12, RescaleSlope=1, RescaleIntercept=-1024, VOILUTSequence=[item])
    dataset.file_meta.TransferSyntaxUID = syntax  # an implicit file does not say that -1000 has a sign
    dataset.save_as(tmp_path / "x.dcm", enforce_file_format=True)
    wanted = [entries[min(max(stored - 1024 + 1000, 0), len(entries) - 1)] / 4095 for stored in range(2048)]
    np.testing.assert_allclose(read(tmp_path / "x.dcm")[0, :, 0] / 65535, wanted, atol=1e-5)


def test_a_modality_table_comes_before_the_window(tmp_path):
    entries = np.array([100, 0, 200, 50])
    path = write_dicom(
        tmp_path / "x.dcm",
        np.arange(4, dtype=np.uint16)[np.newaxis],
        ModalityLUTSequence=[lut_item(0, entries, 8)],
        WindowCenter=100.5,
        WindowWidth=201,
    )
    np.testing.assert_allclose(read(path)[0, :, 0] / 65535, entries / 200, atol=1e-5)
    assert len(np.unique(read(path, "full"))) == 4


def test_each_frame_may_have_its_own_slope_and_window(tmp_path):
    frames = []
    for slope, center in ((1, 10), (2, 20)):
        pixel, voi, group = Dataset(), Dataset(), Dataset()
        pixel.RescaleSlope, pixel.RescaleIntercept = slope, 0
        voi.WindowCenter, voi.WindowWidth, voi.VOILUTFunction = center, 2 * center, "LINEAR_EXACT"
        group.PixelValueTransformationSequence, group.FrameVOILUTSequence = [pixel], [voi]
        frames.append(group)
    values = np.broadcast_to(np.arange(11, dtype=np.uint16), (2, 1, 11)).copy()
    path = write_dicom(tmp_path / "x.dcm", values, PerFrameFunctionalGroupsSequence=frames)
    for frame in range(2):
        np.testing.assert_allclose(read(path, index=frame)[0, :, 0] / 65535, np.arange(11) / 20, atol=1e-5)


def test_monochrome1_is_inverted_after_the_window(tmp_path):
    plain = write_dicom(tmp_path / "1.dcm", ramp(-300, 300), WindowCenter=40, WindowWidth=80)
    inverse = write_dicom(tmp_path / "2.dcm", ramp(-300, 300), WindowCenter=40, WindowWidth=80, photometric="MONOCHROME1")
    np.testing.assert_array_equal(read(inverse), 65535 - read(plain))


def test_padding_is_black_but_full_keeps_it(tmp_path):
    values = np.array([[-2000, -1000, 0, 1000]], dtype=np.int16)
    path = write_dicom(
        tmp_path / "x.dcm", values, photometric="MONOCHROME1", PixelPaddingValue=-2000, WindowCenter=0, WindowWidth=2000
    )
    assert read(path)[0, 0, 0] == 0 and read(path)[0, 1, 0] == 65535
    np.testing.assert_array_equal(recovered(read(path, "full"), 16, signed=True, inverted=True), values)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("planar", [0, 1])
def test_colours_keep_every_value(tmp_path, bits, planar):
    values = stored_values(6, bits, shape=(5, 4, 3))
    dataset = dicom_dataset(values, photometric="RGB", PlanarConfiguration=planar)
    if planar:
        dataset.PixelData = np.moveaxis(values, -1, 0).tobytes()
        dataset["PixelData"].VR = "OB" if bits == 8 else "OW"
    dataset.save_as(tmp_path / "x.dcm", enforce_file_format=True)
    np.testing.assert_array_equal(read(tmp_path / "x.dcm"), values)


def test_ybr_becomes_rgb(tmp_path):
    values = np.array([[[76, 85, 255], [150, 44, 21]]], dtype=np.uint8)  # red and green, ITU-R BT.601
    pixels = read(write_dicom(tmp_path / "x.dcm", values, photometric="YBR_FULL"))
    np.testing.assert_allclose(pixels[0].astype(int), [[254, 0, 0], [0, 255, 1]], atol=2)


@pytest.mark.parametrize("depth", [8, 16])
def test_a_palette_gives_its_colours(tmp_path, depth):
    colours = np.array([[0, 0, 0], [250, 10, 20], [30, 240, 50]], dtype=f"<u{depth // 8}")
    palette = {}
    for channel, name in enumerate(("Red", "Green", "Blue")):
        palette[f"{name}PaletteColorLookupTableDescriptor"] = [3, 1, depth]
        data = colours[:, channel].tobytes()
        palette[f"{name}PaletteColorLookupTableData"] = data + b"\0" * (len(data) % 2)
    values = np.array([[0, 1, 2, 3, 9]], dtype=np.uint8)
    pixels = read(write_dicom(tmp_path / "x.dcm", values, photometric="PALETTE COLOR", **palette))
    np.testing.assert_array_equal(pixels[0], colours[[0, 0, 1, 2, 2]])


def float_file(path, values, **elements):
    dataset = dicom_dataset(np.zeros(values.shape, np.uint16), **elements)
    del dataset.PixelData, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation
    dataset.BitsAllocated = 32
    dataset.FloatPixelData = values.astype("<f4").tobytes()
    dataset.save_as(path, enforce_file_format=True)
    return path


def test_float_pixels_go_from_the_lowest_to_the_highest_of_the_file(tmp_path):
    values = np.linspace(-3, 5, 24, dtype=np.float32).reshape(2, 3, 4)
    path = float_file(tmp_path / "x.dcm", values)
    assert dicom_facts(path, "x.dcm").num_slices == 2
    for frame in range(2):
        pixels = read(path, index=frame)
        assert pixels.dtype == np.float32
        np.testing.assert_allclose(pixels[..., 0], (values[frame] + 3) / 8, atol=1e-6)


def test_float_pixels_must_be_numbers(tmp_path):
    path = float_file(tmp_path / "x.dcm", np.array([[1.0, np.nan]]))
    with pytest.raises(UnreadableImageError, match="1 of its 2 values are NaN or infinite"):
        read(path)


@pytest.mark.parametrize("spread", [60_000, 10_000_000])
def test_32_bit_pixels_keep_their_values(tmp_path, spread):
    values = np.array([[-spread // 2, 0, 1, 2, spread // 2]], dtype=np.int32)
    path = write_dicom(tmp_path / "x.dcm", values)
    pixels = read(path)[..., 0]
    assert pixels.dtype == (np.uint16 if spread < 65536 else np.float32)
    back = pixels.astype(np.float64) / (65535 if spread < 65536 else 1) * spread - spread // 2
    np.testing.assert_array_equal(np.rint(back), values)


def test_a_negative_slope_turns_the_order_around(tmp_path):
    pixels = read(write_dicom(tmp_path / "x.dcm", ramp(0, 5), RescaleSlope=-1, RescaleIntercept=0), "full")
    assert (np.diff(pixels[0, :, 0].astype(int)) < 0).all()


@pytest.mark.parametrize("name", ["no_meta_file", "no_mark"])
def test_files_without_their_beginning_are_read(tmp_path, name):
    values = stored_values(7, 16)
    whole = write_dicom(tmp_path / "whole.dcm", values).read_bytes()
    dataset_start = 132 + 12 + int.from_bytes(whole[140:144], "little")
    (tmp_path / "x.dcm").write_bytes(whole[dataset_start:] if name == "no_meta_file" else whole[132:])
    np.testing.assert_array_equal(read(tmp_path / "x.dcm", "full")[..., 0], values)


REAL_FILES = {
    "CT_small.dcm": ((128, 128, 1), "full range"),
    "MR_small.dcm": ((64, 64, 1), "own window"),
    "MR_small_RLE.dcm": ((64, 64, 1), "own window"),
    "MR_small_bigendian.dcm": ((64, 64, 1), "own window"),
    "MR_small_implicit.dcm": ((64, 64, 1), "own window"),
    "MR_small_padded.dcm": ((64, 64, 1), "own window"),
    "MR_small_jp2klossless.dcm": ((64, 64, 1), "own window"),
    "image_dfl.dcm": ((512, 512, 1), "full range"),
    "liver_1frame.dcm": ((512, 512, 1), "full range"),
    "rtdose.dcm": ((10, 10, 1), "full range"),
    "SC_rgb_rle.dcm": ((100, 100, 3), "colours"),
    "SC_rgb_rle_16bit_2frame.dcm": ((100, 100, 3), "colours"),
    "SC_ybr_full_422_uncompressed.dcm": ((100, 100, 3), "colours"),
    "SC_rgb_small_odd_big_endian.dcm": ((3, 3, 3), "colours"),
    "examples_palette.dcm": ((350, 800, 3), "colours"),
    "ExplVR_BigEnd.dcm": ((60, 80, 3), "colours"),
}


def bundled(name):
    from pathlib import Path

    return Path(get_testdata_file(name, download=False))


@pytest.mark.parametrize("name", REAL_FILES)
def test_files_that_come_with_pydicom(name):
    shape, shown = REAL_FILES[name]
    assert dicom_facts(bundled(name), name).shown == shown
    pixels = read(bundled(name))
    assert pixels.shape == shape
    assert pixels.max() > pixels.min()


@pytest.mark.parametrize("name", ["CT_small.dcm", "MR_small.dcm", "MR_small_RLE.dcm", "MR_small_bigendian.dcm"])
def test_full_agrees_with_pydicom_on_real_files(name):
    from pydicom import dcmread

    values = dcmread(bundled(name)).pixel_array.astype(np.int64)
    np.testing.assert_array_equal(read(bundled(name), "full")[..., 0], values - np.iinfo(np.int16).min)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("rtplan.dcm", r"it holds no pixels \(RT Plan Storage\)"),
        ("rtstruct.dcm", r"it holds no pixels \(RT Structure Set Storage\)"),
        ("test-SR.dcm", r"it holds no pixels \(Comprehensive SR Storage\)"),
        ("waveform_ecg.dcm", "it holds no pixels"),
        ("MR_truncated.dcm", "truncated"),
        ("rtplan_truncated.dcm", "it holds no pixels"),
        ("JPEG-lossy.dcm", "JPEG Extended.*pip install pylibjpeg pylibjpeg-libjpeg"),
        ("SC_rgb_jpeg_gdcm.dcm", "JPEG Lossless.*pip install pylibjpeg pylibjpeg-libjpeg"),
        pytest.param(
            "MR_small_jpeg_ls_lossless.dcm",
            "JPEG-LS.*pip install pylibjpeg pylibjpeg-libjpeg",
            marks=pytest.mark.skipif(find_spec("jpeg_ls") is not None, reason="a decoder of JPEG-LS (of highdicom) is installed"),
        ),
        ("JPEG2000-embedded-sequence-delimiter.dcm", "contradicts itself: 1024×256 pixels are announced"),
    ],
)
def test_files_of_pydicom_that_can_not_be_read_say_why(name, reason):
    import importlib.util

    if "pip install" in reason and importlib.util.find_spec("pylibjpeg"):
        pytest.skip("pylibjpeg reads it")
    with pytest.raises(UnreadableImageError, match=f"Cannot read the image {name}: .*{reason}"):
        read(bundled(name))


def test_the_index_of_a_medium_is_no_image():
    path = bundled("CT_small.dcm").parent / "dicomdirtests" / "DICOMDIR"
    with pytest.raises(UnreadableImageError, match=r"it holds no pixels \(Media Storage Directory Storage\)"):
        read(path)


def test_several_threads_read_frames_of_one_file(tmp_path):
    values = stored_values(8, 12, shape=(24, 16, 16))
    dataset = dicom_dataset(values, bits_stored=12)
    dataset.compress(RLELossless, generate_instance_uid=False)
    dataset.save_as(tmp_path / "x.dcm", enforce_file_format=True)
    volume = DicomVolume(tmp_path / "x.dcm", "x.dcm", parse_window("full"))
    seen = {}

    def work(first):
        for frame in range(first, 24, 4):
            seen[frame] = volume.read_slice(frame)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for frame in range(24):
        np.testing.assert_array_equal(recovered(seen[frame], 12), values[frame])
