"""What the engine knows of plug-ins; each kind inherits from one of these (those that act on images: ``image_protocols``)."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn

from crossgraft.models.classifier import Classifier

LOOK_EVERY_STEPS = 16
"""On a GPU numbers of a step are looked at this often, of all steps since then at once: whoever looks waits for the GPU."""


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


@dataclass(frozen=True)
class ObjectiveContext:
    """What an objective may look at in one step: the whole batch of all processes, in the order of the batch.

    Attributes:
        losses: Task loss of each image, part of the graph.
        logits: What the head says, part of the graph.
        targets: One row per image, over classes or labels; soft after mixing.
        domains: Domain of each image, from 0; all 0 where nobody said.
        num_domains: Number of domains among the training images; some may be missing in a batch.
        step: Number of this step, from 0.
        loss: The task loss, from logits and targets to one number per image.
        generator: Random number generator of this step, on the CPU; the same in every process.
    """

    losses: Float[Tensor, " batch"]
    logits: Float[Tensor, "batch num_classes"]
    targets: Float[Tensor, "batch num_classes"]
    domains: Int64[Tensor, " batch"]
    num_domains: int
    step: int
    loss: Callable[[Tensor, Tensor], Tensor]
    generator: torch.Generator


@runtime_checkable
class Objective(Protocol):
    """What training minimises; a dataclass whose fields are its options.

    The loss of a step is ``task_weight × Σ terms of the objective + Σ terms of the regularisers``; every term is logged under
    ``<name>/<term>``, and ``task`` stays the plain mean of the task loss. Every process computes the objective of the whole
    batch, so that its gradient does not depend on their number. In the head's phase of ``--head-first`` the plain mean is
    minimised, as nothing is added to the loss there either.

    A class that inherits from this one needs no more than its name, title, citation, options and ``__call__``. What it learns
    from one step to the next it keeps in tensors, which ``state_dict`` gives to checkpoints; anything else that changes follows
    from ``context.step`` alone, so that a resumed run ends like one that was not stopped.

    Attributes:
        name: On the command line and in tables.
        title: In print.
        citation: The paper that defines it.
        is_plain_mean: Whether it is the mean of the task loss over images; then it is not called, and a batch may have parts.
        needs_domains: Whether it compares domains, and means nothing without ``--domains``.
        fewest_per_group: Images that it needs of each domain (or domain and class) in a batch.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    is_plain_mean: ClassVar[bool] = False
    needs_domains: ClassVar[bool] = False
    fewest_per_group: ClassVar[int] = 1

    @property
    def sampler(self) -> str | None:
        """Sampler whose batches it needs: ``domains`` or ``domains_and_classes``; None: any."""
        return None

    @property
    def restarts_optimizer_at(self) -> int | None:
        """Step before which the optimiser forgets its moments, because the loss jumps there; None: never."""
        return None

    def warning_of_length(self, num_steps: int) -> str | None:
        """What goes wrong in a training of so many steps, and what to do; None where nothing does."""
        return None

    def attach(self, *, num_domains: int, num_classes: int) -> None:
        """Begin anew, before the first step."""

    @abstractmethod
    def __call__(self, context: ObjectiveContext) -> dict[str, Tensor]:
        """The terms of this step, scalars in the graph, by name; their sum is minimised."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs, as tensors by name."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` gave, after ``attach``."""


@dataclass(frozen=True)
class TransformStart(ForwardStart):
    """What a feature transform may know before the images of a step go through the network.

    Attributes:
        num_images: Images of this process that count: all of ``places``, or none of the one that a process without a share
            looks at.
        sum_over_processes: Adds up a tensor over the processes. Every process must call it, as often and in the same order.
    """

    num_images: int = 0
    sum_over_processes: Callable[[Tensor], Tensor] = _as_it_is

    def of_whole_batch(self, rows: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch_size ..."]:
        """One row per image of this process → the rows of all processes, without the graph."""
        mine = rows.detach()[: self.num_images]
        whole = mine.new_zeros(self.batch_size, *mine.shape[1:])
        whole[self.places[: self.num_images].to(mine.device)] = mine
        return self.sum_over_processes(whole)


@runtime_checkable
class FeatureTransform(Protocol):
    """One change of feature maps while training; a dataclass whose fields are its options.

    It acts on the network through hooks, which ``attach`` puts there and ``detach`` takes away, so that nothing of it is in the
    saved model; it adds no term to the loss and learns nothing. It is armed for the forward pass of a step alone: between
    ``before_forward`` and ``after_forward``. All numbers come from the generator that it is given, so that a resumed run, and one
    of several processes, draws the same.

    A class that inherits from this one needs no more than its name, title, citation, options, ``attach``, ``before_forward``,
    ``after_forward`` and ``detach``. One that can say which layers it changes says so by ``findings``.

    Attributes:
        name: On the command line and in tables.
        title: In print.
        citation: The paper that defines it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]

    @abstractmethod
    def attach(self, classifier: Classifier) -> None:
        """Put hooks on layers of ``classifier``, which does what it did before.

        Raises:
            UsageError: The network has no place for it; the message says why.
            UnknownNameError: It has no layer of this name.
        """
        ...

    @abstractmethod
    def before_forward(self, start: TransformStart) -> None:
        """The forward pass that follows is that of a training step; ``start.generator`` is new, and the same in every process."""
        ...

    @abstractmethod
    def after_forward(self) -> None:
        """It is over; other forward passes are left alone."""
        ...

    @abstractmethod
    def detach(self) -> None:
        """Take away everything that ``attach`` left on the network."""
        ...
