"""NIfTI: every stored value comes back, the right way up."""

import gzip

import nibabel
import numpy as np
import pytest

from crossgraft.data.medical import nifti
from crossgraft.data.medical.display import parse_window
from crossgraft.data.medical.nifti import NiftiVolume, nifti_facts
from crossgraft.errors import UnreadableImageError
from support.medical import write_nifti


def read(path, window=None, index=0):
    return NiftiVolume(path, path.name, parse_window(window)).read_slice(index)


def stack(path, window=None):
    """All slices, back in the order right, anterior, superior."""
    volume = NiftiVolume(path, path.name, parse_window(window))
    planes = [volume.read_slice(index)[..., 0] for index in range(nifti_facts(path, path.name).num_slices)]
    return np.stack([plane.T[::-1, ::-1] for plane in planes], axis=-1)


def noise(dtype, shape=(6, 5, 4)):
    limits = np.iinfo(dtype)
    values = np.random.default_rng(0).integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    values.flat[:2] = limits.min, limits.max
    return values


@pytest.mark.parametrize("extension", [".nii", ".nii.gz"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16"])
@pytest.mark.parametrize("window", ["full", None])
def test_whole_numbers_come_back(tmp_path, dtype, extension, window):
    values = noise(dtype)
    pixels = stack(write_nifti(tmp_path / f"x{extension}", values), window)
    assert pixels.dtype == (np.uint8 if dtype.endswith("int8") else np.uint16)
    np.testing.assert_array_equal(pixels.astype(np.int64) + np.iinfo(dtype).min, values)


def test_a_narrow_range_is_spread_and_comes_back(tmp_path):
    values = noise("int16") % 3000 - 1024
    pixels = stack(write_nifti(tmp_path / "x.nii", values.astype(np.int16)))
    low, high = int(values.min()), int(values.max())
    assert (pixels.min(), pixels.max()) == (0, 65535)
    np.testing.assert_array_equal(np.rint(pixels / 65535 * (high - low)) + low, values)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_wide_whole_numbers_come_back_where_they_lie_close_together(tmp_path, dtype):
    values = (noise("uint16").astype(np.int64) + 1_000_000).astype(dtype)
    path = tmp_path / "x.nii"
    nibabel.Nifti1Image(values, np.eye(4), dtype=dtype).to_filename(path)
    np.testing.assert_array_equal(stack(path).astype(np.int64) + 1_000_000, values)


@pytest.mark.parametrize("extension", [".nii", ".nii.gz"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_come_back(tmp_path, dtype, extension):
    values = (noise("uint16").astype(np.float64) / 2**16).astype(dtype)
    low, high = float(values.min()), float(values.max())
    pixels = stack(write_nifti(tmp_path / f"x{extension}", values))
    assert pixels.dtype == np.float32
    back = np.rint((pixels.astype(np.float64) * (high - low) + low) * 2**16) / 2**16
    np.testing.assert_array_equal(back.astype(dtype), values)


def test_floats_from_0_to_1_are_left_as_they_are(tmp_path):
    values = np.random.default_rng(0).random((4, 3, 2), dtype=np.float32)
    values.flat[:2] = 0, 1
    np.testing.assert_array_equal(stack(write_nifti(tmp_path / "x.nii", values)), values)


def test_slope_and_intercept_apply_before_the_window(tmp_path):
    path = tmp_path / "x.nii"
    stored = np.arange(24, dtype=np.int16).reshape(4, 3, 2)
    image = nibabel.Nifti1Image(stored, np.eye(4))
    image.header.set_slope_inter(10, -100)
    image.to_filename(path)
    written = np.asarray(nibabel.load(path).dataobj.get_unscaled())  # nibabel may rescale what it stores
    physical = np.asarray(nibabel.load(path).dataobj)
    np.testing.assert_allclose(stack(path, "0,100") / 65535, np.clip((physical + 50) / 100, 0, 1), atol=1e-5)
    assert written.dtype == np.int16


@pytest.mark.parametrize(("cal", "shown"), [((10, 20), "own range"), ((0, 0), "lowest to highest value"), ((9, 3), None)])
def test_the_range_that_the_file_names(tmp_path, cal, shown):
    values = np.arange(24, dtype=np.int16).reshape(4, 3, 2)
    path = write_nifti(tmp_path / "x.nii", values, cal=cal)
    assert nifti_facts(path, "x").shown == (shown or "lowest to highest value")
    low, high = cal if shown == "own range" else (0, 23)
    np.testing.assert_allclose(stack(path) / 65535, np.clip((values - low) / (high - low), 0, 1), atol=1e-5)
    assert stack(path, "full").max() == 32768 + 23


def marked(shape=(7, 6, 5)):
    """Right, front and top of the patient are marked by 1, 2 and 3."""
    values = np.zeros(shape, np.uint8)
    values[-1, shape[1] // 2, shape[2] // 2] = 1
    values[shape[0] // 2, -1, shape[2] // 2] = 2
    values[shape[0] // 2, shape[1] // 2, -1] = 3
    return values


def test_right_is_left_and_the_front_is_at_the_top(tmp_path):
    path = write_nifti(tmp_path / "x.nii", marked(), cal=(0, 255))
    middle = read(path, index=2)[..., 0]
    assert middle.shape == (6, 7)
    assert np.argwhere(middle == 1).tolist() == [[2, 0]]
    assert np.argwhere(middle == 2).tolist() == [[0, 3]]
    assert np.argwhere(read(path, index=4)[..., 0] == 3).tolist() == [[2, 3]]


@pytest.mark.parametrize("codes", ["LPS", "RAS", "LAS", "PIR", "ASL", "SRA", "IPL"])
def test_any_order_of_the_axes_looks_the_same(tmp_path, codes):
    plain = write_nifti(tmp_path / "ras.nii", marked(), cal=(0, 255))
    image = nibabel.load(plain)
    wanted = nibabel.orientations.axcodes2ornt(tuple(codes))
    turned = image.as_reoriented(nibabel.orientations.ornt_transform(nibabel.orientations.io_orientation(image.affine), wanted))
    turned.header["cal_max"] = 255
    turned.to_filename(tmp_path / "turned.nii")
    np.testing.assert_array_equal(stack(tmp_path / "turned.nii"), stack(plain))


@pytest.mark.parametrize(
    ("shape", "seen", "top_left"),
    [((7, 6, 1), (6, 7), (-1, -1, 0)), ((7, 1, 5), (5, 7), (-1, 0, -1)), ((1, 6, 5), (5, 6), (0, -1, -1))],
)
def test_a_single_plane_is_one_image(tmp_path, shape, seen, top_left):
    values = np.zeros(shape, np.uint8)
    values[top_left] = 255
    path = write_nifti(tmp_path / "x.nii", values)
    assert nifti_facts(path, "x").num_slices == 1
    assert read(path).shape == (*seen, 1)
    assert np.argwhere(read(path)[..., 0] == 255).tolist() == [[0, 0]]


def test_two_dimensions_are_one_image(tmp_path):
    values = noise("uint8", (7, 6))
    path = write_nifti(tmp_path / "x.nii", values)
    np.testing.assert_array_equal(read(path)[..., 0], values[::-1, ::-1].T)


@pytest.mark.parametrize("extension", [".nii", ".nii.gz"])
def test_the_first_volume_of_four_dimensions(tmp_path, extension):
    values = noise("uint8", (4, 3, 2, 5))
    path = write_nifti(tmp_path / f"x{extension}", values)
    assert nifti_facts(path, "x").num_volumes == 5
    np.testing.assert_array_equal(stack(path, "full"), values[..., 0])


@pytest.mark.parametrize("names", ["RGB", "RGBA"])
def test_colours(tmp_path, names):
    kind = np.dtype([(name, np.uint8) for name in names])
    values = np.zeros((3, 2, 2), kind)
    rng = np.random.default_rng(0)
    for name in names:
        values[name] = 255 if name == "A" else rng.integers(0, 256, values.shape)
    path = write_nifti(tmp_path / "x.nii", values)
    assert nifti_facts(path, "x").shown == "colours"
    plane = values[::-1, ::-1, 1].T
    np.testing.assert_array_equal(read(path, index=1), np.stack([plane[name] for name in "RGB"], axis=-1))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_must_be_numbers(tmp_path, bad):
    values = np.zeros((3, 3, 3), np.float32)
    values[1, 1, 0] = bad
    with pytest.raises(UnreadableImageError, match=r"Cannot read the image x\.nii: 1 of its 27 values are NaN or infinite"):
        read(write_nifti(tmp_path / "x.nii", values), index=2)


def test_nifti_2_and_the_other_byte_order(tmp_path):
    values = noise("int16")
    nibabel.Nifti2Image(values, np.eye(4)).to_filename(tmp_path / "2.nii")
    big = nibabel.Nifti1Image(values, np.eye(4), nibabel.Nifti1Header(endianness=">"))
    big.set_data_dtype(">i2")
    big.to_filename(tmp_path / "big.nii")
    for name in ("2.nii", "big.nii"):
        np.testing.assert_array_equal(stack(tmp_path / name, "full").astype(np.int64) - 32768, values)


def test_a_constant_volume_is_black(tmp_path):
    for dtype in (np.int16, np.float32):
        assert read(write_nifti(tmp_path / "x.nii", np.full((3, 3, 3), 7, dtype))).max() == 0


@pytest.mark.parametrize("name", ["example4d.nii.gz", "anatomical.nii", "functional.nii", "example_nifti2.nii.gz"])
def test_files_that_come_with_nibabel(name):
    from pathlib import Path

    path = Path(nibabel.__file__).parent / "tests" / "data" / name
    if not path.is_file():
        pytest.skip(f"nibabel came without {name}")
    first = nibabel.as_closest_canonical(nibabel.load(path))
    values = np.asarray(first.dataobj[..., 0] if len(first.shape) == 4 else first.dataobj, dtype=np.float64)
    low, high = values.min(), values.max()
    shown = stack(path, f"{(low + high) / 2},{high - low}")
    white = 65535 if shown.dtype == np.uint16 else 1
    np.testing.assert_allclose(shown / white, (values - low) / (high - low), atol=2e-5)


def test_the_content_says_what_is_compressed(tmp_path):
    values = noise("uint8")
    packed = gzip.compress(write_nifti(tmp_path / "x.nii", values).read_bytes())
    (tmp_path / "y.nii").write_bytes(packed)
    np.testing.assert_array_equal(stack(tmp_path / "y.nii"), values)


@pytest.mark.parametrize("window", ["full", None])
@pytest.mark.parametrize(("slope", "intercept"), [(1e-3, 1e15), (-1e-3, 1e15), (-2.0, 7.0)])
def test_values_stay_apart_whatever_they_stand_for(tmp_path, window, slope, intercept):
    values = np.arange(-100, 20, dtype=np.int16).reshape(6, 5, 4)
    values.flat[:2] = -(2**15), 2**15 - 1
    pixels = stack(write_nifti(tmp_path / "x.nii", values, slope=slope, intercept=intercept), window).astype(np.int64)
    np.testing.assert_array_equal(pixels if slope > 0 else 65535 - pixels, values.astype(np.int64) + 2**15)


def test_an_error_in_what_is_done_with_values_that_were_read_says_nothing_of_the_file(tmp_path, monkeypatch):
    volume = NiftiVolume(write_nifti(tmp_path / "x.nii", noise("uint8")), "x.nii", parse_window(None))
    monkeypatch.setattr(nifti, "look_up", None)
    with pytest.raises(TypeError, match="not callable"):
        volume.read_slice(0)
