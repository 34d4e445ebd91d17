"""ρSIM on any network: what its blocks take is predicted from what they give, and nothing stays behind."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from numbers import Integral
from typing import Any, SupportsIndex, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossgraft.errors import DivergedError, UsageError
from crossgraft.models.taps import is_compiled, modes_kept, unwrapped
from crossgraft.seeding import torch_generator
from crossgraft.tune.sim.as_printed import take_out
from crossgraft.tune.sim.distances import DISTANCES, OF_STANDARDISED, Drawing, some_channels
from crossgraft.tune.sim.layouts import called, first_of, takes_part
from crossgraft.tune.sim.options import FEWEST_FOR_A_PLACEBO, SimOptions
from crossgraft.tune.sim.reconstructor import Reconstructor, Reconstructors
from crossgraft.tune.sim.watching import (
    AUTO,
    DOES_NOT_RUN,
    NOT_SEEN,
    Blocks,
    BlockWatch,
    Hook,
    Seen,
    named_blocks,
    refuse_replicas,
    weakly,
)


def refuse_few_images(seen: Sequence[Seen], options: SimOptions) -> None:
    """Refuse a batch without images, and a placebo of one image alone.

    Raises:
        UsageError: Some block has seen no image, or with the placebo one alone.
    """
    fewest = min(each.num_images for each in seen)
    if not fewest:
        raise UsageError("rho_sim has seen a batch of no images. Give the network at least one.")
    if options.placebo and fewest < FEWEST_FOR_A_PLACEBO:
        raise UsageError(
            "The placebo of rho_sim predicts the tokens of another image, and there is one image alone. Give the network at "
            f"least {FEWEST_FOR_A_PLACEBO} images at a time."
        )


def block_term(seen: Seen, reconstructor: Reconstructor, options: SimOptions, generator: torch.Generator) -> Float[Tensor, ""]:
    """The loss of one run of a block, in float32 at least.

    Raises:
        UsageError: The reconstructor is on another device than the network.
    """
    like = next(reconstructor.parameters())
    if like.device != seen.given.device:
        raise UsageError(f"rho_sim is on {like.device} and the network on {seen.given.device}. Call to({seen.given.device!s}).")
    given, taken = seen.given.to(like.dtype), seen.taken.to(like.dtype)
    if options.channels < 1:
        given, taken = some_channels(given, taken, options.number_of_channels, generator)
    distances = OF_STANDARDISED if options.order == "paper" else DISTANCES
    with torch.autocast(like.device.type, enabled=False):
        prediction, target = reconstructor(given, taken)
        return distances[options.distance](prediction, target)


def by_block(seen: Sequence[Seen], losses: Float[Tensor, " runs"], *, looks: bool = True) -> dict[str, Tensor]:
    """The loss of each block, summed over its runs; whoever ``looks`` waits for the device.

    Raises:
        DivergedError: One is not finite; the message names its block.
    """
    sums: dict[str, Tensor] = {}
    for each, loss in zip(seen, losses, strict=True):
        sums[each.block] = loss + sums.get(each.block, 0)
    if looks and not bool(losses.isfinite().all()):
        broken = [name for name, loss in sums.items() if not bool(loss.isfinite())]
        raise DivergedError(
            f"The term of rho_sim is not finite in {', '.join(broken)}: what the block takes or gives is not, or the "
            "reconstructor has diverged. Try a smaller learning rate, clipped gradients, or another loss."
        )
    return sums


def listed(blocks: Mapping[str, str]) -> str:
    """Names of blocks, each with the reason that is its value."""
    return "; ".join(f"{name}: {why}" for name, why in blocks.items())


_STEPS = "steps"


class RhoSim:
    """Self Identity Mapping with token sampling and projection, on any module, in three lines.

        sim = RhoSim(model, example=images)
        optimizer = torch.optim.AdamW([*model.parameters(), *sim.parameters()])
        loss = criterion(model(images), targets) + sim.loss()

    For block l with input z_{l−1} and output z_l, of which the same tokens are drawn (a share ρ of the positions of z_l),

        L = weight · mean over l of d(G_l(H_l(z_l)), stopgrad H_l(z_{l−1}))

    H_l and G_l, the reconstructors, are learned here and are no part of the network, whose ``state_dict`` stays as it is. The
    last forward pass before ``loss`` counts. Evaluation under ``torch.no_grad`` costs and keeps nothing. Copies of the network
    have no ρSIM, and to pickle the network is refused until ``detach``. Hooks leave with this object, which the network does not
    keep alive: where a cell of a notebook runs again, those of the older one are gone.

    Args:
        model: Any module, compiled or not. Of parallel training, one module that has it and ``reconstructors`` is what to wrap.
        blocks: ``auto``: the building blocks; names of modules or of classes of modules; or classes.
        rho: Share ρ of the positions that are reconstructed, in (0, 1].
        weight: Factor ≥ 0 of ``loss()``, applied once; 0: nothing is built or kept.
        distance: ``norm_l2``, ``norm_mse``, ``mse``, ``l1``, ``smooth_l1``, ``cosine``, ``kl`` or ``wasserstein``.
        K: Width of the projections, at least 1; ``auto``: 128, or the channels of the block's input where they are fewer.
        order: ``code``, as released: distances called ``norm_…`` standardise prediction and target; ``paper``: projections are
            standardised before the prediction.
        sampling: ``v0``: the same tokens of all images; ``v1``: other tokens of each image; ``v2``: of three times as many drawn
            those with the largest mean input; ``norm``: those of each image with the largest norm of the input, none drawn.
        channels: Share of the channels that are looked at, in (0, 1], drawn anew in each step.
        layout: ``auto``, ``nchw``, ``nhwc``, ``nlc``, ``ncl``, ``lnc``, ``ncdhw`` or ``ndhwc``.
        reduce: ``mean`` or ``sum`` over the blocks.
        projected: False: equation 1, the input itself is predicted; SIM as printed with ``rho=1, distance="mse", reduce="sum"``.
        placebo: Each image is to predict the tokens of the image before it in the batch, at the same price: a control.
        seed: Random seed of reconstructors and sampling.
        example: What the model takes (a tensor, a tuple or a dict), for a look without training at what runs and how wide it
            is; without it the first ``loss`` makes the reconstructors, and ``parameters`` waits for it.
        loss: Former name of ``distance``.

    Attributes:
        reconstructors: One module with all of them: for wrappers of parallel training.
        skipped: Name of each block that is left out, always or in the last step → why.
        block_losses: Name of each block → its part of the last ``loss()``, without weight and gradient.

    Raises:
        UsageError: An option is out of its range, or no block can be reconstructed.
        UnknownNameError: An option, a block or a class of blocks has another name; the message gives the nearest ones.

    Cost: for a share ρ of the tokens of each block, four times the products of its H and three times those of G.

    Reference: Cai, Zhu, Fu, Miao, Yao: Self Identity Mapping, equations 1 to 4, and its released code.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        blocks: Blocks = AUTO,
        rho: float = 0.2,
        weight: float = 5e-3,
        distance: str = "norm_l2",
        K: SupportsIndex | str = "auto",
        order: str = "code",
        sampling: str = "v0",
        channels: float = 1.0,
        layout: str = "auto",
        reduce: str = "mean",
        projected: bool = True,
        placebo: bool = False,
        seed: int = 0,
        example: object = None,
        loss: str | None = None,
    ) -> None:
        if loss is not None:
            warnings.warn("RhoSim(loss=…) is called distance= now, as everywhere else.", DeprecationWarning, stacklevel=2)
            distance = loss
        options = SimOptions(
            rho=rho, weight=weight, distance=distance, K=K, blocks=blocks, order=order, sampling=sampling, channels=channels,
            layout=layout, reduce=reduce, projected=projected, placebo=placebo,
        )  # fmt: skip
        if isinstance(seed, bool) or not isinstance(cast("Any", seed), Integral):
            raise UsageError(f"seed of rho_sim must be a whole number, found {seed!r}.")
        refuse_replicas(model)
        self._watch_blocks(network := unwrapped(model), options, seed=seed)
        take_out(network)
        if self._watch is None:
            return
        if any(is_compiled(part) for part in (model, *network.modules())):
            torch.compiler.reset()  # what is compiled already would run past the hooks
        hook = Hook(network, weakly(self._begin_call), when=takes_part)
        self._hooks.callback(network.register_forward_pre_hook(hook, with_kwargs=True).remove)
        if example is not None:
            self._look(lambda: called(network, example))
            self._warn_of_skipped()

    @classmethod
    def opened_by_hand(cls, network: nn.Module, options: SimOptions, *, seed: int, run: Callable[[], object]) -> RhoSim:
        """For a caller that says by ``begin`` which forward passes count; ``run`` is one to look at first.

        On a GPU that caller sees to it that terms are finite, a few steps later.
        """
        sim = cls.__new__(cls)
        sim._watch_blocks(network, options, seed=seed)
        sim._is_looked_at = True
        if sim._watch is not None:
            sim._look(run)
        return sim

    def _watch_blocks(self, network: nn.Module, options: SimOptions, *, seed: int) -> None:
        self._network, self._options, self._seed = network, options, seed
        self._steps, self._is_detached = 0, False
        self.reconstructors = Reconstructors()
        self.skipped: dict[str, str] = {}
        self.block_losses: dict[str, Tensor] = {}
        self._has_named = self._is_looked_at = False
        modules = named_blocks(network, options.blocks)
        self._watch = BlockWatch(modules, options) if options.weight > 0 else None
        self._hooks = ExitStack()
        if self._watch is not None:
            self._hooks.callback(self._watch.close)
            weakref.finalize(self, self._hooks.close).atexit = False

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks that are reconstructed, in the order of their first run."""
        return self.reconstructors.blocks

    @property
    def weight(self) -> float:
        """Factor of ``loss``."""
        return self._options.weight

    @property
    def has_begun(self) -> bool:
        """Whether a forward pass began since the last ``loss``."""
        return self._watch is not None and self._watch.is_open

    def _look(self, run: Callable[[], object]) -> None:
        """Make the reconstructors for what a forward pass in eval mode goes through."""
        assert self._watch is not None
        try:
            with modes_kept(self._network), torch.enable_grad(), torch.random.fork_rng(devices=[]):
                self._network.eval()
                self.begin()
                run()
                self._build(self._watch.close_pass())
        except BaseException:
            self.detach()  # nobody gets this object, who could
            raise

    def _begin_call(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], _: object) -> None:
        """The network is called, with images in the first tensor."""
        taken = first_of(self._network, arguments, keywords)
        images = taken.shape[0] if isinstance(taken, Tensor) and taken.ndim else 0
        self.begin(places=torch.arange(images) if images else None, batch_size=images)

    def call_begins(self, arguments: tuple[Any, ...]) -> None:
        """A call of the network has begun already, with these arguments, when this object was made."""
        self._begin_call(arguments, {}, None)

    def begin(
        self, *, generator: torch.Generator | None = None, places: Int[Tensor, " images"] | None = None, batch_size: int = 0
    ) -> None:
        """The forward pass that follows counts; what was seen before is forgotten. A call of the model does this by itself.

        Args:
            generator: Draws tokens and channels, on the CPU; by default one of this step.
            places: Place of each image in the whole batch, which may follow in parts; None: not known.
            batch_size: Images of the whole batch.
        """
        if self._watch is None:
            return
        self._generator = generator or torch_generator(self._seed, "rho_sim", _STEPS, self._steps)
        self._watch.open(Drawing(self._generator, places, batch_size))

    def loss(self) -> Float[Tensor, ""]:
        """The weighted term of the last forward pass, part of the graph; what was seen is then forgotten.

        Raises:
            UsageError: There was no forward pass with gradients since the last ``loss``, no block can be reconstructed, or a
                placebo has one image alone.
            DivergedError: The term of a block is not finite; the message names it.
        """
        if self._watch is None:
            return torch.zeros((), device=next((each.device for each in self._network.parameters()), None))
        seen = self._watch.close_pass()
        if not self.blocks and (seen or self._watch.skipped):
            self._build(seen)
            self._warn_of_skipped()
        if not seen and self._is_detached:
            raise UsageError("rho_sim was detached from the network, and has no loss any more. Make another RhoSim.")
        if not seen:
            raise UsageError(
                "rho_sim has seen no forward pass with gradients since its last loss(). Run the network in training first: not "
                "under torch.no_grad(), and with use_reentrant=False where it is checkpointed."
            )
        refuse_few_images(seen, self._options)
        self._name_the_missing({each.block for each in seen})
        self._steps += 1
        reconstructors = self.reconstructors.by_block()
        terms = [block_term(each, reconstructors[each.block], self._options, self._generator) for each in seen]
        losses = torch.stack(terms)
        self.block_losses = by_block(seen, losses.detach(), looks=not self._is_looked_at or losses.device.type == "cpu")
        total = losses.sum() if self._options.reduce == "sum" else losses.mean()
        return self._options.weight * (total + self.reconstructors.nothing_of_others({each.block for each in seen}))

    def _build(self, seen: list[Seen]) -> None:
        """A reconstructor for each block that was seen; the others are left out from now on."""
        assert self._watch is not None
        self.skipped = dict(self._watch.skipped)
        if not seen:
            raise UsageError(f"rho_sim cannot reconstruct any block ({listed(self.skipped)}). Name others: blocks=NAME.")
        for each in seen:
            if each.block not in self.blocks:
                widths = [self._options.number_of_channels(side.shape[-1]) for side in (each.taken, each.given)]
                drawn = torch_generator(self._seed, "rho_sim", each.block)
                made = Reconstructor(widths[0], widths[1], self._options, drawn)
                made.to(each.given.device, torch.promote_types(each.given.dtype, torch.float32))
                self.reconstructors.add(each.block, made)
        self._watch.keep_only(self.blocks)

    def _name_the_missing(self, ran: set[str]) -> None:
        """Blocks with a reconstructor of which this step has no term; the first are warned of."""
        assert self._watch is not None
        reasons = {name: why for name, why in self._watch.skipped.items() if why != DOES_NOT_RUN}
        missing = {name: reasons.get(name, NOT_SEEN) for name in self.blocks if name not in ran}
        self.skipped = {name: why for name, why in self.skipped.items() if name not in self.blocks} | missing
        if missing and not self._has_named:
            self._has_named = True
            warnings.warn(f"rho_sim has no term of blocks in this step ({listed(missing)}).", stacklevel=3)

    def _warn_of_skipped(self) -> None:
        if self.skipped:
            warnings.warn(f"rho_sim leaves out blocks ({listed(self.skipped)}).", stacklevel=3)

    def parameters(self) -> Iterator[nn.Parameter]:
        """Those of the reconstructors, for an optimiser.

        Raises:
            UsageError: The reconstructors are not made yet.
        """
        if self._watch is not None and not self.blocks:
            raise UsageError(
                "rho_sim does not know yet how wide the blocks are. Give it an example of what the network takes "
                "(example=images), or call loss() after a first forward pass."
            )
        return self.reconstructors.parameters()

    def to(self, *where: Any) -> RhoSim:
        """Move the reconstructors, as ``Module.to`` does."""
        self.reconstructors.to(*where)
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """Reconstructors and the number of steps, for a checkpoint of the training; not for anybody else's eyes."""
        return {**self.reconstructors.tensors(), _STEPS: torch.tensor(self._steps)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` gave.

        Raises:
            UsageError: It is of another network or other options, or the reconstructors are not made yet (see ``example``).
        """
        mine = self.state_dict()
        if {name: each.shape for name, each in state.items()} != {name: each.shape for name, each in mine.items()}:
            raise UsageError(
                "The checkpoint of rho_sim is of another network, other blocks or other options, or the reconstructors are not "
                "made yet (give an example)."
            )
        with torch.no_grad():
            for name, tensor in mine.items():
                tensor.copy_(state[name])
        self._steps = int(mine[_STEPS])

    def detach(self) -> None:
        """Take all hooks off the network; there is no ``loss`` any more, and the reconstructors are still here."""
        self._is_detached = True
        self._hooks.close()
