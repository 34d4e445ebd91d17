"""Decoding of scanner files against its floor: the same pixels through pydicom and nibabel alone.

    python benchmarks/decoding.py           # 512 × 512 slices; seconds
    python benchmarks/decoding.py --smoke   # a second
    python benchmarks/decoding.py --pools   # threads beside processes, for every kind of file

Prints, for each kind of file: milliseconds of the bare library (``pydicom.dcmread(path).pixel_array``; all values of
``nibabel.load(path).dataobj``), milliseconds of crossgraft, which applies slope and window, checks the header and
gives 16 bits, and their ratio. Both are measured in turns, and the best of the rounds counts, because other programs can only
slow a round down. ``--pools`` decodes the same files by two threads and by two processes that are there already, in turns, and
prints what the processes gain: the median of the ratios, and the quartiles. What is decoded comes back from neither.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import tifffile
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, RLELossless

from crossgraft.data.decoding import decode_file
from crossgraft.data.medical.dicom import DicomVolume
from crossgraft.data.medical.display import parse_window
from crossgraft.data.medical.nifti import NiftiVolume

LUNG = parse_window("lung")


def main() -> None:
    arguments = parse_arguments()
    size, slices, rounds = (64, 4, 2) if arguments.smoke else (512, 60, arguments.rounds)
    rng = np.random.default_rng(0)
    y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    body = np.where(x**2 + y**2 < 0.8, 40, -1000)
    volume = np.stack([body + rng.normal(0, 15, body.shape) for _ in range(slices)]).astype(np.int16)
    if arguments.pools:
        compare_pools(volume, rounds)
        return
    print(f"slices of {size} x {size}, 12 of 16 bits, window -600,1500; volumes of {slices} slices")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plain = write_dicom(root / "plain.dcm", volume[0])
        packed = write_dicom(root / "rle.dcm", volume[0], compressed=True)
        frames = write_dicom(root / "frames.dcm", volume)
        compare("DICOM", lambda: read_bare(plain), lambda: read_dicom(plain, 1), rounds)
        compare("DICOM, RLE", lambda: read_bare(packed), lambda: read_dicom(packed, 1), rounds)
        compare(f"DICOM, {slices} frames", lambda: read_bare(frames), lambda: read_dicom(frames, slices), rounds)
        for extension in (".nii", ".nii.gz"):
            path = root / f"volume{extension}"
            nibabel.save(nibabel.Nifti1Image(np.moveaxis(volume, 0, -1), np.eye(4)), path)
            bare = load_values(path)
            compare(f"{extension}, middle slice", bare, lambda path=path: read_nifti(path, [slices // 2]), rounds)
            compare(f"{extension}, all slices", bare, lambda path=path: read_nifti(path, range(slices)), rounds)


def compare_pools(volume: np.ndarray, rounds: int) -> None:
    """All slices as files of each kind, each decoded once a round by two threads and by two processes."""
    grey = np.clip((volume + 1000) / 6, 0, 255).astype(np.uint8)
    wide = (volume + 2000).astype(np.uint16)
    colour = np.stack([grey] * 3, axis=-1)
    kinds: dict[str, Callable[[Path, int], object]] = {
        "JPEG": lambda path, row: Image.fromarray(colour[row]).save(path.with_suffix(".jpg")),
        "PNG, 8 bits": lambda path, row: Image.fromarray(colour[row]).save(path.with_suffix(".png")),
        "PNG, 16 bits": lambda path, row: Image.fromarray(wide[row]).save(path.with_suffix(".png")),
        "TIFF, 16 bits": lambda path, row: tifffile.imwrite(path.with_suffix(".tif"), wide[row]),
        "TIFF, 16 bits, deflate": lambda path, row: tifffile.imwrite(path.with_suffix(".tif"), wide[row], compression="zlib"),
        "DICOM": lambda path, row: write_dicom(path.with_suffix(".dcm"), volume[row]),
        "DICOM, RLE": lambda path, row: write_dicom(path.with_suffix(".dcm"), volume[row], compressed=True),
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(2) as threads,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes,
    ):
        for name, write in kinds.items():
            place = Path(folder) / name
            place.mkdir()
            for row in range(len(volume)):
                write(place / str(row), row)
            files = sorted(place.iterdir())
            pools = (threads, processes)
            for pool in pools:
                decode_all(pool, files)
            gains = [np.divide(*(seconds_of(partial(decode_all, pool, files)) for pool in pools)) for _ in range(rounds)]
            low, middle, high = np.quantile(gains, (0.25, 0.5, 0.75))
            print(f"{name:24} processes {middle:.2f} ({low:.2f} to {high:.2f}) x as fast as threads", flush=True)


def decode_all(pool: Executor, files: list[Path]) -> None:
    for _ in pool.map(decode_one, files, chunksize=len(files) // 4):
        pass


def decode_one(file: Path) -> None:
    if file.suffix == ".dcm":
        read_dicom(file, 1)
    else:
        decode_file(file)


def compare(name: str, bare: Callable[[], object], ours: Callable[[], object], rounds: int) -> None:
    bare_seconds, our_seconds = [], []
    for _ in range(rounds):
        bare_seconds.append(seconds_of(bare))
        our_seconds.append(seconds_of(ours))
    floor, best = min(bare_seconds), min(our_seconds)
    print(f"{name:24} bare {1000 * floor:8.2f} ms   crossgraft {1000 * best:8.2f} ms   ratio {best / floor:.2f}")


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def read_bare(path: Path) -> np.ndarray:
    return pydicom.dcmread(path).pixel_array


def load_values(path: Path) -> Callable[[], np.ndarray]:
    return lambda: np.asarray(nibabel.load(path).dataobj).copy()  # otherwise the file is only mapped into memory


def read_dicom(path: Path, num_frames: int) -> list[np.ndarray]:
    volume = DicomVolume(path, path.name, LUNG)
    return [volume.read_slice(index) for index in range(num_frames)]


def read_nifti(path: Path, slices: range | list[int]) -> list[np.ndarray]:
    volume = NiftiVolume(path, path.name, LUNG)
    return [volume.read_slice(index) for index in slices]


def write_dicom(path: Path, hounsfield: np.ndarray, *, compressed: bool = False) -> Path:
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    dataset.PhotometricInterpretation, dataset.SamplesPerPixel = "MONOCHROME2", 1
    dataset.Rows, dataset.Columns = hounsfield.shape[-2:]
    dataset.NumberOfFrames = len(hounsfield) if hounsfield.ndim == 3 else 1
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 12, 11, 0
    dataset.RescaleSlope, dataset.RescaleIntercept = 1, -1024
    dataset.PixelData = np.clip(hounsfield + 1024, 0, 4095).astype("<u2").tobytes()
    dataset["PixelData"].VR = "OW"
    if compressed:
        dataset.compress(RLELossless)
    dataset.save_as(path, enforce_file_format=True)
    return path


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Decoding of scanner files against its floor.")
    parser.add_argument("--smoke", action="store_true", help="a tiny run that only shows that it works")
    parser.add_argument("--pools", action="store_true", help="two threads beside two processes")
    parser.add_argument("--rounds", type=int, default=15)
    return parser.parse_args()


if __name__ == "__main__":
    main()
