"""ρSIM: what a block takes can be told from what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from torch import Tensor, nn

from crossgraft.conflicts import Situation
from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols import ForwardStart, Regularizer, StepContext, TrainingSet
from crossgraft.tune.sim import RhoSim
from crossgraft.tune.sim.options import FEWEST_FOR_A_PLACEBO, SimOptions
from crossgraft.words.formatting import joined

_BETWEEN_NAMES = "+"
_BODY = "body."


@dataclass
class SelfIdentityMapping(SimOptions, Regularizer):
    """One term: small reconstructors learn, beside the network, to tell a block's input from its output.

        blocks = weight · mean over blocks l of d(G_l(H_l(z_l)), stopgrad H_l(z_{l−1}))

    z_{l−1} and z_l are the same tokens, a share ρ drawn in each step, of what block l takes and gives; H_l projects them to K
    numbers and G_l predicts. It compares with no other network, so that it goes with every method, random weights among them.
    It is a mean over images: the same whatever the number of processes and of parts of a batch, and tokens are drawn alike.

    Blocks whose output needs no gradient (in front of everything that is trained), that do not run, or that have fewer than two
    positions are left out; the plan names them. Reconstructors are in checkpoints of the training and not in the saved model.
    Their gradient counts in ``--clip-norm``, as that of everything that is trained.

    Attributes:
        rho: Share ρ of the positions, in (0, 1].
        weight: Strength ≥ 0; 0 trains exactly as without.
        distance: ``norm_l2`` (as released), ``norm_mse`` (as written), ``mse``, ``l1``, ``smooth_l1``, ``cosine``, ``kl`` or
            ``wasserstein``. A weight of one is not that of another.
        K: Width of the projections, at least 1; ``auto``: 128, or the channels of the block's input where they are fewer.
        blocks: ``auto``: the building blocks; or names of modules, with or without ``body.``, or of classes of modules, separated
            by ``+``.
        order: ``code``: norm losses standardise prediction and target; ``paper``: projections are standardised before the
            prediction.
        sampling: ``v0``: the same tokens of all images; ``v1``: other tokens of each; ``v2``: of three times as many drawn those
            with the largest mean input; ``norm``: those of each image with the largest norm of the input, none drawn.
        channels: Share of the channels that are looked at, in (0, 1].
        layout: Where channels are (``nchw``, ``nhwc``, ``nlc``, ``ncl``, ``lnc``, ``ncdhw``, ``ndhwc``), or ``auto``.
        reduce: ``mean`` or ``sum`` over blocks.
        projected: False: equation 1, the input itself is predicted.
        placebo: A control: each image is to predict the tokens of another image of the batch (the one before it), at the same
            price. What a placebo gains too is no gain of ρSIM.

    Cost: for a share ρ of the tokens of each block, four times the products of H and three times those of G.

    Reference: Cai, Zhu, Fu, Miao, Yao: Self Identity Mapping, equations 1 to 4; defaults of the released code.
    """

    name: ClassVar[str] = "rho_sim"
    title: ClassVar[str] = "ρSIM"
    citation: ClassVar[str] = "Cai, Zhu, Fu, Miao, Yao: Self Identity Mapping (released as SIM-pytorch)"
    keeps_reference: ClassVar[bool] = False

    K: int | str = "auto"
    blocks: str = "auto"

    def __post_init__(self) -> None:
        if not str(self.blocks).strip():
            raise UsageError("blocks of rho_sim is empty. Leave it out, or name modules, separated by +.")
        super().__post_init__()
        self._sim: RhoSim | None = None

    def conflicts(self, situation: Situation) -> str | None:
        """A placebo takes two images."""
        if not self.placebo or situation.fewest_images >= FEWEST_FOR_A_PLACEBO:
            return None
        return (
            "--regularizer rho_sim:placebo=true predicts the tokens of another image, and in some micro-batch a process has one "
            "image alone. Use a larger --batch-size, a smaller --accumulate or fewer --devices."
        )

    def attach(self, classifier: Classifier, training_set: TrainingSet | None = None, *, seed: int = 0) -> None:
        """Look at one image without content for the shapes of blocks, and draw the reconstructors.

        Raises:
            UnknownNameError: There is no such block.
            UsageError: No block can be reconstructed.
        """
        self.detach()
        if self.weight == 0:
            return
        look, like = classifier.preprocessing, classifier.head.weight
        image = like.new_zeros(1, look.channels, look.height_pixels, look.width_pixels)
        settings: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(SimOptions)}
        settings["blocks"] = self._names_in(classifier)
        options = SimOptions(**settings)
        self._sim = RhoSim.opened_by_hand(classifier, options, seed=seed, run=lambda: classifier.features(image))

    def _names_in(self, classifier: Classifier) -> list[str]:
        if self.blocks == "auto":
            return list(classifier.blocks)
        names = [name.strip() for name in self.blocks.split(_BETWEEN_NAMES)]
        modules = {name for name, _ in classifier.named_modules()}
        return [f"{_BODY}{name}" if f"{_BODY}{name}" in modules else name for name in names]

    def before_forward(self, start: ForwardStart) -> None:
        """The forward pass of a step begins."""
        if self._sim is not None:
            self._sim.begin(generator=start.generator, places=start.places, batch_size=start.batch_size)

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        """The term ``blocks``.

        Raises:
            UsageError: ``attach`` was not called, or not ``before_forward`` in this step.
            DivergedError: The term of a block is not finite; the message names it.
        """
        if self.weight == 0:
            return {"blocks": context.logits.new_zeros(())}
        if self._sim is None:
            raise UsageError("rho_sim does not know the network. Call attach(classifier) before the first step.")
        return {"blocks": self._sim.loss()}

    def findings(self) -> list[str]:
        """Blocks that are left out, with the reason."""
        by_reason: dict[str, list[str]] = {}
        for name, why in ({} if self._sim is None else self._sim.skipped).items():
            by_reason.setdefault(why, []).append(name.removeprefix(_BODY))
        each = {why: "each because" if len(names) > 1 else "because" for why, names in by_reason.items()}
        return [f"ρSIM leaves out {joined(names)}, {each[why]} {why}." for why, names in by_reason.items()]

    def detach(self) -> None:
        """Take the hooks off the network, and forget the reconstructors."""
        if self._sim is not None:
            self._sim.detach()
            self._sim = None

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The reconstructors, as the network is trained; biases without weight decay."""
        return [] if self._sim is None else self._sim.reconstructors.parameter_groups()

    def modules(self) -> list[nn.Module]:
        """What holds the reconstructors."""
        return [] if self._sim is None else [self._sim.reconstructors]

    def state_dict(self) -> dict[str, Tensor]:
        """The reconstructors; what is drawn in a step follows from its number."""
        return {} if self._sim is None else self._sim.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the reconstructors.

        Raises:
            UsageError: The state is of another network or other options.
        """
        if self._sim is not None:
            self._sim.load_state_dict(state)
