"""Every layout of samples that a PNG or TIFF declares is read as an independent reading gives it, or refused by name.

What must come out is computed here from the samples that were written, by the conventions of the project written out literally:
black is 0 and white the largest sample (1.0 of floats), and transparency is laid over black.
"""

import contextlib
import io
import itertools
import struct
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

from crossgraft.data._pillow_files import can_read
from crossgraft.data.decoding import decode_bytes
from crossgraft.errors import UnreadableImageError

SIZE = (19, 17)

# PNG, by its own encoder

SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def png(samples, depth, colour_type, chunks=(), interlaced=False):
    """(height, width, samples) whole numbers as a file."""
    height, width, _ = samples.shape
    rows = []
    for left, top, right_step, down_step in PASSES if interlaced else ((0, 0, 1, 1),):
        for row in samples[top::down_step, left::right_step]:
            bits = (row.reshape(-1, 1) >> np.arange(depth - 1, -1, -1)) & 1
            rows += [b"\0", np.packbits(bits.astype(np.uint8).ravel()).tobytes()] if row.size else []
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, interlaced)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b"")]
    framed = [struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part)) for name, part in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


PNG_KINDS = [
    (colour_type, depth, interlaced, transparent)
    for colour_type, depths in DEPTHS.items()
    for depth, interlaced, transparent in itertools.product(depths, (False, True), (False, True))
    if not (transparent and colour_type in (4, 6))
]


@pytest.mark.parametrize(("colour_type", "depth", "interlaced", "transparent"), PNG_KINDS)
def test_every_kind_of_png(colour_type, depth, interlaced, transparent):
    rng = np.random.default_rng(depth)
    samples = rng.integers(0, 2**depth, (*SIZE, SAMPLES[colour_type]))
    white = 65535 if depth == 16 else 255
    chunks = []
    if colour_type == 3:
        palette = rng.integers(0, 256, (2**depth, 3))
        alpha = rng.integers(0, 256, 2**depth) if transparent else np.full(2**depth, 255)
        chunks.append((b"PLTE", palette.astype(np.uint8).tobytes()))
        chunks += [(b"tRNS", alpha.astype(np.uint8).tobytes())] if transparent else []
        expected = palette[samples[..., 0]] * alpha[samples[..., 0]][..., np.newaxis] / 255
    else:
        levels = samples * (white // (2**depth - 1))
        expected = levels[..., :-1] * (levels[..., -1:] / white) if colour_type in (4, 6) else levels
        if transparent:
            key = samples[3, 3]
            chunks.append((b"tRNS", struct.pack(f">{key.size}H", *key)))
            expected = np.where((samples == key).all(axis=-1, keepdims=True), 0, expected)
    decoded = decode_bytes(png(samples, depth, colour_type, chunks, interlaced), name="x")
    assert decoded.dtype == (np.uint16 if depth == 16 else np.uint8)
    assert decoded.shape == expected.shape
    assert np.abs(decoded - expected).max() <= 0.5  # alpha rounds


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_every_transparent_grey_of_a_png_and_bits_beyond_its_depth(depth):
    """ "If the image bit depth is less than 16 bits, the least significant bits are used" (PNG, 11.3.1.1)."""
    samples = np.arange(2**depth).reshape(1, -1, 1)
    for key in range(2**depth):
        content = png(samples, depth, 0, [(b"tRNS", struct.pack(">H", key | (0x100 if depth > 1 else 0)))])
        expected = np.where(samples == key, 0, samples * (255 // (2**depth - 1)))
        np.testing.assert_array_equal(decode_bytes(content, name="x"), expected)


# TIFF, by tifffile

NUMBERS = ("u1", "u2", "u4", "u8", "i2", "i4", "i8", "f2", "f4", "f8")
PHOTOMETRICS = ("minisblack", "miniswhite", "rgb")
EXTRAS = {"": (), "premultiplied": (1,), "alpha": (2,), "unspecified": (0,)}
TIFF_KINDS = list(itertools.product(NUMBERS, PHOTOMETRICS, EXTRAS))
WAYS = list(itertools.product((None, "zlib"), ("<", ">"), (None, (16, 16)), ("contig", "separate"), (False, True), (1, 6)))


def tiff(
    samples, photometric, extras, *, compression=None, order="<", tile=None, planes="contig", predictor=False, orientation=1
):
    """(height, width, samples) as a file."""
    options = {"extratags": [(274, 3, 1, orientation, True)]} if orientation != 1 else {}
    data = samples[..., 0] if samples.shape[-1] == 1 else samples
    if data.ndim == 3:
        options.update(planarconfig=planes, extrasamples=extras or None)
        data = np.moveaxis(data, -1, 0) if planes == "separate" else data
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer, data, photometric=photometric, compression=compression, byteorder=order, tile=tile, predictor=predictor,
        metadata=None, **options,
    )  # fmt: skip
    return buffer.getvalue()


def expected_of(samples, photometric, extra, white):
    """The picture by the conventions of the project, float64."""
    values = samples.astype(np.float64)
    num_colours = 3 if photometric == "rgb" else 1
    colours = values[..., :num_colours]
    colours = white - colours if photometric == "miniswhite" else colours
    return colours * values[..., num_colours:] / white if extra == "alpha" else colours


def is_refused(number, photometric, extra):
    """Nobody knows what is white, or what the second channel is."""
    kind, size = number[0], int(number[1])
    unclear = kind == "i" or (kind == "u" and size > 2)
    return (photometric != "rgb" and extra == "unspecified") or (unclear and (extra in ("alpha", "premultiplied")))


@pytest.mark.parametrize(("number", "photometric", "extra"), TIFF_KINDS)
def test_every_kind_of_tiff(number, photometric, extra):
    """In each byte order, compressed or not, in strips or tiles, together or in planes, with a predictor, upright or turned."""
    dtype = np.dtype(number)
    rng = np.random.default_rng(0)
    shape = (*SIZE, (3 if photometric == "rgb" else 1) + len(EXTRAS[extra]))
    white = 1.0 if dtype.kind == "f" else 255 if dtype.itemsize == 1 else 65535
    top = 2**15 if number == "i2" else white + 1
    samples = rng.random(shape).astype(dtype) if dtype.kind == "f" else rng.integers(0, top, shape).astype(dtype)
    refused = is_refused(number, photometric, extra) or (photometric == "miniswhite" and number in ("u4", "u8", "i2", "i4", "i8"))
    expected = expected_of(samples, photometric, extra, white)
    tolerance = 1e-6 if dtype.kind == "f" else 0.5 if extra == "alpha" else 0
    for compression, order, tile, planes, predictor, orientation in WAYS:
        if (planes == "separate" and shape[-1] == 1) or (
            predictor and (compression is None or number in ("u8", "i8") or white == 1)
        ):
            continue
        way = {"compression": compression, "order": order, "tile": tile, "planes": planes}
        content = tiff(samples, photometric, EXTRAS[extra], **way, predictor=predictor, orientation=orientation)
        if refused:
            with pytest.raises(UnreadableImageError, match=r"is not read|channels, of which only one"):
                decode_bytes(content, name="x")
            continue
        decoded = decode_bytes(content, name="x")
        upright = np.rot90(expected, -1) if orientation == 6 else expected
        assert decoded.dtype == (np.float32 if white == 1 else np.uint8 if white == 255 else np.uint16), way
        assert decoded.shape == upright.shape, way
        assert np.abs(decoded - upright).max() <= tolerance, way


@pytest.mark.parametrize("photometric", ["minisblack", "miniswhite"])
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_bilevel_tiff(photometric, compression):
    samples = np.random.default_rng(0).integers(0, 2, (*SIZE, 1)).astype(bool)
    decoded = decode_bytes(tiff(samples, photometric, (), compression=compression), name="x")
    np.testing.assert_array_equal(decoded, 255 * (samples == (photometric == "minisblack")).astype(np.uint8))


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "tiff_adobe_deflate"])
def test_compressions_of_pillow(compression):
    for array in (np.arange(200, dtype=np.uint8).reshape(10, 20), np.linspace(0, 1, 200, dtype=np.float32).reshape(10, 20)):
        buffer = io.BytesIO()
        Image.fromarray(array).save(buffer, "TIFF", compression=compression)
        np.testing.assert_array_equal(decode_bytes(buffer.getvalue(), name="x")[..., 0], array)


def refused_tiffs():
    """Contents and reasons."""
    rng = np.random.default_rng(0)
    bytes_of = lambda *shape: rng.integers(0, 256, shape).astype(np.uint8)  # noqa: E731
    lzw = io.BytesIO()
    Image.fromarray(bytes_of(8, 9, 3)).save(lzw, "TIFF", compression="tiff_lzw")
    lab = io.BytesIO()
    Image.fromarray(bytes_of(8, 9, 3)).convert("LAB").save(lab, "TIFF")
    colormap = rng.integers(0, 256, (3, 256)).astype(np.uint16)
    palette = io.BytesIO()
    tifffile.imwrite(palette, bytes_of(8, 9), photometric="palette", colormap=colormap, metadata=None)
    return {
        "complex": (tiff(np.zeros((8, 9, 1), np.complex64), "minisblack", ()), "complex numbers"),
        "int8": (tiff(np.zeros((8, 9, 1), np.int8), "minisblack", ()), "signed 8-bit"),
        "CIELab": (lab.getvalue(), r"CIELab.*save it as RGB"),
        "five channels": (tiff(bytes_of(8, 9, 5), "minisblack", (0, 0, 0, 0)), "5 channels, of which only one"),
        "alpha somewhere": (tiff(bytes_of(8, 9, 5), "rgb", (0, 2)), "transparency does not follow"),
        "8-bit palette": (palette.getvalue(), "palette has 8 bits"),
        "bits that differ": (lzw.getvalue().replace(b"\x08\0\x08\0\x08\0", b"\5\0\6\0\5\0"), "BitsPerSample 5, 6, 5"),
        "double beyond single": (tiff(np.full((8, 9, 1), 1e300), "minisblack", ()), r"from 1e\+300 to 1e\+300; rescale"),
        "uint32 beyond 16 bits": (tiff(np.full((8, 9, 1), 2**20, np.uint32), "minisblack", ()), "1048576; rescale"),
    }  # fmt: skip


REFUSED = refused_tiffs()


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_read_is_named(case):
    content, reason = REFUSED[case]
    with pytest.raises(UnreadableImageError, match=reason):
        decode_bytes(content, name="x")


def test_a_tiff_that_lacks_strips_is_no_picture_with_a_black_part():
    """Pillow alone fills the rest with black."""
    content = bytearray(tiff(np.full((8, 9, 1), 7, np.uint8), "minisblack", ()))
    place = content.index(struct.pack("<HHII", 257, 4, 1, 8))
    content[place + 8 : place + 12] = struct.pack("<I", 16)
    with Image.open(io.BytesIO(bytes(content))) as image:
        assert np.asarray(image)[8:].max() == 0
    with pytest.raises(UnreadableImageError, match="truncated"):
        decode_bytes(bytes(content), name="x")


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("number", ["f8", "u1"])
def test_a_tiff_cut_anywhere_is_never_a_picture(compression, number):
    samples = (np.random.default_rng(0).random((*SIZE, 4)) * (1 if number == "f8" else 255)).astype(number)
    content = tiff(samples, "rgb", (1,), compression=compression)
    end_of_samples = len(content) - (0 if compression is None else 1)
    for length in range(0, end_of_samples, 97):
        with pytest.raises(UnreadableImageError):
            decode_bytes(content[:length], name="x")


SEEDS = [
    tiff(np.linspace(0, 1, 19 * 17 * 3).reshape(*SIZE, 3), "rgb", (), planes="separate", compression="zlib"),
    tiff(np.arange(19 * 17 * 2, dtype=np.uint16).reshape(*SIZE, 2), "minisblack", (2,), tile=(16, 16), order=">"),
    tiff(np.arange(19 * 17, dtype=np.uint16).reshape(*SIZE, 1).astype(np.uint8), "miniswhite", ()),
]


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_any_damage_of_a_tiff_is_a_picture_or_a_named_error(seed, capfd):
    rng = np.random.default_rng(seed)
    for _ in range(300):
        content = bytearray(SEEDS[seed])
        for place in rng.integers(0, min(len(content), 400), rng.integers(1, 5)):
            content[place] = rng.integers(256)
        try:
            pixels = decode_bytes(bytes(content), name="x")
        except UnreadableImageError:
            pass
        else:
            assert pixels.ndim == 3 and pixels.shape[-1] in (1, 3) and pixels.dtype.name in ("uint8", "uint16", "float32")
    assert capfd.readouterr().err == ""  # neither Python's warnings nor lines of libtiff


@pytest.mark.parametrize("planes", [0, 3, 25])
def test_planes_that_tiff_does_not_know_are_no_picture_of_whatever_lay_in_memory(planes):
    content = bytearray(SEEDS[1])
    place = content.index(struct.pack(">HHIH", 284, 3, 1, 1))
    content[place + 8 : place + 10] = struct.pack(">H", planes)
    with pytest.raises(UnreadableImageError, match=f"its PlanarConfiguration is {planes}, neither 1 nor 2"):
        decode_bytes(bytes(content), name="x")


@pytest.mark.parametrize("extension", ["webp", "avif", "heic"])
def test_any_damage_of_a_photograph_is_a_picture_or_a_named_error(extension):
    if not can_read(f".{extension}"):
        pytest.skip("there is no reader of it here")
    if extension == "heic":
        pytest.importorskip("pillow_heif").register_heif_opener()
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (*SIZE, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(buffer, "HEIF" if extension == "heic" else extension)
    rng = np.random.default_rng(1)
    for _ in range(100):
        content = bytearray(buffer.getvalue())
        for place in rng.integers(12, min(len(content), 400), rng.integers(1, 5)):
            content[place] = rng.integers(256)
        with contextlib.suppress(UnreadableImageError):
            assert decode_bytes(bytes(content), name="x").shape[-1] in (1, 3)


FOREIGN = {
    "header of a pair": (struct.pack("<i", 348) + bytes(340) + b"ni1\0" + bytes(4), "header of one in two files"),
    "NIfTI": (struct.pack("<i", 348) + bytes(340) + b"n+1\0" + bytes(400), "it is a NIfTI file"),
    "gzip": (b"\x1f\x8b\x08" + bytes(30), "it is a gzip file"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_files_of_other_kinds_are_called_what_they_are(case):
    content, reason = FOREIGN[case]
    with pytest.raises(UnreadableImageError, match=reason):
        decode_bytes(content, name="x.hdr")
