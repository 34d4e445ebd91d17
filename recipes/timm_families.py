"""Does every family of timm and torchvision work: features, layers, scores?

    python recipes/timm_families.py --out docs/results/backbones.md    # all families; about 20 minutes on one core
    python recipes/timm_families.py --smoke                            # three families; seconds
    python recipes/timm_families.py --only levit,swin_transformer      # some families
    python recipes/timm_families.py --find-smallest                    # measure the table of smallest models anew

One family is one module of ``timm.models.list_modules()``, and for torchvision the family that a name suggests. Its
smallest model is built with random weights and goes the way of every model: ``load_backbone``, ``extract_features`` on
16 real images, activations of its main layers, every score. Features are then checked by timm's own methods, which
share no code with what is checked: where the head is one linear layer, head(features) must be the output of the model;
otherwise features must be what ``forward_head(forward_features(images), pre_logits=True)`` returns.

Each family's result is kept in a file, so that a stopped run goes on where it was; delete the folder to start anew. One
family that fails never stops the others, and is listed with its reason.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
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

SMALLEST = Path(__file__).with_name("smallest_models.json")
SAME = 1e-5
SMALLEST_SIGNAL = 1e-4
# The last feature maps of most networks are 32 times smaller; 64 pixels leave 2×2 positions to be pooled.
IMAGE_SIZES = (64, 96, 112, 128, 160, 192, 224, 256, 384, None)
SMOKE_FAMILIES = ("timm/vision_transformer", "timm/mambaout", "torchvision/squeezenet")


class Family(NamedTuple):
    """The smallest model of one family; ``image_size`` is the smallest it takes, None if not yet known."""

    library: str
    name: str
    model: str
    num_parameters: int
    image_size: int | None = None

    @property
    def key(self) -> str:
        """Unique over both libraries."""
        return f"{self.library}/{self.name}"


class Result(NamedTuple):
    """One row of the table; ``failure`` says why there is no more."""

    library: str
    family: str
    model: str
    num_parameters: int
    input_size: str = ""
    head: str = ""
    num_features: int = 0
    difference: float | None = None
    num_layers: int = 0
    scores: str = ""
    seconds: float = 0.0
    failure: str = ""


def main() -> None:
    arguments = parse_arguments()
    warnings.filterwarnings("ignore", category=UserWarning, module="timm")
    torch.manual_seed(0)
    if arguments.find_smallest:
        write_smallest()
        return
    families = chosen_families(arguments)
    dataset = photographs(4 if arguments.smoke else 8)
    arguments.results.mkdir(parents=True, exist_ok=True)
    with limit_threads(arguments.threads):
        results = [run_or_read(family, dataset, arguments.results) for family in families]
    if arguments.out is not None:
        write_page(arguments.out, results, len(dataset))
    failed = [result for result in results if result.failure]
    print(f"{len(results) - len(failed)} of {len(results)} families work")
    for result in failed:
        print(f"  {result.library}/{result.family} ({result.model}): {result.failure}")
    if failed:
        sys.exit(1)


# ---------------------------------------------------------------------------------------------------------- families
def chosen_families(arguments: argparse.Namespace) -> list[Family]:
    table = {family.key: family for family in read_smallest()}
    if arguments.every_torchvision_name:
        return [torchvision_family(name, name) for name in torchvision_names()]
    for module in timm.list_modules():  # a newer timm has families that the table does not know yet
        if f"timm/{module}" not in table:
            table[f"timm/{module}"] = smallest_of_timm(module)
    if arguments.smoke:
        return [table[key] for key in SMOKE_FAMILIES]
    wanted = [name.strip() for name in arguments.only.split(",") if name.strip()]
    known = {*table, *(family.name for family in table.values())}
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"No such family: {', '.join(unknown)}")
    return [family for family in table.values() if not wanted or family.name in wanted or family.key in wanted]


def read_smallest() -> list[Family]:
    return [Family(**row) for row in json.loads(SMALLEST.read_text(encoding="utf-8"))["families"]]


def write_smallest() -> None:
    """Build every model of timm on torch's meta device, which takes no memory and little time."""
    families = [smallest_of_timm(module) for module in sorted(timm.list_modules())]
    by_family: dict[str, Family] = {}
    for name in torchvision_names():
        family = torchvision_family(family_of(TORCHVISION_PREFIX + name), name)
        if family.num_parameters < by_family.get(family.name, family).num_parameters or family.name not in by_family:
            by_family[family.name] = family
    families = [with_image_size(family) for family in [*families, *by_family.values()]]
    versions = {"timm": timm.__version__, "torchvision": torchvision.__version__}
    rows = ",\n".join("  " + json.dumps(family._asdict()) for family in families)
    SMALLEST.write_text(f'{{"versions": {json.dumps(versions)}, "families": [\n{rows}\n]}}\n', encoding="utf-8")
    print(f"{len(families)} families in {SMALLEST}")


def smallest_of_timm(module: str) -> Family:
    sizes: dict[str, int] = {}
    for name in timm.list_models(module=module):
        with torch.device("meta"):
            sizes[name] = sum(parameter.numel() for parameter in timm.create_model(name).parameters())
    name = min(sizes, key=lambda name: (sizes[name], name))
    print(f"timm/{module}: {name}, {sizes[name]} parameters, smallest of {len(sizes)}", file=sys.stderr)
    return Family("timm", module, name, sizes[name])


def torchvision_family(family: str, name: str) -> Family:
    return Family("torchvision", family, TORCHVISION_PREFIX + name, int(weights_of(name)[0].meta["num_params"]))


def with_image_size(family: Family) -> Family:
    backbone = load_smallest_input(family)
    print(f"{family.key}: {backbone.preprocessing.height_pixels} pixels", file=sys.stderr)
    return family._replace(image_size=backbone.preprocessing.height_pixels)


def load_smallest_input(family: Family) -> Backbone:
    """At the known image size, or at the smallest of ``IMAGE_SIZES`` that the network takes."""
    spec = ModelSpec(name=family.model, source=family.model, weights="random")
    if family.image_size is not None:
        return load_backbone(spec, image_size=family.image_size)
    for size in IMAGE_SIZES[:-1]:
        # a network says in many ways that an image is too small: an assertion, a shape that does not fit
        with contextlib.suppress(Exception):
            return load_backbone(spec, image_size=size)
    return load_backbone(spec)


# --------------------------------------------------------------------------------------------------------- one family
def run_or_read(family: Family, dataset: Dataset, folder: Path) -> Result:
    """The stored result of the same versions, or a new one."""
    file = folder / f"{family.key.replace('/', '-')}.json"
    facts = {"versions": versions(), "model": family.model, "images": dataset.fingerprint}
    if file.is_file():
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["facts"] == facts and not stored["result"]["failure"]:
            return Result(**stored["result"])
    start = time.perf_counter()
    try:
        result = run(family, dataset)
    except Exception as error:  # whatever it is, it belongs into the table
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        result = Result(family.library, family.name, family.model, family.num_parameters, failure=reason)
    result = result._replace(seconds=round(time.perf_counter() - start, 1))
    file.write_text(json.dumps({"facts": facts, "result": result._asdict()}), encoding="utf-8")
    gc.collect()
    print(
        f"{family.key:36} {result.model:38} {result.input_size:>9} {result.head:24} {result.seconds:6.1f} s {result.failure}",
        flush=True,
    )
    return result


def versions() -> dict[str, str]:
    return {"timm": timm.__version__, "torch": torch.__version__, "torchvision": torchvision.__version__}


def run(family: Family, dataset: Dataset) -> Result:
    backbone = load_smallest_input(family)
    images = prepare_batch([dataset.read(row) for row in range(8)], backbone.preprocessing)
    calibrate(backbone.module, images)
    with tempfile.TemporaryDirectory() as cache:
        found = extract_features(dataset, backbone, cache_dir=cache, num_threads=1, batch_size=8)
        features = np.array(found.features)
        logits = None if found.source_logits is None else np.array(found.source_logits)
    images = images[:2]
    head, difference = compare_with_the_network(backbone, images)
    if not difference <= SAME:
        raise RuntimeError(f"features are wrong by {difference:g} ({head})")
    activations = backbone.activations(images, backbone.layer_names)
    if not activations or any(len(output) == 0 for output in activations.values()):
        raise RuntimeError("no activations")
    preprocessing = backbone.preprocessing
    return Result(
        family.library,
        family.name,
        family.model,
        backbone.num_parameters,
        input_size=f"{preprocessing.height_pixels}×{preprocessing.width_pixels}",
        head=head,
        num_features=backbone.num_features,
        difference=difference,
        num_layers=len(activations),
        scores=compute_scores(features, logits, dataset.targets),
    )


def calibrate(module: nn.Module, images: Tensor) -> None:
    """Give batch normalisation the statistics of ``images``, and layers that begin at 0 random weights.

    With random weights and without statistics the signal fades to 1e-9 in some networks, and then wrong features would
    differ from right ones by no more than 1e-9; a head of zeros would find all features right.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d) and not layer.weight.any():
            nn.init.normal_(layer.weight, std=0.02)
    layers = [layer for layer in module.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    for layer in layers:
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
            return "1×1 convolution", compare_with_last_map(module, images, output.features)
        expected = pooled(module.forward_head(module.forward_features(images), pre_logits=True), backbone.num_features)
        if output.source_logits is not None and largest_difference(output.source_logits, logits) > SAME:
            raise RuntimeError("the source logits are not the output of the model")
    kind = "none" if output.source_logits is None else describe_head(module)
    return kind, largest_difference(output.features, expected)


def last_linear(module: nn.Module) -> nn.Linear | None:
    """The classifier that the network names, where it is one linear layer."""
    head = module.get_classifier() if hasattr(module, "get_classifier") else None
    if head is None and not hasattr(module, "forward_head"):
        learned = [layer for layer in module.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
        head = learned[-1]
    return head if isinstance(head, nn.Linear) else None


def describe_head(module: nn.Module) -> str:
    head = module.get_classifier()  # type: ignore[operator]
    if isinstance(head, tuple | nn.ModuleList):
        return f"{len(head)} heads"
    if isinstance(head, nn.Conv2d):
        return "1×1 convolution"
    return "several steps"


def compare_with_last_map(module: nn.Module, images: Tensor, features: Tensor) -> float:
    """For SqueezeNet: ``features`` is a child of the network, and its output is averaged over positions."""
    return largest_difference(features, cast(nn.Module, module.features)(images).mean(dim=(2, 3)))


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


def compute_scores(features: np.ndarray, logits: np.ndarray | None, labels: np.ndarray) -> str:
    inputs = ScoreInputs(features=features, labels=labels, source_logits=logits)
    computed, left_out = 0, []
    for name, score in SCORES:
        try:
            value = score.evaluate(inputs)
        except NotApplicable:
            left_out.append(name)
            continue
        if not np.isfinite(value):
            raise RuntimeError(f"the score {name} is {value}")
        computed += 1
    return f"{computed}" + (f" (no head: not {', '.join(left_out)})" if left_out else "")


def photographs(num_per_class: int) -> Dataset:
    """Crops of the two photographs in scikit-learn's wheel: a temple and a flower."""
    rng = np.random.default_rng(0)
    crops: list[np.ndarray] = []
    for photograph in load_sample_images().images:
        height, width = photograph.shape[:2]
        corners = rng.integers(0, (height - 160, width - 160), size=(num_per_class, 2))
        crops += [np.ascontiguousarray(photograph[top : top + 160, left : left + 160]) for top, left in corners]
    # one of each class in turn, so that the first two differ
    order = np.arange(2 * num_per_class).reshape(2, num_per_class).T.ravel()
    labels = np.repeat([0, 1], num_per_class)
    return dataset_from_arrays([crops[row] for row in order], labels[order], name="photographs")


# --------------------------------------------------------------------------------------------------------------- page
HEADING = "## Measured\n"


def write_page(file: Path, results: Sequence[Result], num_images: int) -> None:
    """Replace what stands below the heading; what stands above it is written by hand."""
    above = file.read_text(encoding="utf-8").partition(HEADING)[0] if file.is_file() else ""
    said = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [HEADING, f"{said}; {num_images} images, one thread, CPU."]
    for library in ("timm", "torchvision"):
        rows = [result for result in results if result.library == library]
        if rows:
            working = sum(not row.failure for row in rows)
            lines += ["", f"### {library}: {working} of {len(rows)} families work", "", *table(rows)]
    file.write_text(above + "\n".join(lines) + "\n", encoding="utf-8")


def table(rows: Sequence[Result]) -> list[str]:
    header = "| family | smallest model | input | parameters | head | features | difference | layers | scores | seconds |"
    lines = [header, "|---|---|---|---:|---|---:|---:|---:|---|---:|"]
    for row in rows:
        name = row.model.removeprefix(TORCHVISION_PREFIX)
        millions = f"{row.num_parameters / 1e6:.1f} M"
        if row.failure:
            lines.append(f"| {row.family} | {name} | | {millions} | **fails**: {row.failure} | | | | | {row.seconds} |")
        else:
            lines.append(
                f"| {row.family} | {name} | {row.input_size} | {millions} | {row.head} | {row.num_features} | "
                f"{row.difference:.0e} | {row.num_layers} | {row.scores} | {row.seconds} |"
            )
    return lines


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="three families and 8 images")
    parser.add_argument("--only", default="", help="names of families, separated by commas")
    parser.add_argument("--every-torchvision-name", action="store_true", help="not only the smallest of each family")
    parser.add_argument("--find-smallest", action="store_true", help=f"write {SMALLEST.name} anew; about 15 minutes")
    parser.add_argument("--results", type=Path, default=Path("runs/backbones"), help="folder of finished families")
    parser.add_argument("--out", type=Path, help="Markdown file for the table")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
