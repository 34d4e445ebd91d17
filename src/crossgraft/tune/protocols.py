"""What the engine knows of plug-ins; each kind of plug-in inherits from one of these."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossgraft.models.classifier import Classifier

LOOK_EVERY_STEPS = 16
"""On a GPU numbers of a step are looked at this often, of all steps since then at once: whoever looks waits for the GPU."""

UnitImages = Float[Tensor, "batch channels height width"]
"""Resized images with values in [0, 1], before mean and standard deviation are applied."""


@runtime_checkable
class Augmentation(Protocol):
    """One way to vary images; a frozen dataclass whose fields are its options (``flip`` is one of all).

    A class that inherits from this one needs no more than its name, title, citation, options (``flip`` among them) and
    ``__call__``.

    A class that says ``is_identity = True`` leaves images as they are, so that their features can be computed once.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: Publication that describes it.
        flip: Whether images may be mirrored left to right (``--no-flip`` turns it off: a heart is on one side).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]

    @property
    def flip(self) -> bool:
        """Whether images may be mirrored."""
        ...

    @abstractmethod
    def __call__(self, images: UnitImages, generator: torch.Generator) -> UnitImages:
        """Varied images of the same shape in [0, 1]; every image draws numbers of its own.

        A batch comes in parts, one call each, with the same generator; ``images`` stay as they are. One that draws apart
        (``DrawsApart``) sees a whole batch at once on a GPU.
        """
        ...


Drawn = Mapping[str, Tensor]
"""Numbers by what they are for, on the CPU; one row per image."""


@runtime_checkable
class DrawsApart(Protocol):
    """An augmentation that draws numbers first, and uses them then: on a GPU the whole batch is augmented at once.

    A call with ``images`` is ``apply(images, draw(len(images), height, width, generator))``.
    """

    def draw(self, num_images: int, height: int, width: int, generator: torch.Generator) -> Drawn:
        """The numbers for so many images of this size in pixels."""
        ...

    def apply(self, images: UnitImages, drawn: Drawn) -> UnitImages:
        """Varied images, which stay where they are; ``drawn`` may be of several calls of ``draw``, row by row."""
        ...


def is_identity(augmentation: Augmentation) -> bool:
    """Whether images stay as they are."""
    return getattr(augmentation, "is_identity", False)


Images = Float[Tensor, "batch channels height width"]
SoftTargets = Float[Tensor, "batch num_classes"]


@runtime_checkable
class BatchTransform(Protocol):
    """One change of a batch; a frozen dataclass whose fields are its options.

    A class that inherits from this one needs no more than its name, title, citation, options and ``__call__``; several labels
    per image are then refused.

    A class that says ``mixes_images = True`` mixes images with each other.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: The paper that defines it.
        accepts_multi_label: Whether targets with several labels per image keep a meaning.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    accepts_multi_label: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, images: Images, targets: SoftTargets, generator: torch.Generator) -> tuple[Images, SoftTargets]:
        """New images and targets of the same shapes; the inputs stay as they are.

        The batch is the whole one of all processes, so that the result does not depend on their number.
        """
        ...


@dataclass(frozen=True)
class Selection:
    """What a method trains.

    Attributes:
        trained: Name of each trained parameter → why it is trained.
        frozen: Name of each frozen parameter → why it is frozen. Together with ``trained``: every parameter, once.
        train_mode: Names of the modules that run in train mode, with all that is inside them (``""``: the whole
            network). Everything else stays in eval mode, so that the statistics of a frozen BatchNorm do not move and
            a frozen Dropout drops nothing.
        eval_mode: Names of modules inside those that stay in eval mode all the same, though their parameters are trained.
    """

    trained: Mapping[str, str]
    frozen: Mapping[str, str]
    train_mode: tuple[str, ...]
    eval_mode: tuple[str, ...] = ()


@runtime_checkable
class Method(Protocol):
    """One way to choose what is trained; a frozen dataclass whose fields are its options.

    A class that inherits from this one needs no more than its name, title, citation, options and ``select``.

    A method that trains small parts beside the network's layers puts them there first; see ``AddsAdapters``.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: The paper that defines it.
        starts_from_scratch: Whether the pretrained weights are replaced by random ones first.
        features_are_fixed: Whether the features of an image never change, so that they may be computed once.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    starts_from_scratch: ClassVar[bool] = False
    features_are_fixed: ClassVar[bool] = False

    @abstractmethod
    def select(self, classifier: Classifier) -> Selection:
        """Sort every parameter of ``classifier`` into trained and frozen; nothing is changed.

        Raises:
            UsageError: The network has no such part; the message names the parts it has.
        """
        ...


@runtime_checkable
class AddsAdapters(Protocol):
    """A method that trains adapters, and nothing else of the body.

    So the pretrained network is always there: it is this one with its adapters off, which is what regularisers compare with.
    """

    def add_adapters(self, classifier: Classifier, *, seed: int) -> None:
        """Put adapters into ``classifier``, which gives what it gave before; called once, before ``select``.

        Raises:
            UsageError: The network has no place for them; the message says why.
        """
        ...


def put_adapters_in(method: Method, classifier: Classifier, *, seed: int) -> None:
    """Put the method's adapters into ``classifier``; nothing for a method without.

    Raises:
        UsageError: The network has no place for them.
    """
    if isinstance(method, AddsAdapters):
        method.add_adapters(classifier, seed=seed)


@runtime_checkable
class TrainingSet(Protocol):
    """The training images, for a regulariser that looks at all of them before the first step."""

    @property
    def is_plain(self) -> bool:
        """Whether training shows an image the same way every time: neither augmented nor mixed."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the images, their order and preparation; None: results computed from them must not be kept on disk."""
        ...

    def plain_batches(self) -> Iterator[Float[Tensor, "batch channels height width"]]:
        """Every image once, in the order of the rows, as evaluation shows it; where the network is."""
        ...

    def training_batches(self, passes: int) -> Iterator[Float[Tensor, "batch channels height width"]]:
        """As training shows the images, augmented and mixed, so many times; drawn apart from what training draws."""
        ...


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


@dataclass(frozen=True)
class StepContext:
    """What a regulariser may look at in one step.

    With ``--accumulate`` a batch has parts that go through the network one after the other, the same whatever the number of
    processes; of several processes each has its share of a part. A context is about one share; ``of_all_processes`` gives
    the rows of the whole part.

    Attributes:
        classifier: The network that is trained.
        images: Prepared, augmented and mixed, as the network saw them.
        targets: One row per image, over classes or labels; soft after mixing.
        rows: Row of the training set of each image (of the first image of a mixed pair).
        features: Penultimate features of ``images``, part of the graph.
        logits: What the head says, part of the graph.
        step: Number of this step, from 0.
        num_processes: Number of processes that share the batch; ``images`` are this process' share of the part.
        generator: Random number generator of this step.
        num_images: Number of ``images`` that count: all, or none of the one that a process without a share looks at.
        num_images_of_all: Images of this part in all processes together.
        first_image: Where this process' images begin among those.
        sum_over_processes: Adds up a tensor over the processes, in the graph: its gradient is that of the sum. Every
            process must call it, as often and in the same order.
    """

    classifier: Classifier
    images: Float[Tensor, "batch channels height width"]
    targets: Float[Tensor, "batch num_classes"]
    rows: Int[Tensor, " batch"]
    features: Float[Tensor, "batch num_features"]
    logits: Float[Tensor, "batch num_classes"]
    step: int
    num_processes: int
    generator: torch.Generator
    num_images: int
    num_images_of_all: int
    first_image: int = 0
    sum_over_processes: Callable[[Tensor], Tensor] = _as_it_is

    def of_all_processes(self, rows: Float[Tensor, "batch ..."]) -> Float[Tensor, "num_images_of_all ..."]:
        """One row per image of this process → the rows of all processes, in the order of the batch, in the graph."""
        if self.num_processes == 1:
            return rows
        before = rows.new_zeros(self.first_image, *rows.shape[1:])
        after = rows.new_zeros(self.num_images_of_all - self.first_image - self.num_images, *rows.shape[1:])
        return self.sum_over_processes(torch.cat([before, rows[: self.num_images], after]))


@dataclass(frozen=True)
class ForwardStart:
    """What a regulariser may know before the images of a part of a step go through the network.

    Attributes:
        generator: Random number generator of this step, on the CPU; new, and the same, for every part in every process.
        places: Place of each image of this part in the batch of all processes.
        batch_size: Images of that batch.
    """

    generator: torch.Generator
    places: Int[Tensor, " batch"]
    batch_size: int


@runtime_checkable
class LooksInside(Protocol):
    """A regulariser that watches layers while the images of a step go through the network."""

    def before_forward(self, start: ForwardStart) -> None:
        """The forward pass that follows is that of a step which then asks for ``loss``; no other one is to be kept."""
        ...


@runtime_checkable
class SaysWhatItFound(Protocol):
    """A regulariser that knows something for the plan once it is attached."""

    def findings(self) -> list[str]:
        """Sentences about this network, after ``attach``."""
        ...


@dataclass(frozen=True)
class StepUpdate:
    """What a regulariser may look at after the optimiser's step.

    Attributes:
        classifier: With its new weights.
        learning_rates: Name of each trained parameter of the classifier → its learning rate in this step.
        factor: What ``--keep`` has multiplied the terms by that keep the start; what is changed here for them is to be changed
            so many times as much.
        step: Number of the step, from 0; for messages.
    """

    classifier: Classifier
    learning_rates: Mapping[str, float]
    factor: float = 1.0
    step: int = 0


@runtime_checkable
class Regularizer(Protocol):
    """One or more terms that are added to the loss; a dataclass whose fields are its options.

    The loss of a step is ``task_weight × task loss + Σ terms``; every term is logged under ``<name>/<term>``. A term that
    does not depend on the images, that is a mean over them, or that is made of ``of_all_processes`` and
    ``sum_over_processes`` gives the same step whatever the number of processes.

    A regulariser with learned parameters of its own (an orthogonal map, reconstructors) gives them in
    ``parameter_groups``; they take part in checkpoints through ``state_dict``.

    A class that inherits from this one needs no more than its name, title, citation, options and ``loss``: everything else does
    nothing by default. It need not inherit; what has all of this is one.

    A class that says ``keeps_reference = False`` does not compare with the weights that training starts from, and can be used
    where those are random; the others are refused there. One that compares in some of its terms only, as beside a decay of the
    new head, names them by ``kept_terms = ("body",)``, and ``--keep`` leaves the others as strong as they are. One that says
    ``decays_weights = True`` is a weight decay of its own.
    One whose spelling has come to mean something else says so by ``definition = 2``, so that no training is gone on with by
    another definition. One of which its options leave nothing says so by ``pulls = False``; one beside which the statistics of
    BatchNorm had better stay as they came (and few steps be small ones after the head, see ``tune.planning.batch_norm``), by
    ``freezes_batch_norm = True``. One that fills in what was left open says by
    ``in_full`` what that came to; one that goes by one name in several forms says by ``form`` which one it takes. What else it
    does not go with, it says by ``conflicts`` and ``remarks`` (see ``crossgraft.conflicts``). One that watches layers has a
    method ``before_forward``, which says what it is to keep (see ``LooksInside``).

    Attributes:
        name: On the command line and in tables.
        title: In print.
        citation: The paper that defines it.
        task_weight: Factor of the task loss.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]

    @property
    def task_weight(self) -> float:
        """Factor of the task loss; 1 for all but convex combinations."""
        return 1.0

    def attach(self, classifier: Classifier, training_set: TrainingSet | None = None, *, seed: int = 0) -> None:
        """Look at network and training images before the first step, where the pretrained weights are: clone references.

        Parameters require a gradient where they will be trained. ``seed`` is the random seed of the training, for parameters
        that are drawn; an ``attach`` without it is called without it. ``training_set`` is None where there are no images to
        look at, as for a plan that counts parameters: a regulariser that needs them says so in its first ``loss``.
        """

    @abstractmethod
    def loss(self, context: StepContext) -> dict[str, Tensor]:
        """The weighted terms of this step, scalars, by name."""
        ...

    def after_step(self, update: StepUpdate) -> None:
        """Called when the optimiser has moved the weights; what it changes is changed without a gradient."""

    def detach(self) -> None:
        """Remove everything that ``attach`` left on the network."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Own parameters as groups of an optimiser (``params``, and ``lr`` or ``weight_decay`` where they differ)."""
        return []

    def modules(self) -> list[nn.Module]:
        """Modules that hold own parameters, for wrapping under several processes. A frozen copy of the network is none."""
        return []

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs, as tensors by name; by default it attaches to the starting weights again."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` gave, after ``attach``."""


def attach(regularizer: Regularizer, classifier: Classifier, training_set: TrainingSet | None = None, *, seed: int = 0) -> None:
    """Attach it, with the seed if it takes one: those that draw nothing need not."""
    parameters = inspect.signature(regularizer.attach).parameters.values()
    takes_seed = any(each.name == "seed" or each.kind is each.VAR_KEYWORD for each in parameters)
    regularizer.attach(classifier, training_set, **({"seed": seed} if takes_seed else {}))


def form_of(plugin: object) -> str | None:
    """Which of several forms a plug-in takes, in print; None of one that has a single form.

    >>> from crossgraft.tune.regularizers import L2SP, RepSim
    >>> form_of(RepSim(preset="paper")), form_of(L2SP())
    ('eq. 13–14', None)
    """
    return getattr(plugin, "form", None)


def keeps_reference(regularizer: Regularizer) -> bool:
    """Whether it compares with the network that training starts from: all that do not say otherwise."""
    return bool(getattr(regularizer, "keeps_reference", True))


def keeps_start(regularizer: Regularizer, term: str) -> bool:
    """Whether a term of it compares with that network: all terms of those that do, unless they name some."""
    named: Collection[str] | None = getattr(regularizer, "kept_terms", None)
    return keeps_reference(regularizer) and (named is None or term in named)


def freezes_batch_norm(regularizer: Regularizer) -> bool:
    """Whether statistics of BatchNorm stay as they came, unless somebody asks for something else."""
    return bool(getattr(regularizer, "freezes_batch_norm", False) and getattr(regularizer, "pulls", True))
