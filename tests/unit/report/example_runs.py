"""Realistic run directories: twelve models of three families, three controls, six scores, awkward names."""

from __future__ import annotations

import base64
import io
import itertools
import json
from pathlib import Path

import numpy as np
from PIL import Image

from crossgraft.data.checks.record import ColumnRecord, DataCheckRecord, FindingRecord, SplitDifferenceRecord
from crossgraft.data.record import DatasetRecord, SplitRow
from crossgraft.demo.record import BestModelRecord, DemoPrediction, DemoRecord, FineTunedRow, SplitComparison
from crossgraft.metrics.record import MetricRecord
from crossgraft.models.record import ModelRecord, PreprocessingRecord
from crossgraft.rank.record import (
    AgreementRecord,
    GroundTruthRecord,
    PairRecord,
    RankingByScore,
    RankingRecord,
    RankRow,
    ScoreCell,
    ScoreRecord,
)
from crossgraft.records.base import CheckRecord, Record, Reference, RunRecord, StageRecord, Thumbnail

EVIL = "<script>alert(1)</script>"
FAMILIES = ("MobileNet v1", "MobileNet v2", "Vision transformer")
LONG_NAME = "mobilenetv2_100.ra_in1k · ImageNet-21k, then iNaturalist 2021 birds, 300 epochs, moving average"
WITHOUT_HEAD = "vit_tiny_patch16_224.dino · self-supervised"

CANDIDATES = {
    "mobilenetv1_100 · ImageNet": 0,
    "mobilenetv1_075 · ImageNet": 0,
    "mobilenetv1_050 · ImageNet": 0,
    "mobilenetv1_025 · ImageNet": 0,
    "mobilenetv2_100 · ImageNet": 1,
    "mobilenetv2_100 · birds": 1,
    "mobilenetv2_100 · insects": 1,
    LONG_NAME: 1,
    "vit_tiny_patch16_224 · ImageNet-21k": 2,
    "vit_small_patch32_224 · ImageNet-21k": 2,
    "deit_tiny_patch16_224 · ImageNet": 2,
    WITHOUT_HEAD: 2,
}
CONTROLS = {"mobilenetv1_100 · random": 0, "mobilenetv2_100 · random": 1, "vit_tiny_patch16_224 · random": 2}
SCORES = {  # name: title, height of the best model, spread, shuffled height
    "logme": ("LogME", 0.41, 0.30, 0.02),
    "leep": ("LEEP", -0.31, 0.22, -0.58),
    "nleep": ("N-LEEP", -0.28, 0.24, -0.60),
    "regularized_h_score": ("Regularised H-score", 0.52, 0.35, 0.12),
    "knn": ("k-NN probe", 0.84, 0.14, 0.70),
    "linear_probe": ("Linear probe", 0.88, 0.15, 0.68),
}


def ranking_record(*, class_names: tuple[str, ...] = ("malignant", EVIL), seed: int = 0) -> RankingRecord:
    """A ranking as ``crossgraft rank`` writes it."""
    rng = np.random.default_rng(seed)
    quality = dict(zip(CANDIDATES, np.sort(rng.beta(2.5, 1.5, size=len(CANDIDATES)))[::-1].tolist(), strict=True))
    quality |= dict.fromkeys(CONTROLS, 0.03)
    cells = [_cell(model, score, quality[model], rng) for score in SCORES for model in quality]
    rankings = [_rank(score, cells) for score in SCORES]
    counts = [147, *[399 // (len(class_names) - 1)] * (len(class_names) - 1)]
    best = rankings[0].rows
    return RankingRecord(
        dataset=DatasetRecord(
            name="BreastMNIST",
            source="npz_file",
            num_images=sum(counts),
            class_names=list(class_names),
            class_counts=counts,
            rows_used="split train (546 of 780 rows)",
            split_method="official split of the file",
            group_column=None,
            num_groups=None,
            fingerprint="sha256:9f2b61c0d4e8a7351122",
            image_kinds={"28 × 28, grey, 8 bit": 540, "64 × 64, grey, 16 bit": 6},
            num_skipped_unreadable=2,
            skipped_unreadable=["scan_0017.png", EVIL + ".png"],
        ),
        models=[_model(name, "candidate", family) for name, family in CANDIDATES.items()]
        + [_model(name, "random weights", family) for name, family in CONTROLS.items()],
        scores=[_score(name, title) for name, (title, *_) in SCORES.items()],
        cells=cells,
        primary_score="logme",
        primary_reason="the default, best single score on the published benchmarks",
        rankings=rankings,
        advice=f"Start with {best[0].model} or {best[1].model}: LogME cannot tell them apart.",
        ground_truth=GroundTruthRecord(
            column="test_auc",
            values={name: 0.70 + 0.2 * value for name, value in list(quality.items())[:9]},
            unmatched=["resnet18"],
        ),
        agreement=[
            AgreementRecord(score=score, family=None, num_models=9, weighted_kendall=0.61, p_value=0.021, low=0.18, high=0.93)
            for score in SCORES
        ]
        + [
            AgreementRecord(
                score="logme",
                family=FAMILIES[2],
                num_models=3,
                weighted_kendall=None,
                p_value=None,
                low=None,
                high=None,
                reason="fewer than 4 models of this family have a fine-tuned result.",
            )
        ],
        checks=[
            CheckRecord(title="Class sizes", severity="passed", text="Every class has at least 147 images."),
            CheckRecord(
                title="Patient leakage",
                severity="not assessed",
                text="No group column was given, so images of one patient may lie on both sides.",
            ),
            CheckRecord(title="Unreadable images", severity="warning", text="2 unreadable images were left out."),
            CheckRecord(title="Order of neighbours", severity="notice", text="7 of 11 neighbours are not separable."),
        ],
        references=[
            Reference(key="LogME", text="You et al., LogME: practical assessment of pre-trained models, ICML 2021."),
            Reference(key="LEEP", text="Nguyen et al., LEEP: a new measure of transferability, ICML 2020."),
        ],
    )


def demo_record() -> DemoRecord:
    """The record of ``crossgraft demo``."""
    ranking = ranking_record(class_names=("5", "6", "7", "8", "9")).model_copy(update={"ground_truth": None, "agreement": []})
    values = {cell.model: cell.value or 0.0 for cell in ranking.cells if cell.score == "logme"}
    rows = [
        FineTunedRow(
            model=model,
            num_test_images=412,
            linear_accuracy=0.55 + 0.6 * value,
            linear_low=0.51 + 0.6 * value,
            linear_high=0.59 + 0.6 * value,
            full_accuracy=0.62 + 0.55 * value,
            full_low=0.58 + 0.55 * value,
            full_high=0.66 + 0.55 * value,
            seeds=3,
        )
        for model, value in values.items()
    ]
    return DemoRecord(
        split_comparison=SplitComparison(
            probe="a linear probe",
            shuffled_accuracy=0.962,
            shuffled_low=0.941,
            shuffled_high=0.977,
            grouped_accuracy=0.914,
            grouped_low=0.886,
            grouped_high=0.937,
            explanation="The same images, split once by image and once by writer.",
        ),
        fine_tuned=rows,
        limits=["These are toy networks of at most 50 000 parameters.", "Digits are not medical images."],
        ranking=ranking,
        best_model=best_model_record(rows[0].model),
    )


def best_model_record(model: str) -> BestModelRecord:
    """The part of a demo about the model that went through ``crossgraft tune``."""
    sizes = {"train": (34, 4), "val": (16, 3), "test": (412, 7)}
    return BestModelRecord(
        model=model,
        splits=[
            SplitRow(name=name, num_images=images, num_groups=groups, class_counts=[], origin="given")
            for name, (images, groups) in sizes.items()
        ],
        settings="method full, augmentation light",
        num_epochs=50,
        selection_rule="Of all epochs the one with the highest AUC was picked.",
        metrics=[
            MetricRecord(
                metric="balanced_accuracy",
                title="Balanced accuracy",
                value=0.873,
                low=0.801,
                high=0.921,
                num_images=412,
                num_groups=7,
            )
        ],
        primary_metric="balanced_accuracy",
        predictions=[
            DemoPrediction(target="5", decision="5", probability=0.981),
            DemoPrediction(target="8", decision="9", probability=0.442),
        ],
        data_file="digits.npz",
        model_file="best.yaml",
        unseen_folder="unseen",
        tune_folder="tune",
        predict_folder="predict",
        tune_options=["--group-column", "writer"],
    )


def data_check_record(*, is_sound: bool = False) -> DataCheckRecord:
    """A check of two classes in two splits, with names that try to get out of the page."""
    finding = FindingRecord(
        check="identical_across",
        title="Identical images across splits",
        severity="unsound",
        text="2 pictures are in more than one split.",
        advice="Remove them.",
        num_groups=2,
        images=[[4, 700], [5, 701]],
    )
    passed = FindingRecord(check="constant_images", title="Constant images", severity="passed", text="None.")
    notice = FindingRecord(check="image_sizes", title="Small images", severity="notice", text="28 pixels.", advice="Try.")
    return DataCheckRecord(
        dataset=ranking_record().dataset,
        split_names=["train", "test"],
        split_counts=[[147, 399], [42, 114]],
        is_sound=is_sound,
        verdict="Nothing unsound was found." if is_sound else "Not sound. 2 pictures are in more than one split.",
        findings=[notice, passed] if is_sound else [finding, notice, passed],
        columns=[ColumnRecord(column="<script>alert(1)</script>", label=None, balanced_accuracy=0.91, chance=0.5)],
        split_differences=[
            SplitDifferenceRecord(
                split="test",
                fact="shares of the classes",
                effect=0.23,
                p_value=0.004,
                found="<b>malignant</b>: 27\xa0% in train, 50\xa0% in test",
                matters=True,
            )
        ],
        references=[Reference(key="Perceptual hash", text="Zauner 2010.")],
    )


def run_record(*, command: str = "rank") -> RunRecord:
    """The ``run.json`` of either."""
    return RunRecord(
        command=command,
        command_line=f"crossgraft {command} /home/jane/private/breastmnist.npz --models zoo.yaml --seed 7",
        crossgraft_version="0.1.0",
        config={"data": "/home/jane/private/breastmnist.npz", "models": ["zoo.yaml"], "seed": 7, "no_images": False},
        config_hash="sha256:77aa0b1c2d3e4f556677",
        seed=7,
        versions={"torch": "2.6.0", "numpy": "2.2.1", "scikit-learn": "1.6.0"},
        machine={"system": "Linux", "cores": "2", "device": "cpu"},
        data_fingerprint="sha256:9f2b61c0d4e8a7351122",
        weights_fingerprints={name: f"sha256:{index:020x}" for index, name in enumerate(CANDIDATES)},
        started_at="2026-08-01T10:00:00Z",
        finished_at="2026-08-01T10:03:20Z",
        state="done",
        stages=[StageRecord(name="Looking at the images", seconds=181.2), StageRecord(name="Scores", seconds=16.04)],
    )


def thumbnails(class_names: list[str], *, side: int = 64) -> list[Thumbnail]:
    """Four small grey images a class."""
    rng = np.random.default_rng(3)
    return [Thumbnail(class_name=name, png_base64=_png(rng, side)) for name in class_names for _ in range(4)]


def write_run(directory: Path, record: Record, *, run: RunRecord | None = None, images: list[Thumbnail] | None = None) -> Path:
    """Write a run directory without its report."""
    directory.mkdir(parents=True, exist_ok=True)
    run = run or run_record(
        command="demo" if isinstance(record, DemoRecord) else "check" if isinstance(record, DataCheckRecord) else "rank"
    )
    (directory / "run.json").write_text(run.model_dump_json(indent=1), encoding="utf-8")
    (directory / "report.json").write_text(record.model_dump_json(indent=1), encoding="utf-8")
    if images is not None:
        text = json.dumps([image.model_dump() for image in images])
        (directory / "thumbnails.json").write_text(text, encoding="utf-8")
    return directory


def _png(rng: np.random.Generator, side: int) -> str:
    ramp = np.linspace(40, 200, side)[:, None] + rng.normal(scale=18, size=(side, side))
    buffer = io.BytesIO()
    Image.fromarray(ramp.clip(0, 255).astype(np.uint8)).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _score(name: str, title: str) -> ScoreRecord:
    return ScoreRecord(
        name=name,
        title=title,
        reference=title,
        inputs=["features", "labels"],
        origin="crossgraft",
        is_reference_probe=name in ("knn", "linear_probe"),
    )


def _model(name: str, role: str, family: int) -> ModelRecord:
    return ModelRecord(
        name=name,
        role=role,  # type: ignore[arg-type]
        architecture=name.split(" · ")[0],
        source="timm",
        family=FAMILIES[family],
        licence="apache-2.0" if family != 1 else None,
        num_parameters=2_223_872 + 1000 * family,
        num_features=1280 if family else 1024,
        num_source_classes=None if name == WITHOUT_HEAD else 1000,
        weights_fingerprint=f"sha256:{abs(hash((family, len(name)))):020x}",
        preprocessing=PreprocessingRecord(
            height_pixels=224,
            width_pixels=224,
            channels=3,
            mean=[0.485, 0.456, 0.406],
            std=[0.229, 0.224, 0.225],
            interpolation="bicubic",
            resize_policy="crop",
            crop_fraction=0.875,
            description="224 × 224, centre crop of 87.5 %, bicubic",
        ),
        feature_seconds=18.3 + family,
        features_from_cache=family == 2,
    )


def _cell(model: str, score: str, quality: float, rng: np.random.Generator) -> ScoreCell:
    _, height, spread, shuffled_height = SCORES[score]
    if score == "leep" and model == WITHOUT_HEAD:
        return ScoreCell(model=model, score=score, value=None, reason="the model has no source head")
    value = height - spread * (1 - quality) + float(rng.normal(scale=0.01 * spread))
    half_width = 0.08 * spread
    shuffled = (shuffled_height + 0.03 * spread * rng.normal(size=5)).tolist()
    has_interval = score != "linear_probe"
    return ScoreCell(
        model=model,
        score=score,
        value=value,
        standard_error=half_width / 2 if has_interval else None,
        low=value - half_width if has_interval else None,
        high=value + half_width if has_interval else None,
        no_interval_reason=None if has_interval else "more than a minute for one evaluation",
        jackknife_values=(value + 0.01 * rng.normal(size=20)).tolist() if has_interval else [],
        shuffled_values=shuffled,
        largest_shuffled=max(shuffled),
        above_shuffled=value > max(shuffled),
        warnings=["The covariance is singular; its pseudo-inverse was used."] if score == "regularized_h_score" else [],
        seconds=0.0021 + 1.9 * (score == "linear_probe"),
        peak_bytes=5_592_064,
    )


def _rank(score: str, cells: list[ScoreCell]) -> RankingByScore:
    of_score = [cell for cell in cells if cell.score == score]
    ranked = sorted(
        (cell for cell in of_score if cell.model in CANDIDATES and cell.value is not None), key=lambda cell: -(cell.value or 0.0)
    )
    rows = [
        RankRow(
            model=cell.model,
            role="candidate",
            rank=rank,
            not_separable_from=[other for other, twin in enumerate(ranked, 1) if other != rank and _overlap(cell, twin)],
        )
        for rank, cell in enumerate(ranked, start=1)
    ]
    rows += [
        RankRow(model=cell.model, role="candidate", rank=None, not_separable_from=[]) for cell in of_score if cell.value is None
    ]
    rows += [RankRow(model=model, role="random weights", rank=None, not_separable_from=[]) for model in CONTROLS]
    pairs = [
        PairRecord(
            first=first.model,
            second=second.model,
            difference=(first.value or 0.0) - (second.value or 0.0),
            low=None,
            high=None,
            separable=not _overlap(first, second),
        )
        for first, second in itertools.pairwise(ranked)
    ]
    shuffled = [value for cell in of_score for value in cell.shuffled_values]
    return RankingByScore(score=score, rows=rows, pairs=pairs, best_shuffled=max(shuffled), num_shuffled=len(shuffled))


def _overlap(one: ScoreCell, other: ScoreCell) -> bool:
    if one.low is None or other.low is None or one.high is None or other.high is None:
        return True
    return one.low < other.high and other.low < one.high
