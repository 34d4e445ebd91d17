"""How much of an image comes back from what the reconstructors of ρSIM hold: a table of docs/results/sim.md.

    python examples/sim/reconstructors.py data docs/results/sim/privacy.csv      # data as for studies/sim.yaml

Ridge regression from what is known of an image to its pixels, fitted on the images that the network and its reconstructors were
trained on, and measured on others.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from crossgraft.models import load_backbone, read_zoo
from crossgraft.models.taps import Tap, Taps
from crossgraft.tune.sim import RhoSim

NUM_TRAIN, NUM_TEST, EPOCHS, BATCH, SEED = 500, 200, 3, 50, 0
BLOCKS = ("layer1.0", "layer2.0", "layer3.2")
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Over the mean eigenvalue of the kernel; the best on a fifth of the training images is taken."""


def fitted(known: Tensor, pixels: Tensor, others: Tensor) -> Tensor:
    """Pixels of ``others``, by ridge regression in its dual form on ``known`` → ``pixels``; float64."""
    centre, mean = known.mean(0), pixels.mean(0)
    known, others, pixels = known - centre, others - centre, pixels - mean
    held = len(known) // 5

    def predict(train: slice, rows: Tensor, penalty: float) -> Tensor:
        of_train = known[train]
        kernel = of_train @ of_train.T
        scale = penalty * kernel.diagonal().mean()
        return rows @ of_train.T @ torch.linalg.solve(kernel + scale * torch.eye(len(kernel), dtype=kernel.dtype), pixels[train])

    errors = [(predict(slice(held, None), known[:held], each) - pixels[:held]).square().mean() for each in PENALTIES]
    best = PENALTIES[int(torch.stack(errors).argmin())]
    return predict(slice(None), others, best) + mean


def quality(found: Tensor, pixels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """PSNR in dB, and correlation over pixels, of each image with values in [0, 1]."""
    errors = (found.clamp(0, 1) - pixels).square().mean(1)
    centred = [each - each.mean(1, keepdim=True) for each in (found, pixels)]
    product = (centred[0] * centred[1]).sum(1) / (centred[0].norm(dim=1) * centred[1].norm(dim=1)).clamp_min(1e-12)
    return (-10 * errors.log10()).numpy(), product.numpy()


def known_of(network: torch.nn.Module, sims: Mapping[str, RhoSim], images: Tensor) -> dict[tuple[str, str], Tensor]:
    """Block, and what is known of each image → one row per image."""
    rows: dict[tuple[str, str], list[Tensor]] = {}
    wanted = {name: Tap(name) for name in BLOCKS}
    for part in images.split(BATCH):
        with torch.no_grad(), Taps(network, list(wanted.values())) as taken:
            network(part)
        for name, tap in wanted.items():
            tokens = taken[tap].flatten(2).transpose(1, 2)
            rows.setdefault((name, "features alone"), []).append(tokens.flatten(1))
            for kind, sim in sims.items():
                maker = sim.reconstructors.by_block()[name]
                with torch.no_grad():
                    made = maker.predictor(maker.projector(maker.adapt(tokens)))
                rows.setdefault((name, f"{kind} reconstructor"), []).append(made.flatten(1))
    known = {key: torch.cat(each).double() for key, each in rows.items()}
    known = {key: each / each.std() for key, each in known.items()}
    for name in BLOCKS:
        for kind in sims:
            both = [known[name, "features alone"], known[name, f"{kind} reconstructor"]]
            known[name, f"features and {kind} reconstructor"] = torch.cat(both, dim=1)
    return known


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("table", type=Path)
    given = parser.parse_args()
    arrays = np.load(given.data / "cifar10_jpeg_5000_1000.npz")
    raw = {
        part: torch.from_numpy(arrays[f"{part}_images"][:number]) for part, number in (("train", NUM_TRAIN), ("test", NUM_TEST))
    }
    targets = torch.from_numpy(arrays["train_labels"][:NUM_TRAIN].astype(np.int64)).flatten()
    pixels = {part: each.double().flatten(1) / 255 for part, each in raw.items()}
    zoo = Path("examples/own_models")
    spec = read_zoo(f"{zoo / 'small_networks.yaml'}:resnet20 · CIFAR-10", weights_dir=given.data / "weights", allow_code=zoo)[0]
    backbone = load_backbone(spec, device="cpu", for_training=True)
    look, network = backbone.preprocessing, backbone.module
    shift, scale = (torch.tensor(each).view(1, 3, 1, 1) for each in (look.mean, look.std))
    images = {part: (each.movedim(-1, 1).float() / 255 - shift) / scale for part, each in raw.items()}

    torch.manual_seed(SEED)
    sims = {"trained": RhoSim(network, weight=0.05, seed=SEED, example=images["train"][:2])}
    optimizer = torch.optim.AdamW([*network.parameters(), *sims["trained"].parameters()], lr=1e-3)
    network.train()
    for _ in range(EPOCHS):
        for rows in torch.randperm(NUM_TRAIN).split(BATCH):
            loss = functional.cross_entropy(network(images["train"][rows]), targets[rows]) + sims["trained"].loss()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    sims["trained"].detach()
    network.eval()
    twin = copy.deepcopy(network)
    sims["untrained"] = RhoSim(twin, weight=0.05, seed=SEED + 1, example=images["train"][:2])
    sims["untrained"].detach()

    known = {part: known_of(network, sims, each) for part, each in images.items()}
    mean_image = pixels["train"].mean(0).expand_as(pixels["test"])
    found = {("–", "mean image"): mean_image}
    found |= {key: fitted(each, pixels["train"], known["test"][key]) for key, each in known["train"].items()}
    rows = [
        {"block": block, "known": what, "image": image, "psnr": round(float(psnr), 4), "correlation": round(float(alike), 5)}
        for (block, what), each in found.items()
        for image, (psnr, alike) in enumerate(zip(*quality(each, pixels["test"]), strict=True))
    ]
    pd.DataFrame(rows).to_csv(given.table, index=False)


if __name__ == "__main__":
    main()
