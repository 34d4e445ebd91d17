"""Malformed image files, each of which must be a named error and nothing else: no crash, no picture, no warning."""

import io
import struct
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

from crossgraft.data.decoding import decode_file
from crossgraft.data.inspection import inspect_images
from crossgraft.errors import DataError, UnreadableImageError

NOISE = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)


def encoded(image_format, array=NOISE, **options):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, image_format, **options)
    return buffer.getvalue()


def tiff(array, **options):
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, array, **options)
    return buffer.getvalue()


def pages(image_format, **options):
    buffer = io.BytesIO()
    first, second = Image.fromarray(NOISE), Image.fromarray(255 - NOISE)
    first.save(buffer, image_format, save_all=True, append_images=[second], **options)
    return buffer.getvalue()


def png_of(width, height, data=b"", depth=8, colour=0):
    """A PNG whose header says what it likes."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    framed = [struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def flipped(content, position):
    """One byte changed."""
    damaged = bytearray(content)
    damaged[position] ^= 0xFF
    return bytes(damaged)


CASES = {
    "empty file": (b"", "the file is empty"),
    "text": (b"path,label\nx.png,1\n", "it is a text file"),
    "web page": (b"<!DOCTYPE html><html>404</html>", "it is a web page"),
    "random bytes": (NOISE.tobytes()[:500], "first bytes are damaged"),
    "zeros": (bytes(1000), "first bytes are damaged"),
    "GIF": (encoded("GIF"), "it is a GIF file, which is not read; save it as PNG"),
    "WebP": (b"RIFF\x10\0\0\0WEBPVP8 ", "damaged"),
    "PDF": (b"%PDF-1.7\n", "it is a PDF file"),
    "zip": (b"PK\x03\x04", "it is a zip file"),
    "JPEG cut in the middle": (encoded("JPEG")[:1500], "truncated"),
    "JPEG cut in its header": (encoded("JPEG")[:30], "damaged|truncated|not a PNG"),
    "JPEG with only its mark": (b"\xff\xd8\xff", "damaged|truncated|not a PNG"),
    "PNG cut in the middle": (encoded("PNG")[:3000], "truncated"),
    "PNG cut in its header": (encoded("PNG")[:20], "damaged|truncated|not a PNG"),
    "PNG with only its mark": (encoded("PNG")[:8], "damaged|truncated|not a PNG"),
    "PNG with a flipped byte": (flipped(encoded("PNG"), 2000), "damaged"),
    "PNG with a damaged header": (flipped(encoded("PNG"), 18), "damaged|first bytes"),
    "PNG without data": (png_of(4, 4), "truncated|damaged"),
    "PNG whose data are no stream": (png_of(4, 4, b"garbage!"), "damaged"),
    "PNG of no pixels": (png_of(0, 0, zlib.compress(b"")), "damaged|first bytes"),
    "PNG of an unknown colour type": (png_of(4, 4, zlib.compress(bytes(20)), colour=5), "damaged|first bytes"),
    "PNG whose data end two rows early": (png_of(4, 6, zlib.compress(bytes([0, 9, 9, 9, 9]) * 4)), "last rows are missing"),
    "16-bit RGB PNG whose data end early": (
        png_of(2, 6, zlib.compress((b"\0" + b"\7" * 12) * 4), 16, 2),
        "last rows are missing",
    ),
    "16-bit RGB PNG cut in the middle": (png_of(40, 40, zlib.compress(NOISE.tobytes())[:900], 16, 2), "truncated|damaged"),
    "decompression bomb": (png_of(2_000_000, 2_000_000, zlib.compress(bytes(1000))), "pixels"),
    "moderate bomb": (png_of(10_000, 10_000, zlib.compress(bytes(1000))), "truncated|last rows are missing"),
    "animated PNG": (pages("PNG"), "it holds 2 pages"),
    "TIFF of two pages": (pages("TIFF"), "it holds 2 pages; save each page"),
    "TIFF cut in the middle": (tiff(NOISE)[:3000], "truncated|damaged"),
    "TIFF cut in its header": (tiff(NOISE)[:6], "kind of TIFF|first bytes|damaged"),
    "compressed TIFF with damaged data": (flipped(tiff(NOISE, compression="zlib"), -2000), "damaged"),
    "TIFF of complex numbers": (tiff(np.zeros((4, 4), np.complex64)), "its samples are complex numbers"),
    "TIFF of signed 16-bit samples below 0": (tiff(np.array([[-1000, 5]], np.int16)), "from -1000 to 5; rescale"),
    "BMP cut in the middle": (encoded("BMP")[:2000], "truncated"),
    "BMP cut in its header": (encoded("BMP")[:20], "damaged|truncated|first bytes"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_malformed_file_is_a_named_error(tmp_path, case):
    content, message = CASES[case]
    path = tmp_path / "scan 7.png"
    path.write_bytes(content)
    with pytest.raises(UnreadableImageError, match=message) as caught:
        decode_file(path)
    assert caught.value.where == "scan 7.png"
    assert "Repair or remove it" in str(caught.value)
    inspected = inspect_images(["scan 7.png"], lambda row: decode_file(path), skip_unreadable=True)
    assert list(inspected.unreadable) == [0]


def test_a_folder_in_place_of_an_image(tmp_path):
    with pytest.raises(UnreadableImageError):
        decode_file(tmp_path)


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "BMP"])
def test_a_file_cut_anywhere_is_never_a_picture(tmp_path, image_format):
    content = encoded(image_format, NOISE[:16, :16])
    path = tmp_path / "cut"
    for length in range(0, len(content) * 3 // 4, 7):
        path.write_bytes(content[:length])
        with pytest.raises(UnreadableImageError):
            decode_file(path)


@pytest.mark.parametrize("sample", [np.nan, np.inf, 4000.0])
def test_a_float_tiff_without_a_meaning_is_named(tmp_path, sample):
    Image.fromarray(np.array([[0.5, sample]], dtype=np.float32)).save(tmp_path / "dose.tif")
    with pytest.raises(DataError, match=r"dose\.tif"):
        inspect_images(["dose.tif"], lambda row: decode_file(tmp_path / "dose.tif"))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (5, 3), (9, 8), (17, 20)])
def test_a_black_picture_lacks_no_rows(tmp_path, mode, size):
    Image.new(mode, size).save(tmp_path / "black.png")
    assert decode_file(tmp_path / "black.png").max() == 0


@pytest.mark.parametrize(("missing", "sound"), [(0, True), (2, False)])
def test_an_interlaced_picture_of_all_its_rows(tmp_path, missing, sound):
    """5×5 pixels in seven passes, of so many columns and rows."""
    passes = ((1, 1), (1, 1), (2, 1), (1, 2), (3, 1), (2, 3), (5, 2))
    rows = [b"\0" + b"\7" * columns for columns, count in passes for _ in range(count)]
    content = bytearray(png_of(5, 5, zlib.compress(b"".join(rows[: len(rows) - missing]))))
    content[28] = 1
    content[29:33] = struct.pack(">I", zlib.crc32(bytes(content[12:29])))
    (tmp_path / "interlaced.png").write_bytes(content)
    if sound:
        np.testing.assert_array_equal(decode_file(tmp_path / "interlaced.png"), np.full((5, 5, 1), 7))
    else:
        with pytest.raises(UnreadableImageError):
            decode_file(tmp_path / "interlaced.png")
