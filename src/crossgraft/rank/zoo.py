"""Walk through the zoo: load a backbone, look at the images once, score, let it go."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.data.transforms import prepare_batch
from crossgraft.features import FeatureSet, extract_features
from crossgraft.models import Backbone, ModelSpec, load_backbone, random_weights_control
from crossgraft.models.spec import RANDOM
from crossgraft.progress import Reporter
from crossgraft.rank.describe import describe_model
from crossgraft.rank.evaluate import ModelEvaluation, ScoreEvaluation, evaluate_scores
from crossgraft.rank.resampling import Resampling
from crossgraft.rank.zoo_options import Measurements, Options, measure_rounds
from crossgraft.records import Role
from crossgraft.runs import RunDirectory
from crossgraft.scores import AnyScore, ScoreInputs
from crossgraft.types import Preprocessing, ResizePolicy
from crossgraft.version import __version__

KEPT_BYTES = 256 * 2**20
"""Of prepared images, so that 26 evaluations of a score that looks at images need not decode them all again."""


@dataclass(frozen=True)
class ZooSettings:
    """How backbones are loaded and run; the same for every member."""

    seed: int
    device: str
    num_threads: int
    batch_size: int | None
    image_size: int | None
    resize_policy: ResizePolicy | None
    weights_dir: Path | None
    cache_dir: Path | None
    allow_download: bool
    all_intervals: bool


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


class ZooWalk:
    """Evaluates members one at a time, so that only one backbone is in memory.

    Attributes:
        num_read_back: Members whose results were in the run directory already.
    """

    def __init__(
        self,
        dataset: Dataset,
        scores: Sequence[AnyScore],
        resampling: Resampling,
        settings: ZooSettings,
        *,
        run: RunDirectory | None,
        reporter: Reporter,
    ) -> None:
        self.dataset = dataset
        self.scores = scores
        self.adaptive = [score for score in scores if score.zoo_option is not None]
        self.resampling = resampling
        self.settings = settings
        self.run = run
        self.reporter = reporter
        self.num_read_back = 0

    def check_weights(self, specs: Sequence[ModelSpec]) -> None:
        """Load every model once before the long work, so that missing weights do not stop it after an hour.

        Raises:
            MissingWeightsError: Weights are not on this machine.
            WeightsMismatchError: A checkpoint does not fit its architecture.
        """
        with self.reporter.stage("Checking the weights", total=len(specs), unit="models") as stage:
            for spec in specs:
                self._load(spec)
                stage.advance()

    def measure(self, member: Member, position: str) -> Measurements:
        """What the options of scores that depend on the whole zoo are chosen by; features are computed and kept."""
        backbone = self._load(member.spec)
        key = self._key(backbone, {})
        file = f"models/{key}.measured.json"
        finished = self.run.read_record(file, Measurements) if self.run else None
        if finished is not None and finished.key == key:
            return finished
        feature_set = self._extract(backbone, position)
        inputs = score_inputs(self.dataset, backbone, feature_set, member.spec, self.adaptive)
        title = f"Measuring {member.spec.name} for {', '.join(score.title for score in self.adaptive)} ({position})"
        with (
            limit_threads(self.settings.num_threads),
            self.reporter.stage(title, total=self._num_rounds, unit="rounds") as stage,
        ):
            rounds = measure_rounds(self.adaptive, inputs, self.resampling, stage=stage)
        measured = Measurements(key=key, features_from_cache=feature_set.from_cache, rounds=rounds)
        if self.run:
            self.run.write_record(file, measured)
        return measured

    def evaluate(
        self, member: Member, position: str, *, options: Options | None = None, measured: Measurements | None = None
    ) -> ModelEvaluation:
        """Features and scores of one member; read back when an earlier attempt of the same run finished them.

        Args:
            member: Of the zoo.
            position: For messages, for example ``2 of 7``.
            options: Those of scores that depend on the whole zoo.
            measured: What ``measure`` said about this member, if it was asked.
        """
        backbone = self._load(member.spec)
        key = self._key(backbone, options or {})
        file = f"models/{key}.json"
        finished = self.run.read_record(file, ModelEvaluation) if self.run else None
        if finished is not None and finished.key == key:
            self.num_read_back += 1
            return finished
        feature_set = self._extract(backbone, position, quiet=measured is not None)
        from_cache = measured.features_from_cache if measured else feature_set.from_cache
        evaluation = ModelEvaluation(
            key=key,
            model=describe_model(backbone, member.role, seconds=feature_set.seconds, from_cache=from_cache),
            evaluations=self._score(backbone, feature_set, member, position, options),
        )
        if self.run:
            self.run.write_record(file, evaluation)
        return evaluation

    @property
    def _num_rounds(self) -> int:
        return 1 + len(self.resampling.blocks) + len(self.resampling.shuffled_labels)

    def _extract(self, backbone: Backbone, position: str, *, quiet: bool = False) -> FeatureSet:
        return extract_features(
            self.dataset,
            backbone,
            cache_dir=self.settings.cache_dir,
            batch_size=self.settings.batch_size,
            num_threads=self.settings.num_threads,
            reporter=Reporter(quiet=True) if quiet else self.reporter,
            title=f"Looking at {len(self.dataset)} images with {backbone.name} ({position})",
        )

    def _load(self, spec: ModelSpec) -> Backbone:
        settings = self.settings
        return load_backbone(
            spec,
            seed=settings.seed,
            device=settings.device,
            weights_dir=settings.weights_dir,
            allow_download=settings.allow_download,
            image_size=settings.image_size,
            resize_policy=settings.resize_policy,
        )

    def _score(
        self, backbone: Backbone, feature_set: FeatureSet, member: Member, position: str, options: Options | None
    ) -> list[ScoreEvaluation]:
        inputs = score_inputs(self.dataset, backbone, feature_set, member.spec, self.scores)
        title = f"Scoring {member.spec.name} ({position})"
        with (
            limit_threads(self.settings.num_threads),
            self.reporter.stage(title, total=self._num_rounds, unit="rounds") as stage,
        ):
            return evaluate_scores(
                self.scores,
                inputs,
                self.resampling,
                all_intervals=self.settings.all_intervals,
                stage=stage,
                options=options,
            )

    def _key(self, backbone: Backbone, options: Options) -> str:
        settings = self.settings
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
            settings.seed,
            settings.all_intervals,
            {name: rounds.model_dump() for name, rounds in options.items()},
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:20]


def score_inputs(
    dataset: Dataset, backbone: Backbone, feature_set: FeatureSet, spec: ModelSpec, scores: Sequence[AnyScore]
) -> ScoreInputs:
    """Everything that the chosen scores may look at; images and model only for scores that ask for them."""
    needs_model = any("model" in score.inputs for score in scores)
    return ScoreInputs(
        features=feature_set.features,
        labels=None if dataset.is_multi_label else dataset.targets,  # scores then see one label at a time
        groups=dataset.groups,
        source_logits=feature_set.source_logits,
        source_features=spec.load_source_features(),
        model=backbone if needs_model else None,
        images=PreparedImages(dataset, backbone.preprocessing) if needs_model else None,
    )


class PreparedImages:
    """Every image of a data set as the input of a backbone, prepared when it is asked for; the first ones are kept."""

    def __init__(self, dataset: Dataset, preprocessing: Preprocessing) -> None:
        self.dataset = dataset
        self.preprocessing = preprocessing
        values = preprocessing.channels * preprocessing.height_pixels * preprocessing.width_pixels
        self._most_kept = KEPT_BYTES // (4 * values)
        self._kept: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, row: int, /) -> np.ndarray:
        """One image (channels, height, width), float32."""
        if row in self._kept:
            return self._kept[row]
        image = prepare_batch([self.dataset.read(row)], self.preprocessing)[0].numpy()
        if len(self._kept) < self._most_kept:
            self._kept[row] = image
        return image
