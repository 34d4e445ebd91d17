"""WiSE-FT: networks between the pretrained and the fine-tuned one, which cost no training.

Source: Wortsman et al., *Robust fine-tuning of zero-shot models*, CVPR 2022 (arXiv 2109.01903), eq. 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crossgraft.data import Dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.errors import UsageError
from crossgraft.geometry.batch_norm import batch_norms_of, with_estimated_statistics
from crossgraft.geometry.batch_norm import moved_batch_norms as moved_batch_norms
from crossgraft.geometry.interpolation_path import interpolate as interpolate
from crossgraft.geometry.interpolation_path import with_body_of as with_body_of
from crossgraft.geometry.parameter_distance import parameter_distance
from crossgraft.geometry.record import BatchNormRule
from crossgraft.interpolate.record import InterpolationPoint, InterpolationRecord
from crossgraft.metrics.words import metric_name_in_words
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.records.base import Reference
from crossgraft.result import Result
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.forecast import NETWORKS, foresee_networks
from crossgraft.tune.looks import count_test_look
from crossgraft.tune.measuring.drift import Compared, similarity_to_source
from crossgraft.tune.measuring.evaluation import FoldPredictions, evaluate_alone, predict_fold
from crossgraft.tune.parts import FoldRows, TuningRows

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Interpolated(Result[InterpolationRecord]):
    """The curve between two runs, one point an α: ``record`` holds every number."""

    def summary(self) -> str:
        """Model and data, how many networks were measured, and which one val picks."""
        record = self.record
        where = "" if record.picked is None else f", alpha {record.picked.alpha:g} picked on val"
        return f"{record.model} on {record.dataset}: {len(record.points)} networks{where}"

    @property
    def primary(self) -> Mapping[str, object]:
        """The primary metric on test at the α that val picks, else at the end."""
        picked = self.record.picked_alpha
        point = next((point for point in self.record.points if point.alpha == picked), self.record.points[-1])
        metric = point.metric(self.record.primary_metric)
        place = {"alpha": point.alpha} if picked is None else {"picked": True}
        return {} if metric is None else {**metric.number, **place}

    def to_frame(self) -> pd.DataFrame:
        """One row for each α, part of the data and metric."""
        import pandas as pd

        rows = [
            {
                "alpha": point.alpha,
                "split": row.split,
                "metric": row.metric,
                **{name: getattr(row, name) for name in ("value", "low", "high", "num_images")},
                "cka": None,
                "cka_debiased": None,
                **point.similarity,
                "parameter_distance": point.parameter_distance,
                "picked": point.alpha == self.record.picked_alpha,
            }
            for point in self.record.points
            for row in point.metrics
        ]
        return pd.DataFrame(rows)

    def _most_important(self) -> pd.DataFrame:
        frame = self.to_frame()
        columns = ["alpha", "split", "metric", "value", "low", "high", "cka", "cka_debiased", "picked"]
        return frame.loc[frame["metric"] == self.record.primary_metric, columns]


def about_images(record: InterpolationRecord, rows: TuningRows, *, has_probe: bool) -> InterpolationRecord:
    """The record with the images that it was measured on, their split, and the kind of head at α = 0."""
    images = describe_dataset(replace(rows.dataset, split_method=rows.split_in_words))
    return record.model_copy(
        update={"has_probe": has_probe, "images": images, "leakage": rows.leakage, "num_shared_groups": rows.num_shared_groups}
    )


def with_look(record: InterpolationRecord, rows: TuningRows, measured: Sequence[str], reporter: Reporter) -> InterpolationRecord:
    """The record with its place in the ledger; all of its networks together are one look.

    Args:
        record: What was measured.
        rows: All rows, with the part of each.
        measured: What names the networks: fingerprints of both ends, and what lies between them.
        reporter: Reporter of a ledger that cannot be used.
    """
    primary = None if record.picked is None else record.picked.metric(record.primary_metric)
    looks = count_test_look(rows.as_they_came, rows.parts[0].test, measured, primary, command="interpolate", reporter=reporter)
    return record.model_copy(update={"looks": looks})


ALPHAS = tuple(step / 10 for step in range(11))
"""From the start to the end."""

REFERENCE = Reference(key="WiSE-FT", text="Wortsman et al.: Robust fine-tuning of zero-shot models, CVPR 2022 (arXiv 2109.01903)")


def interpolation_curve(
    start: Classifier,
    end: Classifier,
    dataset: Dataset,
    parts: FoldRows,
    *,
    pretrained: Classifier | None = None,
    alphas: Sequence[float | int] = ALPHAS,
    batch_norm: BatchNormRule = "estimate",
    start_in_words: str = "the pretrained network with the head of the linear probe",
    threshold_rule: str | None = None,
    device: str = "cpu",
    num_threads: int = 1,
    reporter: Reporter | None = None,
    on_point: Callable[[FoldPredictions], None] | None = None,
) -> InterpolationRecord:
    """Measure networks on the way from ``start`` to ``end`` exactly as ``fine_tune`` measures the one it returns.

    Temperature and thresholds are fitted to val at each α, and α is picked on val; test decides nothing.

    Args:
        start: At α = 0; its head matters as much as its body, so it should be a trained one.
        end: At α = 1.
        dataset: All rows.
        parts: Rows for training (statistics of BatchNorm), for validation and for test.
        pretrained: What features are compared with; by default ``start``, whose body is the pretrained one.
        alphas: In [0, 1]; sorted, each once.
        batch_norm: As ``interpolate`` takes it.
        start_in_words: For the record.
        threshold_rule: As ``fine_tune`` takes it.
        device: Where the networks run.
        num_threads: Number of threads that read images.
        reporter: Reporter of progress, network by network.
        on_point: Given what each network says, in the order of α.

    Returns:
        One point an α: metrics of test and val with intervals, CKA on test (both estimators; where there is BatchNorm, also
        to the pretrained weights with statistics of the training images), distance of the weights.

    Raises:
        UsageError: The networks are not built alike, an α is outside [0, 1], or ``batch_norm`` is neither word.

    Cost: for each α one forward pass of all images, and two or three of test; no step of training.
    """
    reporter = reporter or Reporter(quiet=True)
    pretrained = start if pretrained is None else pretrained
    began = time.perf_counter()
    task = dataset.task
    images = TrainingImages(dataset.take(parts.train), end.preprocessing, num_threads=num_threads)
    points: list[InterpolationPoint] = []
    chosen = _in_order(alphas)
    estimates = batch_norm == "estimate" and bool(moved_batch_norms(start, end))
    has_norms = bool(batch_norms_of(pretrained))
    foresee_networks(
        end, dataset, parts,
        alphas=chosen, estimates=estimates, adapts=has_norms, device=device, num_threads=num_threads, reporter=reporter,
    )  # fmt: skip
    with (
        reporter.part(NETWORKS),
        reporter.stage("Measuring networks between start and end", total=len(chosen), unit="networks") as stage,
    ):
        adapted = with_estimated_statistics(pretrained, images, device=device) if has_norms else None
        for alpha in chosen:
            network = interpolate(start, end, alpha, images=images, batch_norm=batch_norm, device=device)
            predictions = predict_fold(
                network, dataset, parts,
                task=task, threshold_rule=threshold_rule, device=device, num_threads=num_threads,
            )  # fmt: skip
            compared = Compared(network.to("cpu"), parts.test, pretrained, adapted)
            similarity = similarity_to_source([compared], dataset, device=device, num_threads=num_threads)
            if on_point is not None:
                on_point(predictions)
            rows = [row for row in evaluate_alone(predictions, dataset, task=task).metrics if row.class_name is None]
            distance = parameter_distance(network, pretrained).l2
            points.append(InterpolationPoint(alpha=alpha, metrics=rows, similarity=similarity, parameter_distance=distance))
            stage.advance()
    picked, rule = pick_alpha(points, task.primary_metric)
    return InterpolationRecord(
        model=end.recipe.name,
        dataset=dataset.name,
        start=start_in_words,
        points=points,
        primary_metric=task.primary_metric,
        picked_alpha=picked,
        picked_by=rule,
        batch_norm=batch_norm,
        num_batch_norms=len(moved_batch_norms(start, end)),
        seconds=time.perf_counter() - began,
        references=[REFERENCE],
    )


def pick_alpha(points: Sequence[InterpolationPoint], metric: str) -> tuple[float | None, str]:
    """The α with the best ``metric`` on val, of equal ones the smallest (nearest to the start), and the rule in words."""
    best: tuple[float, float] | None = None
    for point in sorted(points, key=lambda point: point.alpha):
        row = point.metric(metric, split="val")
        if row is None or row.value is None or math.isnan(row.value):
            continue
        value = row.value if row.higher_is_better else -row.value
        if best is None or value > best[0]:
            best = value, point.alpha
    if best is None:
        return None, "no alpha was picked: val has no rows, or the metric has no value there"
    return best[1], f"best {metric_name_in_words(metric)} on val, the smallest alpha of equal ones"


def read_alphas(alphas: str | Sequence[float | int] | None) -> list[float]:
    """Numbers, from a list or from text with commas; ``UsageError`` where one is none."""
    if alphas is None:
        return list(ALPHAS)
    words = [word.strip() for word in alphas.split(",") if word.strip()] if isinstance(alphas, str) else alphas
    try:
        return [float(word) for word in words]
    except (TypeError, ValueError) as error:
        raise UsageError(f"alphas are numbers between 0 and 1 with commas, for example 0,0.5,1; found {alphas!r}.") from error


def _in_order(alphas: Sequence[float | int]) -> list[float]:
    chosen = sorted({float(alpha) for alpha in alphas})
    if not chosen or not all(0 <= alpha <= 1 for alpha in chosen):
        given = ", ".join(f"{alpha:g}" for alpha in chosen) or "none"
        raise UsageError(f"Every alpha must lie between 0 (the start) and 1 (the end); given: {given}.")
    return chosen
