"""Read the example files that pydicom, nibabel and scikit-image bring with them, and compare with an independent reading.

Every file is read right, or refused by an error that names it. Prints the table of docs/results/data-checks.md:

    python tests/security/bundled_files.py

What must come out is computed by those packages' own decoders and the conventions of docs/how-to, written out literally here.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from crossgraft.data.decoding import decode_file
from crossgraft.data.medical.display import parse_window
from crossgraft.data.medical.files import MedicalReader, list_medical_file, parse_slices
from crossgraft.data.medical.formats import medical_format
from crossgraft.errors import UnreadableImageError

FOLDERS = {
    "pydicom": ("data/test_files", "data/charset_files", "data/palettes"),
    "nibabel": ("tests/data", "nicom/tests/data"),
    "scikit-image": ("data",),
}
MODULES = {"scikit-image": "skimage"}
NO_IMAGES = (".py", ".pyi", ".pyc", ".txt", ".json", ".md", ".rst", ".m", ".dump", ".icc", ".xml", ".npz", ".npy", ".gitignore")
WHITE = 65535


@dataclass
class Outcome:
    """What became of the files of one package."""

    right: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)


def files_of(package: str) -> Iterator[Path]:
    """The example files of an installed package; none if it has none of the folders."""
    spec = importlib.util.find_spec(MODULES.get(package, package))
    if spec is None or spec.origin is None:
        return
    for folder in FOLDERS[package]:
        for path in sorted((Path(spec.origin).parent / folder).rglob("*")):
            if path.is_file() and path.suffix not in NO_IMAGES and not path.name.startswith("."):
                yield path


def read_package(package: str) -> Outcome:
    """Read each file with crossgraft and, where that gives pixels, independently."""
    outcome = Outcome()
    for path in files_of(package):
        name = "/".join(path.parts[-2:])
        try:
            decoded = read_middle(path)
        except UnreadableImageError as error:
            outcome.refused[name] = error.reason
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the other packages remark about their own files
            difference = compare(decoded, expected_pixels(path))
        if difference is None:
            outcome.right.append(name)
        else:
            outcome.wrong[name] = difference
    return outcome


def read_middle(path: Path) -> np.ndarray:
    """The middle slice, as crossgraft reads a file that a table names."""
    found = medical_format(path)
    if found is None:
        return decode_file(path)
    file = list_medical_file(path, path.name, found, parse_slices("middle"))
    return MedicalReader(parse_window("file")).read(file, 0)


def compare(decoded: np.ndarray, expected: np.ndarray) -> str | None:
    """None where both are the same picture: of 16-bit samples one step may differ by rounding, of floats 1e-6."""
    if decoded.shape != expected.shape:
        return f"shape {decoded.shape}, not {expected.shape}"
    if decoded.dtype.kind == "f" or expected.dtype.kind == "f":
        white = {"f": 1.0, "u": float(np.iinfo(decoded.dtype).max if decoded.dtype.kind == "u" else 1)}[decoded.dtype.kind]
        off = float(np.abs(decoded / white - expected).max())
        allowed = 1e-6 if decoded.dtype.kind == "f" else 1 / white
        return None if off <= allowed else f"differs by {off:.3g}"
    if decoded.dtype != expected.dtype:
        return f"type {decoded.dtype}, not {expected.dtype}"
    return None if np.array_equal(decoded, expected) else "other values"


def expected_pixels(path: Path) -> np.ndarray:
    """(height, width, channels): whole numbers as they must be, or 0 … 1 as floats where crossgraft may choose the steps."""
    found = medical_format(path)
    if found == "DICOM":
        return expected_dicom(path)
    return expected_nifti(path) if found == "NIfTI" else expected_image(path)


# Images


def expected_image(path: Path) -> np.ndarray:
    """What imageio (8 bits) and a literal decoder (16-bit colour PNG) give; transparency is laid over black."""
    import imageio.v3 as imageio

    content = path.read_bytes()
    if content.startswith(b"\x89PNG") and content[24] == 16 and content[25] in (2, 6):
        samples = png_samples(content)
    else:
        samples = np.asarray(imageio.imread(path))
    samples = samples[..., np.newaxis] if samples.ndim == 2 else samples
    white = np.iinfo(samples.dtype).max
    if samples.shape[-1] in (2, 4):
        alpha = samples[..., -1:].astype(np.float64) / white
        samples = np.rint(samples[..., :-1] * alpha).astype(samples.dtype)
    return samples


def png_samples(content: bytes) -> np.ndarray:
    """A PNG that is not interlaced, from the description of the format."""
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", content, 16)
    if interlaced:
        raise NotImplementedError("interlaced PNG")
    data, place = b"", 8
    while place < len(content):
        length, kind = struct.unpack_from(">I4s", content, place)
        data += content[place + 8 : place + 8 + length] if kind == b"IDAT" else b""
        place += 12 + length
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    step = channels * depth // 8
    stride = width * step
    rows = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(height, stride + 1)
    above = bytes(stride)
    decoded: list[bytes] = []
    for filtered in rows:
        row = bytearray(filtered[1:].tobytes())
        for x in range(stride):
            left = row[x - step] if x >= step else 0
            corner = above[x - step] if x >= step else 0
            row[x] = (row[x] + predicted(int(filtered[0]), left, above[x], corner)) % 256
        above = bytes(row)
        decoded.append(above)
    samples = np.frombuffer(b"".join(decoded), dtype=">u2" if depth == 16 else np.uint8)
    return samples.reshape(height, width, channels).astype(np.uint16 if depth == 16 else np.uint8)


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    """The five filters: none, left, up, average, Paeth."""
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    estimate = left + up - corner
    distances = (abs(estimate - left), abs(estimate - up), abs(estimate - corner))
    return (left, up, corner)[distances.index(min(distances))]


# DICOM


def expected_dicom(path: Path) -> np.ndarray:
    """Pydicom's own decoder, then slope, window and the photometric interpretation as PS3.3 says."""
    import gzip
    import io

    import pydicom
    from pydicom.pixels import apply_color_lut, apply_modality_lut

    content = path.read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    dataset = pydicom.dcmread(io.BytesIO(content), force=True)
    if "TransferSyntaxUID" not in dataset.file_meta:
        implicit, little = dataset.original_encoding
        explicit = pydicom.uid.ExplicitVRLittleEndian if little else pydicom.uid.ExplicitVRBigEndian
        dataset.file_meta.TransferSyntaxUID = pydicom.uid.ImplicitVRLittleEndian if implicit else explicit
    frames = int(dataset.get("NumberOfFrames") or 1)
    frame = frames // 2
    pixels = dataset.pixel_array  # colours are RGB already: pydicom undoes YBR
    stored = pixels[frame] if frames > 1 else pixels
    bits = int(dataset.get("BitsStored", dataset.BitsAllocated))
    photometric = str(dataset.PhotometricInterpretation)
    if photometric == "PALETTE COLOR":
        return np.asarray(apply_color_lut(stored, dataset))
    if stored.ndim == 3:
        return stored if bits in (8, 16) else (stored / (2.0**bits - 1))
    signed = int(dataset.get("PixelRepresentation", 0)) == 1
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    item = functional_group(dataset, frame, "PixelValueTransformationSequence")
    slope, intercept = float(item.get("RescaleSlope", 1)), float(item.get("RescaleIntercept", 0))
    values = stored * slope + intercept
    if "ModalityLUTSequence" in dataset:
        values = np.asarray(apply_modality_lut(stored, dataset), dtype=np.float64)
    window = functional_group(dataset, frame, "FrameVOILUTSequence")
    if "VOILUTSequence" in dataset:
        bright = through_table(values, dataset.VOILUTSequence[0])
    elif float(first(window.get("WindowWidth")) or 0) > 0:
        center, width = float(first(window.WindowCenter)), float(first(window.WindowWidth))
        bright = np.clip((values - (center - 0.5)) / (width - 1) + 0.5, 0, 1)
    elif bits > 16:
        whole = np.asarray(pixels, dtype=np.float64) * slope + intercept
        bright = (values - whole.min()) / (whole.max() - whole.min()) if whole.max() > whole.min() else np.zeros_like(values)
    else:
        ends = sorted((low * slope + intercept, high * slope + intercept))
        bright = (values - ends[0]) / (ends[1] - ends[0])
    bright = 1 - bright if photometric == "MONOCHROME1" else bright
    if "PixelPaddingValue" in dataset:
        bright = np.where(stored == int(dataset.PixelPaddingValue), 0, bright)
    return bright[..., np.newaxis]


def functional_group(dataset: Any, frame: int, sequence: str) -> Any:
    """The item of this frame, else of all frames, else the data set itself."""
    per_frame, shared = (dataset.get(f"{name}FunctionalGroupsSequence") for name in ("PerFrame", "Shared"))
    for group in [*([per_frame[frame]] if per_frame else []), *([shared[0]] if shared else [])]:
        if group.get(sequence):
            return group[sequence][0]
    return dataset


def through_table(values: np.ndarray, item: Any) -> np.ndarray:
    """Values beyond an end take the nearest entry."""
    length, start, bits = (int(number) for number in item.LUTDescriptor)
    entries = item.LUTData
    entries = np.frombuffer(entries, dtype="<u2") if isinstance(entries, bytes) else np.asarray(entries)
    places = np.clip(np.rint(values) - start, 0, (length or 2**16) - 1).astype(int)
    return entries[places] / (2.0**bits - 1)


def first(value: Any) -> Any:
    """Of several values the first."""
    return value[0] if value is not None and not isinstance(value, str | float) and hasattr(value, "__len__") else value


# NIfTI


def expected_nifti(path: Path) -> np.ndarray:
    """Nibabel's own values in its own canonical order, the middle axial slice as a radiologist looks at it."""
    import nibabel

    image = nibabel.as_closest_canonical(nibabel.load(path))
    values = np.asarray(image.dataobj, dtype=np.float64)
    values = values.reshape(*values.shape[:3], -1)[..., 0]
    planes = [axis for axis, size in enumerate(values.shape) if size == 1]
    axis = planes[0] if len(planes) == 1 else 2
    plane = np.take(values, values.shape[axis] // 2, axis=axis)
    low, high = float(image.header["cal_min"]), float(image.header["cal_max"])
    low, high = (low, high) if low < high else (values.min(), values.max())
    return np.clip((plane[::-1, ::-1].T - low) / (high - low), 0, 1)[..., np.newaxis]


# The table


def reason_group(reason: str) -> str:
    """The reason without what belongs to one file."""
    reason = re.sub(r" \((?:[^()]|\([^()]*\))*\)|[;:] .*", "", reason)
    return re.sub(r"\d[\d,]*(?:[×x]\d+)*", "…", reason)


def count_row(package: str, outcome: Outcome) -> str:
    """The line of one package."""
    counts = len(outcome.right), len(outcome.refused), len(outcome.wrong)
    version = importlib.metadata.version(package)
    return f"| {package} {version} | {sum(counts)} | {counts[0]} | {counts[1]} | {counts[2]} |"


def table(outcomes: dict[str, Outcome]) -> str:
    """The lines of the page."""
    lines = ["| package | files | read right | refused by name | read wrong |", "|---|---|---|---|---|"]
    for package, outcome in outcomes.items():
        lines.append(count_row(package, outcome))
    lines += ["", "| refused because | files |", "|---|---|"]
    reasons = Counter(reason_group(reason) for outcome in outcomes.values() for reason in outcome.refused.values())
    return "\n".join([*lines, *(f"| {reason} | {count} |" for reason, count in reasons.most_common())])


def main() -> None:
    outcomes = {package: read_package(package) for package in FOLDERS}
    print(table(outcomes))
    for package, outcome in outcomes.items():
        for name, difference in outcome.wrong.items():
            print(f"WRONG: {package} {name}: {difference}")


if __name__ == "__main__":
    main()
