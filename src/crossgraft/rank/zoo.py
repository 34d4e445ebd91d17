"""The zoo, and what is needed to look at the images with one of its members."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.data.transforms import prepare_resized
from crossgraft.features import FeatureSet, extract_features
from crossgraft.features.passes import ImageSource, ResizedOnce, resized
from crossgraft.models import Backbone, ModelSpec, load_as_asked, random_weights_control
from crossgraft.models.device import Precision
from crossgraft.models.load import file_stamp
from crossgraft.models.record import Role
from crossgraft.models.spec import RANDOM
from crossgraft.progress import Reporter, Stage
from crossgraft.rank.evaluate import Options, Resampling
from crossgraft.rank.options import RankOptions
from crossgraft.running.run_directory import RunDirectory
from crossgraft.scores import AnyScore, ScoreInputs
from crossgraft.types import Preprocessing
from crossgraft.version import __version__

KEPT_BYTES = 256 * 2**20
"""Bytes of prepared images to keep, so that 26 evaluations of a score that looks at images need not decode them again."""
KEPT_PARAMETERS = 2**28
"""Networks of so many parameters together, 1 GiB, wait in main memory from the check of their weights to their turn."""


@dataclass(frozen=True)
class Member:
    """One entry of the zoo and the part it plays."""

    spec: ModelSpec
    role: Role


def with_controls(specs: Sequence[ModelSpec]) -> list[Member]:
    """The zoo and one random-weight network for each distinct architecture that has none yet."""
    members = [Member(spec, "random weights" if spec.weights == RANDOM else "candidate") for spec in specs]
    covered = {member.spec.architecture_key for member in members if member.role == "random weights"}
    for spec in specs:
        if spec.architecture_key not in covered:
            covered.add(spec.architecture_key)
            taken = {member.spec.name for member in members}
            members.append(Member(random_weights_control(spec, taken=taken), "random weights"))
    return members


def check_networks(specs: Sequence[ModelSpec], options: RankOptions) -> None:
    """Load every checkpoint, and draw the control of every function, before any image is read.

    Weights that a library publishes fit its architecture, whose control it can always draw.

    Raises:
        UsageError: A control cannot be drawn, or a function cannot be called.
        WeightsMismatchError: A checkpoint does not fit its architecture.
        DataError: A checkpoint is damaged.

    Cost: one more time of loading for each of them.
    """
    asked = repr(replace(options, out=None))
    for spec in (member.spec for member in with_controls(specs)):
        file = Path(spec.weights) if spec.weights and spec.has_checkpoint else None
        known = (asked, repr(spec), Path.cwd(), file_stamp(file) if file is not None and file.exists() else None)
        if (spec.is_factory or file is not None) and known not in _CHECKED:
            load_as_asked(spec, options, device="cpu")
            _CHECKED.add(known)


_CHECKED: set[tuple[object, ...]] = set()
"""What was loaded in this process: a command that looks for a free run directory asks again for each that is taken."""


@dataclass(frozen=True, eq=False)
class Zoo:
    """What all members are looked at with.

    Attributes:
        dataset: Labelled images.
        images: The same, resized once for all members that take them in the same way.
        scores: All that are wanted.
        resampling: The rounds of each score.
        options: How backbones are loaded and run; the same for every member.
        device: Where they run.
        num_threads: Number of threads that read images and compute.
        run: Run directory, or None: then nothing is kept.
        reporter: Reporter of progress.
        precision: Number type in which they look.
        primary: Score that orders the models; empty: the first one.
        loaded: Networks that wait for their turn, by the names of their members.
    """

    dataset: Dataset
    images: ResizedOnce
    scores: Sequence[AnyScore]
    resampling: Resampling
    options: RankOptions
    device: str
    num_threads: int
    run: RunDirectory | None
    reporter: Reporter
    primary: str = ""
    precision: Precision = "32"
    loaded: dict[str, Backbone] = field(default_factory=dict[str, Backbone])

    @property
    def adaptive(self) -> list[AnyScore]:
        """Scores with options that depend on the whole zoo."""
        return [score for score in self.scores if score.zoo_option is not None]

    def load(self, spec: ModelSpec) -> Backbone:
        """The network of one member; one that waited is given away."""
        if (waiting := self.loaded.pop(spec.name, None)) is not None:
            return waiting
        backbone = load_as_asked(spec, self.options, device=self.device)
        backbone.precision = self.precision
        if self.run is not None:
            self.run.describe_weights(self.reporter, {backbone.name: backbone.weights_fingerprint})
        return backbone

    def keep(self, spec: ModelSpec, backbone: Backbone) -> None:
        """Until it is asked for, where there is room; not somebody's own code, which may remember that it was run."""
        is_whole = backbone.identity is not None and backbone.device.startswith("cpu")
        if is_whole and sum(each.num_parameters for each in (backbone, *self.loaded.values())) <= KEPT_PARAMETERS:
            self.loaded[spec.name] = backbone

    def extract(self, backbone: Backbone, position: str, *, reporter: Reporter | None = None) -> FeatureSet:
        """Features of all images, from the cache where they are there; by default the reporter of the zoo tells."""
        return extract_features(
            self.images,
            backbone,
            cache_dir=self.options.cache_dir,
            batch_size=self.options.batch_size,
            num_threads=self.num_threads,
            reporter=reporter or self.reporter,
            title=f"Looking at {len(self.dataset)} images with {backbone.name} ({position})",
            is_announced=True,
        )

    @contextmanager
    def rounds(self, title: str, *, total: int | None = None) -> Generator[Stage]:
        """Shows how the rounds of one member go; by default all of them."""
        total = total or 1 + len(self.resampling.blocks) + len(self.resampling.shuffled_labels)
        with self.threads_of_rounds(), self.reporter.stage(title, total=total, unit="rounds") as stage:
            yield stage

    def threads_of_rounds(self) -> AbstractContextManager[None]:
        """For rounds of scores: products and decompositions by one thread, whatever else runs here; networks by all of them."""
        return limit_threads(self.num_threads, blas=1)

    def key(self, backbone: Backbone, options: Options) -> str:
        """Hash of everything that decides the scores of one member."""
        facts = [
            __version__,
            self.dataset.fingerprint,
            # A file of class names may change their order, or what a label is called, under the same data and command.
            self.dataset.class_names,
            hashlib.sha256(self.dataset.targets.tobytes()).hexdigest(),
            backbone.name,
            backbone.weights_fingerprint,
            backbone.preprocessing.describe(),
            [score.name for score in self.scores],
            self.options.seed,
            self.options.all_intervals,
            {name: rounds.model_dump() for name, rounds in options.items()},
            *([self.precision] if self.precision != "32" else []),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:20]


def score_inputs(
    zoo: Zoo, backbone: Backbone | None, feature_set: FeatureSet, spec: ModelSpec, scores: Sequence[AnyScore]
) -> ScoreInputs:
    """Everything that the chosen scores may look at; only scores that ask for images and model need a backbone."""
    shown = backbone if any("model" in score.inputs for score in scores) else None
    return ScoreInputs(
        features=feature_set.features,
        labels=zoo.dataset.task.classes_of_scores(zoo.dataset.targets),
        groups=zoo.dataset.groups,
        source_logits=feature_set.source_logits,
        source_features=spec.load_source_features(),
        model=shown,
        images=PreparedImages(zoo.images, shown.preprocessing) if shown is not None else None,
        device=zoo.device,
    )


class PreparedImages:
    """Every image of a data set as the input of a backbone, prepared when it is asked for; the first ones are kept."""

    def __init__(self, images: ImageSource, preprocessing: Preprocessing) -> None:
        self.images = images
        self.preprocessing = preprocessing
        values = preprocessing.channels * preprocessing.height_pixels * preprocessing.width_pixels
        self._most_kept = KEPT_BYTES // (4 * values)
        self._kept: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int, /) -> np.ndarray:
        """One image (channels, height, width), float32."""
        if row in self._kept:
            return self._kept[row]
        image = prepare_resized([resized(self.images, row, self.preprocessing)], self.preprocessing)[0].numpy()
        if len(self._kept) < self._most_kept:
            self._kept[row] = image
        return image
