"""Write the labelled sets of the studies in docs/results as tables with images, from the published files.

    python studies/sets.py FILES data      # FILES holds the .npz, .tar and .zip files that docs/results names

Each becomes data/NAME.csv and data/NAME/*.png, with the columns image, label, and where they are known split, group (no image of
one group is on both sides of a split) and another label. *small_NAME* are the sets of docs/results/ground_truth.md, *source_NAME*
those that networks of docs/results/sources.md and shortcut_sources.md are pretrained on. About five minutes of one core.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np
import pandas as pd
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from crossgraft.data import limit_rows, make_split
from crossgraft.data.checks.near_duplicates import find_near_duplicates
from crossgraft.data.class_names import natural_key
from crossgraft.data.inspection import THUMBNAIL_SIDE
from crossgraft.data.splits import PARTS
from crossgraft.seeding import generator

SIDE, LEAST_SIDE, SOURCE_IMAGES = 32, 96, 5000
"""Side of the images of sources, and of the shorter side of small sets: no network gets more than 64 pixels of these."""
MOST = {"val": 160, "test": 400}
SHARES = {"train": 0.55, "val": 0.15, "test": 0.3}
PER_CLASS = {"medical_mnist": 20, "cifar10": 40}
SMALL = ("breastmnist", "brain_mri", "retinamnist", "omniglot_greek", "busi", "pneumoniamnist", "ham10000", "medical_mnist",
         "cifar10")  # fmt: skip
MEDICAL = tuple(name for name in SMALL if name not in ("omniglot_greek", "cifar10"))
OF_FIVE = {"brain_mri": "brain", "pneumoniamnist": "chest", "retinamnist": "retina", "medical_mnist": "medical_mnist",
           "ham10000": "ham10000"}  # fmt: skip
"""No ultrasound of the breast among them."""
VEHICLES = ("airplane", "automobile", "ship", "truck")
CLASSES_OF_BUSI = ("benign", "malignant", "normal")
MELS, FRAMES, WINDOW = 64, 64, 256
REGIONS, CLASS_IN_REGION, DRAWERS = 4, 10, 4
"""Of ``ham10000_by_region``: number of regions, and images of a class in each; of ``omniglot_by_writer``: people in a domain."""


def medmnist(folder: Path, name: str) -> pd.DataFrame:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
        parts = [(part, stored[f"{part}_images"], stored[f"{part}_labels"].ravel()) for part in PARTS]
    return pd.DataFrame({
        "image": [image for _, images, _ in parts for image in images],
        "label": [str(label) for _, _, labels in parts for label in labels],
        "split": [part for part, images, _ in parts for _ in images],
    })  # fmt: skip


def cifar10(folder: Path, part: str) -> pd.DataFrame:
    with np.load(folder / "cifar10_jpeg_5000_1000.npz", allow_pickle=False) as stored:
        labels = stored["classes"][stored[f"{part}_labels"].ravel()]
        found = pd.DataFrame({"image": list(stored[f"{part}_images"]), "label": labels})
    return found.assign(coarse=["vehicle" if label in VEHICLES else "animal" for label in labels])


def medical_mnist(folder: Path) -> pd.DataFrame:
    with np.load(folder / "medical_mnist_6x400_gray64.npz", allow_pickle=False) as stored:
        return pd.DataFrame({"image": list(stored["images"]), "label": stored["classes"][stored["labels"]]})


def omniglot(folder: Path) -> pd.DataFrame:
    """136 characters of five alphabets, 20 drawings each, by the number of who drew."""
    with zipfile.ZipFile(folder / "omniglot_images_background_small1.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".png"))
        drawings = [picture(archive.open(name), "L") for name in names]
    parts = [PurePosixPath(name).parts[-3:] for name in names]
    people = [int(PurePosixPath(name).stem.split("_")[1]) for name in names]
    labels = [f"{alphabet}/{character}" for alphabet, character, _ in parts]
    return pd.DataFrame({"image": drawings, "label": labels, "alphabet": [each[0] for each in parts], "person": people})


def picture(file: IO[bytes], mode: str | None = None) -> np.ndarray:
    """(height, width) or (height, width, 3) pixels."""
    return np.asarray(Image.open(file).convert(mode) if mode else Image.open(file))


def ham10000(folder: Path, *further: str) -> pd.DataFrame:
    """2075 pictures of 1562 lesions, with further columns of the published table."""
    with tarfile.open(folder / "ham10000_subset_jpg200x150.tar") as archive:
        rows = pd.read_csv(archive.extractfile("ham10000_subset/metadata.csv"), dtype=str, keep_default_na=False)
        files = [f"ham10000_subset/images/{name}.jpg" for name in rows["image_id"]]
        pictures = [picture(archive.extractfile(file)) for file in files]
    named = {"label": "dx", "group": "lesion_id", **{name: name for name in further}}
    return pd.DataFrame({"image": pictures, **{name: rows[column] for name, column in named.items()}})


def ultrasound_or_slices(folder: Path, archive_name: str, classes: Iterable[str]) -> pd.DataFrame:
    """Folders of classes; pictures that look alike are one group, because patients are not known."""
    with tarfile.open(folder / archive_name) as archive:
        names = sorted(each.name for each in archive.getmembers() if each.isfile())
        names = [name for name in names if PurePosixPath(name).parts[-2:-1] and PurePosixPath(name).parts[-2] in classes]
        pictures = [picture(archive.extractfile(name), "L") for name in names]
    labels = [PurePosixPath(name).parts[-2] for name in names]
    return pd.DataFrame({"image": pictures, "label": labels, "group": alike(pictures)})


def alike(pictures: list[np.ndarray]) -> np.ndarray:
    """(n,) number of the group of each picture: connected by near duplicates."""
    side = (THUMBNAIL_SIDE, THUMBNAIL_SIDE)
    thumbnails = np.stack([np.asarray(Image.fromarray(each).resize(side, Image.Resampling.BOX)) for each in pictures])
    first, second = find_near_duplicates(thumbnails).pairs.T
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(len(pictures), len(pictures)))
    return connected_components(graph, directed=False)[1]


def spoken_digits(folder: Path) -> pd.DataFrame:
    """1200 spoken digits as spectrograms, by speaker."""
    with np.load(folder / "free_spoken_digits_1200.npz", allow_pickle=False) as stored:
        clips = [stored["audio"][start:stop].astype(np.float64) for start, stop in pairwise(stored["offsets"])]
        pictures = [spectrogram(clip, int(stored["sample_rate"])) for clip in clips]
        return pd.DataFrame({"image": pictures, "label": stored["labels"].astype(str), "group": stored["speakers"]})


def spectrogram(sound: np.ndarray, rate: int) -> np.ndarray:
    """(MELS, FRAMES) picture of the power in bands of the mel scale over time, 80 dB from black to white."""
    hop = max(1, (len(sound) - WINDOW) // (FRAMES - 1))
    padded = np.pad(sound, (0, max(0, WINDOW + hop * (FRAMES - 1) - len(sound))))
    frames = np.stack([padded[place * hop : place * hop + WINDOW] for place in range(FRAMES)], axis=1)
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW)[:, None], axis=0)) ** 2
    decibels = 10 * np.log10(np.maximum(mel_bands(len(power), rate) @ power, 1e-10))
    return np.round(255 * np.clip((decibels - decibels.max() + 80) / 80, 0, 1)[::-1]).astype(np.uint8)


def mel_bands(num_frequencies: int, rate: int) -> np.ndarray:
    """Triangles with equal distances of their tips on the mel scale."""
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), MELS + 2) / 2595) - 1)
    frequencies = np.linspace(0, rate / 2, num_frequencies)
    low, tip, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    bands = np.maximum(0, np.minimum((frequencies - low) / (tip - low), (high - frequencies) / (high - tip)))
    nearest = np.abs(frequencies - tip).argmin(axis=1)  # a triangle between two frequencies has none
    bands[np.arange(MELS), nearest] = np.maximum(bands[np.arange(MELS), nearest], 1e-3)
    return bands


def ham10000_by_region(folder: Path) -> pd.DataFrame:
    """The four regions of the body with the most images; classes with at least ten images in each of them; lesions are groups."""
    found = ham10000(folder, "localization")
    found = found[found["localization"].isin(found["localization"].value_counts().index[:REGIONS])]
    fewest = pd.crosstab(found["label"], found["localization"]).min(axis=1)
    found = found[found["label"].map(fewest) >= CLASS_IN_REGION].reset_index(drop=True)
    return found.assign(image=[smaller(image) for image in found["image"]]).rename(columns={"localization": "region"})


def omniglot_by_writer(characters: pd.DataFrame) -> pd.DataFrame:
    """The 26 Latin letters of Omniglot, by 20 people who drew each letter once: five domains of four people, by their numbers.

    People are no groups: of those who are in training, other letters pick the model.
    """
    found = characters[characters["alphabet"] == "Latin"].reset_index(drop=True)
    first = found["person"] - (found["person"] - 1) % DRAWERS
    drawers = first.astype(str) + "-" + (first + DRAWERS - 1).astype(str)
    return pd.DataFrame({"image": found["image"], "label": found["label"].str.partition("/")[2], "drawers": drawers})


def small(whole: pd.DataFrame, per_class: int) -> pd.DataFrame:
    """Few images of each part; one that is also in test, then in val, pixel by pixel, is left out of the others."""
    targets = place_of_class(whole["label"]) if "target" not in whole else whole["target"].to_numpy()
    groups = whole["group"].to_numpy() if "group" in whole else None
    drawn = None if "split" in whole else make_split(targets, groups, fractions=SHARES, seed=0).part_names()
    whole = whole.assign(target=targets, split=whole["split"] if drawn is None else drawn)
    seen: set[bytes] = set()
    kept: list[int] = []
    for part in reversed(PARTS):
        pixels = {row: whole.at[row, "image"].tobytes() for row in whole.index[whole["split"] == part]}
        rows = np.array([row for row, content in pixels.items() if content not in seen])
        seen |= set(pixels.values())
        if part == "train":
            classes = [rows[targets[rows] == each] for each in np.unique(targets[rows])]
            kept += [row for each in classes for row in spread(each, per_class)]
        else:
            most = MOST[part]
            kept += (rows if len(rows) <= most else rows[limit_rows(targets[rows], most, seed=0)]).tolist()
    found = whole.loc[sorted(kept)].drop(columns="target")
    return found.assign(image=[smaller(image) for image in found["image"]])


def place_of_class(labels: pd.Series) -> np.ndarray:
    """(n,) as crossgraft numbers classes."""
    names = sorted(set(labels), key=natural_key)
    return np.array([names.index(label) for label in labels])


def spread(rows: np.ndarray, most: int) -> np.ndarray:
    """At most so many rows, at equal distances."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


def smaller(image: np.ndarray) -> np.ndarray:
    """Bring the shorter side to ``LEAST_SIDE`` where it is longer."""
    factor = LEAST_SIDE / min(image.shape[:2])
    size = [round(side * factor) for side in image.shape[1::-1]]
    return image if factor >= 1 else np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BOX))


def resized(image: np.ndarray, side: int) -> np.ndarray:
    """Squashed to a square; smaller ones by means over areas."""
    how = Image.Resampling.BOX if min(image.shape[:2]) >= side else Image.Resampling.BICUBIC
    return np.asarray(Image.fromarray(image).resize((side, side), how))


def pooled(sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Images of several sets; a class is a set and its class."""
    parts = []
    for name, found in sets.items():
        own = found["group"] if "group" in found else range(len(found))
        parts.append(pd.DataFrame({
            "image": [resized(image, SIDE) for image in found["image"]],
            "label": [f"{name} {label}" for label in found["label"]],
            "group": [f"{name} {group}" for group in own],
        }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def evenly(sets: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """``SOURCE_IMAGES`` of five sets: as many of each, but where a set has fewer."""
    numbers, left = dict[str, int](), SOURCE_IMAGES
    for place, (name, found) in enumerate(sorted(sets.items(), key=lambda each: len(each[1]))):
        numbers[name] = min(len(found), left // (len(sets) - place))
        left -= numbers[name]
    rows = {name: np.sort(generator(0, "source", name).permutation(len(sets[name]))[:most]) for name, most in numbers.items()}
    return {name: sets[name].iloc[chosen].drop(columns="group", errors="ignore") for name, chosen in rows.items()}


def sets_of(folder: Path) -> dict[str, Callable[[], pd.DataFrame]]:
    """Name → what reads or makes it; what is published is read once."""
    slices, ultrasound = ("brain_mri_tumor_yes_no_253.tar.gz", ("yes", "no")), ("busi_780_gray128.tar", CLASSES_OF_BUSI)
    found: dict[str, Callable[[], pd.DataFrame]] = {
        **{name: partial(medmnist, folder, name) for name in ("breastmnist", "retinamnist", "pneumoniamnist")},
        "brain_mri": partial(ultrasound_or_slices, folder, *slices),
        "busi": partial(ultrasound_or_slices, folder, *ultrasound),
        **{each.__name__: partial(each, folder) for each in (ham10000, medical_mnist, omniglot, spoken_digits)},
        "cifar10": partial(cifar10, folder, "train"),
        "cifar10_test": partial(cifar10, folder, "test"),
    }
    found = {name: cache(make) for name, make in found.items()}
    published = {"omniglot": lambda: found["omniglot"]().drop(columns="person")}

    def greek() -> pd.DataFrame:
        characters = published["omniglot"]()
        characters = characters.assign(target=place_of_class(characters["label"]))  # of all alphabets: it decides what is drawn
        return characters[characters["alphabet"] == "Greek"].reset_index(drop=True)

    made = {
        f"small_{name}": lambda name=name: small((found | {"omniglot_greek": greek})[name](), PER_CLASS.get(name, 100))
        for name in SMALL
    }
    for target in MEDICAL:
        breast = ("breastmnist", "busi")
        others = [name for name in MEDICAL if name != target and not {name, target} <= {*breast}]
        distinct = [name for name in others if name != "busi" or "breastmnist" not in others]  # the same images
        made[f"source_{target}"] = lambda target=target: pooled({target: found[target]()})
        made[f"source_all_but_{target}"] = lambda distinct=distinct: pooled({name: found[name]() for name in distinct})
    made["source_medical"] = lambda: pooled(evenly({title: found[name]() for name, title in OF_FIVE.items()})).drop(
        columns="group"
    )
    # nobody is a group: who is left out is never in training, and of all others new recordings pick the model
    made["digits_by_speaker"] = lambda: found["spoken_digits"]().rename(columns={"group": "speaker"})
    made["ham10000_by_region"] = lambda: ham10000_by_region(folder)
    made["omniglot_by_writer"] = lambda: omniglot_by_writer(found["omniglot"]())
    made["ham10000_people"] = lambda: ham10000(folder, "age", "sex")
    made["ham10000_one"] = lambda: found["ham10000"]().drop_duplicates("group").reset_index(drop=True)
    made["busi_64"] = lambda: (busi := found["busi"]()).assign(image=[resized(image, 64) for image in busi["image"]])
    return found | published | made


def write(found: pd.DataFrame, folder: Path, name: str) -> None:
    """Images first, the table last."""
    files = [f"{name}/{row:05}.png" for row in range(len(found))]
    (folder / name).mkdir(parents=True, exist_ok=True)
    for file, image in zip(files, found["image"], strict=True):
        Image.fromarray(image).save(folder / file)
    found.assign(image=files).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def main(arguments: list[str]) -> None:
    files, out = map(Path, arguments)
    for name, make in sets_of(files).items():
        if not (out / f"{name}.csv").is_file():
            write(make(), out, name)
            print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
