"""Do the networks of examples/own_models still do what is said about their weights?

    python recipes/own_models.py --data-dir datasets --weights-dir weights   # the numbers of docs/results/own-models.md
    python recipes/own_models.py --smoke                                     # random weights and noise; seconds

Prints top-1 accuracy of the CIFAR ResNets, accuracy and area under the ROC curve of the pneumonia CNN, few-shot
accuracy of the Omniglot encoder, and how far the MobileNets are from their recorded outputs. Images go through the
same preprocessing as in every other command.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import yaml
from PIL import Image
from scipy import stats
from sklearn.metrics import roc_auc_score

from crossgraft.compute import limit_threads
from crossgraft.data import open_dataset
from crossgraft.data.dataset import Dataset, dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.features import extract_features
from crossgraft.metrics import Accuracy, accuracy
from crossgraft.models import Backbone, load_backbone, read_zoo
from crossgraft.models.spec import RANDOM, ModelSpec, spec_from_entry
from crossgraft.models.trusted_code import trusted_code
from crossgraft.seeding import generator
from crossgraft.statistics import Estimate, jackknife_blocks, jackknife_interval

EXAMPLES = Path(__file__).parents[1] / "examples" / "own_models"
N_WAY, N_SHOT, N_QUERY = 5, 5, 15


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    with limit_threads(arguments.threads):
        specs = read_specs(random=arguments.smoke)
        data = NoData() if arguments.smoke else RealData(arguments.data_dir)
        num_episodes = 3 if arguments.smoke else arguments.episodes
        print_cifar(specs, data, arguments.weights_dir)
        print_pneumonia(specs, data, arguments.weights_dir)
        print_omniglot(specs, data, arguments.weights_dir, num_episodes)
        if not arguments.smoke:
            print_mobilenets(arguments.weights_dir)


def read_specs(*, random: bool = False) -> dict[str, ModelSpec]:
    """The entries of small_networks.yaml by name; with random weights, no file is needed."""
    entries = yaml.safe_load((EXAMPLES / "small_networks.yaml").read_text(encoding="utf-8"))
    specs = [
        spec_from_entry(entry, folder=EXAMPLES, trusted=trusted_code(EXAMPLES), where="small_networks.yaml") for entry in entries
    ]
    return {spec.name: replace(spec, weights=RANDOM) if random else spec for spec in specs}


class RealData:
    """The images that the numbers are about."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cifar(self) -> Dataset:
        """The 1000 images of the test part."""
        return open_dataset(self.folder / "cifar10_jpeg_5000_1000.npz", use_split="test")

    def pneumonia(self) -> Dataset:
        """The 624 images of the test split."""
        return open_dataset(self.folder / "pneumoniamnist.npz", use_split="test")

    def omniglot(self) -> list[list[Image.Image]]:
        """Drawings by character, in the order of their names."""
        characters: dict[str, list[Image.Image]] = defaultdict(list)
        with zipfile.ZipFile(self.folder / "omniglot_images_background_small1.zip") as archive:
            for name in sorted(name for name in archive.namelist() if name.endswith(".png")):
                characters[name.rpartition("/")[0]].append(Image.open(io.BytesIO(archive.read(name))))
        return list(characters.values())


class NoData:
    """Noise of the right shapes."""

    def __init__(self) -> None:
        self.rng = generator(0, "noise")

    def cifar(self) -> Dataset:
        """20 colour images of 10 classes."""
        return self._noise((20, 32, 32, 3), 10)

    def pneumonia(self) -> Dataset:
        """40 grey images of 2 classes."""
        return self._noise((40, 28, 28), 2)

    def omniglot(self) -> list[list[Image.Image]]:
        """6 characters with 20 drawings each."""
        return [[Image.fromarray(self.rng.random((105, 105)) > 0.1) for _ in range(20)] for _ in range(6)]

    def _noise(self, shape: tuple[int, ...], num_classes: int) -> Dataset:
        labels = np.arange(shape[0]) % num_classes
        return dataset_from_arrays(self.rng.integers(0, 256, shape, dtype=np.uint8), labels, name="noise")


def top_1(backbone: Backbone, dataset: Dataset) -> Accuracy:
    """Share of images whose largest source logit is their class."""
    logits = extract_features(dataset, backbone).source_logits
    return accuracy(logits.argmax(axis=1) == dataset.targets)


def area_under_roc(backbone: Backbone, dataset: Dataset) -> Estimate:
    """Of class 1 against class 0, with a jackknife interval."""
    logits = extract_features(dataset, backbone).source_logits
    evidence, targets = logits[:, 1] - logits[:, 0], dataset.targets
    without = [np.delete(np.arange(len(targets)), block) for block in jackknife_blocks(targets)]
    return jackknife_interval(
        roc_auc_score(targets, evidence), [roc_auc_score(targets[rows], evidence[rows]) for rows in without]
    )


def few_shot(backbone: Backbone, characters: Sequence[torch.Tensor], *, train_mode: bool, num_episodes: int) -> np.ndarray:
    """Accuracy of each episode: 5 characters, 5 drawings each as support, 15 as query, nearest class mean.

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


class PreparedCharacters(Sequence[torch.Tensor]):
    """Inputs (drawings, 1, 28, 28) of each character, made when an episode asks for it first: most are never asked for."""

    def __init__(self, backbone: Backbone, characters: Sequence[Sequence[Image.Image]]) -> None:
        self._preprocessing = backbone.preprocessing
        self._characters = characters
        self._made: dict[int, torch.Tensor] = {}

    def __len__(self) -> int:
        return len(self._characters)

    def __getitem__(self, index: int) -> torch.Tensor:
        if index not in self._made:
            drawings = [np.asarray(drawing.convert("L"))[..., np.newaxis] for drawing in self._characters[index]]
            self._made[index] = prepare_batch(drawings, self._preprocessing)
        return self._made[index]


def mean_with_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval of independent values, by Student's t."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)


def largest_difference(backbone: Backbone, reference: Sequence[float]) -> float:
    """Between the first outputs for a fixed input and those that were recorded."""
    size = (1, 3, backbone.preprocessing.height_pixels, backbone.preprocessing.width_pixels)
    output = backbone(torch.linspace(-1, 1, 3 * size[2] * size[3]).reshape(size))
    found = output.features if output.source_logits is None else output.source_logits
    return float((found[0, : len(reference)] - torch.tensor(reference)).abs().max())


def print_cifar(specs: dict[str, ModelSpec], data: RealData | NoData, weights_dir: Path | None) -> None:
    dataset = data.cifar()
    print(f"CIFAR-10, {len(dataset)} JPEG copies of test images: top-1 accuracy")
    for name in (name for name in specs if name.endswith("CIFAR-10")):
        print(f"  {name:32} {percent(*top_1(load_backbone(specs[name], weights_dir=weights_dir), dataset)[:3])}")


def print_pneumonia(specs: dict[str, ModelSpec], data: RealData | NoData, weights_dir: Path | None) -> None:
    dataset = data.pneumonia()
    backbone = load_backbone(specs["pneumonia_cnn · PneumoniaMNIST"], weights_dir=weights_dir)
    area = area_under_roc(backbone, dataset)
    print(f"PneumoniaMNIST, {len(dataset)} test images")
    print(f"  accuracy                         {percent(*top_1(backbone, dataset)[:3])}")
    print(f"  area under the ROC curve         {area.value:.3f} [{area.low:.3f}, {area.high:.3f}]")


def print_omniglot(specs: dict[str, ModelSpec], data: RealData | NoData, weights_dir: Path | None, num_episodes: int) -> None:
    spec = specs["conv4 · Omniglot"]
    trained, random = (load_backbone(s, weights_dir=weights_dir) for s in (spec, replace(spec, weights=RANDOM)))
    characters = PreparedCharacters(trained, data.omniglot())
    print(f"Omniglot, {len(characters)} characters, {num_episodes} episodes of {N_WAY} classes with {N_SHOT} drawings")
    for name, backbone, train_mode in (
        ("conv4, statistics of the batch", trained, True),
        ("conv4, stored statistics", trained, False),
        ("random weights, of the batch", random, True),
        ("random weights, stored", random, False),
    ):
        values = few_shot(backbone, characters, train_mode=train_mode, num_episodes=num_episodes)
        print(f"  {name:32} {percent(*mean_with_interval(values))}")


def print_mobilenets(weights_dir: Path) -> None:
    recorded = json.loads((weights_dir / "fidelity_reference.json").read_text(encoding="utf-8"))["checkpoints"]
    print("MobileNets: largest difference to the recorded outputs, which have 4 decimals")
    for spec in read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=weights_dir, allow_code=EXAMPLES):
        backbone = load_backbone(spec, weights_dir=weights_dir)
        print(f"  {spec.name:32} {largest_difference(backbone, recorded[Path(spec.weights).name]['probe_first8']):.5f}")


def percent(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=Path("datasets"), help="holds the image files")
    parser.add_argument("--weights-dir", type=Path, help="holds the weight files")
    parser.add_argument("--episodes", type=int, default=60, help="of few-shot classification")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="random weights and noise; the numbers mean nothing")
    parsed = parser.parse_args(arguments)
    if parsed.weights_dir is None and not parsed.smoke:
        parser.error("name the folder of the weight files with --weights-dir, or try --smoke")
    return parsed


if __name__ == "__main__":
    main()
