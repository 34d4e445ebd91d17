"""Do the networks of examples/own_models still do what is said about their weights? Writes docs/results/own-models.csv.

    CROSSGRAFT_DATA=folder python studies/own_models.py    # the folder holds ``datasets`` and ``weights``

Top-1 accuracy of the CIFAR ResNets, accuracy and AUC of the pneumonia CNN, few-shot accuracy of the Omniglot encoder, and how far
the MobileNets are from their recorded outputs. Images go through the same preprocessing as in every other command. A minute.
"""

from __future__ import annotations

import copy
import io
import json
import os
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from scipy import stats
from sklearn.metrics import roc_auc_score

from crossgraft.compute import limit_threads
from crossgraft.data import open_dataset
from crossgraft.data.transforms import prepare_batch
from crossgraft.features import extract_features
from crossgraft.metrics import accuracy
from crossgraft.models import Backbone, load_backbone, read_zoo
from crossgraft.seeding import generator
from crossgraft.statistics import jackknife_blocks, jackknife_interval

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "own_models"
N_WAY, N_SHOT, N_QUERY, NUM_EPISODES = 5, 5, 15, 60


def measure(folder: Path) -> pd.DataFrame:
    """One row a number: ``part``, ``what``, ``value`` and, but for differences, ``low`` and ``high``."""
    parts = {"cifar": cifar, "pneumonia": pneumonia, "omniglot": omniglot, "mobilenets": mobilenets}
    rows = [(part, *row) for part, found in parts.items() for row in found(folder)]
    return pd.DataFrame(rows, columns=["part", "what", "value", "low", "high"])


Row = tuple[str, float, float | None, float | None]


def networks(folder: Path, zoo: str) -> dict[str, Backbone]:
    specs = read_zoo(EXAMPLES / zoo, weights_dir=folder / "weights", allow_code=EXAMPLES)
    return {spec.name: load_backbone(spec, weights_dir=folder / "weights") for spec in specs}


def source_logits(folder: Path, file: str, backbone: Backbone) -> tuple[np.ndarray, np.ndarray]:
    """Of the test part of a set, and its classes."""
    dataset = open_dataset(folder / "datasets" / file, use_split="test")
    return extract_features(dataset, backbone).source_logits, dataset.targets


def cifar(folder: Path) -> Iterator[Row]:
    """Top-1 accuracy on JPEG copies of 1000 test images."""
    for name, backbone in networks(folder, "small_networks.yaml").items():
        if name.endswith("CIFAR-10"):
            logits, targets = source_logits(folder, "cifar10_jpeg_5000_1000.npz", backbone)
            yield name, *accuracy(logits.argmax(axis=1) == targets)[:3]


def pneumonia(folder: Path) -> Iterator[Row]:
    """On 624 test images; the interval of the AUC is a jackknife's."""
    backbone = networks(folder, "small_networks.yaml")["pneumonia_cnn · PneumoniaMNIST"]
    logits, targets = source_logits(folder, "pneumoniamnist.npz", backbone)
    yield "accuracy", *accuracy(logits.argmax(axis=1) == targets)[:3]
    evidence = logits[:, 1] - logits[:, 0]
    without = [np.delete(np.arange(len(targets)), block) for block in jackknife_blocks(targets)]
    area = jackknife_interval(
        roc_auc_score(targets, evidence), [roc_auc_score(targets[rows], evidence[rows]) for rows in without]
    )
    yield "area under the ROC curve", area.value, area.low, area.high


def omniglot(folder: Path) -> Iterator[Row]:
    """Nearest class mean in episodes of 5 characters with 5 drawings each, 15 as query."""
    specs = read_zoo(EXAMPLES / "small_networks.yaml", weights_dir=folder / "weights", allow_code=EXAMPLES)
    spec = next(spec for spec in specs if spec.name == "conv4 · Omniglot")
    trained, random = (load_backbone(s, weights_dir=folder / "weights") for s in (spec, replace(spec, weights="random")))
    drawings: dict[str, list[np.ndarray]] = defaultdict(list)
    with zipfile.ZipFile(folder / "datasets" / "omniglot_images_background_small1.zip") as archive:
        for name in sorted(name for name in archive.namelist() if name.endswith(".png")):
            image = Image.open(io.BytesIO(archive.read(name))).convert("L")
            drawings[name.rpartition("/")[0]].append(np.asarray(image)[..., np.newaxis])
    characters = [prepare_batch(of_character, trained.preprocessing) for of_character in drawings.values()]
    for name, backbone, train_mode in (
        ("conv4, statistics of the batch", trained, True),
        ("conv4, stored statistics", trained, False),
        ("random weights, of the batch", random, True),
        ("random weights, stored", random, False),
    ):
        values = few_shot(backbone, characters, train_mode=train_mode)
        half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
        yield name, values.mean(), values.mean() - half, values.mean() + half


def few_shot(
    backbone: Backbone, characters: Sequence[torch.Tensor], *, train_mode: bool, num_episodes: int = NUM_EPISODES
) -> np.ndarray:
    """Accuracy of each episode.

    In train mode batch normalisation uses the statistics of the batch: support and query are one batch each, as in
    the code of the Relation Network.
    """
    encoder = copy.deepcopy(backbone.module).train(train_mode)
    accuracies = []
    for episode in range(num_episodes):
        rng = generator(0, "omniglot", episode)
        chosen = rng.choice(len(characters), N_WAY, replace=False)
        drawings = [characters[i][rng.permutation(len(characters[i]))[: N_SHOT + N_QUERY]] for i in chosen]
        with torch.inference_mode():
            support = encoder(torch.cat([drawn[:N_SHOT] for drawn in drawings])).flatten(1)
            query = encoder(torch.cat([drawn[N_SHOT:] for drawn in drawings])).flatten(1)
        centroids = support.reshape(N_WAY, N_SHOT, -1).mean(dim=1)
        nearest = torch.cdist(query, centroids).argmin(dim=1)
        accuracies.append(float((nearest == torch.arange(N_WAY).repeat_interleave(N_QUERY)).float().mean()))
    return np.array(accuracies)


def mobilenets(folder: Path) -> Iterator[Row]:
    """Largest difference of the first outputs for a fixed input to those that were recorded, with 4 decimals."""
    recorded = json.loads((folder / "weights" / "fidelity_reference.json").read_text(encoding="utf-8"))["checkpoints"]
    for spec in read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=folder / "weights", allow_code=EXAMPLES):
        backbone, stated = load_backbone(spec, weights_dir=folder / "weights"), recorded[Path(spec.weights).name]["probe_first8"]
        size = (1, 3, backbone.preprocessing.height_pixels, backbone.preprocessing.width_pixels)
        output = backbone(torch.linspace(-1, 1, 3 * size[2] * size[3]).reshape(size))
        found = output.features if output.source_logits is None else output.source_logits
        yield spec.name, float((found[0, : len(stated)] - torch.tensor(stated)).abs().max()), None, None


if __name__ == "__main__":
    with limit_threads(1):
        found = measure(Path(os.environ["CROSSGRAFT_DATA"]))
    found.to_csv(ROOT / "docs" / "results" / "own-models.csv", index=False, float_format="%.6g", lineterminator="\n")
