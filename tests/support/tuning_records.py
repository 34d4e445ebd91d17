"""Records of a fine-tuning and of a prediction as the commands write them, with awkward names."""

import numpy as np

from crossgraft.data.record import DatasetRecord, SplitRow
from crossgraft.metrics.record import CalibrationRecord, ConfusionRecord, MetricRecord, ReliabilityBin, RocRecord, ThresholdRecord
from crossgraft.models.record import PreprocessingRecord
from crossgraft.records.base import CheckRecord, Reference
from crossgraft.tune.record import (
    BatchNormRecord,
    EpochRow,
    FoldRecord,
    GridPointRecord,
    KeepRecord,
    PlanRecord,
    PlanRow,
    PluginRecord,
    PredictionRecord,
    PredictionRow,
    TunedModelRecord,
    TuningRecord,
)

EVIL = "<script>alert(1)</script>"
GUO = Reference(key="Guo 2017", text="C. Guo et al. On calibration of modern neural networks. ICML 2017.")
TITLES = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "auc": "AUC",
    "f1": "F1",
    "calibration_error": "Calibration error",
}
SENSITIVITY = {"sensitivity": "Sensitivity"}


def tuned_model(*, num_outputs=2, name="mobilenetv2_100"):
    return TunedModelRecord(
        name=name,
        architecture="mobilenetv2_100",
        source="timm",
        family="mobilenetv2",
        licence="apache-2.0",
        num_parameters=2_226_434,
        num_features=1280,
        num_outputs=num_outputs,
        weights_fingerprint="ab" * 32,
        preprocessing=PreprocessingRecord(
            height_pixels=96, width_pixels=96, channels=3, mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225],
            interpolation="bicubic", resize_policy="crop", crop_fraction=0.875, description="96×96 px, 3 channels, bicubic",
        ),
    )  # fmt: skip


def metric(name, value, *, split="test", half_width=0.05, num_images=156, num_groups=78, **fields):
    return MetricRecord(
        metric=name,
        title=(TITLES | SENSITIVITY)[name],
        value=value,
        low=None if value is None else max(value - half_width, 0),
        high=None if value is None else min(value + half_width, 1),
        split=split,
        num_images=num_images,
        num_groups=num_groups,
        higher_is_better=name != "calibration_error",
        **fields,
    )


def metrics(class_names):
    rows = [metric(name, value) for name, value in zip(TITLES, (0.852, 0.831, 0.902, 0.79, 0.041), strict=True)]
    rows += [metric(name, value, split="val") for name, value in zip(TITLES, (0.88, 0.86, 0.93, 0.82, 0.02), strict=True)]
    for place, class_name in enumerate(class_names):
        rows += [
            metric("auc", 0.93 - 0.04 * place, class_name=class_name, half_width=0.04 + 0.01 * place),
            metric("f1", 0.85 - 0.05 * place, class_name=class_name),
        ]
    for value, size in (("scanner A", 90), ("scanner B", 60), ("scanner C", 6)):
        fields = {"attribute": "scanner", "attribute_value": value, "num_images": size, "num_groups": size // 2}
        if size < 10:
            rows.append(metric("balanced_accuracy", None, reason="one class has no image here", **fields))
        else:
            rows.append(metric("balanced_accuracy", 0.9 - size / 1000, half_width=3 / size, **fields))
    return rows


def history(job="fit", epochs=12, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for epoch in range(1, epochs + 1):
        fall = float(np.exp(-epoch / 4))
        rows.append(
            EpochRow(
                job=job,
                epoch=epoch,
                stage="head" if epoch <= 3 else "all",
                learning_rate=6e-4 * (1 - epoch / (epochs + 1)),
                train_loss=0.1 + 0.6 * fall,
                terms={"l2_sp/penalty": 0.02 * (1 - fall)},
                val_loss=0.25 + 0.45 * fall + 0.02 * float(rng.normal()),
                val_metric=0.86 - 0.35 * fall + 0.01 * float(rng.normal()),
                val_cka=1.0 if epoch <= 3 else 0.62 + 0.5 * fall,
                val_cka_debiased=1.0 if epoch <= 3 else 0.55 + 0.6 * fall,
                is_best=epoch == 9,
                seconds=4.2,
                images_per_second=110.0,
            )
        )
    return rows


def reliability(shift):
    centres = np.linspace(0.55, 0.95, 5)
    counts = (9, 14, 22, 37, 74)
    return [
        ReliabilityBin(
            low=float(c) - 0.05, high=float(c) + 0.05, num_images=n, mean_probability=float(c),
            share_right=float(np.clip(c - shift, 0, 1)),
        )
        for c, n in zip(centres, counts, strict=True)
    ] + [ReliabilityBin(low=0, high=0.5, num_images=0, mean_probability=None, share_right=None)]  # fmt: skip


def roc(class_name, power):
    rates = np.linspace(0, 1, 60)
    return RocRecord(
        class_name=class_name,
        false_positive_rates=rates.tolist(),
        true_positive_rates=(rates**power).tolist(),
        at_threshold=(0.2, float(0.2**power)),
    )


def threshold(class_name, value=0.41):
    return ThresholdRecord(
        class_name=class_name, threshold=value, rule="Youden's J", fitted_on="val, 78 images", num_positive=21,
        sensitivity=0.9, specificity=0.83,
    )  # fmt: skip


def tuning_record(*, class_names=("benign", "malignant"), task="multi-class", num_folds=0, grid=False, **changes):
    """A fine-tuning with everything a report can show."""
    class_names = list(class_names)
    counts = [399, 147, *[60] * (len(class_names) - 2)]
    jobs = [f"fold {k}" for k in range(num_folds)] or (["lr 0.0001", "lr 0.0006"] if grid else ["fit"])
    record = TuningRecord(
        dataset=DatasetRecord(
            name="breast", source="csv_table", num_images=sum(counts), class_names=class_names, class_counts=counts,
            rows_used="all rows of all splits", split_method="column split of the table", group_column="patient",
            num_groups=280, fingerprint="cd" * 32, image_kinds={"28×28 grey 8-bit": sum(counts)}, task=task,
        ),
        splits=[
            SplitRow(
                name=name,
                num_images=n,
                num_groups=n // 2,
                class_counts=[n // 2, n // 4, *[n // 20] * (len(class_names) - 2)],
                origin="given with the data",
            )
            for name, n in (("train", 312), ("val", 78), ("test", 156))
        ],
        leakage="No patient is in two parts.",
        leakage_checked=True,
        model=tuned_model(num_outputs=len(class_names)),
        plugins=[
            PluginRecord(kind="method", spelling="full", title="Full fine-tuning", reference="Yosinski 2014"),
            PluginRecord(kind="regularizer", spelling="l2_sp:alpha=0.1", title="L2-SP", reference="Li 2018"),
            PluginRecord(kind="augmentation", spelling="light", title="Light"),
        ],
        plan=PlanRecord(
            rows=[
                PlanRow(trained=True, reason="everything is trained", num_parameters=2_223_872, num_tensors=158,
                        names=["body.conv_stem.weight", "…", "body.bn2.bias"]),
                PlanRow(trained=True, reason="the new head", num_parameters=2562, num_tensors=2,
                        names=["head.weight", "head.bias"]),
            ],
            num_trained=2_226_434, num_frozen=0, num_jobs=len(jobs), epochs=12, steps_per_epoch=10, num_steps=120,
            batch_size=32, settings={"optimizer": "adamw", "learning rate": "0.0006", "weight decay": "0.05"},
            seconds_per_step=0.41, expected_seconds=51.0, expected_reason="three steps were timed", peak_bytes=9 * 10**8,
        ),
        selection_rule="The epoch with the highest balanced accuracy on val was kept",
        selection_metric="balanced_accuracy",
        grid=[
            GridPointRecord(job=job, fold=k if num_folds else None, values={"learning_rate": 1e-4 * (k + 1)} if grid else {},
                            state="done", val_metric=0.86 - 0.01 * k, val_loss=0.41, best_epoch=9, num_epochs=12,
                            picked=num_folds > 0 or k == 0, seconds=50.4)
            for k, job in enumerate(jobs)
        ],
        folds=[
            FoldRecord(fold=k, num_train=380, num_val=60, num_test=106, num_groups=54, best_epoch=9, val_metric=0.86,
                       test_metric=0.80 + 0.02 * k, low=0.72 + 0.02 * k, high=0.88 + 0.01 * k)
            for k in range(num_folds)
        ],
        history=[row for place, job in enumerate(jobs) for row in history(job, seed=place)],
        metrics=metrics(class_names),
        primary_metric="balanced_accuracy",
        confusion=None if task == "multi-label" else ConfusionRecord(
            class_names=class_names,
            counts=[[90 if row == column else 4 for column in range(len(class_names))] for row in range(len(class_names))],
        ),
        roc=[roc(name, 0.25 + 0.1 * place) for place, name in enumerate(class_names[1:])],
        calibration=CalibrationRecord(
            temperature=1.83, fitted_on="val, 78 images", num_images=156, error_raw=0.11, error_calibrated=0.04,
            bins_raw=reliability(0.12), bins_calibrated=reliability(0.02),
        ),
        thresholds=[threshold(class_names[1])] if task == "multi-class" else [threshold(name) for name in class_names],
        saved_model="model",
        seconds=51.2,
        devices=["cpu"],
        checks=[CheckRecord(title="Patients across splits", severity="passed", text="No patient is in two parts.")],
        warnings=["The train rows have 99 images of one class and 213 of the other."],
        references=[GUO],
    )  # fmt: skip
    return record.model_copy(update=changes)


SIMILARITY = {
    "cka": 0.5, "cka_debiased": 0.45, "cka_adapted": 0.75, "cka_debiased_adapted": 0.71,
    "cka_untouched": 0.48, "cka_debiased_untouched": 0.42,
}  # fmt: skip
"""Of a network with BatchNorm whose statistics moved in training."""


def kept_record(*, mode="train", reason="", num_moving=19, **changes):
    """A fine-tuning of a network with BatchNorm that was to end at a similarity."""
    record = tuning_record()
    history = [
        row.model_copy(update={"val_cka_adapted": row.val_cka, "val_cka_debiased_adapted": 0.9 * row.val_cka_debiased})
        for row in record.history
    ]
    fields = {
        "similarity": SIMILARITY,
        "batch_norm": BatchNormRecord(mode=mode, reason=reason, num_layers=19, num_moving=num_moving),
        "keep": KeepRecord(target=0.8, found=[0.79], factors=[512.0], tolerance=0.03),
        "history": history,
    }
    return record.model_copy(update=fields | changes)


def prediction_record(*, num_images=40, task="multi-class", class_names=("benign", "malignant"), labelled=True, **changes):
    """A prediction with everything a report can show."""
    class_names = list(class_names)
    rng = np.random.default_rng(1)
    rows = []
    for row in range(1, num_images + 1):
        probabilities = rng.dirichlet([0.7] * len(class_names)) if task == "multi-class" else rng.random(len(class_names))
        best = class_names[int(probabilities.argmax())]
        certainty = float(probabilities.max() if task == "multi-class" else np.abs(2 * probabilities - 1).min())
        rows.append(
            PredictionRow(
                row=row, predicted=[best], decision=best, probabilities=probabilities.tolist(),
                logits=np.log(probabilities).tolist(), certainty=certainty, target=class_names[row % 2] if labelled else None,
            )
        )  # fmt: skip
    order = sorted(rows, key=lambda row: -row.certainty)
    record = PredictionRecord(
        model=tuned_model(num_outputs=len(class_names)),
        model_trained_on="breast",
        model_fingerprint="ef" * 32,
        task=task,
        class_names=class_names,
        data_name="new images",
        num_images=num_images,
        temperature=1.83,
        thresholds=[threshold(class_names[1])],
        rows=rows,
        predicted_counts={name: sum(row.decision == name for row in rows) for name in class_names},
        num_seen=0,
        most_certain=[row.row for row in order[:8]],
        least_certain=[row.row for row in order[:-9:-1]],
        metrics=[metric(name, 0.7, num_images=num_images, num_groups=None, split="these images") for name in TITLES]
        if labelled
        else [],
        training_metrics=[row for row in metrics(class_names) if row.class_name is None and row.attribute is None],
        images_per_second=120.0,
        seconds=0.3,
        references=[GUO],
    )
    return record.model_copy(update=changes)
