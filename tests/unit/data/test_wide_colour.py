"""16-bit colour keeps all 16 bits, checked against a PNG encoder written out literally from the format's description."""

import io
import struct
import zlib

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crossgraft.data.decoding import decode_file
from crossgraft.errors import UnreadableImageError

COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def predict(filter_type, left, up, corner):
    """What each PNG filter expects a byte to be."""
    if filter_type == 4:
        estimate = left + up - corner
        distances = [abs(estimate - left), abs(estimate - up), abs(estimate - corner)]
        return (left, up, corner)[distances.index(min(distances))]
    return (0, left, up, (left + up) // 2)[filter_type]


def encode_png(samples, extra_chunks=()):
    """A 16-bit PNG whose rows use all five filters in turn."""
    height, width, channels = samples.shape
    step, length = 2 * channels, 2 * channels * width
    data, above = bytearray(), bytes(length)
    for y in range(height):
        row = samples[y].astype(">u2").tobytes()
        data.append(y % 5)
        for x in range(length):
            left = row[x - step] if x >= step else 0
            corner = above[x - step] if x >= step else 0
            data.append((row[x] - predict(y % 5, left, above[x], corner)) % 256)
        above = row
    header = struct.pack(">IIBBBBB", width, height, 16, COLOUR_TYPES[channels], 0, 0, 0)
    chunks = [(b"IHDR", header), *extra_chunks, (b"IDAT", zlib.compress(bytes(data))), (b"IEND", b"")]
    framed = [struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


@pytest.mark.parametrize("channels", [1, 3])
def test_every_bit_of_a_png_is_kept(tmp_path, pixels, channels):
    samples = pixels(1, height=11, width=7, channels=channels, dtype=np.uint16)
    (tmp_path / "image.png").write_bytes(encode_png(samples))
    decoded = decode_file(tmp_path / "image.png")
    assert decoded.dtype == np.uint16
    np.testing.assert_array_equal(decoded, samples)


def test_pillow_alone_would_lose_half_of_it(pixels):
    samples = pixels(1, channels=3, dtype=np.uint16)
    with Image.open(io.BytesIO(encode_png(samples))) as image:
        assert np.asarray(image).dtype == np.uint8


@pytest.mark.parametrize("channels", [2, 4])
def test_16_bit_alpha_is_composited_on_black(tmp_path, pixels, channels):
    samples = pixels(2, channels=channels, dtype=np.uint16)
    (tmp_path / "image.png").write_bytes(encode_png(samples))
    colour, alpha = samples[..., :-1].astype(float), samples[..., -1:] / 65535
    decoded = decode_file(tmp_path / "image.png")
    assert decoded.dtype == np.uint16
    assert decoded.shape[-1] == channels - 1
    assert np.abs(decoded - colour * alpha).max() <= 0.5


def test_the_transparent_colour_of_a_png_is_black(tmp_path):
    samples = np.array([[[1000, 2000, 3000], [1000, 2000, 3001]]], dtype=np.uint16)
    key = struct.pack(">HHH", 1000, 2000, 3000)
    (tmp_path / "image.png").write_bytes(encode_png(samples, extra_chunks=[(b"tRNS", key)]))
    np.testing.assert_array_equal(decode_file(tmp_path / "image.png"), [[[0, 0, 0], [1000, 2000, 3001]]])


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_every_bit_of_a_tiff_is_kept(tmp_path, pixels, compression, byte_order):
    samples = pixels(3, height=9, width=5, channels=3, dtype=np.uint16)
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, samples, photometric="rgb", compression=compression, byteorder=byte_order)
    np.testing.assert_array_equal(decode_file(path), samples)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_colour_planes_stored_one_after_the_other_are_put_together(tmp_path, pixels, compression):
    samples = pixels(4, channels=3, dtype=np.uint16)
    planes = np.moveaxis(samples, -1, 0)
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, planes, photometric="rgb", planarconfig="separate", compression=compression)
    np.testing.assert_array_equal(decode_file(path), samples)


def test_a_layout_that_can_not_be_read_byte_by_byte_is_refused(tmp_path, pixels):
    samples = pixels(5, channels=4, dtype=np.uint16)
    tifffile.imwrite(tmp_path / "image.tif", samples, photometric="separated")
    with pytest.raises(UnreadableImageError, match="CMYK"):
        decode_file(tmp_path / "image.tif")


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_any_size_of_png(tmp_path_factory, height, width, seed):
    samples = np.random.default_rng(seed).integers(0, 2**16, (height, width, 3)).astype(np.uint16)
    path = tmp_path_factory.mktemp("png") / "image.png"
    path.write_bytes(encode_png(samples))
    np.testing.assert_array_equal(decode_file(path), samples)
