"""The checks find in public data sets what is known to be wrong with them, and what is published in docs/results."""

import tarfile
from contextlib import redirect_stdout
from functools import cache
from io import StringIO

import pytest

from crossgraft import check_data
from crossgraft.cli.main import main
from crossgraft.data import k_folds, open_dataset
from crossgraft.data.checks.record import DataCheckRecord

pytestmark = pytest.mark.real_data


@pytest.fixture
def unpacked(real_data, tmp_path):
    def unpack(name):
        with tarfile.open(real_data / "datasets" / name) as archive:
            archive.extractall(tmp_path / "unpacked", filter="data")
        return tmp_path / "unpacked"

    return unpack


def findings(record):
    """Title → the most severe finding of this title."""
    return {finding.title: finding for finding in reversed(record.findings)}


@pytest.fixture(scope="module")
def check_npz(real_data):
    """The record of a file, which is checked once for all tests."""
    return cache(lambda name, **more: check_data(real_data / "datasets" / f"{name}.npz", **more).record)


@pytest.fixture(scope="module")
def pneumonia(real_data, tmp_path_factory):
    """Exit code, output and record of a check on the command line."""
    out = tmp_path_factory.mktemp("pneumonia") / "run"
    arguments = ["check", str(real_data / "datasets" / "pneumoniamnist.npz"), "--out", str(out), "--quiet"]
    with redirect_stdout(StringIO()) as said:
        code = main(arguments)
    return code, said.getvalue(), DataCheckRecord.model_validate_json((out / "report.json").read_bytes())


def test_pneumoniamnist_has_eight_pictures_in_train_and_val(pneumonia):
    code, said, record = pneumonia
    found = findings(record)
    assert found["Identical images across splits"].num_groups == 8
    assert "(8 in train and val)" in found["Identical images across splits"].text
    assert "(18 in train, 3 in test)" in found["Identical images"].text
    assert found["Near duplicates"].severity == "passed"  # chest X-rays resemble each other; none is taken for a copy
    assert code == 3
    assert "Not sound. 8 pictures are in more than one split" in said


def test_breastmnist_has_one_picture_in_train_and_test_with_two_labels(check_npz):
    found = findings(check_npz("breastmnist"))
    assert found["Identical images across splits"].images == [[116, 701]]
    assert "(1 in train and test)" in found["Identical images across splits"].text
    assert found["Same picture, different labels"].images == [[116, 701]]
    assert found["Near duplicates"].severity == "warning"


def test_only_pneumoniamnist_has_other_shares_of_classes_in_test(check_npz, pneumonia):
    (found,) = [each for each in pneumonia[2].split_differences if each.matters]
    assert (found.split, found.fact, round(found.effect, 2)) == ("test", "shares of the classes", 0.12)
    for name in ("breastmnist", "retinamnist"):
        assert not any(each.matters for each in check_npz(name).split_differences)


def test_brain_mri_has_25_copies_none_across_classes(unpacked):
    record = check_data(unpacked("brain_mri_tumor_yes_no_253.tar.gz"), holdout=0.0).record
    found = findings(record)
    assert found["Identical images"].text.startswith("25 images are copies of another, pixel by pixel.")
    assert found["Same picture, different labels"].severity == "passed"
    assert record.is_sound
    assert record.dataset.num_images == 253


def test_busi_has_one_copy_in_another_class(unpacked):
    record = check_data(unpacked("busi_780_gray128.tar") / "busi", holdout=0.0).record
    assert findings(record)["Identical images"].text.startswith("1 image is a copy")
    assert findings(record)["Same picture, different labels"].num_groups == 1


def test_retinamnist_has_no_copies_and_ordered_classes(check_npz):
    record = check_npz("retinamnist")
    assert record.is_sound
    assert "Ordered classes" in findings(record)


def test_medical_mnist_has_a_few_copies(check_npz):
    found = findings(check_npz("medical_mnist_6x400_gray64", holdout=0.0))
    assert found["Identical images"].text.startswith("3 images are copies")
    assert found["Constant images"].num_groups == 4


def test_skin_lesions_are_kept_together_and_divided_when_split_by_image(unpacked, tmp_path):
    folder = unpacked("ham10000_subset_jpg200x150.tar") / "ham10000_subset"
    options = {"label_column": "dx", "group_column": "lesion_id", "image_root": folder / "images"}
    by_lesion = check_data(folder / "metadata.csv", **options, folds=5).record
    assert findings(by_lesion)["Patient leakage"].severity == "passed"
    near = findings(by_lesion)["Near duplicates"]
    assert "(0 across splits, 37 within one group (column lesion_id))" in near.text
    assert near.num_groups == 37  # every pair that looks alike is two photographs of one lesion

    dataset = open_dataset(folder / "metadata.csv", **options)
    by_image = k_folds(dataset.targets, num_folds=5, seed=0, data_fingerprint=dataset.listing_fingerprint)[0]
    by_image.save(tmp_path / "by_image.json")
    shared = check_data(folder / "metadata.csv", **options, split=tmp_path / "by_image.json").record
    leak = findings(shared)["Patient leakage"]
    assert leak.severity == "unsound"
    assert leak.num_groups == 160
    assert not shared.is_sound
