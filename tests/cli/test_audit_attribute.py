"""``crossgraft audit --attribute`` and ``--readable``: columns about who is in the picture."""

import pandas as pd
import pytest

import crossgraft as package
from support.audit_study import QUICK, brightness, numbers_of, record_of, told_by, with_sex

THREE_FOLDS = (*QUICK[:-2], "--folds", "3")  # the least that gives an interval


def test_an_attribute_is_audited_by_choosing_images_which_are_written(study, audit):
    with_sex(study, in_pixels=True)
    done = audit(*THREE_FOLDS, "--attribute", "sex:F", "--out", "seen", "--shares", "0,0.5,1")
    assert done.code == 0, done.err
    record = record_of(study / "seen")
    (entry,) = record.entries
    assert (entry.confounder, entry.detectability) == ("sex:F", None)
    assert record.confounders[0].title == "sex F" and "not proof of a wrong model" in record.confounders[0].said
    assert entry.metric("ood_auc").value < 0.5 < entry.metric("iid_auc").value
    page = (study / "seen" / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in page and "none were kept" not in page  # nothing was drawn, and nobody said --no-images
    assert not (study / "seen" / "manifest.csv").exists()  # no image carries anything
    taken = pd.read_csv(study / "seen" / "attribute_rows.csv")
    assert not taken[~taken["positive"]]["has_attribute"].any()
    shares = taken[taken["positive"] & (taken["part"] == "train")].groupby(["fold", "share"])["has_attribute"].mean()
    assert shares.xs(0.0, level="share").eq(0).all() and shares.xs(1.0, level="share").eq(1).all()
    for _, fold in taken.groupby("fold"):
        assert fold.groupby("share").size().nunique() == 1  # sizes do not depend on the share
    assert b"Smith" not in told_by(study / "seen")


def test_an_attribute_that_no_pixel_shows_is_not_relied_on(study, audit):
    with_sex(study, in_pixels=False)
    assert audit(*THREE_FOLDS, "--attribute", "sex:F", "--attribute", "height", "--out", "out", "--shares", "0,0.5,1").code == 3
    assert audit(*THREE_FOLDS, "--attribute", "sex:F", "--out", "out", "--shares", "0,0.5,1").code == 0
    (entry,) = record_of(study / "out").entries
    assert entry.outcome in ("passes", "undecided")
    assert audit(*THREE_FOLDS, "--attribute", "sexx", "--out", "typo").code == 2


@pytest.mark.slow
def test_networks_are_fine_tuned_on_the_images_of_an_attribute(study, audit, monkeypatch):
    with_sex(study, in_pixels=True)
    flags = ("--attribute", "sex:F", "--mode", "full", "--epochs", "2", "--shares", "0,0.5,1", "--out", "full")
    assert audit(*QUICK, *flags).code == 0
    record = record_of(study / "full")
    (entry,) = record.entries
    assert (entry.mode, entry.confounder, len(entry.points)) == ("full", "sex:F", 3)
    assert entry.points[0].metric("best_epoch").value >= 1
    assert len(list((study / "full" / "trainings").glob("*.json"))) == 2 * 3
    monkeypatch.setattr("crossgraft.audit.sweep.train_and_evaluate", None)  # a finished run trains nothing
    assert audit(*QUICK, *flags).code == 0
    assert numbers_of(record_of(study / "full")) == numbers_of(record)


@pytest.mark.parametrize("in_pixels", [True, False])
def test_a_trained_model_is_asked_about_an_attribute(study, in_pixels):
    with_sex(study, in_pixels=in_pixels)
    asked = {"data": "study.csv", "group_column": "patient", "class_names": ["healthy", "ill"], "attributes": "sex:F"}
    (entry,) = package.audit_model(brightness, **asked).record.entries
    drop = entry.metric("auc_drop")
    if in_pixels:
        assert entry.outcome == "sensitive" and drop.low > 0.3 and "positive class" in entry.reason
    else:
        assert entry.outcome in ("passes", "undecided") and drop.low < 0 < drop.high


@pytest.mark.parametrize("in_pixels", [True, False])
def test_what_can_be_read_from_features_stands_beside_what_nobody_learned(study, audit, in_pixels):
    with_sex(study, in_pixels=in_pixels)
    done = audit(*QUICK, "--readable", "sex:F", "--holdout", "0.4", "--out", "out")
    assert done.code == 0, done.err
    record = record_of(study / "out")
    assert record.entries == [] and record.confounders == []
    read = {row.features: row for row in record.readable}
    assert list(read) == ["features", "random weights", "pixels", "class alone"]
    assert read["pixels"].auc.low > 0.7 if in_pixels else read["pixels"].auc.low < 0.5 < read["pixels"].auc.high
    assert read["random weights"].more_than_random_weights is None
    for row in record.readable:
        assert row.num_images == 48 and 0 < row.num_with < 48
    found = " ".join(done.out.split())
    assert ("sex F can be read from features of tiny at AUC" in found) == in_pixels and "--attribute sex:F" in found
    assert ("Nothing shows that sex F can be read from features of tiny" in found) != in_pixels
    assert pd.read_csv(study / "out" / "readable.csv")["features"].tolist() == list(read)
    page = (study / "out" / "report.html").read_text(encoding="utf-8")
    assert "Who is in the picture" in page and b"Smith" not in told_by(study / "out")
