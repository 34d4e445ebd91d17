"""What a regulariser adds to a training step: the engine's step with it against the engine's step without.

    OMP_NUM_THREADS=1 python benchmarks/regularized_step.py           # four networks; a quarter of an hour of one idle core
    OMP_NUM_THREADS=1 python benchmarks/regularized_step.py --smoke   # seconds

Images of 64 px lie in memory, all of them in one batch. A round makes one step of full fine-tuning and one with each regulariser,
in an order that changes from round to round; a ratio is that of the two steps of one round in CPU seconds of the process, because
other programs may take the processor. Printed are the median over the rounds with a bootstrap interval of 95 % for it, and for a
regulariser with a target whether that is met: whether the interval's lower end reaches down to it. For ρSIM also the memory of
training, as a ratio: weights, gradients, moments of AdamW, and what a step keeps for its backward pass; and its floor: a plain
step and the matrix products of the reconstructors alone, which no implementation can do without.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from timm.models.resnet import BasicBlock, ResNet
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from crossgraft.choice import choose
from crossgraft.compute import limit_threads
from crossgraft.data import dataset_from_arrays
from crossgraft.losses import CrossEntropy
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.models.memory_format import put_channels_last
from crossgraft.tune.augmentations import NoAugmentation
from crossgraft.tune.engine.launch import make_fabric
from crossgraft.tune.engine.optimizers import make_optimizer
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import Network, TrainingStep, apply_modes, apply_selection
from crossgraft.tune.feed.batches import BatchMaker, BatchPlan
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.methods import METHODS, Selection, put_adapters_in
from crossgraft.tune.planning.step_cost import measure_step
from crossgraft.tune.regularizers import REGULARIZERS
from crossgraft.types import Preprocessing

SIZE, CLASSES = 64, 10
RESAMPLES = 2000
Step = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """A regulariser, and at most how many times a plain step its step may take.

    ``shows_plain_images`` False: as if images were augmented, so that nothing can be looked up. A target by network is that of
    the first name that a network's begins with.
    """

    label: str
    choice: str
    target: float | Mapping[str, float] | None = None
    shows_plain_images: bool = True
    shows_memory: bool = False
    shows_floor: bool = False

    def target_for(self, network: str) -> float | None:
        """At most so many times a plain step."""
        if not isinstance(self.target, Mapping):
            return self.target
        return next((target for name, target in self.target.items() if network.startswith(name)), None)


OF_RHO_SIM = {"vit": 1.06, "resnet18-w32": 1.35, "resnet": 1.20}
CASES = (
    Case("RepSim, frozen copy", "repsim", 1.35, shows_plain_images=False),
    Case("RepSim, features looked up", "repsim", 1.03),
    Case("RepSim, covariance of the batch, frozen copy", "repsim:mode=covariance", 1.35, shows_plain_images=False),
    Case("RepSim, covariance of the batch, looked up", "repsim:mode=covariance", 1.03),
    Case("RepSim, covariance of all images (the paper's)", "repsim:preset=paper", 1.03, shows_plain_images=False),
    Case("HCS, frozen copy", "hcs", 1.35, shows_plain_images=False),
    Case("HCS, features looked up", "hcs", 1.02),
    Case("L2-SP", "l2_sp"),
    Case("L2-SP, decoupled", "l2_sp:decoupled=true"),
    Case("DELTA", "delta"),
    Case("BSS", "bss"),
    Case("ρSIM", "rho_sim", OF_RHO_SIM, shows_memory=True, shows_floor=True),
    Case("ρSIM, K = 128 everywhere", "rho_sim:K=128", shows_memory=True),
    Case("ρSIM, other tokens of each image (v1)", "rho_sim:sampling=v1"),
    Case("SIM, all tokens, not projected (equation 1)", "rho_sim:rho=1,projected=false", shows_memory=True),
)


@dataclass(frozen=True)
class Images:
    """One batch that is the whole training set."""

    rows: Tensor
    images: Tensor
    targets: Tensor
    is_plain: bool = True
    fingerprint: str | None = None

    def plain_batches(self) -> Iterator[Tensor]:
        """The batch."""
        yield self.images

    def training_batches(self, passes: int) -> Iterator[Tensor]:
        """The batch, so many times."""
        for _ in range(passes):
            yield self.images


def networks() -> dict[str, tuple[Callable[[], nn.Module], int]]:
    """Name → what builds it, and the size of a batch. The stem of timm's ResNet has 64 channels whatever the width."""

    def vit(width: int, depth: int) -> Callable[[], nn.Module]:
        return lambda: VisionTransformer(
            img_size=SIZE, patch_size=8, embed_dim=width, depth=depth, num_heads=width // 64, num_classes=CLASSES
        )

    def resnet(width: int) -> Callable[[], nn.Module]:
        channels = (width, 2 * width, 4 * width, 8 * width)
        return lambda: ResNet(BasicBlock, layers=(2, 2, 2, 2), channels=channels, num_classes=CLASSES)

    return {
        "resnet18-w32": (resnet(32), 32),
        "resnet18-w64": (resnet(64), 32),
        "vit-d192-l6": (vit(192, 6), 64),
        "vit-d384-l3": (vit(384, 3), 32),
    }


def main() -> None:
    arguments = parse_arguments()
    print(f"{arguments.threads} thread(s), CPU seconds")
    chosen = [case for case in CASES if case.choice.startswith(tuple(arguments.only.split(",")))]
    cases = [case for case in chosen if case.choice.partition(":")[0] in REGULARIZERS.names()]
    with limit_threads(arguments.threads):
        for name in arguments.networks.split(","):
            build, batch_size = networks()[name]
            measure(name, build, arguments.batch_size or batch_size, cases, arguments.rounds)


def measure(name: str, build: Callable[[], nn.Module], batch_size: int, cases: Sequence[Case], num_rounds: int) -> None:
    steps = [make_step(build, batch_size, None), *(make_step(build, batch_size, case) for case in cases)]
    with_floor = [case for case in cases if case.shows_floor]
    steps += [make_floor(build, batch_size, case) for case in with_floor]
    for step in steps:
        step()
    rounds: list[list[float]] = []
    try:
        rounds.extend(one_round(steps, number) for number in range(num_rounds))
    finally:  # Ctrl-C shows what there is
        if rounds:
            plain = peak_bytes(build, batch_size) if any(case.shows_memory for case in cases) else 0
            memory = [peak_bytes(build, batch_size, choice=c.choice) / plain if c.shows_memory else None for c in cases]
            seconds = np.array(rounds)
            report(name, f"batches of {batch_size}, {len(rounds)} rounds", cases, seconds[:, : 1 + len(cases)], memory)
            for case, products in zip(with_floor, seconds[:, 1 + len(cases) :].T, strict=True):
                ratios = 1 + products / seconds[:, 0]
                low, high = interval_of_median(ratios)
                print(f"  {f'floor of {case.label}':50} {np.median(ratios):.3f}  ({low:.3f} to {high:.3f})", flush=True)


def report(network: str, title: str, cases: Sequence[Case], seconds: np.ndarray, memory: Sequence[float | None]) -> None:
    """One line a case; the first column is the plain step."""
    print(f"\n{network}, {title}: a step of full fine-tuning takes {np.median(seconds[:, 0]):.3f} s")
    for case, own, held in zip(cases, seconds[:, 1:].T, memory, strict=True):
        ratios = own / seconds[:, 0]
        low, high = interval_of_median(ratios)
        target = case.target_for(network)
        verdict = "" if target is None else f"   target {target}: {'met' if low <= target else 'missed'}"
        memory_said = "" if held is None else f"   memory {held:.3f}"
        print(f"  {case.label:50} {np.median(ratios):.3f}  ({low:.3f} to {high:.3f}){verdict}{memory_said}", flush=True)


def one_round(steps: Sequence[Step], number: int) -> list[float]:
    """CPU seconds of each step; the order is another one in each round."""
    order = np.random.default_rng(number).permutation(len(steps))
    seconds = [0.0] * len(steps)
    for place in order:
        start = time.process_time()
        steps[place]()
        seconds[place] = time.process_time() - start
    return seconds


def interval_of_median(values: np.ndarray) -> tuple[float, float]:
    drawn = np.random.default_rng(0).choice(values, size=(RESAMPLES, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return float(low), float(high)


def make_step(build: Callable[[], nn.Module], batch_size: int, case: Case | None, method: str = "full") -> Step:
    return prepared(build, batch_size, case, method)[0]


def make_floor(build: Callable[[], nn.Module], batch_size: int, case: Case) -> Step:
    """Forward products of the linear layers of a regulariser, and where they learn those of both gradients; on noise."""
    step, regularizers = prepared(build, batch_size, case)
    generator = torch.Generator().manual_seed(0)
    made: list[tuple[Tensor, Tensor, Tensor, bool]] = []

    def note(layer: nn.Linear, taken: tuple[Tensor, ...]) -> None:
        rows, width_in, width_out = taken[0].numel() // layer.in_features, layer.in_features, layer.out_features
        shapes = (rows, width_in), (width_out, width_in), (rows, width_out)
        inputs, weight, gradient = (torch.randn(shape, generator=generator) for shape in shapes)
        made.append((inputs, weight, gradient, torch.is_grad_enabled()))

    parts = [part for each in regularizers for module in each.modules() for part in module.modules()]
    handles = [part.register_forward_pre_hook(note) for part in parts if isinstance(part, nn.Linear)]
    step()
    for handle in handles:
        handle.remove()

    def products() -> None:
        for inputs, weight, gradient, learns in made:
            torch.mm(inputs, weight.T)
            if learns:
                torch.mm(gradient, weight)
                torch.mm(gradient.T, inputs)

    return products


def prepared(build: Callable[[], nn.Module], batch_size: int, case: Case | None, method: str = "full") -> tuple[Step, list[Any]]:
    """A step of training, and its regularisers."""
    images = torch.randn(batch_size, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    rows = torch.arange(batch_size)
    targets = torch.eye(CLASSES)[rows % CLASSES]
    batch = Images(rows, images, targets, is_plain=case is None or case.shows_plain_images)
    classifier, selection = make_network(build, method)
    settings = TrainerSettings(device="cpu", learning_rate=1e-5, batch_size=batch_size)
    fabric = make_fabric(settings)
    regularizers: list[Any] = [] if case is None else [choose(REGULARIZERS, case.choice)]
    put_channels_last(classifier)
    apply_selection(classifier, selection)
    for regularizer in regularizers:
        regularizer.attach(classifier, batch)
    apply_modes(classifier, selection)
    named = make_optimizer(classifier, selection, regularizers, settings)
    network, optimizer = fabric.setup(Network(classifier, regularizers), named.optimizer)
    training_step = TrainingStep(
        fabric,
        network,
        optimizer,
        named=named,
        classifier=classifier,
        loss=CrossEntropy(),
        regularizers=regularizers,
        settings=settings,
    )
    numbers = iter(range(10**9))

    def step() -> None:
        training_step.run(batch, next(numbers))

    return step, regularizers


def peak_bytes(build: Callable[[], nn.Module], batch_size: int, method: str = "full", *, choice: str = "") -> int:
    """Memory of training, as the plan of a fine-tuning says; the first steps, which one epoch has, show all of it."""
    classifier, selection = make_network(build, method)
    pixels = np.random.default_rng(0).integers(0, 256, (3 * batch_size, SIZE, SIZE, 3), dtype=np.uint8)
    labels = np.arange(3 * batch_size) % CLASSES
    images = TrainingImages(dataset_from_arrays(pixels, labels), classifier.preprocessing)
    targets = torch.eye(CLASSES)[torch.from_numpy(labels)]
    plan = BatchPlan(targets, batch_size=batch_size, seed=0)
    cost = measure_step(
        classifier,
        BatchMaker(images, targets, plan, augmentation=NoAugmentation(), batch_transforms=()),
        selection,
        loss=CrossEntropy(),
        regularizers=[choose(REGULARIZERS, choice)] if choice else [],
        settings=TrainerSettings(device="cpu", learning_rate=1e-5, batch_size=batch_size, epochs=1),
        features_are_fixed=False,
    )
    return cost.peak_bytes or 0


def make_network(build: Callable[[], nn.Module], method: str) -> tuple[Classifier, Selection]:
    """With the adapters of the method, and what of it is trained."""
    torch.manual_seed(0)
    facts = {"name": "measured", "architecture": "measured", "source": "factory", "family": "measured"}
    classifier = make_classifier(Backbone(build(), preprocessing=Preprocessing(SIZE, SIZE), **facts), CLASSES, seed=0)
    chosen: Any = choose(METHODS, method)
    put_adapters_in(chosen, classifier, seed=0)
    return classifier, chosen.select(classifier)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few steps of the smallest network with some regularisers")
    parser.add_argument("--networks", default=",".join(networks()))
    parser.add_argument("--only", default="", help="regularisers with these names, separated by commas")
    parser.add_argument("--batch-size", type=int, help="in place of that of the network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.networks, arguments.batch_size, arguments.rounds = "resnet18-w32", 4, 2
        arguments.only = arguments.only or "hcs,rho_sim"
    return arguments


if __name__ == "__main__":
    main()
