"""Does every family of timm and torchvision work: features, layers, scores? Measures docs/results/backbones/families.csv.

    python studies/timm_families.py                    # what was measured with other versions; 20 minutes of one core
    python studies/timm_families.py --only levit,volo
    python studies/timm_families.py --find-smallest    # look for the smallest model of each family anew; about 15 minutes

One family is one module of ``timm.models.list_modules()``, and for torchvision the family that a name suggests. Its
smallest model is built with random weights and goes the way of every model: ``load_backbone``, ``extract_features`` on
16 real images, activations of its main layers, every score. Features are then checked by timm's own methods, which
share no code with what is checked: where the head is one linear layer, head(features) must be the output of the model;
otherwise features must be what ``forward_head(forward_features(images), pre_logits=True)`` returns. A family that fails
stands in the table with its reason.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import timm
import torch
import torchvision
from sklearn.datasets import load_sample_images
from torch import Tensor, nn

from crossgraft.compute import limit_threads
from crossgraft.data.dataset import Dataset, dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import NotApplicable
from crossgraft.features import extract_features
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.models.sources.torchvision_models import torchvision_names, weights_of
from crossgraft.models.spec import TORCHVISION_PREFIX, family_of
from crossgraft.scores import SCORES, ScoreInputs

TABLE = Path(__file__).parents[1] / "docs" / "results" / "backbones" / "families.csv"
VERSIONS = f"timm {timm.__version__}, torch {torch.__version__}, torchvision {torchvision.__version__}"
KNOWN = ["library", "family", "model", "num_parameters", "image_size"]
MEASURED = ["millions", "head", "num_features", "difference", "num_layers", "scores", "seconds", "failure", "versions"]
SAME, SMALLEST_SIGNAL = 1e-5, 1e-4
IMAGE_SIZES = (64, 96, 112, 128, 160, 192, 224, 256, 384)
"""The last feature maps of most networks are 32 times smaller; 64 pixels leave 2×2 positions to be pooled."""


def main(command_line: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of families, separated by commas")
    parser.add_argument("--find-smallest", action="store_true")
    parser.add_argument("--table", type=Path, default=TABLE, help="the table to read and write")
    arguments = parser.parse_args(command_line)
    warnings.filterwarnings("ignore", category=UserWarning, module="timm")
    torch.manual_seed(0)
    rows = smallest() if arguments.find_smallest else pd.read_csv(arguments.table, dtype=str, keep_default_na=False)
    rows = rows.astype(object)
    wanted = rows["family"].isin(arguments.only.split(",")) if arguments.only else rows["versions"] != VERSIONS
    for place in rows.index[wanted]:
        with limit_threads(1):
            rows.loc[place, MEASURED] = pd.Series(tried(rows.loc[place]) | {"versions": VERSIONS})
        rows.to_csv(arguments.table, index=False, lineterminator="\n")
        print(*rows.loc[place, ["library", "family", "model", "head", "seconds", "failure"]], flush=True)
    failed = rows[rows["failure"] != ""]
    print(f"{len(rows) - len(failed)} of {len(rows)} families work")
    sys.exit(int(len(failed) > 0))


def smallest() -> pd.DataFrame:
    """The smallest model of each family, built on torch's meta device, and the smallest side that it takes."""
    rows = []
    for module in sorted(timm.list_modules()):
        sizes = {}
        for name in timm.list_models(module=module):
            with torch.device("meta"):
                sizes[name] = sum(parameter.numel() for parameter in timm.create_model(name).parameters())
        name = min(sizes, key=lambda name: (sizes[name], name))
        rows.append(["timm", module, name, sizes[name]])
    others = [
        [
            "torchvision",
            family_of(TORCHVISION_PREFIX + name),
            TORCHVISION_PREFIX + name,
            int(weights_of(name)[0].meta["num_params"]),
        ]
        for name in torchvision_names()
    ]
    found = pd.DataFrame(others, columns=KNOWN[:4]).sort_values("num_parameters", kind="stable").drop_duplicates("family")
    found = pd.concat([pd.DataFrame(rows, columns=KNOWN[:4]), found.sort_index()], ignore_index=True)
    sides = [load(name, IMAGE_SIZES).preprocessing.height_pixels for name in found["model"]]
    return found.assign(image_size=sides, **dict.fromkeys(MEASURED, ""))


def load(name: str, sides: tuple[int, ...]) -> Backbone:
    """At the first side that the network takes, or its own."""
    spec = ModelSpec(name=name, source=name, weights="random")
    for side in sides:
        # a network says in many ways that an image is too small: an assertion, a shape that does not fit
        with contextlib.suppress(Exception):
            return load_backbone(spec, image_size=side)
    return load_backbone(spec)


def tried(row: pd.Series) -> dict[str, Any]:
    """What is measured of one family; or why there is nothing."""
    start = time.perf_counter()
    try:
        found = run(load(row["model"], (int(row["image_size"]),))) | {"failure": ""}
    except Exception as error:  # whatever it is, it belongs into the table
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        found = dict.fromkeys(MEASURED, "") | {"failure": reason, "millions": f"{int(row['num_parameters']) / 1e6:.1f}"}
    gc.collect()
    return found | {"seconds": round(time.perf_counter() - start, 1)}


def run(backbone: Backbone) -> dict[str, Any]:
    dataset = photographs(8)
    images = prepare_batch([dataset.read(row) for row in range(8)], backbone.preprocessing)
    calibrate(backbone.module, images)
    with tempfile.TemporaryDirectory() as cache:
        found = extract_features(dataset, backbone, cache_dir=cache, num_threads=1, batch_size=8)
        features = np.array(found.features)
        logits = None if found.source_logits is None else np.array(found.source_logits)
    head, difference = compare_with_the_network(backbone, images[:2])
    if not difference <= SAME:
        raise RuntimeError(f"features are wrong by {difference:g} ({head})")
    activations = backbone.activations(images[:2], backbone.layer_names)
    if not activations or any(len(output) == 0 for output in activations.values()):
        raise RuntimeError("no activations")
    return {
        "millions": f"{backbone.num_parameters / 1e6:.1f}",
        "head": head,
        "num_features": backbone.num_features,
        "difference": f"{difference:.0e}",
        "num_layers": len(activations),
        "scores": compute_scores(ScoreInputs(features=features, labels=dataset.targets, source_logits=logits)),
    }


def calibrate(module: nn.Module, images: Tensor) -> None:
    """Give batch normalisation the statistics of ``images``, and layers that begin at 0 random weights.

    With random weights and without statistics the signal fades to 1e-9 in some networks, and then wrong features would
    differ from right ones by no more than 1e-9; a head of zeros would find all features right.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d) and not layer.weight.any():
            nn.init.normal_(layer.weight, std=0.02)
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.train()
            layer.momentum = 1.0
    with torch.no_grad():
        module(images)
    module.eval()


def compare_with_the_network(backbone: Backbone, images: Tensor) -> tuple[str, float]:
    """Kind of head, and the largest difference between the features and what the network's own methods give."""
    module, output = backbone.module, backbone(images)
    with torch.inference_mode():
        logits = module(images)
        head = last_linear(module)
        if head is not None and output.features.shape[1] == head.in_features:
            difference = largest_difference(head(output.features), logits)
            if difference <= SAME:
                return "one linear layer", difference
        if not hasattr(module, "forward_head"):
            last_map = cast(nn.Module, module.features)(images)  # SqueezeNet: a child of the network, averaged over positions
            return "1×1 convolution", largest_difference(output.features, last_map.mean(dim=(2, 3)))
        expected = pooled(module.forward_head(module.forward_features(images), pre_logits=True), backbone.num_features)
        if output.source_logits is not None and largest_difference(output.source_logits, logits) > SAME:
            raise RuntimeError("the source logits are not the output of the model")
    kind = "none" if output.source_logits is None else describe_head(module)
    return kind, largest_difference(output.features, expected)


def last_linear(module: nn.Module) -> nn.Linear | None:
    """The classifier that the network names, where it is one linear layer."""
    head = module.get_classifier() if hasattr(module, "get_classifier") else None
    if head is None and not hasattr(module, "forward_head"):
        head = [layer for layer in module.modules() if isinstance(layer, nn.Linear | nn.Conv2d)][-1]
    return head if isinstance(head, nn.Linear) else None


def describe_head(module: nn.Module) -> str:
    head = module.get_classifier()  # type: ignore[operator]
    if isinstance(head, tuple | nn.ModuleList):
        return f"{len(head)} heads"
    return "1×1 convolution" if isinstance(head, nn.Conv2d) else "several steps"


def pooled(output: Tensor, num_features: int) -> Tensor:
    """Average over every axis that is not as long as the features."""
    if output.ndim == 2:
        return output
    (axis,) = [axis for axis in range(1, output.ndim) if output.shape[axis] == num_features]
    return output.movedim(axis, 1).flatten(2).mean(dim=2)


def largest_difference(found: Tensor, expected: Tensor) -> float:
    """As a share of the largest expected value."""
    if found.shape != expected.shape:
        return float("inf")
    scale = float(expected.abs().max())
    if scale < SMALLEST_SIGNAL:
        raise RuntimeError(f"the signal has faded to {scale:.0e}, so nothing can be told from it")
    return float((found - expected).abs().max()) / scale


def compute_scores(inputs: ScoreInputs) -> str:
    computed, left_out = 0, []
    for name, score in SCORES:
        try:
            value = score.evaluate(inputs)
        except NotApplicable:
            left_out += [] if "gradient" in name else [name]  # those need more than arrays
            continue
        if not np.isfinite(value):
            raise RuntimeError(f"the score {name} is {value}")
        computed += 1
    return f"{computed}" + (f" (no head: not {', '.join(left_out)})" if left_out else "")


def photographs(num_per_class: int) -> Dataset:
    """Crops of the two photographs in scikit-learn's wheel, a temple and a flower in turn."""
    rng = np.random.default_rng(0)
    crops: list[np.ndarray] = []
    for photograph in load_sample_images().images:
        corners = rng.integers(0, np.array(photograph.shape[:2]) - 160, size=(num_per_class, 2))
        crops += [np.ascontiguousarray(photograph[top : top + 160, left : left + 160]) for top, left in corners]
    order = np.arange(2 * num_per_class).reshape(2, num_per_class).T.ravel()
    return dataset_from_arrays([crops[row] for row in order], np.repeat([0, 1], num_per_class)[order], name="photographs")


if __name__ == "__main__":
    main()
