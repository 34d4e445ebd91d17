"""The labelled images of the few-shot study, with what may not be on both sides of an episode."""

from __future__ import annotations

import csv
import io
import tarfile
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from studies import noise

from crossgraft.data import Dataset
from crossgraft.data.checks.near_duplicates import find_near_duplicates
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.inspection import THUMBNAIL_SIDE

MELS, FRAMES, WINDOW = 64, 64, 256


CIFAR_IN_IMAGENET = {
    "airplane": [404, 895],
    "automobile": [436, 468, 511, 609, 627, 656, 751, 817],
    "bird": [*range(7, 25), *range(80, 101), *range(127, 147)],
    "cat": [*range(281, 286)],
    "deer": [351, 352, 353],  # antelopes: there is no deer
    "dog": [*range(151, 269)],
    "frog": [30, 31, 32],
    "horse": [339],
    "ship": [510, 554, 628, 814],
    "truck": [555, 569, 675, 717, 864, 867],
}
"""Numbers of the ImageNet classes that name a class of CIFAR-10."""


class Images(NamedTuple):
    """What episodes are drawn from.

    Attributes:
        dataset: Images with labels, and groups of which none is in support and queries.
        superclasses: (n,) group of classes of each image, of which an episode takes one; or None.
    """

    dataset: Dataset
    superclasses: np.ndarray | None = None


class FewshotSet(NamedTuple):
    """One labelled set.

    Attributes:
        name: For files.
        title: For people.
        opened: Reads it from the folder of data.
        unfit: Networks that were trained on these very classes.
        named: Class → ImageNet classes that name it; empty where there are none.
        shots: Support images per class that it is large enough for.
    """

    name: str
    title: str
    opened: Callable[[Path], Images]
    unfit: tuple[str, ...] = ()
    shots: tuple[int, ...] = (1, 5, 20)
    named: dict[str, list[int]] = {}  # noqa: RUF012 (never written to)


def omniglot(folder: Path) -> Images:
    """136 characters of five alphabets, 20 drawings each; an episode has characters of one alphabet."""
    drawings: list[np.ndarray] = []
    characters: list[str] = []
    with zipfile.ZipFile(folder / "omniglot_images_background_small1.zip") as archive:
        for name in sorted(name for name in archive.namelist() if name.endswith(".png")):
            drawings.append(np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("L")))
            characters.append("/".join(PurePosixPath(name).parts[-3:-1]))
    alphabets = np.array([name.split("/")[0] for name in characters])
    return Images(dataset_from_arrays(drawings, characters, name="omniglot"), alphabets)


def cifar(folder: Path) -> Images:
    """The 1000 images of the test part."""
    with np.load(folder / "cifar10_jpeg_5000_1000.npz", allow_pickle=False) as stored:
        labels = stored["classes"][stored["test_labels"].ravel()]
        return Images(dataset_from_arrays(stored["test_images"], labels, name="cifar10"))


def ham10000(folder: Path) -> Images:
    """2075 pictures of 1562 lesions; no lesion is on both sides."""
    with tarfile.open(folder / "ham10000_subset_jpg200x150.tar") as archive:
        rows = list(csv.DictReader(io.TextIOWrapper(_member(archive, "ham10000_subset/metadata.csv"), "utf-8")))
        pictures = [np.asarray(Image.open(_member(archive, f"ham10000_subset/images/{row['image_id']}.jpg"))) for row in rows]
    labels, lesions = [row["dx"] for row in rows], [row["lesion_id"] for row in rows]
    return Images(dataset_from_arrays(pictures, labels, groups=lesions, name="ham10000"))


def retina(folder: Path) -> Images:
    """RetinaMNIST, all 1600 images."""
    with np.load(folder / "retinamnist.npz", allow_pickle=False) as stored:
        images, labels = (
            np.concatenate([stored[f"{part}_{what}"] for part in ("train", "val", "test")]) for what in ("images", "labels")
        )
    return Images(dataset_from_arrays(images, labels.ravel(), name="retinamnist"))


def medical_mnist(folder: Path) -> Images:
    """Six kinds of pictures, 400 each."""
    with np.load(folder / "medical_mnist_6x400_gray64.npz", allow_pickle=False) as stored:
        labels = stored["classes"][stored["labels"]]
        return Images(dataset_from_arrays(stored["images"], labels, name="medical_mnist"))


def busi(folder: Path) -> Images:
    """780 breast ultrasounds; frames that look alike are one group, because patients are not known."""
    frames: list[np.ndarray] = []
    labels: list[str] = []
    with tarfile.open(folder / "busi_780_gray128.tar") as archive:
        for name in sorted(name for name in archive.getnames() if name.endswith(".png")):
            frames.append(np.asarray(Image.open(_member(archive, name)).convert("L")))
            labels.append(PurePosixPath(name).parts[-2])
    return Images(dataset_from_arrays(frames, labels, groups=alike(frames), name="busi"))


def spoken_digits(folder: Path) -> Images:
    """1200 spoken digits as spectrograms; no speaker is on both sides."""
    with np.load(folder / "free_spoken_digits_1200.npz", allow_pickle=False) as stored:
        offsets, sound, rate = stored["offsets"], stored["audio"], int(stored["sample_rate"])
        clips = [sound[start:stop] for start, stop in pairwise(offsets)]
        labels, speakers = stored["labels"], stored["speakers"]
    pictures = [spectrogram(clip.astype(np.float64), rate) for clip in clips]
    return Images(dataset_from_arrays(pictures, labels, groups=speakers, name="spoken_digits"))


def alike(frames: list[np.ndarray]) -> np.ndarray:
    """(n,) number of the group of each picture: connected by near duplicates."""
    side = (THUMBNAIL_SIDE, THUMBNAIL_SIDE)
    thumbnails = np.stack([np.asarray(Image.fromarray(frame).resize(side, Image.Resampling.BOX)) for frame in frames])
    first, second = find_near_duplicates(thumbnails).pairs.T
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(len(frames), len(frames)))
    return connected_components(graph, directed=False)[1]


def spectrogram(sound: np.ndarray, rate: int) -> np.ndarray:
    """(MELS, FRAMES) picture of the power in bands of the mel scale over time, 80 dB from black to white."""
    hop = max(1, (len(sound) - WINDOW) // (FRAMES - 1))
    padded = np.pad(sound, (0, max(0, WINDOW + hop * (FRAMES - 1) - len(sound))))
    frames = np.stack([padded[place * hop : place * hop + WINDOW] for place in range(FRAMES)], axis=1)
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW)[:, None], axis=0)) ** 2
    decibels = 10 * np.log10(np.maximum(_mel_bands(len(power), rate) @ power, 1e-10))
    scaled = (decibels - decibels.max() + 80) / 80
    return np.round(255 * np.clip(scaled, 0, 1)[::-1]).astype(np.uint8)


def _mel_bands(num_frequencies: int, rate: int) -> np.ndarray:
    """Triangles with equal distances of their tips on the mel scale."""
    mels = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), MELS + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    frequencies = np.linspace(0, rate / 2, num_frequencies)
    low, tip, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (frequencies - low) / (tip - low), (high - frequencies) / (high - tip)
    bands = np.maximum(0, np.minimum(rising, falling))
    nearest = np.abs(frequencies - tip).argmin(axis=1)  # a triangle between two frequencies has none
    bands[np.arange(MELS), nearest] = np.maximum(bands[np.arange(MELS), nearest], 1e-3)
    return bands


def _member(archive: tarfile.TarFile, name: str) -> io.BytesIO:
    found = archive.extractfile(name)
    if found is None:
        raise FileNotFoundError(f"{archive.name} has no file {name}.")
    return io.BytesIO(found.read())


SETS = (
    FewshotSet("omniglot", "Omniglot", omniglot, shots=(1, 5)),
    FewshotSet("cifar10", "CIFAR-10, test", cifar, unfit=("resnet20", "universal"), named=CIFAR_IN_IMAGENET),
    FewshotSet("ham10000", "HAM10000, by lesion", ham10000),
    FewshotSet("retinamnist", "RetinaMNIST", retina),
    FewshotSet("medical_mnist", "Medical MNIST", medical_mnist),
    FewshotSet("busi", "BUSI, by look", busi),
    FewshotSet("spoken_digits", "Spoken digits, by speaker", spoken_digits),
)
SMOKE_SETS = (FewshotSet("noise", "Noise", lambda _: Images(noise("noise")), shots=(1, 5)),)


def brain(folder: Path) -> Dataset:
    """253 slices; those that look alike are one group, because patients are not known."""
    pictures: list[np.ndarray] = []
    labels: list[str] = []
    with tarfile.open(folder / "brain_mri_tumor_yes_no_253.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda each: each.name):
            opened = archive.extractfile(member) if member.isfile() else None
            if opened is not None and PurePosixPath(member.name).parent.name in ("yes", "no"):
                pictures.append(np.asarray(Image.open(io.BytesIO(opened.read())).convert("L")))
                labels.append(PurePosixPath(member.name).parent.name)
    return dataset_from_arrays(pictures, labels, groups=alike(pictures), name="brain_mri")
