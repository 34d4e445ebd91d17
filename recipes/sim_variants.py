"""What the study of docs/results/sim.md compares: pieces of work, each with its set, networks, variants and seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from studies import MEDICAL_TARGETS, Target
from study_vit import NATURAL_FILE

RHO_SIM = "rho_sim"
BASELINE, SIM, PLACEBO, LONGER = "baseline", "rho_sim", "placebo", "longer"
DROPOUT_RATE = 0.2
DROPOUT = f"dropout {DROPOUT_RATE:g}"
WEIGHT_DECAY, FINE_TUNING_DECAY = 1e-4, 0.05
"""From scratch as in the paper; of a pretrained network the default of ``crossgraft tune``."""
DECAYS = (3, 10)
"""Factors of the weight decay; 1 is the baseline."""
RHO, WEIGHT, DISTANCE = 0.2, 5e-3, "norm_l2"
RHOS = (0.1, 0.4, 0.6, 0.8, 1.0)
WEIGHTS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
DISTANCES = {
    "norm_mse": "MSE Loss (Normalized)",
    "mse": "MSE Loss",
    "l1": "ℓ1 Loss",
    "wasserstein": "Wasserstein Distance",
    "kl": "KL Divergence",
    "cosine": "Cosine Similarity",
}
"""Losses of the sweep beside the default → their names in Table 10."""
REGULARIZERS = {"mixup": "mixup:0.2", "cutmix": "cutmix", "label smoothing": "label_smoothing:0.1"}
"""Which ρSIM is to go with: name → spelling of the batch transform."""
EPOCHS, SWEEP_EPOCHS = 20, 10

SCRATCH: dict[str, Any] = {
    "method": "scratch",
    "image_size": 32,
    "epochs": EPOCHS,
    "batch_size": 128,
    "val_fraction": 0.0,
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "weight_decay": WEIGHT_DECAY,
}
"""As the paper trains on CIFAR-10, for fewer epochs and with a cosine; without validation rows, so the last epoch counts."""
LOGGED = {"log_gradient_norms": True}


def rho_sim(*, rho: float = RHO, weight: float = WEIGHT, distance: str = DISTANCE, placebo: bool = False) -> dict[str, Any]:
    """Options of a training with ρSIM."""
    said = f"{RHO_SIM}:rho={rho:g},weight={weight:g},distance={distance}"
    return {"regularizer": f"{said},placebo=true" if placebo else said}


class Piece(NamedTuple):
    """One part of the study, with tables of its own, so that two processes can work on two of them.

    Attributes:
        target: Set, and options of all its trainings.
        networks: Names of the networks.
        variants: Name → options of ``fine_tune``.
        seeds: Random seeds.
        is_pretrained: Whether networks come with their weights.
    """

    target: Target
    networks: tuple[str, ...]
    variants: Mapping[str, Mapping[str, Any]]
    seeds: tuple[int, ...]
    is_pretrained: bool = False

    @property
    def num_trainings(self) -> int:
        """Of the whole piece."""
        return len(self.networks) * len(self.variants) * len(self.seeds)


def pieces() -> dict[str, Piece]:
    """By name, the most informative first."""
    five, three, two = tuple(range(5)), tuple(range(3)), tuple(range(2))
    medical = {target.name: target for target in MEDICAL_TARGETS}
    found = [
        Piece(_natural("cifar10", "ResNet-20, and what costs as much"), ("resnet20",), core(), five),
        Piece(_natural("cifar10_regularisers", "ResNet-20, with other regularisers"), ("resnet20",), joined(), five),
        *(
            Piece(medical[name], ("mobilenetv1_050", "mobilenetv2_035"), fine_tunings(), five, is_pretrained=True)
            for name in ("breastmnist", "retinamnist")
        ),
        Piece(_natural("cifar10_depth", "Deeper networks"), ("resnet32", "resnet56"), plain_and_sim(), three),
        Piece(_natural("cifar10_sweeps", "Sweeps", epochs=SWEEP_EPOCHS), ("resnet20",), sweeps(), two),
    ]
    return {piece.target.name: piece for piece in found}


def _natural(name: str, title: str, **options: Any) -> Target:
    return Target(name, f"CIFAR-10 subset: {title}", NATURAL_FILE, {**SCRATCH, **options})


def core() -> dict[str, dict[str, Any]]:
    """ρSIM, its placebo, and what costs as much or nothing."""
    return {BASELINE: LOGGED, SIM: {**rho_sim(), **LOGGED}, PLACEBO: {**rho_sim(placebo=True), **LOGGED}, **free()}


def fine_tunings() -> dict[str, dict[str, Any]]:
    """Of a pretrained network: the same."""
    return {BASELINE: {}, SIM: rho_sim(), PLACEBO: rho_sim(placebo=True), **free(FINE_TUNING_DECAY)}


def free(weight_decay: float = WEIGHT_DECAY) -> dict[str, dict[str, Any]]:
    """What costs as much as ρSIM, or nothing."""
    decays = {f"weight decay × {factor}": {"weight_decay": weight_decay * factor} for factor in DECAYS}
    return {LONGER: {}, **decays, DROPOUT: {}}


def plain_and_sim() -> dict[str, dict[str, Any]]:
    """Without a placebo, which would cost as much again in the largest networks."""
    return {BASELINE: LOGGED, SIM: {**rho_sim(), **LOGGED}}


def with_sim(name: str) -> str:
    """Name of another regulariser with ρSIM."""
    return f"{name} + {SIM}"


def with_placebo(name: str) -> str:
    """The same with the placebo."""
    return f"{name} + {PLACEBO}"


def joined() -> dict[str, dict[str, Any]]:
    """Each of the others, alone, with ρSIM and with its placebo."""
    found: dict[str, dict[str, Any]] = {}
    for name, spelling in REGULARIZERS.items():
        alone = {"batch_transform": spelling}
        found |= {name: alone, with_sim(name): {**alone, **rho_sim()}}
        found[with_placebo(name)] = {**alone, **rho_sim(placebo=True)}
    return found


def sweeps() -> dict[str, dict[str, Any]]:
    """One option of ρSIM at a time; the default is in all three sweeps."""
    found: dict[str, dict[str, Any]] = {BASELINE: {}, SIM: rho_sim()}
    found |= {f"rho {rho:g}": rho_sim(rho=rho) for rho in RHOS}
    found |= {f"weight {weight:g}": rho_sim(weight=weight) for weight in WEIGHTS}
    return found | {f"loss {name}": rho_sim(distance=name) for name in DISTANCES}


def all_variants() -> list[str]:
    """Names of the variants of all pieces, each once."""
    return list(dict.fromkeys(name for piece in pieces().values() for name in piece.variants))


def longer_epochs(ratio: float, epochs: int = EPOCHS) -> int:
    """As many epochs of the baseline as cost what ``epochs`` with ρSIM cost, rounded up.

    Args:
        ratio: Processor time of a step with ρSIM over that of the baseline.
        epochs: Of both.
    """
    return max(epochs, math.ceil(round(epochs * ratio, 6)))
