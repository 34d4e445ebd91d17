"""One array per file, whatever the format: nothing clipped, nothing reduced, nothing guessed."""

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageFile

from crossgraft.data.decoding import composite_on_black, decode_bytes, decode_file, strict_decoding
from crossgraft.errors import UnreadableImageError


@pytest.mark.parametrize("extension", ["png", "tif", "bmp", "PNG", "TIFF"])
@pytest.mark.parametrize("channels", [1, 3])
def test_8_bit_files_come_back_as_they_were(tmp_path, write_image, extension, channels):
    path = tmp_path / f"image.{extension}"
    samples = write_image(path, channels=channels)
    np.testing.assert_array_equal(decode_file(path), samples)
    assert decode_file(path).dtype == np.uint8


def test_a_jpeg_is_close_to_what_was_saved(tmp_path):
    smooth = np.add.outer(np.arange(16), np.arange(16)).astype(np.uint8) * 8
    Image.fromarray(smooth).save(tmp_path / "image.jpg", quality=95)
    decoded = decode_file(tmp_path / "image.jpg")
    assert decoded.shape == (16, 16, 1)
    assert np.abs(decoded[..., 0].astype(int) - smooth).max() <= 4


@pytest.mark.parametrize("extension", ["png", "tif"])
def test_16_bit_grey_keeps_its_range(tmp_path, extension):
    samples = np.array([[0, 1, 255, 256], [4095, 32768, 65534, 65535]], dtype=np.uint16)
    Image.fromarray(samples).save(tmp_path / f"image.{extension}")
    decoded = decode_file(tmp_path / f"image.{extension}")
    assert decoded.dtype == np.uint16
    np.testing.assert_array_equal(decoded[..., 0], samples)


def test_a_float_tiff_stays_float(tmp_path):
    samples = np.array([[0.0, 0.25], [0.5, 1.0]], dtype=np.float32)
    Image.fromarray(samples).save(tmp_path / "image.tif")
    decoded = decode_file(tmp_path / "image.tif")
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded[..., 0], samples)


def test_1_bit_is_black_and_white(tmp_path):
    Image.fromarray(np.array([[True, False]])).save(tmp_path / "image.png")
    np.testing.assert_array_equal(decode_file(tmp_path / "image.png")[..., 0], [[255, 0]])


def test_a_palette_becomes_its_colours(tmp_path):
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((1, 0), 1)
    image.save(tmp_path / "image.png")
    np.testing.assert_array_equal(decode_file(tmp_path / "image.png"), [[[10, 20, 30], [200, 100, 50]]])


def test_cmyk_becomes_rgb(tmp_path):
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(tmp_path / "image.jpg", quality=95)
    red, green, blue = decode_file(tmp_path / "image.jpg")[8, 8]
    assert red > 245 and green < 10 and blue < 10


@pytest.mark.parametrize(("mode", "pixel", "expected"), [("LA", (200, 128), [100]), ("RGBA", (250, 100, 0, 51), [50, 20, 0])])
def test_alpha_is_composited_on_black(tmp_path, mode, pixel, expected):
    Image.new(mode, (2, 2), pixel).save(tmp_path / "image.png")
    np.testing.assert_array_equal(decode_file(tmp_path / "image.png")[0, 0], expected)


def test_a_transparent_palette_entry_is_black(tmp_path):
    image = Image.new("P", (1, 1))
    image.putpalette([10, 20, 30])
    image.save(tmp_path / "image.png", transparency=0)
    np.testing.assert_array_equal(decode_file(tmp_path / "image.png"), [[[0, 0, 0]]])


def test_the_transparent_level_of_a_16_bit_png_is_black(tmp_path):
    Image.fromarray(np.array([[7, 40000]], dtype=np.uint16)).save(tmp_path / "image.png", transparency=40000)
    np.testing.assert_array_equal(decode_file(tmp_path / "image.png")[..., 0], [[7, 0]])


@pytest.mark.parametrize("extension", ["png", "jpg", "tif"])
def test_exif_rotation_is_applied(tmp_path, extension):
    image = Image.new("L", (16, 8))  # a wide picture, marked as one that was taken with the camera on its side
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / f"image.{extension}", exif=exif)
    assert decode_file(tmp_path / f"image.{extension}").shape == (16, 8, 1)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_every_orientation_of_a_tiff(tmp_path, orientation, compression, dtype):
    samples = np.array([[0, 1, 2], [3, 4, 5]], dtype=dtype)
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, samples, compression=compression, extratags=[(274, 3, 1, orientation, True)])
    upright = {
        1: samples,
        2: samples[:, ::-1],
        3: samples[::-1, ::-1],
        4: samples[::-1],
        5: samples.T,
        6: np.rot90(samples, -1),
        7: samples[::-1, ::-1].T,
        8: np.rot90(samples),
    }[orientation]
    np.testing.assert_array_equal(decode_file(path)[..., 0], upright)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_tiff_in_which_0_is_white_is_turned_around(tmp_path, dtype):
    samples = np.array([[0, 1, np.iinfo(dtype).max]], dtype=dtype)
    tifffile.imwrite(tmp_path / "image.tif", samples, photometric="miniswhite")
    np.testing.assert_array_equal(decode_file(tmp_path / "image.tif")[..., 0], np.iinfo(dtype).max - samples)


def test_signed_8_bit_samples_are_refused(tmp_path):
    tifffile.imwrite(tmp_path / "image.tif", np.array([[-5, 5]], dtype=np.int8))
    with pytest.raises(UnreadableImageError, match="signed"):
        decode_file(tmp_path / "image.tif")


def test_the_content_counts_and_not_the_extension(tmp_path, write_image):
    samples = write_image(tmp_path / "image.png")
    (tmp_path / "image.png").rename(tmp_path / "image.jpg")
    np.testing.assert_array_equal(decode_file(tmp_path / "image.jpg"), samples)


def test_the_main_picture_of_a_camera_jpeg_with_several_is_read(tmp_path):
    first, second = Image.new("RGB", (8, 8), (255, 255, 255)), Image.new("RGB", (8, 8))
    first.save(tmp_path / "image.jpg", format="MPO", save_all=True, append_images=[second])
    assert decode_file(tmp_path / "image.jpg").min() > 250


def test_an_int32_tiff_with_16_bit_content_is_16_bit(tmp_path):
    samples = np.array([[0, 65535]], dtype=np.int32)
    Image.fromarray(samples).save(tmp_path / "image.tif")
    decoded = decode_file(tmp_path / "image.tif")
    assert decoded.dtype == np.uint16
    np.testing.assert_array_equal(decoded[..., 0], samples)


@pytest.mark.parametrize("samples", [[[-1000, 400]], [[0, 65536]]])
def test_integers_without_a_known_range_are_refused(tmp_path, samples):
    Image.fromarray(np.array(samples, dtype=np.int32)).save(tmp_path / "scan.tif")
    with pytest.raises(UnreadableImageError, match=r"scan\.tif.*rescale"):
        decode_file(tmp_path / "scan.tif")


def test_truncated_files_stay_errors_when_another_library_allowed_them(tmp_path, monkeypatch):
    path = tmp_path / "image.jpg"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:2000])
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    decode_file(path)  # Pillow, so told, fills the rest with grey
    with strict_decoding(), pytest.raises(UnreadableImageError, match="truncated"):
        decode_file(path)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True  # left as it was found


def test_the_error_uses_the_given_name(tmp_path):
    with pytest.raises(UnreadableImageError, match=r"image row 7: there is no such file\."):
        decode_file(tmp_path / "none.png", name="row 7")


def test_compositing_rounds_in_every_type():
    assert composite_on_black(np.array([[[255, 128]]], dtype=np.uint8)).item() == 128
    assert composite_on_black(np.array([[[65535, 32768]]], dtype=np.uint16)).item() == 32768
    assert composite_on_black(np.array([[[0.5, 0.5]]], dtype=np.float32)).item() == 0.25


@pytest.mark.parametrize("mode", ["L", "RGB", "I;16"])
def test_bytes_are_decoded_like_the_file_that_they_come_from(tmp_path, mode):
    path = tmp_path / "image.png"
    Image.new(mode, (7, 5), 77 if mode != "RGB" else (1, 2, 3)).save(path)
    decoded = decode_bytes(path.read_bytes(), name="row 0")
    np.testing.assert_array_equal(decoded, decode_file(path))
    assert decoded.dtype == decode_file(path).dtype


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "the file is empty"), (b"GIF89a....", "it is a GIF file"), (b"hello", "text file")]
)
def test_bytes_that_are_no_image_are_refused_by_name(content, reason):
    with pytest.raises(UnreadableImageError, match=f"Cannot read the image row 3: .*{reason}"):
        decode_bytes(content, name="row 3")
