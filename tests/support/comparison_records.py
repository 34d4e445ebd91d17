"""A comparison of fine-tunings as a record, with a name that would break a page."""

from crossgraft.interpolate.record import InterpolationPoint, InterpolationRecord
from crossgraft.variants.record import (
    ComparedTrainingRecord,
    ComparedVariantRecord,
    DifferenceRecord,
    FineTuningComparisonRecord,
    ValueRecord,
)
from support.tuning_records import SIMILARITY, metric, tuning_record

EVIL = "<script>alert(1)</script>"


def variant(name, value, cka, *, difference=None, not_separable_from=(), **fields):
    given = value is not None
    return ComparedVariantRecord(
        variant=name,
        settings={"method": "full"},
        num_done=int(given),
        num_failed=int(not given),
        metric=ValueRecord(value=value, low=value - 0.05, high=value + 0.05, interval_of="test images")
        if given
        else ValueRecord(value=None),
        accuracy=ValueRecord(value=value),
        cka=ValueRecord(value=cka),
        cka_debiased=ValueRecord(value=None if cka is None else cka - 0.1),
        seconds=10.0 if given else None,
        time_ratio=1.0 if given else None,
        difference=difference,
        not_separable_from=list(not_separable_from),
        **fields,
    )


def difference(value, half_width=0.02):
    return DifferenceRecord(value=value, low=value - half_width, high=value + half_width)


def training(name, value, **fields):
    state = {"state": "failed", "reason": "The loss is nan."} if value is None else {"state": "done"}
    metrics = [] if value is None else [metric("balanced_accuracy", value)]
    return ComparedTrainingRecord(variant=name, seed=0, metrics=metrics, seconds=10.0, **state, **fields)


def comparison_record(**changes):
    """Best first: hcs:0.6, full (not separable), hcs:0.8 (worse), linear (worse), one that failed."""
    alike = ["hcs:0.6", "full"]
    of_hcs = {"sweep": "hcs"}
    variants = [
        variant("hcs:0.6", 0.84, 0.8, difference=difference(0.01), not_separable_from=alike[1:], strength=0.6, **of_hcs,
                above_curve=difference(0.03)),
        variant("full", 0.83, 0.5, not_separable_from=alike[:1], is_full=True),
        variant("hcs:0.8", 0.78, 0.7, difference=difference(-0.05), strength=0.8, **of_hcs, above_curve=difference(-0.01)),
        variant("linear", 0.70, 1.0, difference=difference(-0.13)),
        variant(EVIL, None, None),
    ]  # fmt: skip
    points = [
        InterpolationPoint(
            alpha=alpha,
            metrics=[metric("balanced_accuracy", 0.70 + 0.13 * alpha)],
            similarity={"cka": 1 - 0.5 * alpha, "cka_debiased": 0.9 - 0.5 * alpha},
            parameter_distance=alpha,
        )
        for alpha in (0.0, 0.5, 1.0)
    ]
    curve = InterpolationRecord(
        model="mobilenetv2_100",
        dataset="breast",
        start="the pretrained network with the head of the linear probe",
        points=points,
        primary_metric="balanced_accuracy",
        picked_alpha=0.5,
        picked_by="best balanced accuracy on val",
        num_batch_norms=0,
        batch_norm="estimate",
        seconds=1.0,
    )
    alone = tuning_record()
    fields = {
        **{name: getattr(alone, name) for name in ("dataset", "splits", "leakage", "leakage_checked", "model", "checks")},
        "seeds": [0],
        "primary_metric": "balanced_accuracy",
        "variants": variants,
        "trainings": [
            training(row.variant, row.metric.value, folder=f"trainings/{row.variant.partition(':')[0]}-0") for row in variants
        ],
        "interpolation": [curve],
        "interval_words": "There is one training each, so intervals are those of test images.",
        "seconds": 50.0,
        "warnings": [f"{EVIL} with seed 0 failed: The loss is nan."],
        "notes": ["Every difference has its own interval."],
        "references": alone.references,
    }
    return FineTuningComparisonRecord(**(fields | changes))


def normed_comparison_record(**modes):
    """The same with a network that has BatchNorm; ``modes`` of variants that differ from train."""
    record = comparison_record()

    def of_network(row):
        if row.cka.value is None:
            return row
        adapted = {"cka_adapted": ValueRecord(value=0.8), "cka_debiased_adapted": ValueRecord(value=row.cka.value - 0.05)}
        return row.model_copy(update={**adapted, "batch_norm": modes.get(row.variant.partition(":")[0], "train")})

    return record.model_copy(
        update={
            "variants": [of_network(row) for row in record.variants],
            "trainings": [
                row.model_copy(update={"similarity": SIMILARITY}) if row.state == "done" else row for row in record.trainings
            ],
        }
    )
