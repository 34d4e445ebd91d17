"""SIM beside Tip-Adapter and Meta-Adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from crossgraft.errors import UsageError
from crossgraft.tune.presets._preset import Preset


@dataclass(frozen=True)
class SimFewShot(Preset):
    """Tip-Adapter-F with and without ρSIM at 0.005, 16 images of each class; with class weights also zero-shot.

    Args:
        class_weights: File of class weights, as of ``tip_adapter``; in the paper CLIP's features of class names.
        ways: Classes of an episode; in the paper all of the data set.
        meta_adapter: Meta-Adapter with and without ρSIM, too; it needs ``--base-classes``.
    """

    name: ClassVar[str] = "sim_few_shot"
    title: ClassVar[str] = "SIM's few-shot learning"
    citation: ClassVar[str] = "Self Identity Mapping, section 4.2, table 4 and appendix E.6"
    differs: ClassVar[str] = (
        "the paper tunes both adapters on ImageNet with CLIP and tests on all test images, here Tip-Adapter-F learns from the "
        "support set of each episode with α and β for ImageNet, and the last epoch counts, never the best one on test."
    )
    command: ClassVar[Literal["tune", "fewshot"]] = "fewshot"

    class_weights: str | None = None
    ways: int = 5
    meta_adapter: bool = False

    def __post_init__(self) -> None:
        if self.ways < 2:
            raise UsageError(f"ways of sim_few_shot must be at least 2, got {self.ways}.")

    @property
    def settings(self) -> Mapping[str, object]:
        """Table 4."""
        weights = [] if self.class_weights is None else [f"class_weights={self.class_weights}"]
        tip = ",".join([*weights, "fine_tune=true"])
        heads = [] if self.class_weights is None else [f"zero_shot:{weights[0]}"]
        heads += [f"tip_adapter:{tip}", f"tip_adapter:{tip},rho_sim_weight=0.005"]
        if self.meta_adapter:
            meta = [f"meta_adapter:{','.join(options)}" for options in (weights, [*weights, "rho_sim_weight=0.005"])]
            heads += [each.removesuffix(":") for each in meta]
        return {"heads": ",".join(heads), "baseline": f"tip_adapter:{tip}", "sampler": f"n_way_k_shot:ways={self.ways},shots=16"}
