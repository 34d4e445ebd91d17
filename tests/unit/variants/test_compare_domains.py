"""Several ways to fine-tune, each without every hospital in turn."""

from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crossgraft import compare_fine_tunings
from crossgraft.errors import UsageError
from crossgraft.variants.comparison import Measured, MeasuredImages
from crossgraft.variants.domains import value_over_seeds, worst_domain
from crossgraft.variants.record import FineTuningComparisonRecord
from crossgraft.variants.study import DoneTraining
from crossgraft.variants.variant import Variant
from support.domains import HOSPITALS, four_hospitals, of_hospitals

pytestmark = pytest.mark.usefixtures("tiny_models")

FAST = {
    "model": "tiny_models:tiny",
    "epochs": 2,
    "learning_rate": 0.02,
    "workers": 1,
    "device": "cpu",
    "domains": "hospital",
    "ledger": False,
}


def balanced(table):
    return np.mean([(rows.decision == rows.target).mean() for _, rows in table.groupby("target")])


def test_variants_are_compared_on_each_domain_the_mean_and_the_worst_by_image_and_seed(tmp_path, page):
    result = compare_fine_tunings(
        four_hospitals(12), compare="full,linear", **FAST, leave_out="each", seeds=2, out=tmp_path / "run", store=False
    )
    record = result.record
    assert (record.domains.first, record.domains.left_out, record.domains.is_each) == ("full", list(HOSPITALS), True)
    of_domain = {}
    for variant in ("full", "linear"):
        tables = [pd.read_csv(tmp_path / "run" / "trainings" / f"{variant}-{seed}" / "predictions.csv") for seed in (0, 1)]
        of_domain[variant] = np.array([[balanced(table[table.domain == name]) for name in HOSPITALS] for table in tables])
    for variant, values in of_domain.items():
        row = record.variant(variant)
        assert row.metric.value == pytest.approx(values.mean())
        assert [each.domain for each in row.unseen.domains] == list(HOSPITALS)
        assert [each.value.value for each in row.unseen.domains] == pytest.approx(values.mean(axis=0).tolist())
        assert row.unseen.worst.value.value == pytest.approx(values.mean(axis=0).min())
        assert row.unseen.worst.domain == HOSPITALS[int(values.mean(axis=0).argmin())]
        assert row.unseen.gap.value is not None
    linear, full = record.variant("linear").unseen, record.variant("full").unseen
    assert full.difference is None
    assert all(each.difference is None for each in full.domains)
    paired = (of_domain["linear"] - of_domain["full"]).mean(axis=0)
    assert [each.difference.value for each in linear.domains] == pytest.approx(paired.tolist())
    assert linear.difference.value == pytest.approx(paired.mean())
    assert linear.difference == record.variant("linear").difference
    assert linear.mean.value == record.variant("linear").metric.value
    assert linear.mean.interval_of == "test images"
    assert linear.worst.difference.value == pytest.approx(
        of_domain["linear"].mean(axis=0).min() - of_domain["full"].mean(axis=0).min()
    )
    assert linear.worst.difference.low <= min(each.difference.low for each in linear.domains)
    assert linear.worst.difference.high >= max(each.difference.high for each in linear.domains)
    assert FineTuningComparisonRecord.model_validate_json((tmp_path / "run" / "report.json").read_bytes()) == record
    written = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Balanced accuracy on hospitals that training never saw, the best first" in written
    assert "each hospital left out in turn" in written
    assert record.interpolation == []
    frame = result.to_frame().set_index("variant")
    assert frame.loc["linear", "domain GENT"] == linear.domains[1].value.value
    assert frame.loc["linear", "minus_first"] == linear.difference.value
    assert np.isnan(frame.loc["full", "minus_first"])


def test_one_domain_has_no_worst_and_noise_in_it_changes_no_weight(tmp_path):
    clean = four_hospitals(12)
    images = np.stack([clean.read(row) for row in range(len(clean))])
    here = clean.attributes["hospital"] == "GENT"
    images[here] = 200
    noise = of_hospitals(clean.attributes["hospital"], np.where(here, 1 - clean.targets, clean.targets), images=images)
    for name, data in (("clean", clean), ("noise", noise)):
        result = compare_fine_tunings(data, compare="full,linear", **FAST, leave_out="GENT", out=tmp_path / name)
        (row,) = result.record.variant("linear").unseen.domains
        assert row.domain == "GENT"
        assert row.value.value == result.record.variant("linear").metric.value
        assert result.record.variant("linear").unseen.worst is None
        assert len(result.record.interpolation) == 1
    weights = "jobs/without GENT/weights.safetensors"
    for variant in ("full-0", "linear-0"):
        both = [(tmp_path / name / "trainings" / variant / weights).read_bytes() for name in ("clean", "noise")]
        assert both[0] == both[1]


def test_a_layer_of_one_model_and_folds_are_refused(tmp_path):
    data = four_hospitals(8)
    with pytest.raises(UsageError, match="--layer-pca draws one model of each variant"):
        compare_fine_tunings(data, compare="full,linear", **FAST, leave_out="each", layer_pca="auto")
    with pytest.raises(UsageError, match="--folds does not go with --compare"):
        compare_fine_tunings(data, compare="full,linear", **FAST, leave_out="each", folds=2)


def test_a_training_without_one_of_its_models_is_left_out(monkeypatch):
    from crossgraft.errors import DivergedError
    from crossgraft.tune import jobs

    train, calls = jobs.train, iter(range(20))

    def fails_once(*arguments, **options):
        if next(calls) == 1:
            raise DivergedError("No number.")
        return train(*arguments, **options)

    monkeypatch.setattr(jobs, "train", fails_once)
    record = compare_fine_tunings(four_hospitals(8), compare="full,linear", **FAST, leave_out="each").record
    assert [row.state for row in record.trainings] == ["failed", "done"]
    assert record.trainings[0].reason == "without GENT: no training without it ended with a model"
    assert record.variant("linear").unseen.difference.reason == "the first variant has no training"


def test_from_three_seeds_on_intervals_count_images_and_seeds():
    hospitals, targets, rng = np.repeat(HOSPITALS[:2], 40), np.arange(80) % 2, np.random.default_rng(3)
    data = of_hospitals(hospitals, targets, size=2)
    images = MeasuredImages(data, "balanced_accuracy", {name: hospitals == name for name in HOSPITALS[:2]})
    values = [images.measure(np.where(rng.random(80) < share, targets, 1 - targets)) for share in (0.6, 0.75, 0.9)]
    by_seed = [each.value for each in values]
    for each in values:
        ((_, answers),) = each.terms
        of_each = [
            np.mean([(answers == targets)[(hospitals == name) & (targets == k)].mean() for k in (0, 1)]) for name in HOSPITALS[:2]
        ]
        assert each.value == pytest.approx(np.mean(of_each))
    found, of_images = value_over_seeds(values, images, 0.95), images.mean(values)
    variance = np.var(by_seed, ddof=1) / 3
    total = ((of_images.value - of_images.low) / stats.norm.ppf(0.975)) ** 2 + variance
    reach = stats.t.ppf(0.975, 2 * (total / variance) ** 2) * np.sqrt(total)
    assert found.interval_of == "test images and seeds"
    assert found.value - found.low == pytest.approx(reach)
    two = value_over_seeds(values[:2], images, 0.95)
    assert two.interval_of == "test images"
    assert two.low == pytest.approx(images.mean(values[:2]).low)


def test_the_worst_of_two_ways_may_be_two_domains():
    hospitals, targets = np.repeat(HOSPITALS[:2], 40), np.arange(80) % 2
    data = of_hospitals(hospitals, targets, size=2)
    images = MeasuredImages(data, "balanced_accuracy", {name: hospitals == name for name in HOSPITALS[:2]})
    alone = [images.of_domain(name) for name in images.domains]

    def right_in(shares):
        wrong = np.concatenate([np.arange(40) // 2 >= share * 20 for share in shares])
        training = Mock(spec=DoneTraining, seed=0)
        return Measured(Mock(spec=Variant), [training], [images.measure(np.where(wrong, 1 - targets, targets))], 0)

    one, first = right_in((0.9, 0.5)), right_in((0.6, 0.8))
    worst = worst_domain(one, first, list(images.domains), alone)
    assert (worst.domain, worst.value.value) == ("GENT", pytest.approx(0.5))
    assert worst.difference.value == pytest.approx(0.5 - 0.6)
    assert worst.difference.low < 0.5 - 0.8
    assert worst.difference.high > 0.9 - 0.6
