"""The networks between the pretrained one and full: what mixing two sets of weights gives without any training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from crossgraft.compute import limit_threads, resolve_device, reuse_freed_memory
from crossgraft.errors import CrossgraftError, StorageError
from crossgraft.interpolate.interpolation import ALPHAS, interpolation_curve, with_body_of
from crossgraft.interpolate.record import InterpolationRecord
from crossgraft.models.classifier import Classifier
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tune.measuring.evaluation import FoldPredictions
from crossgraft.tune.saving.saved_model import load_saved_model
from crossgraft.variants.comparison import MeasuredImages, OnImages, difference
from crossgraft.variants.record import DifferenceRecord
from crossgraft.variants.study import Answers, DoneTraining, VariantStudy, curve_name

_TOLERANCE = 1e-6
"""Tolerance of a similarity: two networks with the same weights may differ in the last digits."""


@dataclass(frozen=True, eq=False)
class MixedCurve:
    """The way from the pretrained network to full, of one seed.

    Attributes:
        seed: Random seed of both ends.
        record: Every number of its points.
        answers: What each point says about the test images.
        starts_at_linear: Whether it starts at the variant ``linear``.
    """

    seed: int
    record: InterpolationRecord
    answers: list[Answers]
    starts_at_linear: bool

    def at(self, similarity: float, images: MeasuredImages, *, kind: str = "cka") -> OnImages | None:
        """The best metric that the curve has with this CKA or a higher one; None in a gap, and where it has no higher one.

        It has a CKA at a measured network, or between two that are joined. A curve may fold back, and then another of its
        networks keeps more and does better: the comparison is with what weight interpolation can do.
        """
        places, similarities = list(self._places(similarity, kind)), self._similarities(kind)
        above = [place for place, here in enumerate(similarities) if here > similarity]
        if not places and len(above) < len(similarities):
            return None
        there = [self._measured(place, share, images) for place, share in (*places, *((place, 0.0) for place in above))]
        return max(there, key=lambda there: there.value)

    def _similarities(self, kind: str) -> list[float]:
        return [point.similarity.get(kind, math.nan) for point in self.record.points]

    def _places(self, similarity: float, kind: str) -> Iterator[tuple[int, float]]:
        """Where the curve has this CKA: a point, and how far it is from there to the next."""
        similarities = self._similarities(kind)
        for place, here in enumerate(similarities):
            if abs(here - similarity) <= _TOLERANCE:
                yield place, 0.0
            elif place + 1 < len(similarities) and self.record.is_joined(place, kind):
                share = (similarity - here) / (similarities[place + 1] - here) if similarities[place + 1] != here else math.nan
                if 0 < share < 1:
                    yield place, share

    def _measured(self, place: int, share: float, images: MeasuredImages) -> OnImages:
        """The metric at a point, or between it and the next in a straight line."""
        here = images.measure(self.answers[place])
        return here if share == 0 else here.towards(images.measure(self.answers[place + 1]), share)


def draw_curves(
    study: VariantStudy, done: Sequence[DoneTraining], metric: str, run: RunDirectory
) -> tuple[list[MixedCurve], str | None]:
    """One curve a seed whose full training is done, and the reason where there is none.

    Cost: one forward pass of the val and test images for each of eleven networks a seed.
    """
    if study.rows.has_several_models:
        return [], "each domain was left out in turn, so that full is several networks"
    fulls = [each for each in done if each.variant.is_full and each.record is not None]
    if not fulls:
        return [], "full is not among the variants that were trained, so there is nothing to mix weights with"
    curves: list[MixedCurve] = []
    for full in fulls:
        linear = next((each for each in done if each.variant.is_linear and each.seed == full.seed and each.record), None)
        try:
            curves.append(_curve(study, full, linear, metric, run))
        except StorageError:
            raise  # the disk is full: no fault of the curve, and the same command goes on from here
        except CrossgraftError as error:
            return [], str(error)
    return curves, None


def _curve(study: VariantStudy, full: DoneTraining, linear: DoneTraining | None, metric: str, run: RunDirectory) -> MixedCurve:
    kept = _read_back(run, full.seed)
    if kept is not None:
        return MixedCurve(full.seed, *kept, linear is not None)
    dataset, parts = study.rows.dataset, study.rows.parts[0]

    def load(training: DoneTraining) -> Classifier:
        return load_saved_model(training.folder, allow_code=study.request.spec.code).classifier

    end = load(full)
    pretrained = study.pretrained(full.seed, end.num_outputs)
    start = with_body_of(end, pretrained) if linear is None else load(linear)
    task, answers = dataset.task, list[Answers]()

    def keep(predictions: FoldPredictions) -> None:
        answers.append(predictions.test_probabilities(task) if metric == "auc" else predictions.decisions(task))

    head = "full" if linear is None else "the linear probe"
    num_threads = study.num_threads
    with limit_threads(num_threads), reuse_freed_memory(), study.reporter.part(curve_name(full.seed)):
        record = interpolation_curve(
            start,
            end,
            dataset,
            parts,
            pretrained=pretrained,
            alphas=ALPHAS,
            start_in_words=f"the pretrained network with the head of {head}",
            threshold_rule=study.request.options.threshold_rule,
            device=resolve_device(study.request.options.device),
            num_threads=num_threads,
            reporter=study.reporter,
            on_point=keep,
        )
    run.write(_answers_file(full.seed), safetensors.numpy.save({"answers": np.stack(answers)}))
    run.write_record(_record_file(full.seed), record)
    return MixedCurve(full.seed, record, answers, linear is not None)


def _read_back(run: RunDirectory, seed: int) -> tuple[InterpolationRecord, list[Answers]] | None:
    record = run.read_record(_record_file(seed), InterpolationRecord)
    path = run.path / _answers_file(seed)
    if record is None or not path.is_file():
        return None
    try:
        return record, list(safetensors.numpy.load_file(path)["answers"])
    except (SafetensorError, OSError, KeyError):
        return None


def _record_file(seed: int) -> str:
    return f"interpolation-{seed}.json"


def _answers_file(seed: int) -> str:
    return f"interpolation-{seed}.safetensors"


def above_curve(
    trainings: Sequence[DoneTraining],
    measured: Sequence[OnImages],
    curves: Sequence[MixedCurve],
    images: MeasuredImages,
    *,
    adapted: bool = False,
) -> DifferenceRecord | None:
    """A variant minus the network between pretrained and full with the same CKA; None for the ends of the curve.

    That is the similarity to the network that training started from: with ``adapted`` the one with BatchNorm statistics of the
    training images.

    The similarity counts as known: the interval has the chance of test images and of seeds, not that of the CKA. There is
    no value unless every seed has such a network: the seeds that have one are not drawn by chance.
    ``trainings`` are those of one variant, one per seed, with the metric of each in ``measured``.
    """
    by_seed = {curve.seed: curve for curve in curves}
    pairs = [(each, value, by_seed[each.seed]) for each, value in zip(trainings, measured, strict=True) if each.seed in by_seed]
    if not pairs or pairs[0][0].variant.is_full:
        return None
    if pairs[0][0].variant.is_linear and pairs[0][2].starts_at_linear:
        return None
    kind = "cka_adapted" if adapted else "cka"
    ones: list[OnImages] = []
    others: list[OnImages] = []
    for each, value, curve in pairs:
        there = curve.at(each.row.similarity.get(kind, math.nan), images, kind=kind)
        if there is not None:
            ones.append(value)
            others.append(there)
    if len(ones) < len(pairs):
        where = "" if len(pairs) == 1 else f" (in {len(pairs) - len(ones)} of {len(pairs)} seeds)"
        return DifferenceRecord(
            value=None, reason=f"no network between pretrained and full that was measured has features of the same CKA{where}"
        )
    return difference(ones, others, images)
